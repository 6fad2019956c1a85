"""Tells HTTomo about the method: ``python -m fbp.httomo``."""

from __future__ import annotations

import argparse
import importlib.util
import pathlib
import sys

# files of this package, and where HTTomo looks for them
PLACES = {
    "template.yaml": "yaml_templates/fbp/fbp.httomo.algorithm/reconstruct.yaml",
    "methods.yaml": "methods_database/packages/backends/fbp/fbp.yaml",
    "shapes.py": "methods_database/packages/backends/fbp/supporting_funcs/httomo/algorithm.py",
}


def place(root: pathlib.Path, remove: bool) -> list[pathlib.Path]:
    """Copies the files to HTTomo's package, or removes them; returns their paths there."""
    here = pathlib.Path(__file__).parent
    done = []
    for name, place in PLACES.items():
        path = root / place
        if not remove:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes((here / name).read_bytes())
        elif path.exists():
            path.unlink()
        else:
            continue
        done.append(path)
    # a directory of this package that has nothing but what Python compiled is not needed any more
    for top in ("yaml_templates/fbp", "methods_database/packages/backends/fbp") if remove else ():
        empty(root / top)
    return done


def empty(directory: pathlib.Path) -> None:
    """Removes a directory, unless somebody put files into it."""
    if not directory.is_dir():
        return
    for entry in sorted(directory.iterdir()):
        if entry.is_dir():
            empty(entry)
        elif directory.name == "__pycache__":
            entry.unlink()
    if not any(directory.iterdir()):
        directory.rmdir()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fbp.httomo", description="Tells HTTomo that fbp is one of its methods.")
    parser.add_argument("--remove", action="store_true", help="take that back")
    arguments = parser.parse_args()
    spec = importlib.util.find_spec("httomo_backends")
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"httomo_backends: there is none for {sys.executable}; install HTTomo for this Python, or run its own")
    root = pathlib.Path(next(iter(spec.submodule_search_locations)))
    try:
        done = place(root, arguments.remove)
    except OSError as error:
        sys.exit(f"{error.filename}: {error.strerror}; run this as the user who installed HTTomo")
    for path in done:
        print("removed" if arguments.remove else "wrote", path)
    if not done:
        print("there was nothing to remove")


if __name__ == "__main__":
    main()
