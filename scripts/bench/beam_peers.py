#!/usr/bin/env python3
"""Compares what fbp does about beams, lenses, parts of scans and inclined axes with other programs, on one input.

Each group of steps has a table. Samples are blobs and ellipses of known projections, with noise where it says so.

  beside       what does the same: algotom, Discorpy, nabu, or NumPy, which has a definition written down here: that of
               fbp's pages, or as it says of a paper or a program
  difference   root mean square of fbp's result less the other's, as a share of the range of the truth
  fbp, other   root mean square error to the truth, as a share of its range: of fbp and of the other

docs/dev/steps.md explains the differences. The peers are installed from PyPI into target/beam-peers.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from environment import ROOT, Environment, arguments

PEERS = Environment("beam-peers", ["algotom", "discorpy", "nabu", "numpy", "scipy", "tifffile"], None)
PROJECTIONS = 24
SIZE = WIDTH, HEIGHT = 160, 128

if PEERS.entered:  # else this script starts anew
    import numpy as np
    import tifffile
    from algotom.prep.calculation import find_overlap
    from algotom.prep.conversion import stitch_image
    from algotom.prep.correction import non_linear_function, unwarp_projection
    from discorpy.post.postprocessing import unwarp_image_backward
    from nabu.io.detector_distortion import DetectorDistortionMapsXZ
    from nabu.preproc.double_flatfield import DoubleFlatField
    from nabu.preproc.flatfield import FlatField, PCAFlatsDecomposer, PCAFlatsNormalizer
    from nabu.stitching.overlap import ImageStichOverlapKernel
    from numpy.polynomial.polynomial import polyval
    from scipy.ndimage import gaussian_filter
    from scipy.optimize import minimize


def call(args, *words):
    """What fbp says."""
    done = subprocess.run([str(word) for word in (args.fbp, *words)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"fbp {' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout + done.stderr


def run_fbp(args, *words, **files):
    """The pages that a command of fbp writes, and what it says. Words such as {flats} stand for `files`: images, or
    text; a__flats is of the part {here}/a."""
    with tempfile.TemporaryDirectory() as directory:
        places = {"here": directory, "part": "{part}"}
        for name, content in files.items():
            text = isinstance(content, str)
            file = places[name] = Path(directory, name.replace("__", "/") + (".txt" if text else ".tif"))
            file.parent.mkdir(exist_ok=True)
            if text:
                file.write_text(content)
            else:
                tifffile.imwrite(file, np.asarray(content, np.float32))
        target = Path(directory, "out.tif")
        said = call(args, *(str(word).format(**places) for word in words), "--output", target)
        return tifffile.imread(target).astype(float), said


def rms(values):
    return float(np.sqrt(np.mean(np.square(values, dtype=float))))


def head(title):
    print(f"\n| {title} | beside | difference | fbp | other |\n|{'---|' * 5}")


def row(step, peer, ours, theirs, truth):
    shares = [rms(of) / float(np.ptp(truth)) for of in (ours - theirs, ours - truth, theirs - truth)]
    print(f"| {step} | {peer} | {' | '.join(f'{share:.1e}' for share in shares)} |", flush=True)


def grid(width=WIDTH, height=HEIGHT):
    """Rows and bins of pixels."""
    return np.mgrid[:height, :width].astype(float)


def scene(x, y, p, size=SIZE, fine=1.0):
    """Transmissions at positions in projection p: blobs that turn about an axis in the middle."""
    random, (width, height) = np.random.default_rng(3), size
    lines = np.zeros(np.broadcast(x, y).shape)
    for _ in range(width * height // 160):
        radius, phase = width * 0.55 * random.random() ** 0.5, random.uniform(0, 2 * np.pi)
        level, sigma, density = random.uniform(0, height), fine * random.uniform(2, 5), random.uniform(0.05, 0.3)
        across = width / 2 + radius * np.cos(2 * np.pi * p / PROJECTIONS + phase)
        lines += density * np.exp(-((x - across) ** 2 + (y - level) ** 2) / (2 * sigma**2))
    return np.exp(-lines)


def scenes():
    y, x = grid()
    return np.stack([scene(x, y, p) for p in range(PROJECTIONS)])


def keys(t):
    """Weights of cubic convolution with a = -1/2, for the pixels at -1, 0, 1 and 2."""
    return (-(t**3) + 2 * t**2 - t) / 2, 1.5 * t**3 - 2.5 * t**2 + 1, -1.5 * t**3 + 2 * t**2 + t / 2, (t**3 - t**2) / 2


def by_cubic_convolution(image, x, y):
    """The image at positions, its outermost pixels repeated beyond it."""
    columns, rows = np.floor(x).astype(int), np.floor(y).astype(int)
    result = np.zeros(x.shape)
    for i, down in enumerate(keys(y - rows), -1):
        for j, across in enumerate(keys(x - columns), -1):
            at = np.clip(rows + i, 0, image.shape[0] - 1), np.clip(columns + j, 0, image.shape[1] - 1)
            result += down * across * image[at]
    return result


def lens(args):
    """A projection as a lens shows it, exactly, and what is made of it."""
    (y, x), centre, pixels = grid(), (82.3, 60.7), np.arange(0, 200, 0.01)
    dx, dy = x - centre[0], y - centre[1]
    distance, truth = np.hypot(dx, dy), scene(x, y, 0, fine=1.5)
    head("`--distortion`")
    # all pixels were seen, or not those in the corners
    for factors, beyond in [([0.99, -1e-4, -4e-7], ""), ([1.0, 1e-4, 3e-7], ",repeat")]:
        back = np.interp(distance, pixels * polyval(pixels, factors), pixels) / distance
        image = scene(centre[0] + back * dx, centre[1] + back * dy, 0, fine=1.5).astype(np.float32)
        xs, ys = centre[0] + polyval(distance, factors) * dx, centre[1] + polyval(distance, factors) * dy
        named = [("xcenter", centre[0]), ("ycenter", centre[1]), *((f"factor{i}", a) for i, a in enumerate(factors))]
        text = "".join(f"{name} = {value}\n" for name, value in named)
        words = ["preprocess", "--projections", "{image}", "--distortion"]
        ours, _ = run_fbp(args, *words, "{lens}" + beyond, image=image, lens=text)
        cubic = by_cubic_convolution(image, xs, ys)
        for peer, theirs in [("NumPy, cubic convolution", cubic),
                             ("algotom, `unwarp_projection`", unwarp_projection(image, *centre, factors)),
                             ("Discorpy, `order=1`", unwarp_image_backward(image, *centre, factors)),
                             ("Discorpy, `order=3`", unwarp_image_backward(image, *centre, factors, order=3))]:
            row(f"coefficients{f', `{beyond}`' if beyond else ''}", peer, ours, theirs, truth)
        if not beyond:
            ours, _ = run_fbp(args, *words, "{x},{y}", image=image, x=xs, y=ys)
            maps = DetectorDistortionMapsXZ(xs, ys)
            _, _, first, end = maps.set_sub_region_transformation()
            row("images of positions", "NumPy, cubic convolution", ours, cubic, truth)
            moved = maps.transform(image[first:end])
            row("images of positions", "nabu, `DetectorDistortionMapsXZ`", ours, moved, truth)


def beams(random):
    """Counts of flats and projections of ellipses in a beam whose stripes move, and transmissions of the ellipses."""
    (y, x), truth = grid(), []
    still = 20000 * (1 - 0.3 * ((x - WIDTH / 2) / WIDTH) ** 2)

    def counted(transmission):
        phase = 2 * np.pi * y / 17 + 0.4 * np.sin(x / 30) + random.uniform(0, 2 * np.pi)
        counts = transmission * still * (1 + 0.06 * np.sin(phase))
        return (100 + counts + np.sqrt(counts) * random.normal(size=counts.shape)).astype(np.float32)

    for p in range(PROJECTIONS):
        lines = np.zeros(x.shape)
        for density, a, c, dx, dy in [(0.012, 48, 55, 0, 0), (0.02, 9, 14, 20, -18), (-0.012, 14, 9, -17, 22)]:
            across = x - WIDTH / 2 - dx * np.cos(2 * np.pi * p / PROJECTIONS)
            lines += 2 * density * a * np.sqrt(np.maximum(1 - (across / a) ** 2 - ((y - HEIGHT / 2 - dy) / c) ** 2, 0))
        truth.append(np.exp(-lines))
    flats = np.stack([counted(np.ones(x.shape)) for _ in range(24)])
    return flats, np.stack([counted(transmission) for transmission in truth]), np.stack(truth)


def blocks(image):
    """Means of two by two pixels."""
    return image.reshape(HEIGHT // 2, 2, WIDTH // 2, 2).mean(axis=(1, 3))


def components_of(flats, count):
    """The mean of flats, and the principal components of their blocks, at full resolution."""
    mean = flats.mean(axis=0)
    small = np.stack([blocks(flat - mean).ravel() for flat in flats])
    vectors = np.linalg.eigh(small @ small.T)[1][:, ::-1][:, :count]
    return mean, np.einsum("fk,fyx->kyx", vectors, flats - mean) / np.sqrt(len(flats))


def of_lines(transmission):
    """Total variation of line integrals, as docs/preprocessing.md defines it."""
    return sum(np.sqrt(np.diff(np.log(transmission), axis=axis) ** 2 + 1e-6).sum() for axis in (0, 1))


def of_transmissions(transmission):
    """That of transmissions, by the sizes of gradients, as in the paper of Van Nieuwenhove and others."""
    return np.hypot(*np.gradient(transmission)).sum()


def by_least_variation(flats, projections, variation):
    """Projections by the mean of the flats and two components, with the weights for which blocks vary least."""
    mean, components = components_of(flats, 2)
    level, small, result = blocks(mean), [blocks(component) for component in components], []
    for projection in projections:
        def cost(weights):
            beam = level + np.tensordot(weights, small, 1)
            return variation(blocks(projection) / beam * beam.mean()) if beam.min() > 0 else np.inf

        options = {"xatol": 1e-7, "fatol": 1e-9, "maxiter": 2000}
        weights = minimize(cost, [0, 0], method="Nelder-Mead", options=options).x
        result.append(projection / (mean + np.tensordot(weights, components, 1)))
    return np.stack(result)


def by_air(flats, projections, air):
    """The same with the weights that are nearest to the air at both sides; then a line through it is divided out."""
    mean, components = components_of(flats, 2)
    inside, ends = np.r_[:air, WIDTH - air:WIDTH], [(air - 1) / 2, WIDTH - 1 - (air - 1) / 2]
    columns, result = np.stack([image[:, inside].ravel() for image in (mean, *components)], axis=1), []
    for projection in projections:
        factors = np.linalg.lstsq(columns, projection[:, inside].ravel(), rcond=None)[0]
        image = projection / (mean + np.tensordot(factors[1:] / factors[0], components, 1))
        levels = [np.interp(np.arange(WIDTH), ends, [line[:air].mean(), line[-air:].mean()]) for line in image]
        result.append(image / levels)
    return np.stack(result)


def moving_beam(args):
    flats, projections, truth = beams(np.random.default_rng(1))
    dark, air = np.full((HEIGHT, WIDTH), 100, np.float32), 20
    above, counts = flats.astype(float) - dark, projections.astype(float) - dark

    def ours(*words):
        return run_fbp(args, "preprocess", "--projections", "{data}", "--flats", "{flats}", "--darks", "{darks}",
                       "--no-minus-log", *words, data=projections, flats=flats, darks=dark[None])[0]

    by_lines, by_paper = (by_least_variation(above, counts, of) for of in (of_lines, of_transmissions))
    found, by_nabu = PCAFlatsDecomposer(flats - dark, dark), projections.copy()
    PCAFlatsNormalizer(np.array(found.components), dark, found.mean).normalize_radios(by_nabu, prop=air / WIDTH)
    head("`--eigen-flats`, 24 flats and projections, noise of 0.7 %")
    for words, peer, theirs in [
            ("--eigen-flats 0", "NumPy, the mean of the flats", counts / above.mean(axis=0)),
            ("--eigen-flats 2", "NumPy, variation of line integrals", by_lines),
            ("--eigen-flats", "NumPy, variation of line integrals", by_lines),
            ("--eigen-flats 2", "NumPy, variation of transmissions, as in the paper", by_paper),
            (f"--eigen-flats 2 --normalize-air {air},{air}", "NumPy, the same air", by_air(above, counts, air)),
            (f"--eigen-flats 2 --normalize-air {air},{air}", "nabu, `PCAFlatsNormalizer`", by_nabu)]:
        row(f"`{words}`", peer, ours(*words.split()), theirs, truth)


def double_flat(args):
    truth = scenes()
    data = (truth * np.exp(0.05 * np.random.default_rng(2).normal(size=(HEIGHT, WIDTH)))).astype(np.float32)
    lines = -np.log(data.astype(float)).mean(axis=0)
    head("`--double-flat`")
    for sigma in (None, 5):
        step = "--double-flat" if sigma is None else f"--double-flat {sigma}"
        ours, _ = run_fbp(args, "preprocess", "--projections", "{data}", "--flats", "{flats}", "--no-minus-log",
                          *step.split(), data=data, flats=np.ones((1, HEIGHT, WIDTH)))
        # without a width, the mean of the sample goes, too
        common, wanted = data.mean(axis=0, dtype=float), truth / truth.mean(axis=0)
        if sigma:
            common, wanted = np.exp(gaussian_filter(lines, sigma, mode="reflect") - lines), truth
        nabu = DoubleFlatField(data.shape, input_is_mlog=False, average_is_on_log=sigma is not None, sigma_filter=sigma)
        row(f"`{step}`", "NumPy", ours, data / common, wanted)
        row(f"`{step}`", "nabu, `DoubleFlatField`", ours, nabu.apply_double_flatfield(data.copy()), wanted)


def current(args):
    truth, (_, x), count = scenes(), grid(), PROJECTIONS
    fields = np.stack([20000 + 20 * x, 19000 + 30 * x])  # for a current of 1
    currents, frames = 200 - 0.5 * np.arange(count + 2), np.arange(count + 2)
    between = np.arange(count)[:, None, None] / (count - 1)
    beam = fields[0] + frames[1:-1, None, None] / (count + 1) * (fields[1] - fields[0])
    data = (currents[1:-1, None, None] * beam * truth).astype(np.float32)
    flats = (fields * currents[[0, -1], None, None]).astype(np.float32)
    ours, _ = run_fbp(args, "preprocess", "--projections", "{data}", "--flats", "{before}", "--flats2", "{after}",
                      "--no-minus-log", "--beam-current", "{currents}", data=data, before=flats[:1], after=flats[1:],
                      currents="".join(f"{value}\n" for value in currents))
    wanted = (currents[0] + between * (currents[-1] - currents[0])) / currents[1:-1, None, None]
    head("`--beam-current`, flats before and after")
    flat = flats[0] + between * (flats[1] - flats[0].astype(float))
    row("`--beam-current`", "NumPy", ours, wanted * data / flat, truth)
    for name, of_flats, at in [("the first projection one frame after the flat", (0, count + 1), frames[1:-1]),
                               ("the first projection at the flat", (0, count - 1), frames[:-2])]:
        nabu = FlatField(data.shape, dict(zip(of_flats, flats)), {0: np.zeros_like(flats[0])}, radios_indices=at,
                         radios_srcurrent=currents[1:-1], flats_srcurrent=currents[[0, -1]])
        row("`--beam-current`", f"nabu, `FlatField`, {name}", ours, nabu.normalize_radios(data.copy()), truth)


def hardening(args):
    """Line integrals of half a beam that a thickness attenuates more than the other half."""
    thickness = np.linspace(0, 12, WIDTH * HEIGHT).reshape(HEIGHT, WIDTH)
    p = -np.log(0.5 * np.exp(-0.3 * thickness) + 0.5 * np.exp(-0.1 * thickness)).astype(np.float32).astype(float)
    truth = 0.2 * thickness

    def curve(at):
        return -at[2] * np.log(non_linear_function(np.exp(-p), at[0], at[1]))

    def fitted(wanted, count):
        """The polynomial with so many factors that is nearest to what is wanted: by fbp and by NumPy."""
        powers = np.stack([p.ravel() ** k for k in range(1, count + 2)], axis=1)
        scale, *others = np.linalg.lstsq(powers, wanted.ravel(), rcond=None)[0]
        flag = "--beam-hardening=" + ",".join(f"{other / scale:.9g}" for other in others)
        exact = (powers @ [scale, *others]).reshape(p.shape)
        return scale * run_fbp(args, "preprocess", "--projections", "{data}", flag, data=p[None])[0], exact

    head("`--beam-hardening`")
    ours, exact = fitted(truth, 2)
    row("2 factors, fitted to steps", "NumPy", ours, exact, truth)
    options = {"maxiter": 4000, "xatol": 1e-8, "fatol": 1e-12}
    found = minimize(lambda at: rms(curve(at) - truth), [1, 3, 1], method="Nelder-Mead",
                     bounds=[(0.005, 50), (2, 20), (0.1, 10)], options=options).x
    name = f"algotom, `q={found[0]:.3g}`, `n={found[1]:.3g}`, fitted to steps"
    row("2 factors, fitted to steps", name, ours, curve(found), truth)
    for count in (2, 8):
        row(f"{count} factors, fitted to algotom's curve", name, fitted(curve(found), count)[0], curve(found), truth)


def joined(first, second, offset, cosine):
    """Images with the second one `offset` columns further, by docs/scans.md."""
    start, (length, end) = int(np.ceil(offset)), (first.shape[1], second.shape[1])
    at = np.arange(start, end + int(offset)) - offset  # bins of the second one
    columns = np.floor(at).astype(int)
    moved = sum(w * second[:, np.clip(columns + i, 0, end - 1)] for i, w in enumerate(keys(at - columns), -1))
    weights = np.arange(1, length - start + 1) / (length - start + 1)
    weights = (1 - np.cos(np.pi * weights)) / 2 if cosine else weights
    both = first[:, start:] + weights * (moved[:, :len(weights)] - first[:, start:])
    return np.hstack([first[:, :start], both, moved[:, len(weights):]])


def parts_of_scans(args):
    """Two parts of 146 bins of a sample, or as many rows, of which the second has 0.95 of the light."""
    head("parts with noise of 0.2 % and levels of 1 and 1.05263")
    long, across, middle, random = 146, 96, PROJECTIONS // 2, np.random.default_rng(4)
    for flag, shared, edge in [(flag, *rest) for flag in ("--side-by-side", "--stack")
                               for rest in [(36, 0), (36.4, 0), (36.5, 0.5)]]:
        beside = flag == "--side-by-side"

        def pages(offset, count):
            """Transmissions, and a body that begins amid what is shared."""
            y, x = grid(count, across)
            body = 1 - edge / (1 + np.exp((long - shared / 2 - x - offset) / 3))
            place = (x + offset, y, 256, across) if beside else (y + 80, x + offset, 256, 256)
            return np.stack([body * scene(*place[:2], p, place[2:]) for p in range(PROJECTIONS)])

        def turned(images):
            """What is joined along rows here, as fbp and nabu take it."""
            return images if beside else images.transpose(0, 2, 1)

        first, second = (pages(offset, long) for offset in (0, long - shared))
        first, second = ((part + 0.002 * random.normal(size=part.shape)).astype(np.float32) for part in (first, second))
        second *= np.float32(0.95)
        files = {"a__data": turned(first), "b__data": turned(second)}
        files |= {f"{part}__flat": turned(np.ones((1, across, long))) for part in "ab"}
        ours, said = run_fbp(args, "preprocess", flag, "{here}/a", "{here}/b", "--projections", "{part}/data.tif",
                             "--flats", "{part}/flat.tif", "--no-minus-log", **files)
        found, level = map(float, re.search(r"overlap ([\d.]+) .*level ([\d.]+)", said).groups())
        ours = turned(ours)
        size = ours.shape[2]
        step = f"`{flag}`, {shared:g} shared{', an edge' if edge else ''}: found {found:.2f}, level {level:.5f}"
        offset = long - (found if beside else round(found))
        overlap = float(find_overlap(first[middle], second[middle], 30, side=1, ncore=1)[0])
        kernel = ImageStichOverlapKernel(1, across, "linear weights", round(found))
        cut = round(found)
        levelled = [*zip(first, second * level)]
        for peer, theirs in [
                ("NumPy, the same place and level", [joined(a, b, offset, beside) for a, b in levelled]),
                (f"algotom, found {overlap:.2f}", [stitch_image(a, b, overlap, 1) for a, b in zip(first, second)]),
                ("nabu, linear, the same place and level",
                 [np.hstack([a[:, :-cut], kernel.stitch(a[:, -cut:], b[:, :cut])[0], b[:, cut:]])
                  for a, b in levelled])]:
            row(step, peer, ours, np.stack(theirs)[:, :, :size], pages(0, size))


def filtered(rows):
    """Rows by the ramp, extended by their outermost bins, as docs/geometry.md defines it."""
    bins, length = rows.shape[-1], max(64, 2 ** int(np.ceil(np.log2(2 * rows.shape[-1]))))
    k = np.abs(np.fft.fftfreq(length) * length)
    ramp = np.fft.fft(np.where(k == 0, 0.25, np.where(k % 2 == 1, -1 / (np.pi * np.maximum(k, 1)) ** 2, 0))).real
    before = (length - bins) // 2
    padded = np.pad(rows, [(0, 0), (0, 0), (before, length - bins - before)], mode="edge")
    return np.fft.ifft(np.fft.fft(padded) * ramp).real[..., before:before + bins]


def between_pixels(image, u, v):
    """Bilinear interpolation inside an image."""
    columns = np.clip(np.floor(u).astype(int), 0, image.shape[1] - 2)
    rows = np.clip(np.floor(v).astype(int), 0, image.shape[0] - 2)
    left, right = ((rows + 1 - v) * image[rows, at] + (v - rows) * image[rows + 1, at] for at in (columns, columns + 1))
    return (columns + 1 - u) * left + (u - columns) * right


def laminography(args):
    """Slices about an inclined axis, where every projection sees them."""
    bins, size, height, projections, degrees, slab = 64, 65, 33, 90, 30, slice(14, 19)
    phi, scan = np.radians(degrees), ["--overall-angle", 360, "--lamino-angle", degrees, "--center", bins // 2]
    with tempfile.TemporaryDirectory() as directory:
        data, truth = Path(directory, "data"), Path(directory, "truth.tif")
        call(args, "phantom", "--kind", "asymmetric", "--size", size, "--bins", bins, "--projections", projections,
             "--slices", height, *scan, "--as", "projections", "--output", data, "--truth", truth)
        images = np.stack([tifffile.imread(file) for file in sorted(data.iterdir())])
        truth = tifffile.imread(truth)[slab].astype(float)
    ours, _ = run_fbp(args, "reconstruct", "--projections", "{data}", *scan, "--size", size, "--slab",
                      f"{slab.start}..{slab.stop}", data=images)
    z, y, x = np.mgrid[slab, :size, :size] - np.array([height // 2, size // 2, size // 2])[:, None, None, None]
    by_definition, by_tomocupy, middle = np.zeros(x.shape), np.zeros(x.shape), height // 2
    for p, image in enumerate(filtered(images.astype(float)) * np.pi / projections * np.cos(phi)):
        cos, sin = np.cos(2 * np.pi * p / projections), np.sin(2 * np.pi * p / projections)
        u, v = x * cos - y * sin, z * np.cos(phi) - (x * sin + y * cos) * np.sin(phi)
        by_definition += between_pixels(image, bins // 2 + u, middle + v)
        # it counts rows of slices upwards, and its angle from the beam
        up, inclined = -y, np.pi / 2 + phi
        u, v = x * cos + up * sin, (x * sin - up * cos) * np.cos(inclined) + z * np.sin(inclined)
        by_tomocupy += between_pixels(image, bins // 2 + u, middle + v)
    head("inclined axis, 5 slices, where all projections see them")
    seen = np.hypot(x, y) < 28
    for peer, theirs in [("NumPy", by_definition), ("NumPy, tomocupy's formula", by_tomocupy)]:
        row(f"`--lamino-angle {degrees}`", peer, ours[seen], theirs[seen], truth[seen])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fbp", default=ROOT / "target" / "release" / "fbp", help="the program")
    args = arguments(parser, PEERS)
    for group in (lens, moving_beam, double_flat, current, hardening, parts_of_scans, laminography):
        group(args)


if __name__ == "__main__":
    main()
