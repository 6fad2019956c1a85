"""Arguments of the functions of this package, as the extension module takes them."""

from __future__ import annotations

import logging
import numbers
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Optional

import numpy

from . import _fbp
from ._program import program
from .errors import DataWarning, UsageError

# flags that negate others, by these
NEGATED = {"minus-log": "no-minus-log", "self-test": "no-self-test", "non-negative": "no-non-negative"}

if os.access(program(), os.X_OK):
    # another process opens HDF5 files first, as damaged ones may make the library crash
    _fbp.examine_with(program())


class Lent(NamedTuple):
    """Arrays of a scan, which the extension module reads in place."""

    sinograms: bool
    data: numpy.ndarray
    flats: Optional[numpy.ndarray]
    flats2: Optional[numpy.ndarray]
    darks: Optional[numpy.ndarray]
    angles: Optional[list[float]]
    center_shifts: Optional[list[float]]


def lent(data: Any, order: str, given: Mapping[str, Any]) -> Lent:
    """The arrays of a call; `given` has the others by their names."""
    if order not in ("projections", "sinograms"):
        raise UsageError(f"order: {order!r} is not one; give 'projections' or 'sinograms'")
    sinograms = order == "sinograms"
    axes = "[row, projection, bin]" if sinograms else "[projection, row, bin]"
    angles, angles_rad = numbers_of(given.get("angles"), "angles"), numbers_of(given.get("angles_rad"), "angles_rad")
    if angles is not None and angles_rad is not None:
        raise UsageError("angles and angles_rad: both say which angles the projections have; give one of them")
    if angles_rad is not None:
        angles = numpy.degrees(angles_rad)
    return Lent(
        sinograms=sinograms,
        data=frames(data, "data", axes, single=sinograms),
        **{
            name: None if given.get(name) is None else frames(given[name], name, "[frame, row, bin]", single=True)
            for name in ("flats", "flats2", "darks")
        },
        angles=None if angles is None else angles.tolist(),
        center_shifts=listed(numbers_of(given.get("center_shifts"), "center_shifts")),
    )


def array_of(value: Any, name: str) -> numpy.ndarray:
    """The array that an object has in memory, without a copy where that is possible."""
    if not isinstance(value, numpy.ndarray) and hasattr(value, "__dlpack__"):
        try:
            return numpy.asarray(numpy.from_dlpack(value))
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            message = f"{name}: is not in the host's memory ({error}); copy it there, as .cpu() or .get() do"
            raise UsageError(message) from error
    try:
        return numpy.asarray(value)
    except (TypeError, ValueError) as error:
        message = f"{name}: is not an array ({error}); give a NumPy array, or what numpy.asarray takes"
        raise UsageError(message) from error


def frames(value: Any, name: str, axes: str, single: bool) -> numpy.ndarray:
    """An array of frames whose rows are contiguous; `single` tells whether it may be one frame."""
    array = array_of(value, name)
    if array.ndim == 2 and single:
        array = array[numpy.newaxis]
    if array.ndim != 3:
        raise UsageError(f"{name}: has the shape {array.shape}, expected 3 axes {axes}; reshape it")
    rows = array.strides[2] == array.itemsize and min(array.strides) >= 0
    return array if rows else numpy.ascontiguousarray(array)


def numbers_of(values: Any, name: str) -> Optional[numpy.ndarray]:
    """A number for each projection."""
    if values is None:
        return None
    try:
        array = numpy.asarray(values, dtype=numpy.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{name}: are not numbers ({error}); give one for each projection") from error
    if array.ndim != 1:
        message = f"{name}: have the shape {array.shape}, expected one axis; give a number for each projection"
        raise UsageError(message)
    return array


def listed(values: Optional[numpy.ndarray]) -> Optional[list[float]]:
    return None if values is None else values.tolist()


def flags(keywords: Mapping[str, Any]) -> list[tuple[str, Optional[str]]]:
    """Keywords as flags of the program: names without dashes, and values."""
    found: list[tuple[str, Optional[str]]] = []
    for name, value in keywords.items():
        flag = name.replace("_", "-")
        if value is None:
            continue
        if isinstance(value, (bool, numpy.bool_)):
            if value:
                found.append((flag, None))
            elif flag in NEGATED:
                found.append((NEGATED[flag], None))
        elif flag == "stripes" and not isinstance(value, str):
            found.extend((flag, text(method, name)) for method in value)
        else:
            found.append((flag, text(value, name)))
    return found


def text(value: Any, name: str) -> str:
    """A value as a word of the command line."""
    if isinstance(value, str):
        return value
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        return repr(float(value))
    if isinstance(value, range):
        value = slice(value.start, value.stop, value.step)
    if isinstance(value, slice):
        if value.stop is None:
            raise UsageError(f"{name}: {value} has no end; give slice(A, B) or 'A..B'")
        step = "" if value.step in (None, 1) else f":{int(value.step)}"
        return f"{int(value.start or 0)}..{int(value.stop)}{step}"
    if isinstance(value, (Sequence, numpy.ndarray)) and len(value) > 0:
        return ",".join(text(part, name) for part in value)
    raise UsageError(f"{name}: {value!r} is not a word, a number or several; give what the flag of the program takes")


def tell(said: list[str]) -> None:
    """Passes on messages of a run: doubts as warnings, notes to the logger."""
    for line in said:
        kind, _, message = line.partition(": ")
        if kind == "warning":
            warnings.warn(message, DataWarning, stacklevel=3)
        else:
            logging.getLogger("fbp").info(message if kind == "note" else line)


def shares(out: Any, data: numpy.ndarray) -> None:
    """Refuses results in the place of the data, which are still read when slices are written."""
    if out is not None and not isinstance(out, numpy.ndarray):
        raise UsageError(f"out: is a {type(out).__name__}; give a NumPy array, or numpy.asarray of it")
    if out is not None and numpy.may_share_memory(out, data):
        raise UsageError("out: shares memory with data; give another array")


class Progress:
    """What shows the progress of a run: a function of what is done and of all, a bar, or nothing."""

    def __init__(self, wanted: Any, unit: str) -> None:
        self.bar: Any = None
        self.call: Optional[Callable[[int, int], Any]] = wanted if callable(wanted) else None
        if wanted is True:
            try:
                from tqdm.auto import tqdm  # type: ignore[import-untyped,unused-ignore]
            except ImportError:
                return
            self.bar = tqdm(unit=unit)
            self.call = self.show

    def show(self, done: int, total: int) -> None:
        self.bar.total = total
        self.bar.update(done - self.bar.n)

    def __enter__(self) -> Optional[Callable[[int, int], Any]]:
        return self.call

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()
