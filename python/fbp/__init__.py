"""Filtered back projection of X-ray tomography scans on OpenCL devices, with NumPy arrays in and out.

    import fbp

    scan = fbp.open("scan.h5")
    slices = fbp.reconstruct(scan.data, scan.angles, "auto", flats=scan.flats, darks=scan.darks)

=====================  =======================================================================
reconstruct            slices from projections or sinograms
find_center            the rotation axis, with its uncertainty and a verdict
preprocess             corrected projections or sinograms
open                   the arrays of a scan in files
Reconstructor          reconstruct with the same keywords for many arrays
convert                axis and angles of tomopy, tofu and nabu
errors                 exceptions, one for each exit code of the program
program                the path of the program, for subprocess.run
=====================  =======================================================================

Conventions: the rotation axis is in bins of the detector, counted from the centre of bin 0. Angles are in degrees unless
their name ends in ``_rad``. Values of slices are attenuation per pixel, or per unit of ``pixel_size``. Keywords are the
flags of ``fbp reconstruct`` with underscores in the place of dashes, and take the same words; docs/python.md has the
rules. ``subprocess.run([fbp.program(), "help", "reconstruct"])`` prints the flags.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Union

from . import convert, errors
from ._program import program
from .errors import (
    CheckError,
    DataWarning,
    DeviceError,
    FbpError,
    InputError,
    OutputError,
    StoppedError,
    UsageError,
)

if TYPE_CHECKING:
    import os

    import numpy
    from numpy.typing import NDArray

    Frames = NDArray[Any]
    Slices = NDArray[numpy.float32]
    Progress = Union[bool, None, Callable[[int, int], Any]]

__version__ = "0.1.0"

__all__ = [
    "Center",
    "CheckError",
    "DataWarning",
    "DeviceError",
    "FbpError",
    "InputError",
    "OutputError",
    "Reconstructor",
    "Scan",
    "StoppedError",
    "UsageError",
    "__version__",
    "convert",
    "errors",
    "find_center",
    "open",
    "preprocess",
    "program",
    "reconstruct",
]


class Center(NamedTuple):
    """The rotation axis that :func:`find_center` found."""

    value: float
    """Position in bins from the centre of bin 0."""
    sd: float
    """Standard deviation in bins."""
    verdict: str
    """``ok``, or why the position is in doubt: ``railed``, ``flat``, ``ambiguous``, ``uncertain``, ``angles``."""
    method: str
    """The method that found it."""
    tilt: Optional[float]
    """Tilt of the axis in degrees; None from fewer than three rows with a sample."""


class Scan(NamedTuple):
    """The arrays of a scan in files, as they are stored."""

    data: Frames
    """Projections ``[projection, row, bin]``, or sinograms ``[row, projection, bin]``."""
    flats: Optional[Frames]
    """Flat fields ``[frame, row, bin]``."""
    flats2: Optional[Frames]
    """Flat fields taken after the scan."""
    darks: Optional[Frames]
    """Dark fields ``[frame, row, bin]``."""
    angles: Optional[NDArray[numpy.float64]]
    """Angle of every projection in degrees; None where the files have none."""
    center_shifts: Optional[NDArray[numpy.float64]] = None
    """Shift of the axis in every projection in bins, of .txrm files; None where the files have none."""


def reconstruct(
    data: Any,
    angles: Any = None,
    center: Union[float, str, tuple[float, float], None] = None,
    *,
    angles_rad: Any = None,
    order: str = "projections",
    flats: Any = None,
    darks: Any = None,
    flats2: Any = None,
    center_shifts: Any = None,
    filter: Optional[str] = None,
    interpolation: Optional[str] = None,
    stripes: Union[str, Sequence[str], None] = None,
    phase: Optional[str] = None,
    rows: Union[slice, range, str, None] = None,
    roi: Union[Sequence[int], str, None] = None,
    size: Optional[int] = None,
    device: Union[int, str, None] = None,
    mode: Optional[str] = None,
    out: Optional[Slices] = None,
    progress: Progress = None,
    **flags: Any,
) -> Slices:
    """Reconstructs slices.

    Args:
        data: projections ``[projection, row, bin]``, or with ``order="sinograms"`` sinograms ``[row, projection, bin]``
            or one ``[projection, bin]``: counts if there are ``flats``, else line integrals. Arrays of any whole or
            real type whose rows are contiguous are read in place, others are copied. Do not change them meanwhile.
        angles: angle of every projection in degrees. Default: even steps over 180 degrees, end excluded; see also
            ``overall_angle`` and ``start_angle``.
        center: rotation axis in bins from the centre of bin 0; ``"auto"`` or ``"auto:METHOD"`` finds it; two numbers
            are those of a tilted axis in the first and the last row. Default: the middle, ``(bins - 1) / 2``.
        angles_rad: the angles in radians.
        order: ``"projections"`` or ``"sinograms"``.
        flats: flat fields ``[frame, row, bin]`` or ``[row, bin]``, in counts.
        darks: dark fields, likewise.
        flats2: flat fields taken after the scan, likewise.
        center_shifts: shift of the axis in every projection, in bins.
        filter: ``"ramp"``, ``"shepp-logan"``, ``"hann"`` ...
        interpolation: ``"nearest"``, ``"linear"``, ``"exact"`` ...
        stripes: stripe removal such as ``"titarenko"`` or ``["dead", "sorting:size=21"]``.
        phase: ``"paganin"``, with ``delta_beta``, ``energy_kev``, ``distance`` and ``pixel_size``.
        rows: slices to reconstruct: ``slice(10, 20)`` or ``"10..20:2"``. Default: all.
        roi: region of each slice in pixels, ``(x, y, width, height)``.
        size: side of a slice in pixels. Default: the number of bins.
        device: index, part of a name, ``"gpu"``, ``"cpu"`` or ``"all"``. Default: the best GPU, else the CPU.
        mode: ``"precise"`` or ``"fast"``.
        out: contiguous float32 array of the shape of the result, into which slices are written.
        progress: function of the numbers of slices that are done and of all; True for a bar of tqdm, if that is
            installed.
        **flags: any other flag of ``fbp reconstruct`` that is not about files, such as ``pixel_size="0.65um"``,
            ``binning=2`` or ``minus_log=False``.

    Returns:
        Slices ``[row, y, x]`` of float32, attenuation per pixel or per unit of ``pixel_size``.

    Raises:
        UsageError: a keyword, a value or a shape is wrong.
        InputError: the data do not fit together, or the axis was not found.
        DeviceError: no device, or it failed.
        KeyboardInterrupt: after Ctrl-C, once the slices that were being computed are done.
    """
    from . import _arrays, _fbp

    arrays = {"angles": angles, "angles_rad": angles_rad, "flats": flats, "flats2": flats2, "darks": darks}
    scan = _arrays.lent(data, order, {**arrays, "center_shifts": center_shifts})
    named: dict[str, Any] = {"center": center, "filter": filter, "interpolation": interpolation, "stripes": stripes}
    named.update({"phase": phase, "rows": rows, "roi": roi, "size": size, "device": device, "mode": mode})
    _arrays.shares(out, scan.data)
    with _arrays.Progress(progress, "slice") as call:
        slices, _, said = _fbp.reconstruct(scan, _arrays.flags({**named, **flags}), out, call)
    _arrays.tell(said)
    return slices


def find_center(
    data: Any,
    angles: Any = None,
    *,
    angles_rad: Any = None,
    order: str = "projections",
    flats: Any = None,
    darks: Any = None,
    flats2: Any = None,
    center_shifts: Any = None,
    rows: Union[slice, range, str, None] = None,
    method: Optional[str] = None,
    search: Union[tuple[float, float], str, None] = None,
    **flags: Any,
) -> Center:
    """Finds the rotation axis in the data.

    Args:
        data, angles, angles_rad, order, flats, darks, flats2, center_shifts: as for :func:`reconstruct`.
        rows: rows of the detector to sample. Default: all.
        method: ``"likelihood"``, ``"registration"``, ``"vo"``, ``"overlap"`` or ``"sweep"``. Default: what suits the
            scan.
        search: first and last position in bins.
        **flags: any other flag of ``fbp center`` that is not about files.

    Returns:
        The axis; ``reconstruct(..., center="auto")`` refuses one whose verdict is not ``ok``.
    """
    from . import _arrays, _fbp

    arrays = {"angles": angles, "angles_rad": angles_rad, "flats": flats, "flats2": flats2, "darks": darks}
    scan = _arrays.lent(data, order, {**arrays, "center_shifts": center_shifts})
    keywords = {"rows": rows, "method": method, "search": search, **flags}
    found, said = _fbp.find_center(scan, _arrays.flags(keywords))
    _arrays.tell(said)
    return Center(*found)


def preprocess(
    data: Any,
    *,
    order: str = "projections",
    flats: Any = None,
    darks: Any = None,
    flats2: Any = None,
    rows: Union[slice, range, str, None] = None,
    stripes: Union[str, Sequence[str], None] = None,
    phase: Optional[str] = None,
    out: Optional[Slices] = None,
    progress: Progress = None,
    **flags: Any,
) -> Slices:
    """Corrects projections or sinograms as :func:`reconstruct` does before it filters them.

    Args:
        data, order, flats, darks, flats2, phase, out, progress: as for :func:`reconstruct`.
        rows: rows of the detector; of sinograms, their numbers. Default: all.
        stripes: stripe removal, for sinograms.
        **flags: any other flag of ``fbp preprocess`` that is not about files.

    Returns:
        Projections ``[projection, row, bin]`` or sinograms ``[row, projection, bin]`` of float32: line integrals, or
        transmissions with ``minus_log=False``.
    """
    from . import _arrays, _fbp

    scan = _arrays.lent(data, order, {"flats": flats, "flats2": flats2, "darks": darks})
    keywords = {"rows": rows, "stripes": stripes, "phase": phase, **flags}
    _arrays.shares(out, scan.data)
    with _arrays.Progress(progress, "page") as call:
        pages, said = _fbp.preprocess(scan, _arrays.flags(keywords), out, call)
    _arrays.tell(said)
    return pages


def open(scan: Union[str, os.PathLike[str], None] = None, **flags: Any) -> Scan:  # noqa: A001
    """Reads the arrays of a scan in files, all at once.

    Args:
        scan: HDF5 file, in the layouts that the program knows. A .txrm file is given as ``projections``.
        **flags: flags of the program about the scan: ``projections``, ``sinograms`` or ``raw`` in the place of ``scan``,
            ``flats``, ``darks``, ``flats2``, ``angles`` (paths), ``hdf5_data`` and the like, ``binning``.

    Returns:
        Arrays of the type that is stored; of 64-bit types, and with ``binning``, float32.
    """
    import numpy

    from . import _arrays, _fbp

    found = _fbp.open(_arrays.flags({"hdf5": scan, **flags}))
    lists = {
        name: None if values is None else numpy.asarray(values, dtype=numpy.float64)
        for name, values in ((name, found.pop(name)) for name in ("angles", "center_shifts"))
    }
    return Scan(**found, **lists)


class Reconstructor:
    """Reconstructs many arrays with the same keywords.

    Devices, with their contexts and programs, are kept between calls of all functions of this module; only memory for
    the data is allocated anew.

        reconstruct = fbp.Reconstructor(angles=angles, center=511.5, filter="hann")
        for data in stream:
            show(reconstruct(data))
    """

    def __init__(self, **keywords: Any) -> None:
        self.keywords = keywords

    def __call__(self, data: Any, **keywords: Any) -> Slices:
        """Reconstructs ``data``; keywords of this call take precedence."""
        return reconstruct(data, **{**self.keywords, **keywords})

    def __repr__(self) -> str:
        return f"Reconstructor({', '.join(f'{name}={value!r}' for name, value in self.keywords.items())})"
