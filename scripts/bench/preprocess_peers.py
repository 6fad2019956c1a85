#!/usr/bin/env python3
"""Compares what fbp does to data before the filter with what algotom does, on the same arrays.

Stripes: a sinogram of ellipses with noise (361 projections of 512 bins, or --projections and --size), stripes planted in
it: offsets of every tenth bin, seven bins that see a fifth more, three dead ones. Phase: the propagated image of a blob.

  difference   root mean square of fbp's result less the other's, as a share of the range of the clean data
  left         root mean square error to the clean data, as a share of what was planted: of fbp and of the other
  ms           one thread, with its Python for algotom

Peers without the names of a program are NumPy and PyWavelets, written down here: what a method is by its paper where
algotom does something else; docs/dev/steps.md explains these differences.

The peers are installed from PyPI into target/preprocess-peers; tomopy, too, if there is a wheel.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from environment import ROOT, Environment, arguments

PEERS = Environment("preprocess-peers", ["algotom", "numpy", "scipy", "PyWavelets", "tifffile"], "tomopy",
                    "--only-binary=:all:")
NOISE = 0.01

if PEERS.entered:  # else this script starts anew
    import algotom.prep.filtering as algotom_filtering
    import algotom.prep.removal as algotom
    import numpy as np
    import pywt
    import tifffile
    from scipy.ndimage import gaussian_filter1d, median_filter

    try:
        import tomopy
    except ImportError:
        tomopy = None


def run_fbp(args, data, *arguments):
    """What fbp preprocess makes of a page, and its milliseconds on one thread."""
    with tempfile.TemporaryDirectory() as directory:
        source, target = Path(directory, "in.tif"), Path(directory, "out.tif")
        tifffile.imwrite(source, data)
        command = [args.fbp, "preprocess", *arguments[:1], source, "--output", target, *arguments[1:]]
        environment = {**os.environ, "RAYON_NUM_THREADS": "1"}
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment)
        if done.returncode != 0:
            sys.exit(f"fbp preprocess: {done.stderr.strip()}")
        milliseconds = float(done.stdout.split(" ms each")[0].split()[-1])
        return tifffile.imread(target), milliseconds


def sinograms(projections, bins):
    """Line integrals up to 2, and the same with stripes."""
    theta = np.linspace(0, np.pi, projections, endpoint=False)[:, None]
    t = (np.arange(bins) + 0.5) * 2 / bins - 1
    clean = np.zeros((projections, bins))
    for density, a, c, x, y in [(1, 0.8, 0.6, 0.02, -0.05), (-0.5, 0.2, 0.3, 0.3, 0.1), (0.8, 0.1, 0.15, -0.35, 0.2)]:
        s2 = (a * np.cos(theta)) ** 2 + (c * np.sin(theta)) ** 2
        h = t - x * np.cos(theta) - y * np.sin(theta)
        clean += 2 * density * a * c * np.sqrt(np.maximum(s2 - h * h, 0)) / s2
    random = np.random.default_rng(1)
    clean += random.normal(0, NOISE, clean.shape)
    striped = clean.copy()
    striped[:, bins // 3:bins // 3 + 7] *= 1.2
    striped[:, 4::10] += random.uniform(-0.15, 0.15, striped[:, 4::10].shape[1])
    striped[:, bins // 2:bins // 2 + 3] = 0.5 + 1e-4 * random.normal(size=(projections, 3))
    return clean.astype(np.float32), striped.astype(np.float32)


def by_wavelets(sinogram, wavelet, level, sigma):
    """Muench's method by PyWavelets, continued as fbp does it, frequency 0 in its place."""
    pad = min(150, min(sinogram.shape) // 10)
    padded = np.pad(sinogram.astype(float), ((pad, pad), (0, 0)), mode="mean")
    padded = np.pad(padded, ((0, 0), (pad, pad)), mode="edge")
    bands = pywt.wavedec2(padded, wavelet, level=level)
    for i, (horizontal, vertical, diagonal) in enumerate(bands[1:], 1):
        k = np.fft.fftfreq(len(vertical)) * len(vertical)
        damping = 1 - np.exp(-(k**2) / (2 * sigma**2))
        vertical = np.fft.ifft(np.fft.fft(vertical, axis=0) * damping[:, None], axis=0).real
        bands[i] = horizontal, vertical, diagonal
    return pywt.waverec2(bands, wavelet)[pad:pad + sinogram.shape[0], pad:pad + sinogram.shape[1]]


def rough(rows, reach):
    """What a running median over 2 reach + 1 bins leaves of each row."""
    return rows - median_filter(rows, (1, 2 * reach + 1))


def by_least_squares(sinogram, alpha):
    """Titarenko's minimum for what is rough in the columns' means, solved as it is stated."""
    bins = sinogram.shape[1]
    differences = np.diff(np.eye(bins), axis=0)
    matrix = differences.T @ differences
    mean = rough(sinogram.mean(axis=0, dtype=float)[None], int(np.ceil(alpha**-0.5)))[0]
    return sinogram + np.linalg.solve(matrix + alpha * np.eye(bins), -matrix @ mean)


def by_polynomials(sinogram, order, sigma):
    """What is rough in fits of columns made smooth across bins, by least squares and SciPy's Gaussian."""
    x = np.linspace(-1, 1, len(sinogram))
    fit = np.polynomial.legendre.legval(x, np.polynomial.legendre.legfit(x, sinogram.astype(float), order)).T
    fit = rough(fit, sigma)
    return sinogram - fit + gaussian_filter1d(fit, sigma, axis=1)


def by_sorting(sinogram, size):
    """Columns sorted, rows under a median, values put back."""
    order = np.argsort(sinogram, axis=0, kind="stable")
    ranks = median_filter(np.take_along_axis(sinogram, order, 0), (1, size))
    result = np.empty_like(ranks)
    np.put_along_axis(result, order, ranks, 0)
    return result


def by_low_frequencies(sinogram, sigma, size):
    """The same for low frequencies of the columns, of which 0 passes whole."""
    pad = min(150, len(sinogram) // 10)
    padded = np.pad(sinogram.astype(float), ((pad, pad), (0, 0)), mode="reflect")
    k = np.fft.fftfreq(len(padded)) * len(padded)
    window = np.exp(-(k**2) / (2 * sigma**2))[:, None]
    smooth = np.fft.ifft(np.fft.fft(padded, axis=0) * window, axis=0).real[pad:pad + len(sinogram)]
    return sinogram - smooth + by_sorting(smooth, size)


STRIPES = [  # method of fbp, peer, what it does
    ("sorting", "algotom", lambda s: algotom.remove_stripe_based_sorting(s, 21)),
    ("filtering", "algotom", lambda s: algotom.remove_stripe_based_filtering(s, 3, 21)),
    ("filtering", "NumPy", lambda s: by_low_frequencies(s, 3, 21)),
    ("fitting", "algotom", lambda s: algotom.remove_stripe_based_fitting(s, 2, 10)),
    ("fitting", "NumPy", lambda s: by_polynomials(s, 2, 5)),
    ("large", "algotom", lambda s: algotom.remove_large_stripe(s, 3.0, 51)),
    ("dead", "algotom", lambda s: algotom.remove_dead_stripe(s, 3.0, 51, residual=False)),
    ("dead,large", "algotom", lambda s: algotom.remove_dead_stripe(s, 3.0, 51)),
    ("all", "algotom", lambda s: algotom.remove_all_stripe(s, 3.0, 51, 21)),
    ("wavelet:wavelet=db9,level=4,sigma=1", "algotom", lambda s: algotom.remove_stripe_based_wavelet_fft(s, 4, 1)),
    ("wavelet:wavelet=db9,level=4,sigma=1", "PyWavelets", lambda s: by_wavelets(s, "db9", 4, 1)),
    ("titarenko", "algotom", lambda s: algotom.remove_stripe_based_regularization(s, 0.01, apply_log=False)),
    ("titarenko", "NumPy", lambda s: by_least_squares(s, 0.01)),
    ("mean", "algotom", lambda s: algotom.remove_stripe_based_normalization(s, 15)),
    ("mean", "NumPy", lambda s: by_polynomials(s, 0, 15)),
]
TOMOPY = [
    ("sorting", lambda s: tomopy.remove_stripe_based_sorting(s, 21, ncore=1)),
    ("filtering", lambda s: tomopy.remove_stripe_based_filtering(s, 3, 21, ncore=1)),
    ("dead,large", lambda s: tomopy.remove_dead_stripe(s, 3, 51, ncore=1)),
    ("all", lambda s: tomopy.remove_all_stripe(s, 3, 51, 21, ncore=1)),
    ("wavelet:level=4", lambda s: tomopy.remove_stripe_fw(s, level=4, wname="db5", sigma=2, ncore=1)),
]


def rms(values):
    return float(np.sqrt(np.mean(np.square(values, dtype=float))))


def compare_stripes(args):
    clean, striped = sinograms(args.projections, args.size)
    span = float(np.ptp(clean))
    planted = rms(striped - clean)
    cases = list(STRIPES)
    if tomopy is not None:
        cases += [(m, "tomopy", lambda s, f=f: f(s[:, None].copy())[:, 0]) for m, f in TOMOPY]
    print(f"| `--stripes` | beside | difference | left, fbp | left, other | ms, fbp | ms, other |\n|{'---|' * 7}")
    for method, name, peer in cases:
        ours, milliseconds = run_fbp(args, striped, "--sinograms", "--stripes", method)
        start = time.perf_counter()
        theirs = peer(striped)
        seconds = time.perf_counter() - start
        print(f"| `{method}` | {name} | {rms(ours - theirs) / span:.1e} | {rms(ours - clean) / planted:.2f} | "
              f"{rms(theirs - clean) / planted:.2f} | {milliseconds:.0f} | {1e3 * seconds:.0f} |")


def compare_phase(args):
    n, pixel, energy, distance, ratio = args.size, 1e-6, 20.0, 0.02, 300.0
    length2 = distance * 1.2398419843320026e-9 / energy * ratio / (4 * np.pi) / pixel**2
    y, x = np.mgrid[:n, :n] - (n - 1) / 2
    transmission = np.exp(-1.2 * np.exp(-(x**2 + 1.5 * y**2) / (2 * (n / 16) ** 2)))
    k = 2 * np.pi * np.fft.fftfreq(n)
    response = 1 + length2 * (k[:, None] ** 2 + k**2)
    image = np.fft.ifft2(np.fft.fft2(transmission) * response).real
    image += np.random.default_rng(2).normal(0, 0.002, image.shape)
    image = image.astype(np.float32)
    ours, milliseconds = run_fbp(
        args, image, "--projections", "--phase", "paganin", "--energy-kev", energy, "--distance", f"{distance}m",
        "--delta-beta", ratio, "--pixel-size", f"{pixel}m")
    exact = np.fft.ifft2(np.fft.fft2(image.astype(float)) / response).real
    inner = slice(n // 8, -n // 8)  # beyond it the other's period shows
    print(f"\n| `--phase paganin`, L = {length2 ** 0.5:.1f} pixels, beside | difference | ms, fbp | ms, other |\n"
          f"|{'---|' * 4}")
    start = time.perf_counter()
    theirs = algotom_filtering.fresnel_filter(image, 4 * np.pi**2 * length2, dim=2, pad=0, apply_log=False)
    seconds = time.perf_counter() - start
    span = float(np.ptp(transmission))
    for name, other, cost in [("algotom, pad=0", theirs, f"{1e3 * seconds:.0f}"), ("NumPy", exact, "-")]:
        difference = rms((ours - other)[inner, inner]) / span
        print(f"| {name} | {difference:.1e} | {milliseconds:.0f} | {cost} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fbp", default=ROOT / "target" / "release" / "fbp", help="the program")
    parser.add_argument("--size", type=int, default=512, help="bins, and side of the projection")
    parser.add_argument("--projections", type=int, default=361)
    args = arguments(parser, PEERS)
    compare_stripes(args)
    compare_phase(args)


if __name__ == "__main__":
    main()
