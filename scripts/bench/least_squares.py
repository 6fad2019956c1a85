#!/usr/bin/env python3
"""Measures fbp's regularised least squares beside filtered back projection and the iterative methods of ASTRA, on processors.

    scripts/bench/least_squares.py [--fbp target/release/fbp] [--scans bars tooth/4] [--json FILE]
    scripts/bench/least_squares.py --from FILE       prints the tables of results that --json wrote
    scripts/bench/least_squares.py --picture FILE.png

Scans: images of test_images.py, which are projected on a grid four times finer than the slice; a phantom of fbp, whose
projections are exact; and a quarter and an eighth of the projections of two real scans, whose truth is the filtered back
projection of all, with the same filter and axis. These are tooth and tomo77 in ../shared/data beside the checkout, or in
FBP_TEST_DATA; without them they are left out. Noise is that of photons, or Gaussian in per cent of the largest line integral.

Errors are relative to the deviation of the truth inside 0.9 of the disc that all projections see; SSIM, with a Gaussian
window of deviation 1.5, is the mean there. On each scan:

  fbp          ramp, and the best of the other windows, at the whole bandwidth and at half of it
  tv           strengths from 0.1 to 10; strength 1 with 400 iterations, which stands for the minimum, and with values below 0
  others       huber, tikhonov and cgls
  ASTRA        SIRT without negative values, after 50, 100 and 200 iterations; CGLS, the best of 5, 10 ... 30 iterations; SART
               without negative values, the best of 1, 2, 5, 10 and 20 sweeps; with the projector `linear` on one processor

Seconds are those of processors, of a whole process of fbp with its start for one slice, and of ASTRA's iterations. Then as
many equal slices of 512 x 512 from 60 projections as there are cores are computed by one process of fbp, and by as many
processes of ASTRA: seconds on the clock. Last, faults of a scan: an axis that is off, and missing angles.

The peers are installed from PyPI into target/peers-least-squares.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from environment import ROOT, Environment, arguments

PEERS = Environment("peers-least-squares", ["astra-toolbox", "numpy", "pillow>=10.1", "scikit-image", "tifffile"], None)
STRENGTHS = [0.1, 0.2, 0.5, 1, 2, 5, 10]
WINDOWS = [[name, *cutoff] for cutoff in ([], ["--filter-cutoff", "0.5"])
           for name in ("shepp-logan", "cosine", "hamming", "hann", "parzen")]
SIMULATED = [  # name, image, size, projections, noise in per cent or photons
    ("bars", "bars", 256, 60, "0.3 %"),
    ("polygons", "polygons", 256, 30, "0.5 %"),
    ("fibres", "fibres", 256, 180, "1 %"),
    ("shells", "shells", 256, 90, "1 %"),
    ("porous", "porous", 256, 120, "4000 photons"),
    ("rectangles", "rectangles", 256, 20, "0.3 %"),
    ("grains", "grains", 256, 360, "1000 photons"),
    ("slopes", "slopes", 256, 720, "3 %"),
    ("texture", "texture", 256, 180, "20000 photons"),
    ("asymmetric", None, 256, 45, "0.1 %"),
    ("polygons-512", "polygons", 512, 60, "10000 photons"),
]
REAL = {"tooth": (0, 295.9), "tomo77": (40, 38.87)}  # detector row, axis
DATA = Path(os.environ.get("FBP_TEST_DATA", ROOT / "../shared/data"))

if PEERS.entered:  # else this script starts anew
    import astra
    import numpy as np
    import test_images
    import tifffile
    from PIL import Image, ImageDraw, ImageFont
    from skimage.metrics import structural_similarity


class Scan:
    """Rows, the true slice, and how both are compared."""

    def __init__(self, name, noise, rows, truth, angles, axis=None):
        self.name, self.noise, self.rows, self.truth = name, noise, rows.astype(np.float32), truth
        self.angles, self.bins, self.size = angles, rows.shape[1], len(truth)
        self.axis = (self.bins - 1) / 2 if axis is None else axis
        seen = min(self.axis, self.bins - 1 - self.axis) + 0.5
        y, x = np.mgrid[: self.size, : self.size] - (self.size - 1) / 2
        self.inside = np.hypot(x, y) < 0.9 * min(seen, self.size / 2)
        self.deviation = truth[self.inside].std()

    def error(self, image):
        difference = (image - self.truth)[self.inside].astype(float)
        return float(np.sqrt((difference**2).mean()) / self.deviation)

    def quality(self, image):
        span = float(np.ptp(self.truth[self.inside]))
        _, similarity = structural_similarity(image, self.truth, data_range=span, gaussian_weights=True, sigma=1.5,
                                              use_sample_covariance=False, full=True)
        return {"nrmse": self.error(image), "ssim": float(similarity[self.inside].mean())}


class Fbp:
    """Runs the program in a directory."""

    def __init__(self, program, directory):
        self.program, self.directory = program, directory

    def run(self, *words):
        done = subprocess.run([str(word) for word in (self.program, *words)], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"fbp {' '.join(map(str, words))}: {done.stderr.strip()[-2000:]}")
        return done.stderr

    def reconstruct(self, scan, *flags, axis=None):
        """The slice, and what the run took."""
        rows, angles, out, report = (self.directory / name for name in ("rows.tif", "angles.txt", "out.tif", "out.json"))
        tifffile.imwrite(rows, scan.rows)
        np.savetxt(angles, np.degrees(scan.angles), "%.9f")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.run("reconstruct", "--device", "cpu", "--sinograms", rows, "--no-minus-log", "--angles", angles, "--center",
                 scan.axis if axis is None else axis, "--output", out, "--overwrite", "--report", report, *flags)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        told = json.loads(report.read_text())
        result = {"seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}
        if told["solver"]:
            result |= {"iterations": told["solver"]["iterations"][0], "solver": told["stages"]["solver"],
                       "sigma": told["solver"]["sigma"][0], "unfinished": told["solver"]["unfinished"]}
        return tifffile.imread(out).squeeze(), result

    def measure(self, scan, *flags, **options):
        image, result = self.reconstruct(scan, *flags, **options)
        return result | scan.quality(image)


class Astra:
    """The geometry of a scan for ASTRA's methods on processors."""

    def __init__(self, scan):
        size = astra.create_vol_geom(scan.size, scan.size)
        detector = astra.create_proj_geom("parallel", 1.0, scan.bins, scan.angles)
        shift = scan.axis - (scan.bins - 1) / 2
        if shift != 0:
            detector = astra.geom_postalignment(detector, -shift)
        self.scan = scan
        self.projector = astra.create_projector("linear", detector, size)
        self.rows = astra.data2d.create("-sino", detector, scan.rows)
        self.volume = astra.data2d.create("-vol", size, 0)

    def misfit(self, image):
        """Relative difference of an image's projections and the rows, to check the geometry."""
        number, rows = astra.create_sino(image, self.projector)
        astra.data2d.delete(number)
        return float(np.linalg.norm(rows - self.scan.rows) / np.linalg.norm(self.scan.rows))

    def series(self, method, counts, options):
        """Quality and seconds after each of some numbers of iterations."""
        astra.data2d.store(self.volume, 0)
        settings = astra.astra_dict(method)
        settings |= {"ProjectorId": self.projector, "ProjectionDataId": self.rows, "ReconstructionDataId": self.volume,
                     "option": options}
        algorithm = astra.algorithm.create(settings)
        results, done, seconds = {}, 0, 0.0
        for name, count in counts.items():
            start = time.process_time()
            astra.algorithm.run(algorithm, count - done)
            seconds, done = seconds + time.process_time() - start, count
            results[name] = {"seconds": seconds} | self.scan.quality(astra.data2d.get(self.volume))
        astra.algorithm.delete(algorithm)
        return results

    def methods(self):
        projections, positive = len(self.scan.angles), {"MinConstraint": 0.0}
        sirt = self.series("SIRT", {n: n for n in (50, 100, 200)}, positive)
        cgls = self.series("CGLS", {n: n for n in range(5, 31, 5)}, {})
        sart = self.series("SART", {n: n * projections for n in (1, 2, 5, 10, 20)}, positive | {"ProjectionOrder": "random"})
        found = {f"SIRT {n}": result for n, result in sirt.items()}
        for name, results in (("CGLS", cgls), ("SART", sart)):
            best = min(results, key=lambda n: results[n]["nrmse"])
            found[name] = results[best] | {"iterations": best}
        return found

    def close(self):
        astra.projector.delete(self.projector)
        astra.data2d.delete([self.rows, self.volume])


