#!/usr/bin/env python3
"""Measures whole runs by how their projections are stored: Zarr with each compressor beside contiguous frames.

    scripts/bench/stored.py [--fbp target/release/fbp] [--size 2048] [--projections 1024] [--rounds 3]
                            [--directory /dev/shm] [NAME]...

PROJECTIONS of SIZE x SIZE counts are made in DIRECTORY in every form, with flats and darks, and reconstructed to SIZE slices of
16 bits there, in `fast` mode with fields and -log; NAMEs select some of the forms beside `contiguous`. Forms take turns; the
first of the rounds and one more before it are not counted. Needs numpy and numcodecs, and 55 GB in DIRECTORY for 2048 and 1024.

Prints, for each form, its GiB, the seconds of its process (best and worst), how many times the best and the median are those of
contiguous frames, user and system time of the last run, and for how many seconds its stages were busy. Some slices of each form
must be those of contiguous frames.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from numcodecs import Blosc, GZip, Zstd

ROOT = Path(__file__).resolve().parents[2]
CONTIGUOUS = "contiguous"
# Zarr 2, a chunk for each frame
CODECS = {
    "zarr": None,
    "zstd": Zstd(level=1),
    "blosc-lz4": Blosc(cname="lz4", clevel=5, shuffle=Blosc.BITSHUFFLE),
    "blosc-zstd": Blosc(cname="zstd", clevel=1, shuffle=Blosc.BITSHUFFLE),
    "gzip": GZip(level=1),
}


def make_frames(scan, size, numbers, names):
    """Counts with noise of 140 about 20000: the frames of these numbers in all forms."""
    random = np.random.default_rng(1)
    frames = [random.normal(20000, 140, (size, size)).astype("<u2") for _ in range(4)]
    with open(scan / "projections.raw", "r+b") as file:
        for number in numbers:
            frame = np.roll(frames[number % 4], 17 * number, axis=1)
            file.seek(number * frame.nbytes)
            file.write(frame.tobytes())
            for name in names:
                codec = CODECS[name]
                (scan / name / f"{number}.0.0").write_bytes(codec.encode(frame) if codec else frame.tobytes())


def make_scan(scan, size, projections, names):
    scan.mkdir(parents=True)
    for name, level in (("flats", 55000), ("darks", 100)):
        np.full((4, size, size), level, "<u2").tofile(scan / f"{name}.raw")
    for name in names:
        codec = CODECS[name]
        (scan / name).mkdir()
        meta = {"zarr_format": 2, "shape": [projections, size, size], "chunks": [1, size, size], "dtype": "<u2", "order": "C",
                "compressor": codec and codec.get_config(), "fill_value": 0, "filters": None}
        (scan / name / ".zarray").write_text(json.dumps(meta))
    with open(scan / "projections.raw", "wb") as file:
        file.truncate(2 * projections * size * size)
    share = -(-projections // os.cpu_count())
    with ProcessPoolExecutor() as pool:
        shares = [range(first, min(first + share, projections)) for first in range(0, projections, share)]
        for done in [pool.submit(make_frames, scan, size, numbers, names) for numbers in shares]:
            done.result()


def gibibytes(path):
    files = path.iterdir() if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files) / 2**30


def path_of(scan, name, args):
    raw = f"{scan / 'projections.raw'},{args.size}x{args.size}x{args.projections},u16le"
    return raw if name == CONTIGUOUS else str(scan / name)


def reconstruct(args, scan, name, out, *more):
    """Seconds, user and system seconds, and the line of the stages."""
    fields = [f"{scan / field}.raw,{args.size}x{args.size}x4,u16le" for field in ("flats", "darks")]
    command = [args.fbp, "reconstruct", "--projections", path_of(scan, name, args), "--flats", fields[0], "--darks", fields[1],
               "--overall-angle", "180", "--mode", "fast", "--dtype", "u16", "--range=-0.001,0.003", "-v", "--output", out, *more]
    before, start = os.times(), time.perf_counter()
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    seconds, after = time.perf_counter() - start, os.times()
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}: {done.stderr[-2000:]}")
    stages = [line.partition(":")[2].strip() for line in done.stderr.splitlines() if line.startswith("seconds")]
    user, system = after.children_user - before.children_user, after.children_system - before.children_system
    return seconds, f"{user:.1f} + {system:.1f}", stages[0] if stages else "-"


def check(args, scan, directory, names):
    """Some slices of each form are the same."""
    for name in names:
        reconstruct(args, scan, name, directory / f"some-{name}", "--rows", f"0..{args.size}:{max(args.size // 8, 1)}")
        done = subprocess.run([args.fbp, "compare", directory / f"some-{name}", directory / f"some-{CONTIGUOUS}",
                               "--tolerance", "0"], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{name}: other slices than with contiguous frames: {done.stdout}{done.stderr}")


def measure(args, scan, directory, names):
    runs = {name: [] for name in names}
    for _ in range(args.rounds + 1):
        for name in names:
            runs[name].append(reconstruct(args, scan, name, directory / "slices"))
            shutil.rmtree(directory / "slices")
    return {name: of_name[1:] for name, of_name in runs.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("forms", nargs="*", metavar="NAME", help=f"of {', '.join(CODECS)}; all by default")
    parser.add_argument("--fbp", type=Path, default=ROOT / "target/release/fbp", metavar="PATH")
    parser.add_argument("--size", type=int, default=2048, metavar="N")
    parser.add_argument("--projections", type=int, default=1024, metavar="N")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument("--directory", type=Path, default=Path("/dev/shm"))
    args = parser.parse_args()
    forms = args.forms or list(CODECS)
    if unknown := [name for name in forms if name not in CODECS]:
        parser.error(f"there is no form {unknown[0]}, choose from {', '.join(CODECS)}")
    directory = args.directory / f"fbp-stored-{os.getpid()}"
    scan, names = directory / "scan", [CONTIGUOUS, *forms]
    try:
        make_scan(scan, args.size, args.projections, forms)
        check(args, scan, directory, names)
        runs = measure(args, scan, directory, names)
        print("| form | GiB | seconds | times contiguous: best, median | user + system | stages of the last run |")
        print("|---|---|---|---|---|---|")
        first = [run[0] for run in runs[CONTIGUOUS]]
        for name, of_name in runs.items():
            seconds = [run[0] for run in of_name]
            stored = gibibytes(scan / ("projections.raw" if name == CONTIGUOUS else name))
            ratios = min(seconds) / min(first), statistics.median(seconds) / statistics.median(first)
            print(f"| {name} | {stored:.2f} | {min(seconds):.2f} to {max(seconds):.2f} | {ratios[0]:.2f}, {ratios[1]:.2f} "
                  f"| {of_name[-1][1]} | {of_name[-1][2]} |")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
