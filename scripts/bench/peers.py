#!/usr/bin/env python3
"""Measures fbp beside other programs of parallel-beam back projection, on the same OpenCL device and in the same run.

Speed: linear interpolation in float32 of SIZE bins x SIZE projections onto SIZE^2 pixels, without filter and with the
data on the device, in GU/s: 10^9 updates of a pixel by a projection a second, over all slices.

  fbp           fbp bench, algorithm vector, 64 slices a pass, median of 3 passes
  silx, nabu    their OpenCL back projectors, one slice at a time as they are made for, median of 3 slices
  scikit-image  iradon, one slice, one thread, without OpenCL; in the first round only

The programs take turns, so that other load on the machine meets all of them. Sinograms are noise; the error is the root
mean square of the difference to a back projection in float64 at sampled pixels, relative to that of its values.

Files (--files): wall time of whole programs, with their start, from 64 TIFF sinograms (or --slices) to TIFF slices: fbp
reconstruct, and a Python program with silx and tifffile. Kernels of both come from their caches; fbp runs once with empty
caches, too.

The peers are installed from PyPI into target/peers.
"""

import argparse
import contextlib
import importlib.metadata
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from environment import ROOT, Environment, arguments

PEERS = Environment("peers", ["silx", "pyopencl", "scikit-image", "numpy", "tifffile"], "nabu")
SLICES = 64
REPEATS = 3
SILX_FILES = """
import sys
from pathlib import Path
import pyopencl
import tifffile
from silx.opencl.backprojection import Backprojection
device, source, target = sys.argv[1:]
devices = [d for p in pyopencl.get_platforms() for d in p.get_devices() if d.name.strip() == device]
fbp = None
for path in sorted(Path(source).glob("*.tif")):
    sinogram = tifffile.imread(path)
    if fbp is None:
        fbp = Backprojection(sinogram.shape, ctx=pyopencl.Context(devices[:1]))
    tifffile.imwrite(Path(target) / path.name, fbp(sinogram))
"""

if PEERS.entered:  # else this script starts anew
    import numpy as np
    import pyopencl
    import pyopencl.array
    import tifffile


