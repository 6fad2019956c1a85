"""Makes a Python wheel that carries the program: `pip install`, then `fbp` or `python -m fbp`.

    python3 scripts/package/wheel.py --fbp BINARY [--out DIR] [--local]

BINARY is that of scripts/package/portable: it may be linked with nothing but glibc, whose oldest version that will do is
part of the wheel's name. With --local it may be linked with anything, and the wheel is for this machine alone. DIR is
target/packages. Prints the path. scripts/package/try-wheel installs and tries it.
"""

import argparse
import base64
import hashlib
import pathlib
import platform
import subprocess
import sys
import tempfile
import time
import zipfile

import elf

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAME = "fbp_tomo"

MODULE = '''"""Filtered back projection of X-ray tomography scans on OpenCL devices: a program, fbp, for the shell.

    import fbp, subprocess
    subprocess.run([fbp.program(), "reconstruct", "--sinograms", "sinos", "--output", "slices"], check=True)
"""

import pathlib

__version__ = "{version}"


def program():
    """The path of the program."""
    return str(pathlib.Path(__file__).parent / "bin" / "fbp")
'''

MAIN = """import os
import sys

from fbp import program


def main():
    # replaces this process, so that signals and the exit code are those of the program
    os.execv(program(), ["fbp", *sys.argv[1:]])


if __name__ == "__main__":
    main()
"""


def entry(path, mode=0o644):
    info = zipfile.ZipInfo(path, date_time=commit_time())
    info.external_attr = (0o100000 | mode) << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


def commit_time():
    """The time of the last commit, so that the same input gives the same wheel."""
    git = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=False)
    return time.gmtime(int(git.stdout or 315532800))[:6]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fbp", required=True, type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "target" / "packages")
    parser.add_argument("--local", action="store_true")
    arguments = parser.parse_args()

    glibc, libraries = elf.needs(str(arguments.fbp))
    other = [library for library in libraries if not elf.SYSTEM.fullmatch(library)]
    if other and not arguments.local:
        sys.exit(f"{arguments.fbp} is linked with {' '.join(other)}, which a wheel does not bring; build it with scripts/package/portable")
    version = subprocess.check_output([arguments.fbp, "--version"], text=True).split()[1]
    major, minor = elf.number(glibc)[:2]
    linux = "linux" if arguments.local else f"manylinux_{major}_{minor}"
    tag = f"py3-none-{linux}_{platform.machine()}"
    metadata = (
        f"Metadata-Version: 2.1\nName: fbp-tomo\nVersion: {version}\nLicense: MIT\nRequires-Python: >=3.8\n"
        "Summary: Filtered back projection of X-ray sinograms and projections on any OpenCL device\n"
        "Description-Content-Type: text/markdown\n\n" + (ROOT / "README.md").read_text()
    )
    info = f"{NAME}-{version}.dist-info"
    with tempfile.TemporaryDirectory() as temporary:
        crates = pathlib.Path(temporary)
        subprocess.run(
            [sys.executable, ROOT / "scripts/package/crates.py", "--features", "hdf5-static"]
            + ["--licences", crates / "l", "--sbom", crates / "s"],
            check=True,
        )
        files = [
            ("fbp/__init__.py", MODULE.replace("{version}", version).encode(), 0o644),
            ("fbp/__main__.py", MAIN.encode(), 0o644),
            ("fbp/bin/fbp", arguments.fbp.read_bytes(), 0o755),
            (f"{info}/licenses/LICENSES.txt", (crates / "l").read_bytes(), 0o644),
            (f"{info}/sboms/fbp.cdx.json", (crates / "s").read_bytes(), 0o644),
            (f"{info}/entry_points.txt", b"[console_scripts]\nfbp = fbp.__main__:main\n", 0o644),
            (f"{info}/METADATA", metadata.encode(), 0o644),
            (f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: fbp\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(), 0o644),
        ]
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / f"{NAME}-{version}-{tag}.whl"
    record = ""
    with zipfile.ZipFile(path, "w") as wheel:
        for name, content, mode in files:
            wheel.writestr(entry(name, mode), content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(content)}\n"
        wheel.writestr(entry(f"{info}/RECORD"), record + f"{info}/RECORD,,\n")
    print(path)


if __name__ == "__main__":
    main()
