#!/usr/bin/env python3
"""Measures whole runs from 16-bit projections in TIFF files to slices, with the steps before and after the kernels.

    scripts/bench/counts.py [--fbp target/release/fbp]... [--size 2048] [--rounds 3] [--directory /dev/shm] [NAME]...

SIZE projections of SIZE x SIZE are made in DIRECTORY, with flats and darks, and reconstructed to SIZE slices there, in `fast`
mode with fields and -log; NAMEs select some of the variants. Variants take turns, and so do programs where several are given;
the first of the rounds and one more before it, which writes to pages that were never used, are not counted. Needs numpy and
tifffile, and 80 GB in DIRECTORY for 2048.

Prints, for each variant and program, the seconds of its process (best and worst), user and system time of the last run, and
for how many seconds its stages were busy. The floor is what threads of this script need to read the same files and to write as
many bytes in as many files, at the same time and without computing anything.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import tifffile

ROOT = Path(__file__).resolve().parents[2]
U16 = "--dtype u16 --range=-0.001,0.003"
PAGANIN = "--phase paganin --pixel-size 1.366um --energy-kev 20 --distance 50mm --delta-beta 300"
EIGEN = "--flats {scan}/moving --eigen-flats 3"
OPTICS = "--distortion {scan}/optics.txt --tilt 0.3"
LAMINO = "--overall-angle 360 --mode precise --lamino-angle {angle} --slab {middle}"
VARIANTS = {
    "f32": "",
    "u16": U16,
    "f16": "--dtype f16",
    "outliers": "--remove-outliers 3,500",
    "all": "--stripes all",
    "wavelet": "--stripes wavelet",
    "titarenko": "--stripes titarenko",
    "sorting": "--stripes sorting",
    "filtering": "--stripes filtering",
    "fitting": "--stripes fitting",
    "mean": "--stripes mean",
    "tilt": "--tilt 0.3",
    "paganin": PAGANIN,
    "outliers-all-u16": f"--remove-outliers 3,500 --stripes all {U16}",
    "outliers-paganin-all-u16": f"--remove-outliers 3,500 {PAGANIN} --stripes all {U16}",
    "histogram-sections": "--histogram {directory}/histogram.json --sections {directory}/sections.png",
    "u16-histogram": f"{U16} --histogram {{directory}}/histogram.json",
    "2G": "--device-memory 2G",
    "2G-all": "--device-memory 2G --stripes all",
    "outliers-all": "--remove-outliers 3,500 --stripes all",
    "2G-outliers-all": "--device-memory 2G --remove-outliers 3,500 --stripes all",
    "2G-tilt": "--device-memory 2G --tilt 0.3",
    "2G-paganin": f"--device-memory 2G {PAGANIN}",
    "2G-every-step": f"--device-memory 2G --remove-outliers 3,500 --tilt 0.3 {PAGANIN} --stripes all {U16}",
    "2G-every-step-f32": f"--device-memory 2G --remove-outliers 3,500 --tilt 0.3 {PAGANIN} --stripes all",
    "every-step-f32": f"--remove-outliers 3,500 --tilt 0.3 {PAGANIN} --stripes all",
    "every-step": f"--remove-outliers 3,500 --tilt 0.3 {PAGANIN} --stripes all {U16}",
    "flats": "--flats {scan}/moving",
    "eigen": EIGEN,
    "double-flat": "--double-flat",
    "hardening": "--beam-hardening 0.1,-0.02",
    "distortion": "--distortion {scan}/optics.txt",
    "distortion-tilt": OPTICS,
    "all-of-these": f"{EIGEN} --double-flat --beam-current {{scan}}/current.txt --beam-hardening 0.1,-0.02 {OPTICS}",
    "lamino-20": LAMINO.replace("{angle}", "20"),
    "lamino-45": LAMINO.replace("{angle}", "45"),
    "middle": "--overall-angle 360 --mode precise --rows {middle}",
    "middle-standard": "--overall-angle 360 --mode precise --rows {middle} --algorithm standard",
}


def make_frames(directory, size, numbers):
    """Counts with noise of 140 about 20000, in files of their own."""
    random = np.random.default_rng(1)
    frames = [random.normal(20000, 140, (size, size)).astype(np.uint16) for _ in range(4)]
    for number in numbers:
        tifffile.imwrite(directory / f"p_{number:05d}.tif", np.roll(frames[number % 4], 17 * number, axis=1))


def make_scan(scan, size):
    for name, level in (("flats", 55000), ("darks", 100)):
        (scan / name).mkdir(parents=True)
        for number in range(4):
            tifffile.imwrite(scan / name / f"{number}.tif", np.full((size, size), level, np.uint16))
    # flats of a beam whose bands move
    (scan / "moving").mkdir()
    random, rows = np.random.default_rng(2), np.arange(size)[:, None] * 6 * np.pi / size
    for number in range(20):
        level = 55000 * (1 + 0.02 * np.sin(rows + 0.3 * number))
        tifffile.imwrite(scan / "moving" / f"{number:02d}.tif", random.normal(level, 230, (size, size)).astype(np.uint16))
    half = (size - 1) / 2
    (scan / "optics.txt").write_text(f"xcenter = {half}\nycenter = {half}\nfactor0 = 1.0\nfactor1 = {-0.001 / half}\n"
                                     f"factor2 = {-0.002 / half**2}\n")
    (scan / "current.txt").write_text("".join(f"{200 - 2 * number / size}\n" for number in range(size)))
    (scan / "projections").mkdir()
    share = -(-size // os.cpu_count())
    with ProcessPoolExecutor() as pool:
        shares = [range(first, min(first + share, size)) for first in range(0, size, share)]
        for done in [pool.submit(make_frames, scan / "projections", size, numbers) for numbers in shares]:
            done.result()


def floor(scan, out, size, sample):
    """Seconds to read all projections and write all slices at once."""
    out.mkdir()
    share = -(-size // os.cpu_count())

    def copy(numbers):
        memory = bytearray(2 * size * size)
        data = memoryview(bytes(sample * size * size))
        for number in numbers:
            with open(scan / "projections" / f"p_{number:05d}.tif", "rb", buffering=0) as file:
                file.readinto(memory)
            with open(out / f"{number}.tif", "wb", buffering=0) as file:
                written = 0
                while written < len(data):
                    written += file.write(data[written:])

    start = time.perf_counter()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(copy, [range(first, min(first + share, size)) for first in range(0, size, share)]))
    seconds = time.perf_counter() - start
    shutil.rmtree(out)
    return seconds


def reconstruct(program, size, scan, directory, flags):
    """Seconds, user and system seconds, and the line of the stages."""
    out = directory / "slices"
    flags = flags.format(directory=directory, scan=scan, middle=f"{3 * size // 8}..{5 * size // 8}").split()
    for flag, value in ("--flats", scan / "flats"), ("--overall-angle", "180"), ("--mode", "fast"):
        if flag not in flags:
            flags += [flag, value]
    command = [program, "reconstruct", "--projections", scan / "projections", "--darks", scan / "darks", "-v",
               "--output", out, *flags]
    before, start = os.times(), time.perf_counter()
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    seconds, after = time.perf_counter() - start, os.times()
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}: {done.stderr[-2000:]}")
    shutil.rmtree(out)
    stages = [line.partition(":")[2].strip() for line in done.stderr.splitlines() if line.startswith("seconds")]
    user, system = after.children_user - before.children_user, after.children_system - before.children_system
    return seconds, f"{user:.1f} + {system:.1f}", stages[0] if stages else "-"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("variants", nargs="*", metavar="NAME", help=f"of {', '.join(VARIANTS)}; all by default")
    parser.add_argument("--fbp", type=Path, action="append", metavar="PATH", help="again for another one beside it")
    parser.add_argument("--size", type=int, default=2048, metavar="N")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument("--directory", type=Path, default=Path("/dev/shm"))
    args = parser.parse_args()
    names = args.variants or list(VARIANTS)
    if unknown := [name for name in names if name not in VARIANTS]:
        parser.error(f"there is no variant {unknown[0]}, choose from {', '.join(VARIANTS)}")
    programs = args.fbp or [ROOT / "target/release/fbp"]
    directory = args.directory / f"fbp-counts-{os.getpid()}"
    scan = directory / "scan"
    try:
        make_scan(scan, args.size)
        reconstruct(programs[0], args.size, scan, directory, "")
        runs = {(name, program): [] for name in names for program in programs}
        floors = {2: [], 4: []}
        for number in range(args.rounds + 1):
            for sample, seconds in floors.items():
                seconds.append(floor(scan, directory / "floor", args.size, sample))
            for name, program in runs:
                runs[name, program].append(reconstruct(program, args.size, scan, directory, VARIANTS[name]))
                print(f"{name}, {program}: {runs[name, program][-1][0]:.2f} s", file=sys.stderr, flush=True)
        print("| variant | seconds | user + system | stages of the last run |\n|---|---|---|---|")
        for sample, seconds in floors.items():
            print(f"| floor, {8 * sample}-bit slices | {min(seconds[1:]):.2f} to {max(seconds[1:]):.2f} | | |")
        for (name, program), of_name in runs.items():
            seconds, what = [run[0] for run in of_name[1:]], f"{name}, {program}" if len(programs) > 1 else name
            print(f"| {what} | {min(seconds):.2f} to {max(seconds):.2f} | {of_name[-1][1]} | {of_name[-1][2]} |")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
