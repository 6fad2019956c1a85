"""What a program needs of the machine: prints the newest version of glibc among its symbols, and what it is linked with.

    python3 scripts/package/elf.py PROGRAM [--at-most VERSION]

With --at-most it fails for a symbol of a newer glibc, and for a library that is no part of glibc or the compiler's.
Needs readelf (binutils).
"""

import argparse
import re
import subprocess
import sys

SYSTEM = re.compile(r"(libc|libm|libdl|librt|libpthread|libutil|libgcc_s|ld-linux-[\w-]+)\.so\.\d+$")


def number(version):
    return tuple(map(int, version.split(".")))


def needs(program):
    """The newest version of glibc among a program's symbols, and its libraries."""
    read = lambda what: subprocess.check_output(["readelf", "--wide", what, program], text=True)  # noqa: E731
    versions = set(re.findall(r"\bGLIBC_([0-9.]+)\b", read("--version-info")))
    libraries = re.findall(r"\(NEEDED\).*\[(.*)\]", read("--dynamic"))
    if not versions:
        sys.exit(f"{program}: no symbols of glibc were found")
    return max(versions, key=number), libraries


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--at-most", metavar="VERSION")
    arguments = parser.parse_args()
    newest, libraries = needs(arguments.program)
    print(f"glibc {newest}; {' '.join(libraries)}")
    if arguments.at_most:
        other = [library for library in libraries if not SYSTEM.fullmatch(library)]
        if other or number(newest) > number(arguments.at_most):
            sys.exit(f"FAILED: not for every Linux with glibc {arguments.at_most}: glibc {newest} {' '.join(other)}")


if __name__ == "__main__":
    main()
