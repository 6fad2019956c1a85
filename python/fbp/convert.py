"""Axis and angles of other programs in terms of fbp.

Each function returns a :class:`Geometry`, whose values :func:`fbp.reconstruct` takes::

    geometry = fbp.convert.from_tofu(1024.0, overall_angle=180.0, projections=1500)
    slices = fbp.reconstruct(data, geometry.angles, geometry.center)

Slices of other programs may be flipped or shifted; docs/geometry.md says which, and how that was checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Optional

if TYPE_CHECKING:
    import numpy
    import numpy.typing


class Geometry(NamedTuple):
    """Axis and angles as fbp takes them."""

    center: Optional[float]
    """Rotation axis in bins from the centre of bin 0; None for the middle of the detector."""
    angles: Optional[numpy.typing.NDArray[Any]]
    """Angle of every projection in degrees; None for even steps over 180 degrees."""


def from_tomopy(center: Optional[float] = None, theta: Optional[Any] = None, *, bins: Optional[int] = None) -> Geometry:
    """Axis and angles of ``tomopy.recon(tomo, theta, center)``.

    Args:
        center: its ``center``, in pixels from the centre of pixel 0.
        theta: its ``theta``, in radians.
        bins: number of bins; gives tomopy's default of ``bins / 2`` where there is no ``center``.
    """
    import numpy

    if center is None and bins is not None:
        center = bins / 2
    return Geometry(center, None if theta is None else numpy.asarray(numpy.degrees(theta), numpy.float64))


def from_tofu(
    axis: Optional[float] = None,
    *,
    overall_angle: Optional[float] = None,
    angle_step: Optional[float] = None,
    projections: Optional[int] = None,
) -> Geometry:
    """Axis and angles of ``tofu reco`` and ``tofu tomo``.

    Args:
        axis: ``--center-position-x`` or ``--axis``, in pixels from the left edge of pixel 0.
        overall_angle: ``--overall-angle`` of ``tofu reco`` in degrees, end excluded.
        angle_step: ``--angle`` of ``tofu tomo``, the step in radians.
        projections: number of projections, for one of the two angles.
    """
    import numpy

    center = None if axis is None else axis - 0.5
    if overall_angle is None and angle_step is None:
        return Geometry(center, None)
    if projections is None or (overall_angle is not None and angle_step is not None):
        from .errors import UsageError

        raise UsageError("from_tofu: give projections, and one of overall_angle and angle_step")
    if angle_step is not None:
        step = float(numpy.degrees(angle_step))
    else:
        step = float(overall_angle or 0.0) / projections
    return Geometry(center, step * numpy.arange(projections))


def from_nabu(rotation_axis_position: Optional[float] = None, angles: Optional[Any] = None) -> Geometry:
    """Axis and angles of nabu.

    Args:
        rotation_axis_position: key of that name, in pixels from the centre of pixel 0.
        angles: contents of its ``angles_file``, in degrees.
    """
    import numpy

    return Geometry(rotation_axis_position, None if angles is None else numpy.asarray(angles, dtype=numpy.float64))
