"""Virtual environments of the programs that fbp is compared with."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Environment:
    """Packages from PyPI in target/NAME; `optional` is one that need not be there."""

    def __init__(self, name, packages, optional, *options):
        self.path = (ROOT / "target" / name).resolve()
        self.packages, self.optional, self.options = packages, optional, options
        # whether this Python is that of the environment
        self.entered = Path(sys.prefix).resolve() == self.path

    def enter(self):
        """Makes the environment, or completes it, and starts the script anew inside, unless that was done."""
        if self.entered:
            return
        python = self.path / "bin" / "python"
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", self.path], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *self.options]
        subprocess.run([*install, *self.packages], check=True)
        if self.optional and subprocess.run([*install, self.optional], stderr=subprocess.DEVNULL).returncode != 0:
            print(f"{self.optional} cannot be installed here: left out", file=sys.stderr)
        os.execv(python, [str(python), *sys.argv])


def arguments(parser, environment):
    """The arguments of a script that measures --fbp, in its environment."""
    args = parser.parse_args()
    if not Path(args.fbp).is_file():
        parser.error(f"{args.fbp} is missing: cargo build --release")
    environment.enter()
    return args
