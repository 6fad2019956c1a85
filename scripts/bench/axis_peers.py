#!/usr/bin/env python3
"""Prints how often algotom finds the rotation axis of the simulated scans of docs/dev/axis.md.

    FBP_TEST_EXPORT=DIR scripts/axis-table    writes the scans there
    scripts/bench/axis_peers.py DIR           searches them

A result is right within half a bin of the true axis. algotom has no verdict, so each result counts. The middle row is
searched by find_center_vo on the middle half of the detector, of whole turns its first half; whole turns with the axis
near an end of the detector by find_center_360, with windows of 10 % of the detector. algotom takes no angles.

algotom is installed from PyPI into target/axis-peers.
"""

import argparse
import json
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from environment import Environment

PEERS = Environment("axis-peers", ["algotom", "numpy"], None, "--only-binary=:all:")

if PEERS.entered:  # else this script starts anew
    import algotom.prep.calculation as algotom
    import numpy as np

TOLERANCE = 0.5


def search(path):
    """The kind of a scan, and algotom's error in bins; infinite where it fails."""
    about = json.loads(path.read_text())
    rows, projections, bins = about["shape"]
    values = np.fromfile(path.with_suffix(".f32"), "<f4").reshape(rows, projections, bins)
    sinogram = values[rows // 2]
    try:
        if about["off_centre"]:
            found = algotom.find_center_360(sinogram, max(6, bins // 10), ncore=1)[0]
        else:
            sinogram = sinogram[: projections // 2 + 1] if about["declared"] == 360 else sinogram
            found = algotom.find_center_vo(sinogram, bins // 4, bins - bins // 4, ncore=1)
        error = abs(found - about["axis"])
    except Exception as why:  # whatever a peer raises
        print(f"{path.stem}: {why}")
        error = np.inf
    return about["kind"], about["possible"], error


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scans", type=Path, help="directory with the scans")
    paths = sorted(parser.parse_args().scans.glob("*.json"))
    PEERS.enter()
    if not paths:
        parser.error("there are no scans; write them with FBP_TEST_EXPORT=DIR scripts/axis-table")
    kinds = defaultdict(lambda: [0, 0])
    with ProcessPoolExecutor() as processes:
        for kind, possible, error in processes.map(search, paths):
            kinds[kind][0 if possible and error <= TOLERANCE else 1] += 1
    print("| scan | right | wrong |\n|---|---:|---:|")
    for kind, (right, wrong) in kinds.items():
        print(f"| {kind} | {right} | {wrong} |")
    right, wrong = (sum(counts[i] for counts in kinds.values()) for i in (0, 1))
    print(f"| all | {right} | {wrong} |")


if __name__ == "__main__":
    main()
