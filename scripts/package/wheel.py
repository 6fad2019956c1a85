"""Makes a Python wheel that carries the program and the module: `pip install`, then `fbp`, `python -m fbp` or `import fbp`.

    python3 scripts/package/wheel.py --fbp BINARY --module LIBRARY [--out DIR] [--local]

BINARY and LIBRARY are those of scripts/package/portable: they may be linked with nothing but glibc, whose oldest version
that will do is part of the wheel's name. With --local they may be linked with anything, and the wheel is for this machine
alone. DIR is target/packages. The Python files and what pip is told are those of python/. Prints the path.
scripts/package/try-wheel installs and tries it. Needs Python 3.11.
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
import tomllib
import zipfile

import elf

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAME = "fbp_tomo"
PACKAGE = ROOT / "python" / "fbp"
# endings of the package's files, of which builds may leave others
SOURCES = {".py", ".pyi", ".typed", ".yaml"}


def entry(path, mode=0o644):
    info = zipfile.ZipInfo(path, date_time=commit_time())
    info.external_attr = (0o100000 | mode) << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


def commit_time():
    """The time of the last commit, so that the same input gives the same wheel."""
    git = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=False)
    return time.gmtime(int(git.stdout or 315532800))[:6]


def needed(path, local):
    """The version of glibc that a file needs; other libraries are refused unless it is for this machine."""
    glibc, libraries = elf.needs(str(path))
    other = [library for library in libraries if not elf.SYSTEM.fullmatch(library)]
    if other and not local:
        sys.exit(f"{path} is linked with {' '.join(other)}, which a wheel does not bring; build it with scripts/package/portable")
    return glibc


def metadata(project, version):
    extras = project["optional-dependencies"]
    required = [f"Requires-Dist: {what}\n" for what in project["dependencies"]]
    for extra, packages in extras.items():
        required.append(f"Provides-Extra: {extra}\n")
        required += [f"Requires-Dist: {what}; extra == '{extra}'\n" for what in packages]
    return (
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {version}\nLicense: {project['license']}\n"
        f"Requires-Python: {project['requires-python']}\nSummary: {project['description']}\n{''.join(required)}"
        "Description-Content-Type: text/markdown\n\n" + (ROOT / "README.md").read_text()
    )


def entry_points(project):
    return "[console_scripts]\n" + "".join(f"{name} = {what}\n" for name, what in project["scripts"].items())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fbp", required=True, type=pathlib.Path)
    parser.add_argument("--module", required=True, type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "target" / "packages")
    parser.add_argument("--local", action="store_true")
    arguments = parser.parse_args()

    glibc = max((needed(path, arguments.local) for path in (arguments.fbp, arguments.module)), key=elf.number)
    version = subprocess.check_output([arguments.fbp, "--version"], text=True).split()[1]
    major, minor = elf.number(glibc)[:2]
    linux = "linux" if arguments.local else f"manylinux_{major}_{minor}"
    tag = f"cp39-abi3-{linux}_{platform.machine()}"
    project = tomllib.loads((ROOT / "python" / "pyproject.toml").read_text())["project"]
    info = f"{NAME}-{version}.dist-info"
    with tempfile.TemporaryDirectory() as temporary:
        crates = pathlib.Path(temporary)
        subprocess.run(
            [sys.executable, ROOT / "scripts/package/crates.py", "--features", "hdf5-static", "--manifest", "python/Cargo.toml"]
            + ["--licences", crates / "l", "--sbom", crates / "s"],
            check=True,
        )
        files = [
            *((f"fbp/{path.relative_to(PACKAGE)}", path.read_bytes(), 0o644) for path in sorted(PACKAGE.rglob("*")) if path.suffix in SOURCES),
            ("fbp/_fbp.abi3.so", arguments.module.read_bytes(), 0o755),
            ("fbp/bin/fbp", arguments.fbp.read_bytes(), 0o755),
            (f"{info}/licenses/LICENSES.txt", (crates / "l").read_bytes(), 0o644),
            (f"{info}/sboms/fbp.cdx.json", (crates / "s").read_bytes(), 0o644),
            (f"{info}/entry_points.txt", entry_points(project).encode(), 0o644),
            (f"{info}/METADATA", metadata(project, version).encode(), 0o644),
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
