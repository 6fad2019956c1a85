"""Exceptions of fbp, one for each exit code of the program.

==============  =========  ======================================================  =============
exception       exit code  cause                                                   is also a
==============  =========  ======================================================  =============
CheckError      1          a check failed                                          RuntimeError
UsageError      2          a keyword, a value or the shape of an array             ValueError
InputError      3          data that are damaged or do not fit together            ValueError
DeviceError     4          no device, its driver, its memory or a kernel           RuntimeError
OutputError     5          a file that cannot be written                           OSError
StoppedError    75         the run was stopped                                     RuntimeError
==============  =========  ======================================================  =============

Each says what is wrong and, after a semicolon, what to do. Doubts about data that were used are warnings of the class
DataWarning; notes go to the logger ``fbp``.
"""

from __future__ import annotations


class FbpError(Exception):
    """Any error of fbp; ``exit_code`` is the exit code of the program."""

    exit_code = 1


class CheckError(FbpError, RuntimeError):
    """A check failed."""


class UsageError(FbpError, ValueError):
    """A keyword, a value or the shape of an array is wrong."""

    exit_code = 2


class InputError(FbpError, ValueError):
    """The data are damaged or do not fit together."""

    exit_code = 3


class DeviceError(FbpError, RuntimeError):
    """There is no device, or its driver, its memory or a kernel failed."""

    exit_code = 4


class OutputError(FbpError, OSError):
    """A file cannot be written."""

    exit_code = 5


class StoppedError(FbpError, RuntimeError):
    """The run was stopped before its end."""

    exit_code = 75


class DataWarning(UserWarning):
    """A reason to doubt the result that comes from the data."""


def of_exit_code(code: int, message: str) -> FbpError:
    """The exception of an exit code."""
    kinds: tuple[type[FbpError], ...] = (UsageError, InputError, DeviceError, OutputError, StoppedError)
    return next((kind for kind in kinds if kind.exit_code == code), CheckError)(message)
