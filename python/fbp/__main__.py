"""Runs the program: ``python -m fbp`` and the command ``fbp``."""

from __future__ import annotations

import os
import sys

from fbp._program import program


def main() -> None:
    if not os.access(program(), os.X_OK):
        sys.exit(f"{program()}: this package was built without the program; install the wheel that has both")
    # replaces this process, so that signals and the exit code are those of the program
    os.execv(program(), ["fbp", *sys.argv[1:]])


if __name__ == "__main__":
    main()
