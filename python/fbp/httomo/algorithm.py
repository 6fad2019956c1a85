"""The method that HTTomo calls. HTTomo knows by the name of this module that it reconstructs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional, Union

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

__all__ = ["reconstruct"]


def reconstruct(
    data: NDArray[Any],
    angles: NDArray[Any],
    center: Optional[float] = None,
    filter: Optional[str] = None,
    interpolation: Optional[str] = None,
    stripes: Union[str, Sequence[str], None] = None,
    recon_size: Optional[int] = None,
    roi: Optional[Sequence[int]] = None,
    mask: bool = False,
    pixel_size: Optional[str] = None,
    minus_log: bool = False,
    device: Union[int, str, None] = None,
    flags: Optional[Mapping[str, Any]] = None,
) -> NDArray[numpy.float32]:
    """Reconstructs the slices of a block.

    Args:
        data: line integrals ``[projection, row, bin]``; with ``minus_log``, transmissions.
        angles: angle of every projection in radians.
        center: rotation axis in bins from the centre of bin 0, as HTTomo's methods find it. Default: the middle.
        filter: ``ramp``, ``shepp-logan``, ``hann`` ...
        interpolation: ``nearest``, ``linear``, ``exact`` ...
        stripes: stripe removal such as ``titarenko``, or a list of methods.
        recon_size: side of a slice in pixels. Default: the number of bins.
        roi: region of each slice in pixels, ``[x, y, width, height]``.
        mask: whether pixels outside the circle of the detector are 0.
        pixel_size: size of a bin such as ``0.65um``; values of slices are then attenuation per unit of that length.
        minus_log: whether to take the negative logarithm first.
        device: index, part of a name, ``gpu`` or ``cpu``. Default: the best GPU, else the CPU.
        flags: any other flags of :func:`fbp.reconstruct`.

    Returns:
        Slices ``[y, row, x]`` of float32: HTTomo has rows in the middle.
    """
    import fbp

    named: dict[str, Any] = {"filter": filter, "interpolation": interpolation, "stripes": stripes, "roi": roi}
    named.update({"size": recon_size, "mask": mask, "pixel_size": pixel_size, "device": device})
    # HTTomo passes on what a YAML file has, where a tuple would be a sweep
    slices = fbp.reconstruct(data, None, center, angles_rad=angles, minus_log=minus_log, **named, **(flags or {}))
    return slices.swapaxes(0, 1)
