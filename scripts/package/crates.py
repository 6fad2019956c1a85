"""The crates that the program consists of: their licences as one text, and a list of them (SBOM, CycloneDX 1.5).

    python3 scripts/package/crates.py [--manifest FILE] [--features NAMES] [--licences FILE] [--sbom FILE]

Fails for a crate whose licence is not known to be permissive. Crates whose package has no text of their licence are named.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
# one of them is enough where a crate offers a choice
PERMISSIVE = {
    "MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Zlib", "0BSD",
    "Unicode-3.0", "Unlicense", "BSL-1.0", "CC0-1.0", "HDF5",
}  # fmt: skip
# crates that name a file in place of an expression: the licence in it
NAMED_BY_FILE = {"hdf5-metno-src": "HDF5"}


def permissive(licence):
    """Whether an expression such as `(MIT OR Apache-2.0) AND Unicode-3.0` can be met by permissive licences alone."""
    words = re.sub(r"\s*/\s*", " OR ", licence)
    tokens = re.findall(r"\(|\)|\bAND\b|\bOR\b|[\w.+-]+(?: WITH [\w.-]+)?", words)
    python = " ".join(
        {"AND": "and", "OR": "or", "(": "(", ")": ")"}.get(token, str(token in PERMISSIVE)) for token in tokens
    )
    return bool(tokens) and eval(python, {"__builtins__": {}})  # noqa: S307 of True, False, and, or, brackets alone


def crates(manifest, features):
    """Packages that are linked into a crate, without those for building and testing."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", host()]
    command += ["--manifest-path", manifest]
    metadata = json.loads(subprocess.check_output([*command, "--features", features], cwd=ROOT))
    packages = {package["id"]: package for package in metadata["packages"]}
    for package in packages.values():
        package["license"] = package["license"] or NAMED_BY_FILE.get(package["name"])
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    root = metadata["resolve"]["root"]
    open_, linked = [root], {root: []}
    while open_:
        node = nodes[open_.pop()]
        for dependency in node["deps"]:
            normal = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            is_macro = any("proc-macro" in target["kind"] for target in packages[dependency["pkg"]]["targets"])
            if not normal or is_macro:
                continue
            linked[node["id"]].append(dependency["pkg"])
            if dependency["pkg"] not in linked:
                linked[dependency["pkg"]] = []
                open_.append(dependency["pkg"])
    by_name = sorted(linked, key=lambda id_: (packages[id_]["name"], packages[id_]["version"]))
    return packages[root], [packages[id_] for id_ in by_name if id_ != root], linked, packages


def host():
    text = subprocess.check_output(["rustc", "-vV"], text=True)
    return re.search(r"^host: (.*)$", text, re.M).group(1)


def licence_texts(package):
    """Names and texts of the files about a crate's licence, in its package."""
    folder = pathlib.Path(package["manifest_path"]).parent
    if folder.is_relative_to(ROOT):
        folder = ROOT  # crates of this project have its licence
    names = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)", re.I)
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and names.match(path.name)]
    if package["license_file"]:
        files.append(folder / package["license_file"])
    return [(path.name, path.read_text(errors="replace").strip()) for path in files]


def licences(root, used):
    parts = [f"{root['name']} {root['version']}\n{'=' * 60}\n{(ROOT / 'LICENSE').read_text().strip()}\n"]
    parts.append(f"The program contains the following {len(used)} crates.\n")
    known = {}
    for package in used:
        head = f"{package['name']} {package['version']} ({package['license']})"
        authors = ", ".join(package["authors"])
        lines = [head, "-" * len(head), f"Authors: {authors}" if authors else "", package.get("repository") or ""]
        texts = licence_texts(package)
        if not texts:
            lines.append("Its package contains no text of the licence; that of the expression above applies.")
        for name, text in texts:
            if text in known:
                lines.append(f"{name}: as {known[text]}")
            else:
                known[text] = f"{package['name']} {name}"
                lines.append(f"{name}:\n\n{text}\n")
        parts.append("\n".join(line for line in lines if line) + "\n")
    return "\n".join(parts)


def component(package, kind="library"):
    of_project = package["source"] is None
    return {
        "type": kind,
        "bom-ref": f"{package['name']}@{package['version']}",
        "name": package["name"],
        "version": package["version"],
        "description": package.get("description") or "",
        "licenses": [{"expression": re.sub(r"\s*/\s*", " OR ", package["license"])}],
        **({} if of_project else {"purl": f"pkg:cargo/{package['name']}@{package['version']}"}),
    }


def sbom(root, used, linked, packages):
    ref = lambda id_: f"{packages[id_]['name']}@{packages[id_]['version']}"  # noqa: E731
    names = ",".join(sorted(ref(package["id"]) for package in used))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, names)}",
        "version": 1,
        "metadata": {"component": component(root, "application")},
        "components": [component(package) for package in used],
        "dependencies": [{"ref": ref(id_), "dependsOn": sorted(map(ref, of))} for id_, of in sorted(linked.items())],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--manifest", default="Cargo.toml", help="of the crate, from the root of the repository")
    parser.add_argument("--features", default="")
    parser.add_argument("--licences", type=pathlib.Path)
    parser.add_argument("--sbom", type=pathlib.Path)
    arguments = parser.parse_args()
    root, used, linked, packages = crates(arguments.manifest, arguments.features)
    bad = [f"{package['name']}: {package['license']}" for package in used if not permissive(package["license"] or "")]
    if bad:
        sys.exit("not known to be permissive: " + "; ".join(bad))
    if arguments.licences:
        arguments.licences.parent.mkdir(parents=True, exist_ok=True)
        arguments.licences.write_text(licences(root, used))
    if arguments.sbom:
        arguments.sbom.parent.mkdir(parents=True, exist_ok=True)
        arguments.sbom.write_text(json.dumps(sbom(root, used, linked, packages), indent=1) + "\n")
    print(f"{len(used)} crates, {sum(1 for p in used if not licence_texts(p))} without a text of the licence", file=sys.stderr)


if __name__ == "__main__":
    main()
