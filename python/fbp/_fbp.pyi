"""The extension module; fbp/__init__.py has the functions for users."""

from collections.abc import Callable
from typing import Any, Optional

import numpy
import numpy.typing

from ._arrays import Lent

Flags = list[tuple[str, Optional[str]]]
Slices = numpy.typing.NDArray[numpy.float32]
Progress = Optional[Callable[[int, int], Any]]

def examine_with(program: str) -> None: ...
def reconstruct(
    scan: Lent, flags: Flags, out: Optional[Slices], progress: Progress
) -> tuple[Slices, float, list[str]]: ...
def preprocess(scan: Lent, flags: Flags, out: Optional[Slices], progress: Progress) -> tuple[Slices, list[str]]: ...
def find_center(
    scan: Lent, flags: Flags
) -> tuple[tuple[float, float, str, str, Optional[float]], list[str]]: ...
def open(flags: Flags) -> dict[str, Any]: ...
