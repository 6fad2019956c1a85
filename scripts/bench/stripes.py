#!/usr/bin/env python3
"""Rings removed against harm done by every method of --stripes, beside algotom, on simulations with known truth.

Samples: a body with holes and inclusions, and a packing of grains, of density 1 in a detector of --size bins, of which the
sample leaves a share to air in all projections (at no air it is larger than the detector); exact line integrals with the
noise of --photons a bin. Rings are planted in the line integrals, one kind at a time:

  gain         each bin sees its line integrals a little wrong, one in thirty much: no ring in air
  offset       one bin in twenty is off by the same value in all projections
  partial      one bin in twenty is off by the same value in a part of the projections
  wide         four stripes of 9 to 15 bins see a sixth more or less
  dead         three stripes of 3 bins always say the same
  fluctuating  four bins with ten times the noise

Slices are reconstructed by fbp (ramp) from what each method makes of these arrays. In the disc that all projections see:

  harm   root mean square change of the ring-free slice, in percent of the sample's density
  left   root mean square difference to the ring-free slice, as a share of what the rings were before

and with --full for every sample, the same for sinograms, as shares of the largest line integral. fbp and algotom have equal
parameters. The packages are those of preprocess_peers.py.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import preprocess_peers as peers
from environment import arguments

if peers.PEERS.entered:  # else this script starts anew
    import algotom.prep.removal as algotom
    import numpy as np
    import tifffile

AIR = [0.0, 0.15, 0.30, 0.45, 0.60]
SAMPLES = ["body", "grains"]
KINDS = ["gain", "offset", "partial", "wide", "dead", "fluctuating"]
METHODS = {  # of fbp, and algotom with the same parameters
    "sorting": lambda s: algotom.remove_stripe_based_sorting(s, 21),
    "filtering": lambda s: algotom.remove_stripe_based_filtering(s, 3, 21),
    "fitting": lambda s: algotom.remove_stripe_based_fitting(s, 2, 15),
    "large": lambda s: algotom.remove_large_stripe(s, 3.0, 51),
    "dead": lambda s: algotom.remove_dead_stripe(s, 3.0, 51, residual=False),
    "dead,large": lambda s: algotom.remove_dead_stripe(s, 3.0, 51),
    "all": lambda s: algotom.remove_all_stripe(s, 3.0, 51, 21),
    "wavelet": lambda s: algotom.remove_stripe_based_wavelet_fft(s, 4, 2, "db5"),
    "titarenko": lambda s: algotom.remove_stripe_based_regularization(s, 0.01, apply_log=False),
    "mean": lambda s: algotom.remove_stripe_based_normalization(s, 15),
}
DEAD = METHODS["dead"]
METHODS |= {f"dead,{name}": lambda s, method=METHODS[name]: method(DEAD(s)) for name in ["fitting", "titarenko", "mean"]}


def ellipses(sample, air):
    """Density, semi-axes, centre and angle of each ellipse, in halves of the detector's width."""
    radius = 1.3 if air == 0 else 0.96 * (1 - air)
    random = np.random.default_rng(3)
    shift = (0.6 * (1 - air - radius), 0.4 * (1 - air - radius)) if air > 0 else (0.02, -0.03)
    parts = [(1.0, 1.0, 1.0, 0.0, 0.0, 0.0)]
    if sample == "body":
        parts += [(-0.4, 0.9, 0.85, 0.0, 0.02, 0.3), (-0.5, 0.2, 0.3, 0.3, 0.1, 0.5), (0.8, 0.1, 0.15, -0.35, 0.2, 0.0),
                  (-0.5, 0.25, 0.1, -0.1, -0.4, 1.0), (1.0, 0.03, 0.03, 0.45, -0.35, 0.0), (0.6, 0.3, 0.02, 0.0, 0.45, 0.2)]
    else:
        parts = [(0.1, 1.0, 1.0, 0.0, 0.0, 0.0)]
        while len(parts) < 60:
            size, distance, turn = random.uniform(0.04, 0.13), np.sqrt(random.uniform(0, 0.75)), random.uniform(0, 2 * np.pi)
            x, y = distance * np.cos(turn), distance * np.sin(turn)
            if all(np.hypot(x - u, y - v) > size + a for _, a, _, u, v, _ in parts[1:]):
                parts.append((0.9, size, size * random.uniform(0.6, 1.0), x, y, random.uniform(0, np.pi)))
    return [(d, a * radius, b * radius, x * radius + shift[0], y * radius + shift[1], turn)
            for d, a, b, x, y, turn in parts]


