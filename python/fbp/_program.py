"""The program that comes with this package."""

from __future__ import annotations

import pathlib


def program() -> str:
    """The path of the program."""
    return str(pathlib.Path(__file__).parent / "bin" / "fbp")