def run_fbp(args, *arguments):
    """Standard output of fbp."""
    done = subprocess.run([args.fbp, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{args.fbp} {arguments[0]}: {done.stderr.strip()}")
    return done.stdout


def bench_fbp(args):
    kernels = json.loads(run_fbp(
        args, "bench", "--device", args.device, "--algorithm", "vector", "--interpolation", "linear", "--mode",
        "precise", "--slices-per-pass", SLICES, "--size", args.size, "--passes", REPEATS, "--quiet", "--json"))
    right = [kernel for kernel in kernels if kernel["verdict"] == "right"]
    if not right:
        sys.exit(f"fbp bench measured no kernel: {[kernel['reason'] for kernel in kernels]}")
    return max(right, key=lambda kernel: kernel["gu_per_s"])


class Problem:
    """Noise for a sinogram, and what its back projection is at some pixels inside the circle that every ray meets."""

    def __init__(self, size):
        self.size = size
        self.angles = np.arange(size) * np.pi / size
        random = np.random.default_rng(1)
        self.sinogram = random.uniform(-1, 1, (size, size)).astype(np.float32)
        x, y = random.integers(0, size, (2, 400))
        inside = np.hypot(x - size / 2, y - size / 2) < size / 2 - 2
        self.x, self.y = x[inside], y[inside]

    def error(self, image, centre, weight):
        """Of an image whose axis is at pixel and bin `centre`, with this weight of a projection."""
        x, y = self.x[:, None] - centre, self.y[:, None] - centre
        h = centre + x * np.cos(self.angles) - y * np.sin(self.angles)
        want = weight * sum(np.interp(h[:, p], np.arange(self.size), row) for p, row in enumerate(self.sinogram))
        return float(np.linalg.norm(image[self.y, self.x] - want) / np.linalg.norm(want))

    def timed(self, work):
        """GU/s of a call for one slice."""
        start = time.perf_counter()
        work()
        return self.size**3 / 1e9 / (time.perf_counter() - start)


def opencl_peer(name, problem, device):
    """A function that runs silx or nabu and gives GU/s, the data being on the device, and the error."""
    context = pyopencl.Context([device])
    shape, centre = problem.sinogram.shape, (problem.size - 1) / 2
    if name == "silx":
        from silx.opencl.backprojection import Backprojection

        projector = Backprojection(shape, axis_position=centre, angles=problem.angles, ctx=context)
        queue, project, weight = projector.queue, projector.backprojection, 1
        sinogram = projector.d_sino  # for processors it takes no other array on the device
        sinogram.set(problem.sinogram)
    else:
        from nabu.reconstruction.fbp_opencl import OpenCLBackprojector

        projector = OpenCLBackprojector(shape, rot_center=centre, angles=problem.angles, filter_name="none",
                                        backend_options={"ctx": context})
        # private, but nothing public waits for the device
        queue, project, weight = projector._processing.queue, projector.backproj, np.pi / problem.size
        sinogram = pyopencl.array.to_device(queue, problem.sinogram)
    image = pyopencl.array.zeros(queue, shape, np.float32)

    def run():
        project(sinogram, output=image)
        queue.finish()

    run()  # compiles
    error = problem.error(image.get(), centre, weight)
    return lambda: statistics.median(problem.timed(run) for _ in range(REPEATS)), error


def bench_scikit_image(problem):
    """GU/s and error."""
    from skimage.transform import iradon

    images = []
    speed = problem.timed(lambda: images.append(
        iradon(problem.sinogram.T, np.rad2deg(problem.angles), problem.size, filter_name=None, circle=False)))
    return speed, problem.error(images[0], problem.size // 2, np.pi / 2 / problem.size)


def compare_speeds(args, first):
    """A row of results for each program that runs; `first` is a run of fbp that is not counted."""
    problem = Problem(args.size)
    devices = [device for platform in pyopencl.get_platforms() for device in platform.get_devices()
               if device.name.strip() == first["device"].strip()]
    if not devices:
        sys.exit(f"pyopencl does not see the device that fbp uses: {first['device']}")
    speeds, errors, peers = {"fbp": []}, {"fbp": first["error"]}, {}
    for name in ["silx", "nabu"]:
        try:
            peers[name], errors[name] = opencl_peer(name, problem, devices[0])
            speeds[name] = []
        except Exception as error:  # whatever a peer lacks here, the others are measured
            print(f"{name} does not run here: {error}", file=sys.stderr)
    for number in range(args.rounds):
        speeds["fbp"].append(bench_fbp(args)["gu_per_s"])
        for name, speed in peers.items():
            speeds[name].append(speed())
        if number == 0:
            value, errors["scikit-image"] = bench_scikit_image(problem)
            speeds["scikit-image"] = [value]
    return [{"program": name, "version": version(args, name), "best": max(values), "median": statistics.median(values),
             "ratio": max(speeds["fbp"]) / max(values), "error": errors[name], "rounds": values}
            for name, values in speeds.items()]


def compare_files(args, device):
    """Wall seconds of both programs, and how far the inner parts of their middle slices are apart."""
    with tempfile.TemporaryDirectory(prefix="fbp-peers.") as directory:
        source, ours, theirs = (Path(directory) / name for name in ["sinograms", "fbp", "silx"])
        theirs.mkdir()
        run_fbp(args, "phantom", "--size", args.size, "--projections", args.size, "--slices", args.slices, "-o", source)
        commands = {"fbp": [args.fbp, "reconstruct", "--device", args.device, "--sinograms", source, "--output", ours,
                            "--overwrite", "--quiet"],
                    "silx": [sys.executable, "-c", SILX_FILES, device, source, theirs]}
        run_fbp(args, *commands["fbp"][1:])  # silx's kernels are in its cache from the comparison of speeds
        seconds = {name: [] for name in commands}
        for _ in range(args.rounds):
            for name, command in commands.items():
                start = time.perf_counter()
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
                seconds[name].append(time.perf_counter() - start)
        empty = {name: str(Path(directory) / name) for name in ["FBP_CACHE_DIR", "POCL_CACHE_DIR"]}
        start = time.perf_counter()
        subprocess.run(commands["fbp"], check=True, env=os.environ | empty, stdout=subprocess.DEVNULL)
        cold = time.perf_counter() - start
        ours, theirs = (tifffile.imread(sorted(path.glob("*.tif"))[args.slices // 2]) for path in [ours, theirs])
    inner = np.s_[args.size // 4:-args.size // 4, args.size // 4:-args.size // 4]
    difference = float(np.linalg.norm((ours - theirs)[inner]) / np.linalg.norm(ours[inner]))
    rows = [{"program": name, "best": min(values), "median": statistics.median(values),
             "ratio": min(values) / min(seconds["fbp"]), "rounds": values} for name, values in seconds.items()]
    return {"difference": difference, "slices": args.slices, "cold": cold, "programs": rows}


def version(args, name):
    return run_fbp(args, "--version").split()[-1] if name == "fbp" else importlib.metadata.version(name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fbp", type=Path, default=ROOT / "target/release/fbp", metavar="PATH",
                        help="program to measure [default: target/release/fbp]")
    parser.add_argument("--device", default="cpu", metavar="SEL", help="as in fbp bench [default: cpu]")
    parser.add_argument("--size", type=int, default=512, metavar="N", help="side of the problem [default: 512]")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", choices=range(3, 99), help="3 [default] or more")
    parser.add_argument("--files", action="store_true", help="compare whole programs, too")
    parser.add_argument("--slices", type=int, default=SLICES, metavar="N", help="slices of --files [default: 64]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results as JSON, too")
    args = arguments(parser, PEERS)
    load = os.getloadavg()[0]
    first = bench_fbp(args)
    with contextlib.redirect_stdout(sys.stderr):  # remarks of the peers
        speeds = compare_speeds(args, first)
    results = {"device": first["device"], "driver": first["driver"], "kernel": first["kernel"], "size": args.size,
               "cores": os.cpu_count(), "load_before": load, "speeds": speeds}
    packages = ", ".join(f"{name} {version(args, name)}" for name in ["pyopencl", "numpy", "tifffile"])
    print(f"{first['device']}, driver {first['driver']}; {os.cpu_count()} cores, load before {load:.1f}; {packages}\n"
          f"{first['kernel']}; {args.size} bins x {args.size} projections x {args.size}^2 pixels\n\n"
          "| program | version | GU/s best | GU/s median | fbp / program (best) | relative RMS error |\n"
          "|---|---|---:|---:|---:|---:|")
    for row in results["speeds"]:
        print("| {program} | {version} | {best:.3g} | {median:.3g} | {ratio:.1f} | {error:.1e} |".format(**row))
    if args.files:
        results["files"] = compare_files(args, first["device"].strip())
        files = results["files"]
        print(f"\n{args.slices} slices from TIFF to TIFF; middle slices differ by {files['difference']:.1e}; with empty "
              f"caches fbp takes {files['cold']:.2f} s\n\n"
              "| program | seconds best | seconds median | program / fbp (best) |\n|---|---:|---:|---:|")
        for row in files["programs"]:
            print("| {program} | {best:.2f} | {median:.2f} | {ratio:.1f} |".format(**row))
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