def line_integrals(sample, air, projections, bins):
    """Exact, up to 2 for a sample as wide as the detector."""
    theta = np.arange(projections)[:, None] * np.pi / projections
    t = (np.arange(bins) + 0.5) * 2 / bins - 1
    lines = np.zeros((projections, bins))
    for density, a, b, x, y, turn in ellipses(sample, air):
        s2 = (a * np.cos(theta - turn)) ** 2 + (b * np.sin(theta - turn)) ** 2
        h = t - x * np.cos(theta) - y * np.sin(theta)
        lines += 2 * density * a * b * np.sqrt(np.maximum(s2 - h * h, 0)) / s2
    return lines


def noise(shape):
    """Normal, of deviation 1, the same in every language: SplitMix64 and Box and Muller's transform."""
    with np.errstate(over="ignore"):
        z = np.arange(1, 2 * np.prod(shape) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    uniform = ((z ^ (z >> np.uint64(31))) >> np.uint64(11)).astype(float) / 2.0**53
    return (np.sqrt(-2 * np.log1p(-uniform[::2])) * np.cos(2 * np.pi * uniform[1::2])).reshape(shape)


def planted(kind, clean, photons, random):
    """Line integrals with rings of a kind."""
    projections, bins = clean.shape
    striped = clean.copy()
    largest = clean.max()
    few = random.permutation(bins)[:bins // 20]
    if kind == "gain":
        gain = 1 + random.normal(0, 0.01, bins)
        strong = random.permutation(bins)[:bins // 30]
        gain[strong] += random.choice([-1, 1], len(strong)) * random.uniform(0.05, 0.2, len(strong))
        striped *= gain
    elif kind == "offset":
        striped[:, few] += largest * random.choice([-1, 1], len(few)) * random.uniform(0.03, 0.12, len(few))
    elif kind == "partial":
        for bin in few:
            length = int(random.uniform(0.2, 0.6) * projections)
            start = random.integers(0, projections - length)
            striped[start:start + length, bin] += largest * random.choice([-1, 1]) * random.uniform(0.03, 0.12)
    else:  # few places, in the middle so that each meets the sample
        count = {"wide": 4, "dead": 3, "fluctuating": 4}[kind]
        for i in range(count):
            at = int(bins * (0.5 + 0.36 * ((i + 0.5) / count - 0.5) + random.uniform(-0.02, 0.02)))
            if kind == "wide":
                width = int(random.integers(9, 16))
                striped[:, at:at + width] *= 1 + random.choice([-1, 1]) / 6
            elif kind == "dead":
                striped[:, at:at + 3] = random.uniform(0.2, 0.8) * largest
            else:
                noise = 10 / np.sqrt(photons) * np.exp(clean[:, at] / 2)
                striped[:, at] += noise * random.normal(size=projections)
    return striped


def by_algotom(case):
    method, sinogram = case
    return METHODS[method](sinogram).astype(np.float32)


def fbp(args, *arguments):
    done = subprocess.run(list(map(str, [args.fbp, *arguments])), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"fbp {arguments[0]}: {done.stderr.strip()}")


def slices(args, folder, sinograms):
    """Reconstructed by fbp, in densities of the sample, with the disc that all projections see."""
    tifffile.imwrite(folder / "in.tif", sinograms)
    fbp(args, "reconstruct", "--sinograms", folder / "in.tif", "--output", folder / "out.tif", "--overwrite",
        "--padding", "zero", "--device", args.device)
    values = tifffile.imread(folder / "out.tif").reshape(len(sinograms), args.size, args.size)
    y, x = np.mgrid[:args.size, :args.size] - (args.size - 1) / 2
    return values[:, np.hypot(x, y) < 0.95 * args.size / 2] * (args.size / 2)


def rms(values):
    return float(np.sqrt(np.mean(np.square(values, dtype=float))))


def measure(args, cases, arrays):
    """(method, program, sample, air, kind) to (in the slice, in the sinogram): harm for no kind, else what is left."""
    results = {}
    stack = np.stack([arrays[case] for case in cases])
    with tempfile.TemporaryDirectory() as directory, ProcessPoolExecutor(args.jobs) as pool:
        folder = Path(directory)
        before = slices(args, folder, stack)
        for method in args.methods:
            tifffile.imwrite(folder / "s.tif", stack)
            start = time.perf_counter()
            fbp(args, "preprocess", "--sinograms", folder / "s.tif", "--output", folder / "p.tif", "--overwrite",
                "--stripes", method)
            ours = tifffile.imread(folder / "p.tif").reshape(stack.shape)
            print(f"{method}: {time.perf_counter() - start:.0f} s", end="", file=sys.stderr)
            start = time.perf_counter()
            theirs = np.stack(list(pool.map(by_algotom, [(method, s) for s in stack], chunksize=4)))
            print(f", algotom {time.perf_counter() - start:.0f} s", file=sys.stderr)
            for program, after in [("fbp", ours), ("algotom", theirs)]:
                made = slices(args, folder, after)
                for i, (sample, air, kind) in enumerate(cases):
                    free = cases.index((sample, air, None))
                    change = rms(made[i] - before[free]), rms(after[i] - stack[free])
                    was = (1.0, stack[free].max()) if kind is None else (
                        rms(before[i] - before[free]), rms(stack[i] - stack[free]))
                    results[method, program, sample, air, kind] = [a / b for a, b in zip(change, was)]
    return results


def table(title, heads, rows):
    print(f"\n{title}\n\n| method | " + " | ".join(heads) + f" |\n|{'---|' * (len(heads) + 1)}")
    for name, cells in rows:
        print(f"| `{name}` | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fbp", default=peers.ROOT / "target" / "release" / "fbp", help="the program")
    parser.add_argument("--device", default="cpu", help="what reconstructs the slices")
    parser.add_argument("--size", type=int, default=512, help="bins")
    parser.add_argument("--projections", type=int, default=361)
    parser.add_argument("--photons", type=float, default=50000, help="a bin of air sees")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS), metavar="METHOD")
    parser.add_argument("--jobs", type=int, default=2, help="processes of algotom")
    parser.add_argument("--full", type=Path, help="file for every figure, with tabs between")
    args = arguments(parser, peers.PEERS)
    arrays = {}
    for sample in SAMPLES:
        for air in AIR:
            random = np.random.default_rng(7)
            exact = line_integrals(sample, air, args.projections, args.size)
            clean = exact + noise(exact.shape) / np.sqrt(args.photons) * np.exp(exact / 2)
            arrays[sample, air, None] = clean.astype(np.float32)
            for kind in KINDS:
                arrays[sample, air, kind] = planted(kind, clean, args.photons, random).astype(np.float32)
    results = measure(args, list(arrays), arrays)
    if args.full:
        with open(args.full, "w") as file:
            print("method", "program", "sample", "air", "kind", "slice", "sinogram", sep="\t", file=file)
            for (*key, kind), values in results.items():
                print(*key, kind or "harm", *(f"{v:.4g}" for v in values), sep="\t", file=file)

    def worst(method, program, airs, kind):
        return max(results[method, program, sample, air, kind][0] for sample in SAMPLES for air in airs)

    def mean(method, program, airs, kinds):
        return np.mean([results[method, program, sample, air, kind][0]
                        for sample in SAMPLES for air in airs for kind in kinds])

    def cells(figure, columns, digits):
        return [(method, [" / ".join(f"{100 * figure(method, program, *column):.{digits}f}"
                                     for program in ("fbp", "algotom")) for column in columns])
                for method in args.methods]

    airs = [f"{air:.0%} air" for air in AIR]
    table("Harm in percent of the density, the worse of two samples, fbp / algotom", airs,
          cells(worst, [([air], None) for air in AIR], 2))
    table("Rings left in percent, mean of two samples and all shares of air, fbp / algotom", KINDS,
          cells(mean, [(AIR, [kind]) for kind in KINDS], 0))
    table("Rings left in percent, mean of two samples and all kinds, fbp / algotom", airs,
          cells(mean, [([air], KINDS) for air in AIR], 0))


if __name__ == "__main__":
    main()