def noisy(rows, noise, random):
    amount, kind = noise.split()
    if kind == "photons":
        photons = float(amount)
        return -np.log(np.maximum(random.poisson(photons * np.exp(-rows)), 0.5) / photons)
    return rows + float(amount) / 100 * rows.max() * random.standard_normal(rows.shape)


def simulated(fbp, name, image, size, projections, noise, angles=None):
    random = np.random.default_rng(sum(map(ord, name)))
    angles = np.arange(projections) * np.pi / projections if angles is None else angles
    if image is None:
        folder, truth = fbp.directory / "phantom", fbp.directory / "truth.tif"
        listed = fbp.directory / "phantom.txt"
        np.savetxt(listed, np.degrees(angles), "%.9f")
        fbp.run("phantom", "--kind", name, "--size", size, "--projections", projections, "--angles", listed, "--output",
                folder, "--truth", truth, "--overwrite")
        rows, truth = tifffile.imread(sorted(folder.glob("*.tif"))[0]).squeeze(), tifffile.imread(truth).squeeze()
    else:
        fine = getattr(test_images, image)(test_images.Grid(size), random)
        rows, truth = test_images.projected(fine, angles, size), test_images.averaged(fine)
    scale = 2 / rows.max()  # the largest line integral is 2
    return Scan(name, noise, noisy(rows * scale, noise, random), truth * np.float32(scale), angles)


