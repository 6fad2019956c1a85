"""Times fbp.reconstruct beside the program, on the same sinograms in memory, and measures peak memory.

    python scripts/bench/python.py [--size 2048] [--slices 64] [--rounds 5] [--interpolation exact] [--place /dev/shm]

Needs the wheel, whose program is the other side: it reads and writes .npy files in PLACE. Each round starts the program, then a
fresh Python, which reconstructs twice into an array: cold, and warm with the devices and programs of the first call. `import fbp`,
making this array and reading the file into another one are not part of these times. Slices of both are compared bit for bit.
Takes eight times the size of the sinograms in memory.
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
# in memory that the system has provided before, as the program's files are
found = numpy.ones_like(slices)
keywords = dict(order="sinograms", interpolation=sys.argv[3], memory="512M", out=found)
measured = []
for _ in range(2):
    start, processors = time.perf_counter(), time.process_time()
    fbp.reconstruct(data, **keywords)
    measured += [time.perf_counter() - start, time.process_time() - processors]
    measured.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
same = all(numpy.array_equal(a, b) for a, b in zip(found, slices))
print(*measured, data.nbytes + found.nbytes, same)
"""


def of_processors():
    """Seconds of processors that child processes took."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


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
            start, before = time.perf_counter(), of_processors()
            subprocess.run([fbp.program(), "reconstruct", *words, "--overwrite", "--quiet"], check=True)
            program = (time.perf_counter() - start, of_processors() - before)
            child = [sys.executable, "-c", CHILD, data, output, arguments.interpolation]
            *measured, same = subprocess.check_output(child, text=True).split()
            if same != "True":
                sys.exit("FAILED: the slices of the module are not those of the program")
            *cold, cold_peak, warm, warm_processors, warm_peak, arrays = map(float, measured)
            # the first round fills caches of kernels and checks
            if count > 0:
                for name, both in {"program": program, "cold": cold, "warm": (warm, warm_processors)}.items():
                    rounds[name].append(both)
            beside = [peak / 1024 - arrays / (1 << 20) for peak in (cold_peak, warm_peak)]
            print(f"round {count}: program {program[0]:.2f} s, cold {cold[0]:.2f} s, warm {warm:.2f} s", flush=True)
    for at, kind in enumerate(["seconds", "seconds of processors"]):
        base = statistics.median(both[at] for both in rounds["program"])
        for name, measured in rounds.items():
            values = [both[at] for both in measured]
            middle, ends = statistics.median(values), f"{min(values):.2f} to {max(values):.2f}"
            print(f"{name:8} {middle:7.2f} {kind} ({ends}), {100 * (middle / base - 1):+.1f} %")
    print(f"peak memory of Python beside data and slices of {int(arrays) >> 20} MiB: {beside[0]:.0f} MiB, then {beside[1]:.0f} MiB")


if __name__ == "__main__":
    main()
