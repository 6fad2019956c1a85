#!/usr/bin/env python3
"""Reconstructs a night of 30 scans in five layouts, five of which are broken in different ways, with `fbp batch`, and times 20 small
scans beside 20 runs.

    scripts/bench/night.py [--fbp target/release/fbp] [--directory /dev/shm]

Scans are directories of TIFF projections and of TIFF sinograms, NumPy arrays, NXtomo and Data Exchange files. Of one the flat
fields are missing, one has no sample, so that its axis is not found, one file is damaged, the disk of one is full, and the
first command is killed with SIGKILL while it computes one. The script checks that `--resume` ends all others, that `--retry-failed`
ends the rest once they are mended, that `rec/index.html` has 30 rows, that slices are bit for bit those of single runs,
and that four jobs at once, `--shard 0/4` to `3/4`, write the same. Needs numpy, tifffile, h5py, a program with HDF5, and, to fill
a disk, the right to mount one; without it the number of broken scans is four. Prints what it checked, and the seconds.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import tifffile

ROOT = Path(__file__).resolve().parents[2]
LAYOUTS = ["tiff", "sinograms", "npy", "nxtomo", "exchange"]
OF_LAYOUT = 6
BINS, ROWS, PROJECTIONS = 160, 12, 180
AXIS = 79.5
COMMON = ["--device", "cpu", "--center", "auto", "--dtype", "f32"]


def check(true, what):
    if not true:
        sys.exit(f"FAILED: {what}")
    print(f"ok: {what}", flush=True)


class Night:
    def __init__(self, fbp, folder):
        self.fbp, self.folder = Path(fbp).resolve(), folder

    def run(self, *words, code=0):
        done = subprocess.run([self.fbp, *map(str, words)], cwd=self.folder, capture_output=True, text=True)
        if done.returncode != code:
            sys.exit(f"FAILED: {' '.join(map(str, words))} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done

    def batch(self, output, *more, **options):
        words = ["batch", "--scans", "scans.csv", *COMMON, "--output", f"{output}/{{name}}", "--report", f"{output}/{{name}}.html"]
        return self.run(*words, *more, **options)

    def states(self, pattern="rec/batch.json"):
        found = {}
        for file in self.folder.glob(pattern):
            found |= {scan["name"]: scan for scan in json.loads(file.read_text())["scans"]}
        return found

    def scans(self):
        """Writes the scans, and a table with the input of each."""
        self.run("phantom", "--kind", "asymmetric", "--size", BINS, "--projections", PROJECTIONS, "--slices", ROWS, "--as",
                 "projections", "--output", "lines")
        lines = np.stack([tifffile.imread(file) for file in sorted((self.folder / "lines").glob("*.tif"))])
        lines *= 2 / lines.max()
        random = np.random.default_rng(1)
        table = ["name,hdf5,projections,sinograms,flats,darks"]
        for layout in LAYOUTS:
            for number in range(OF_LAYOUT):
                name = f"{layout}_{number}"
                # axes are different
                moved = np.roll(lines, number - 3, axis=2)
                if name == "npy_2":
                    moved = np.zeros_like(moved)
                flats = random.poisson(20000, (10, *moved.shape[1:])).astype(np.uint16)
                darks = np.full_like(flats[:5], 100)
                counts = (random.poisson(19900 * np.exp(-moved)) + 100).astype(np.uint16)
                table.append(self.write(layout, name, counts, flats, darks))
        (self.folder / "scans.csv").write_text("\n".join(table) + "\n")

    def write(self, layout, name, counts, flats, darks):
        place = self.folder / "night" / name
        angles = np.arange(PROJECTIONS) * 180 / PROJECTIONS

        def pages(folder, frames):
            folder.mkdir(parents=True)
            for number, frame in enumerate(frames):
                tifffile.imwrite(folder / f"{number:04d}.tif", frame)

        if layout == "tiff":
            for kind, frames in (("p", counts), ("flats", flats), ("darks", darks)):
                pages(place / kind, frames)
            return f"{name},,night/{name}/p,,night/{name}/flats,night/{name}/darks"
        if layout == "sinograms":
            beam = flats.mean(0) - darks.mean(0)
            pages(place, -np.log((counts - darks.mean(0)) / beam).astype(np.float32).transpose(1, 0, 2))
            return f"{name},,,night/{name},,"
        place.mkdir(parents=True)
        if layout == "npy":
            for kind, frames in (("p", counts), ("flats", flats), ("darks", darks)):
                np.save(place / f"{kind}.npy", frames)
            return f"{name},,night/{name}/p.npy,,night/{name}/flats.npy,night/{name}/darks.npy"
        with h5py.File(place / "scan.h5", "w") as file:
            if layout == "exchange":
                for kind, frames in (("data", counts), ("data_white", flats), ("data_dark", darks), ("theta", angles)):
                    file[f"exchange/{kind}"] = frames
            else:
                frames = np.concatenate([darks, flats, counts])
                keys = [2] * len(darks) + [1] * len(flats) + [0] * len(counts)
                all_angles = np.concatenate([np.zeros(len(frames) - PROJECTIONS), angles])
                for path in ("entry", "entry/instrument", "entry/instrument/detector", "entry/sample"):
                    file.create_group(path)
                file["entry"].attrs["NX_class"], file["entry/definition"] = "NXentry", "NXtomo"
                file["entry/instrument"].attrs["NX_class"] = "NXinstrument"
                file["entry/instrument/detector"].attrs["NX_class"] = "NXdetector"
                file["entry/instrument/detector/data"] = frames
                file["entry/instrument/detector/image_key"] = keys
                file["entry/sample/rotation_angle"] = all_angles
                file["entry/sample/rotation_angle"].attrs["units"] = "degree"
        return f"{name},night/{name}/scan.h5,,,,"

    def kill_in_the_middle(self, victim):
        """Starts the batch and kills it while it computes a scan."""
        words = ["batch", "--scans", "scans.csv", *COMMON, "--output", "rec/{name}", "--report", "rec/{name}.html"]
        child = subprocess.Popen([self.fbp, *words], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(60000):
            if child.poll() is not None:
                sys.exit("FAILED: the batch ended before it was killed")
            if self.states().get(victim, {}).get("state") == "running":
                break
            time.sleep(0.001)
        child.send_signal(signal.SIGKILL)
        child.wait()
        return self.states()[victim]["state"]

    def files(self, output):
        return {file.name: file.read_bytes() for file in sorted((self.folder / output).glob("*.tif"))}

    def the_night(self):
        self.scans()
        full = self.folder / "rec/exchange_4"
        full.mkdir(parents=True)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", full], capture_output=True).returncode == 0
        damaged, flats = self.folder / "night/nxtomo_3/scan.h5", self.folder / "night/tiff_1/flats"
        whole = damaged.read_bytes()
        damaged.write_bytes(whole[: len(whole) // 3])
        flats.rename(self.folder / "moved")
        broken = {"tiff_1", "npy_2", "nxtomo_3"} | ({"exchange_4"} if mounted else set())
        try:
            check(self.kill_in_the_middle("nxtomo_1") == "running", "the first command was killed while it computed nxtomo_1")
            self.batch("rec", "--resume", code=1)
        finally:
            if mounted:
                subprocess.run(["umount", full], check=True)
        states = self.states()
        failed = {name for name, scan in states.items() if scan["state"] == "failed"}
        check(len(states) == 30 and failed == broken, f"after --resume, all of 30 scans are done but {', '.join(sorted(failed))}")
        for name in sorted(failed):
            error = states[name]["error"]
            print(f"    {name}, exit code {error['exit_code']}: {error['message'].splitlines()[0][:150]}")
        page = (self.folder / "rec/index.html").read_text()
        rows = sum(len(re.findall(f'"name": ?"{name}"', page)) > 0 for name in states)
        check(rows == 30, "the page has 30 rows")
        check(all((self.folder / f"rec/{name}.html").exists() for name in states), "each scan has a page, also those that failed")
        damaged.write_bytes(whole)
        (self.folder / "moved").rename(flats)
        np.save(self.folder / "night/npy_2/p.npy", np.load(self.folder / "night/npy_1/p.npy"))
        self.batch("rec", "--retry-failed")
        states = self.states()
        check(all(scan["state"] == "done" for scan in states.values()), "after --retry-failed, all 30 are done")
        axes = [scan["axis"]["value"] - AXIS - (int(name[-1]) - 3) for name, scan in states.items() if name != "npy_2"]
        check(max(map(abs, axes)) < 0.2, f"axes are within {max(map(abs, axes)):.2f} bins of where they are")
        jobs = [subprocess.Popen([self.fbp, "batch", "--scans", "scans.csv", *COMMON, "--output", "four/{name}", "--shard",
                                  f"{number}/4"], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                for number in range(4)]
        check([job.wait() for job in jobs] == [0] * 4, "four jobs at once end without an error")
        for line in (self.folder / "scans.csv").read_text().splitlines()[1:]:
            name, *inputs = line.split(",")
            flags = [word for flag, value in zip(("hdf5", "projections", "sinograms", "flats", "darks"), inputs) if value
                     for word in (f"--{flag}", value)]
            self.run("reconstruct", *flags, *COMMON, "--output", f"alone/{name}")
            alone = self.files(f"alone/{name}")
            if len(alone) != ROWS or alone != self.files(f"rec/{name}") or alone != self.files(f"four/{name}"):
                sys.exit(f"FAILED: slices of {name} are not those of a single run")
        print("ok: slices of all are bit for bit those of single runs, and of four jobs", flush=True)

    def twenty(self):
        self.run("phantom", "--kind", "asymmetric", "--size", 128, "--projections", 128, "--slices", 16, "--output", "small/0")
        for number in range(1, 20):
            shutil.copytree(self.folder / "small/0", self.folder / f"small/{number}")
        flags = ["--device", "cpu", "--center", "63.5"]
        times = {"20 runs": [], "one batch": []}
        for count in range(4):
            start = time.perf_counter()
            for number in range(20):
                self.run("reconstruct", "--sinograms", f"small/{number}", *flags, "--overwrite", "--output", f"runs/{number}")
            middle = time.perf_counter()
            self.run("batch", "small/*", "--as", "sinograms", *flags, "--overwrite", "--output", "batch/{name}")
            if count > 0:
                times["20 runs"].append(middle - start)
                times["one batch"].append(time.perf_counter() - middle)
        for number in range(20):
            if self.files(f"runs/{number}") != self.files(f"batch/{number}"):
                sys.exit(f"FAILED: slices of small/{number} differ")
        for name, seconds in times.items():
            print(f"{name}: {min(seconds):.2f} to {max(seconds):.2f} s")
        share = sorted(times["one batch"])[1] / sorted(times["20 runs"])[1]
        check(share <= 0.6, f"20 small scans take {share:.2f} of the time of 20 runs")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fbp", type=Path, default=ROOT / "target/release/fbp")
    parser.add_argument("--directory", type=Path, default=Path("/dev/shm"))
    options = parser.parse_args()
    folder = options.directory / f"fbp-night-{os.getpid()}"
    folder.mkdir()
    try:
        night = Night(options.fbp, folder)
        night.the_night()
        night.twenty()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