def real(fbp, name, part):
    """One row of every part-th projection of a real scan."""
    row, axis = REAL[name]
    folder, out = DATA / name, fbp.directory / f"{name}.tif"
    fbp.run("preprocess", "--projections", folder / "proj", "--flats", folder / "flat", "--darks", folder / "dark",
            "--output", out, "--overwrite")
    rows, angles = tifffile.imread(out)[:, row], np.radians(np.loadtxt(folder / "angles_deg.txt"))
    whole = Scan(name, "", rows, np.eye(rows.shape[1], dtype=np.float32), angles, axis)
    truth, _ = fbp.reconstruct(whole)
    return Scan(f"{name}/{part}", "real", rows[::part], truth, angles[::part], axis)


def scans(fbp, names):
    """Those that are requested and there, one after the other."""
    for name, image, *others in SIMULATED:
        if not names or name in names:
            yield simulated(fbp, name, image, *others)
    for name in REAL:
        for part in (4, 8):
            if names and f"{name}/{part}" not in names:
                continue
            if (DATA / name).is_dir():
                yield real(fbp, name, part)
            else:
                print(f"{DATA / name} is missing: {name}/{part} is left out", file=sys.stderr)


def measure(fbp, scan):
    peers = Astra(scan)
    misfit = peers.misfit(scan.truth)
    if misfit > 0.3:
        sys.exit(f"{scan.name}: ASTRA's projections of the truth differ from the rows by {100 * misfit:.0f} %")
    windows = {" ".join(flags): fbp.measure(scan, "--filter", *flags) for flags in WINDOWS}
    window = min(windows, key=lambda name: windows[name]["nrmse"])
    results = {"fbp ramp": fbp.measure(scan), "fbp window": windows[window] | {"window": window}}
    for strength in STRENGTHS:
        results[f"tv {strength}"] = fbp.measure(scan, "--method", "tv", "--strength", strength)
    results["tv 400"] = fbp.measure(scan, "--method", "tv", "--iterations", 400)
    results["tv signed"] = fbp.measure(scan, "--method", "tv", "--no-non-negative")
    for method in ("huber", "tikhonov", "cgls"):
        results[method] = fbp.measure(scan, "--method", method)
    results |= peers.methods()
    peers.close()
    return {"scan": scan.name, "size": scan.size, "projections": len(scan.angles), "noise": scan.noise, "misfit": misfit,
            "results": results}


