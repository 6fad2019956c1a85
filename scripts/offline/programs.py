"""The program, and the kernels that its profiles can lead to."""

import os
import pathlib
import re
import subprocess
import sys

from compilers import CACHE, ROOT, Kernel


def read_kernel(path, profile):
    """A file of `fbp kernel --every`. Its head says how to build it, and is cut off: equal kernels are compiled once."""
    head, text = re.match(r"((?://[^\n]*\n)*)(.*)", path.read_text(), re.S).groups()
    options = re.search(r"^// options: (.*)$", head, re.M)
    group = re.search(r"^// work-group (\d+) x (\d+)", head, re.M)
    if not options or not group or "kernel" not in text:
        sys.exit(f"{path.name}: no kernel, or no options or work-group in its first lines")
    return Kernel(path.stem.removeprefix(f"{profile}-"), tuple(options[1].split()), int(group[1]) * int(group[2]), text)


def kernels_of_profiles(fbp, directory):
    """Every kernel of every built-in profile."""
    # none of the user's
    environment = os.environ | {"FBP_PROFILE_PATH": "", "FBP_CACHE_DIR": str(directory), "XDG_CONFIG_HOME": str(directory)}

    def output(*arguments):
        return subprocess.run([fbp, *arguments], env=environment, check=True, capture_output=True, text=True).stdout

    kernels = {}
    for profile in sorted(line.split()[0] for line in output("profiles", "list").splitlines()):
        every = directory / profile
        output("kernel", "--profile", profile, "--every", str(every))
        kernels[profile] = [read_kernel(path, profile) for path in sorted(every.glob("*.cl"))]
    return kernels


def built():
    """The program."""
    path = f"{os.environ.get('PATH', '')}:{os.environ.get('CARGO_HOME', pathlib.Path.home() / '.cargo')}/bin"
    subprocess.run(["cargo", "build", "--quiet", "--release", "--locked"], cwd=ROOT, env=os.environ | {"PATH": path}, check=True)
    return CACHE.parent / "release" / "fbp"
