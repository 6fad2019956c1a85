"""Times fbp.reconstruct beside the program, on the same sinograms in memory, and measures peak memory.

    python scripts/bench/python.py [--size 2048] [--slices 64] [--rounds 5] [--interpolation exact] [--place /dev/shm]

Needs the wheel, whose program is the other side: it reads and writes .npy files in PLACE. Each round starts the program, then a
fresh Python, which reconstructs twice: cold, and warm with the devices and programs of the first call. `import fbp` and reading
the file into an array are not part of these times. Slices of both are compared bit for bit. Takes eight times the size of
the sinograms in memory.
"""

import argparse
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

import fbp

CHILD = """
import resource, sys, time
import numpy
import fbp
data, slices = numpy.load(sys.argv[1]), numpy.load(sys.argv[2], mmap_mode="r")
keywords = dict(order="sinograms", interpolation=sys.argv[3], memory="512M")
seconds = []
for _ in range(2):
    found = None
    start = time.perf_counter()
    found = fbp.reconstruct(data, **keywords)
    seconds.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds.append(peak)
same = all(numpy.array_equal(a, b) for a, b in zip(found, slices))
print(*seconds, data.nbytes + found.nbytes, same)
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=2048, help="bins, projections and pixels a side")
    parser.add_argument("--slices", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--interpolation", default="exact")
    parser.add_argument("--place", default="/dev/shm")
    arguments = parser.parse_args()
    rounds = {"program": [], "cold": [], "warm": []}
    with tempfile.TemporaryDirectory(dir=arguments.place) as folder:
        data, output = pathlib.Path(folder) / "sinograms.npy", pathlib.Path(folder) / "slices.npy"
        shape = (arguments.slices, arguments.size, arguments.size)
        stored = numpy.lib.format.open_memmap(data, "w+", numpy.float32, shape)
        generator = numpy.random.default_rng(1)
        for sinogram in stored:
            sinogram[:] = generator.random(shape[1:], dtype=numpy.float32)
        del stored
        words = ["--sinograms", data, "--output", output, "--interpolation", arguments.interpolation, "--memory", "512M"]
        for count in range(arguments.rounds + 1):
            start = time.perf_counter()
            subprocess.run([fbp.program(), "reconstruct", *words, "--overwrite", "--quiet"], check=True)
            program = time.perf_counter() - start
            child = [sys.executable, "-c", CHILD, data, output, arguments.interpolation]
            cold, cold_peak, warm, warm_peak, arrays, same = subprocess.check_output(child, text=True).split()
            if same != "True":
                sys.exit("FAILED: the slices of the module are not those of the program")
            # the first round fills caches of kernels and checks
            if count > 0:
                for name, seconds in {"program": program, "cold": float(cold), "warm": float(warm)}.items():
                    rounds[name].append(seconds)
            beside = [int(peak) / 1024 - int(arrays) / (1 << 20) for peak in (cold_peak, warm_peak)]
            print(f"round {count}: program {program:.2f} s, cold {cold} s, warm {warm} s", flush=True)
    base = statistics.median(rounds["program"])
    for name, seconds in rounds.items():
        middle = statistics.median(seconds)
        print(f"{name:8} {middle:7.2f} s ({min(seconds):.2f} to {max(seconds):.2f}), {100 * (middle / base - 1):+.1f} %")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"peak memory of Python beside data and slices of {int(arrays) >> 20} MiB: {beside[0]:.0f} MiB, then {beside[1]:.0f} MiB")
    print(f"largest peak of any of these processes: {peak:.0f} MiB")


if __name__ == "__main__":
    main()