def speed(fbp, scan):
    """Seconds on the clock for as many equal slices as cores: fbp's threads, and processes of ASTRA."""
    cores = len(os.sched_getaffinity(0))
    rows, angles, out = (fbp.directory / name for name in ("stack.tif", "stack.txt", "stack-out.tif"))
    tifffile.imwrite(rows, np.stack([scan.rows] * cores))
    np.savetxt(angles, np.degrees(scan.angles), "%.9f")
    start = time.perf_counter()
    fbp.run("reconstruct", "--device", "cpu", "--sinograms", rows, "--no-minus-log", "--angles", angles, "--method", "tv",
            "--output", out, "--overwrite")
    ours, start = time.perf_counter() - start, time.perf_counter()
    children = []
    for _ in range(cores):
        child = os.fork()
        if child == 0:
            Astra(scan).series("SIRT", {100: 100}, {"MinConstraint": 0.0})
            os._exit(0)
        children.append(child)
    if any(os.waitpid(child, 0)[1] for child in children):
        sys.exit("SIRT failed")
    theirs = time.perf_counter() - start
    print(f"\n{cores} slices of {scan.size} x {scan.size} from {len(scan.angles)} projections on {cores} cores: fbp tv "
          f"{ours:.1f} s, ASTRA SIRT with 100 iterations {theirs:.1f} s, {theirs / ours:.1f} times as long", flush=True)
    return {"cores": cores, "tv": ours, "sirt": theirs}


def faults(fbp):
    """Errors with the axis beside its place, and without some of the angles."""
    table = []
    for name, image, size, _, _ in (SIMULATED[number] for number in (1, 4, 6, 9)):
        angles = np.arange(180) * np.pi / 180
        whole = simulated(fbp, name, image, size, 180, "0.5 %", angles)
        row = {"scan": name}
        for method, flags in (("fbp", []), ("tv", ["--method", "tv"])):
            for off in (0, 0.1, 0.25, 0.5):
                row[f"{method} {off}"] = fbp.measure(whole, *flags, axis=whole.axis + off)["nrmse"]
            for wedge in (30, 60):
                part = Scan(name, "0.5 %", whole.rows[: 180 - wedge], whole.truth, angles[: 180 - wedge])
                row[f"{method} wedge {wedge}"] = fbp.measure(part, *flags)["nrmse"]
        table.append(row)
    keys = [key for key in table[0] if key != "scan"]
    print("\n180 projections of 256 bins, noise 0.5 %: axis off by that many bins, degrees that are missing\n")
    heading(["scan", *keys])
    for row in table:
        print(f"| {row['scan']} | " + " | ".join(f"{row[key]:.3f}" for key in keys) + " |")
    return table


def heading(columns):
    print("| " + " | ".join(columns) + " |\n|---|" + "---:|" * (len(columns) - 1))


def tables(measured):
    """Prints the tables of docs/dev/least-squares.md, and summaries."""
    if not measured:
        sys.exit("no scan is left to be measured")
    strengths = [f"tv {strength}" for strength in STRENGTHS]
    print("\nNRMSE, and SSIM behind it\n")
    heading(["scan", "pixels", "projections", "noise", "ramp", "best window", "tv", "tv, best strength", "tv, values below 0",
             "huber", "tikhonov", "cgls", "SIRT, best of 3", "CGLS, best", "SART, best"])
    for scan in measured:
        results = scan["results"]
        strength, sirt = (min(names, key=lambda name: results[name]["nrmse"])
                          for names in (strengths, ["SIRT 50", "SIRT 100", "SIRT 200"]))
        shown = [("fbp ramp", ""), ("fbp window", ""), ("tv 1", ""), (strength, strength[3:]), ("tv signed", ""), ("huber", ""),
                 ("tikhonov", ""), ("cgls", ""), (sirt, sirt[5:]), ("CGLS", results["CGLS"]["iterations"]),
                 ("SART", results["SART"]["iterations"])]
        cells = [f"{results[name]['nrmse']:.3f} {results[name]['ssim']:.2f}" + (f" ({note})" if note else "")
                 for name, note in shown]
        print(f"| {scan['scan']} | {scan['size']} | {scan['projections']} | {scan['noise']} | {' | '.join(cells)} |")
    print("\nNRMSE of tv by strength\n")
    heading(["scan", *map(str, STRENGTHS), "1, 400 iterations", "window of fbp"])
    for scan in measured:
        cells = [f"{scan['results'][name]['nrmse']:.3f}" for name in (*strengths, "tv 400")]
        print(f"| {scan['scan']} | {' | '.join(cells)} | {scan['results']['fbp window']['window'].replace('--filter-', '')} |")
    print("\nprocessor seconds, and iterations behind them\n")
    timed = ["fbp ramp", "tv 1", "tv 400", "huber", "tikhonov", "cgls", "SIRT 100", "CGLS", "SART"]
    heading(["scan", *timed, "SIRT 100 / tv 1"])
    for scan in measured:
        results = scan["results"]
        counts = [f" ({results[name]['iterations']})" if "iterations" in results[name] else "" for name in timed]
        cells = [f"{results[name]['seconds']:.2f}{count}" for name, count in zip(timed, counts)]
        ratio = results["SIRT 100"]["seconds"] / results["tv 1"]["seconds"]
        print(f"| {scan['scan']} | {' | '.join(cells)} | {ratio:.1f} |")
    summaries(measured, strengths)


def summaries(measured, strengths):
    default, auto, ratios = [], [], []
    for scan in measured:
        results, name = scan["results"], scan["scan"]
        error = results["tv 1"]["nrmse"]
        default.append((name, error / min(results[strength]["nrmse"] for strength in strengths)))
        auto.append((name, error / results["tv 400"]["nrmse"]))
        ratios.append(results["SIRT 100"]["seconds"] / results["tv 1"]["seconds"])
    for what, limit, values in (("strength 1 within 10 % of the best strength", 1.1, default),
                                ("auto within 3 % of 400 iterations", 1.03, auto)):
        good = sum(value <= limit for _, value in values)
        print(f"\n{what}: {good} of {len(values)}; " + ", ".join(f"{name} {value:.2f}" for name, value in values))
    print(f"\nSIRT with 100 iterations takes {min(ratios):.1f} to {max(ratios):.1f} times (median {np.median(ratios):.1f}) the "
          "processor seconds of a whole run of tv")


def picture(fbp, path):
    """Truth, fbp, cgls and tv of one scan with 60 projections."""
    scan = simulated(fbp, "porous", "porous", 256, 60, "4000 photons")
    slices = [("truth", scan.truth)] + [(name, fbp.reconstruct(scan, *flags)[0]) for name, flags in (
        ("fbp", []), ("cgls", ["--method", "cgls"]), ("tv", ["--method", "tv"]))]
    high, margin, top = 1.2 * float(scan.truth.max()), 6, 24
    low = -0.2 * float(scan.truth.max())
    side = scan.size
    canvas = Image.new("L", (len(slices) * (side + margin) - margin, side + top), 255)
    draw, font = ImageDraw.Draw(canvas), ImageFont.load_default(15)
    for number, (name, image) in enumerate(slices):
        left = number * (side + margin)
        grey = np.clip((image - low) / (high - low) * 255, 0, 255).astype(np.uint8)
        canvas.paste(Image.fromarray(grey), (left, top))
        label = name if number == 0 else f"{name}, error {scan.error(image):.2f}"
        draw.text((left + 2, 3), label, fill=0, font=font)
    canvas.quantize(64).save(path, optimize=True)
    print(f"{path}: {path.stat().st_size / 1e3:.0f} KB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fbp", type=Path, default=ROOT / "target/release/fbp", metavar="PATH")
    parser.add_argument("--scans", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results as JSON, too")
    parser.add_argument("--from", type=Path, metavar="FILE", dest="source", help="print the tables of results in a file")
    parser.add_argument("--picture", type=Path, metavar="FILE.png", help="only make the picture of docs/least-squares.md")
    parser.add_argument("--only", choices=["scans", "speed", "faults"], help="one of the three parts")
    args = arguments(parser, PEERS)
    if args.source:
        return tables(json.loads(args.source.read_text())["scans"])
    results = {}
    with tempfile.TemporaryDirectory(prefix="fbp-least.") as directory:
        fbp = Fbp(args.fbp.resolve(), Path(directory))
        if args.picture:
            return picture(fbp, args.picture)
        if args.only in (None, "scans"):
            results["scans"] = []
            for scan in scans(fbp, args.scans):
                results["scans"].append(measure(fbp, scan))
                print(f"{scan.name} is measured", file=sys.stderr, flush=True)
                if args.json:
                    args.json.write_text(json.dumps(results, indent=1) + "\n")
            tables(results["scans"])
        if args.only in (None, "speed"):
            results["speed"] = speed(fbp, simulated(fbp, "polygons", "polygons", 512, 60, "0.3 %"))
        if args.only in (None, "faults"):
            results["faults"] = faults(fbp)
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
