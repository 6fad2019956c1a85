#!/usr/bin/env python3
"""Compares what fbp does about beams, lenses, parts of scans and inclined axes with other programs, on the same arrays.

Each group of steps has a table. The samples are blobs and ellipses whose projections are known; noise where it says so.

  beside       what computes the same: algotom, discorpy, nabu, or NumPy, which has a definition written down here: that of
               docs/preprocessing.md, docs/scans.md and docs/geometry.md, or where it says so of a paper or a program
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

PEERS = Environment("beam-peers", ["algotom", "nabu", "numpy", "scipy", "tifffile"], "discorpy")
PROJECTIONS = 24
LEFT_OUT = 20  # bins of air at both sides

if PEERS.entered:  # else this script starts anew
    import algotom.prep.calculation as calculation
    import algotom.prep.conversion as conversion
    import algotom.prep.correction as correction
    import numpy as np
    import tifffile
    from nabu.io.detector_distortion import DetectorDistortionMapsXZ
    from nabu.preproc.double_flatfield import DoubleFlatField
    from nabu.preproc.flatfield import FlatField, PCAFlatsDecomposer, PCAFlatsNormalizer
    from nabu.stitching.overlap import ImageStichOverlapKernel
    from nabu.stitching.utils.utils import find_frame_relative_shifts
    from scipy.ndimage import gaussian_filter
    from scipy.optimize import minimize

    try:
        from discorpy.post.postprocessing import unwarp_image_backward
    except ImportError:
        unwarp_image_backward = None


def call(args, *words):
    """What fbp says."""
    done = subprocess.run([str(word) for word in (args.fbp, *words)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"fbp {' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout + done.stderr


def run_fbp(args, command, *words, **files):
    """The pages that a command of fbp writes, and what it says; `files` are stacks of images, or text, by the names that
    words begin with, such as `{flats}`."""
    with tempfile.TemporaryDirectory() as directory:
        places = {}
        for name, content in files.items():
            text = isinstance(content, str)
            places[name] = Path(directory, name.replace("__", "/") + (".txt" if text else ".tif"))
            places[name].parent.mkdir(exist_ok=True)
            if text:
                places[name].write_text(content)
            else:
                tifffile.imwrite(places[name], np.asarray(content, np.float32))
        target = Path(directory, "out.tif")
        places["here"] = directory
        words = [str(word).format(**places, part="{part}") for word in words]
        said = call(args, command, *words, "--output", target)
        return tifffile.imread(target).astype(float), said


def rms(values):
    return float(np.sqrt(np.mean(np.square(values, dtype=float))))


def head(title):
    print(f"\n| {title} | beside | difference | fbp | other |\n|{'---|' * 5}")


def row(step, peer, ours, theirs, truth):
    span = float(np.ptp(truth))
    shares = [rms(ours - theirs) / span, rms(ours - truth) / span, rms(theirs - truth) / span]
    print(f"| {step} | {peer} | {' | '.join(f'{share:.1e}' for share in shares)} |", flush=True)


def scene(x, y, p, width, height, fine=1.0):
    """Transmissions at positions in projection p: blobs that turn about an axis in the middle."""
    random = np.random.default_rng(3)
    lines = np.zeros(np.broadcast(x, y).shape)
    for _ in range(width * height // 160):
        radius, phase, level = width * 0.55 * random.random() ** 0.5, random.uniform(0, 2 * np.pi), random.uniform(0, height)
        sigma, density = fine * random.uniform(2, 5), random.uniform(0.05, 0.3)
        across = width / 2 + radius * np.cos(2 * np.pi * p / PROJECTIONS + phase)
        lines += density * np.exp(-((x - across) ** 2 + (y - level) ** 2) / (2 * sigma**2))
    return np.exp(-lines)


def scenes(width, height):
    y, x = np.mgrid[:height, :width].astype(float)
    return np.stack([scene(x, y, p, width, height) for p in range(PROJECTIONS)])


def keys(rest):
    """Weights of cubic convolution with a = -1/2, for the pixels at -1, 0, 1 and 2."""
    t, t2, t3 = rest, rest**2, rest**3
    return [-0.5 * t3 + t2 - 0.5 * t, 1.5 * t3 - 2.5 * t2 + 1, -1.5 * t3 + 2 * t2 + 0.5 * t, 0.5 * t3 - 0.5 * t2]


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
    width, height, centre = 160, 128, (82.3, 60.7)
    y, x = np.mgrid[:height, :width].astype(float)
    pixels = np.arange(0, 200, 0.01)
    head("`--distortion`")
    # what lies at the edge is seen inside the detector, or beyond it
    for name, factors, beyond in [("coefficients", [0.99, -1e-4, -4e-7], ""),
                                  ("coefficients`, `,repeat", [1.0, 1e-4, 3e-7], ",repeat")]:
        seen = pixels * np.polynomial.polynomial.polyval(pixels, factors)
        dx, dy = x - centre[0], y - centre[1]
        distance = np.hypot(dx, dy)
        back = np.interp(distance, seen, pixels) / np.maximum(distance, 1e-9)
        image = scene(centre[0] + back * dx, centre[1] + back * dy, 0, width, height, 1.5).astype(np.float32)
        truth = scene(x, y, 0, width, height, 1.5)
        factor = np.polynomial.polynomial.polyval(distance, factors)
        xs, ys = centre[0] + factor * dx, centre[1] + factor * dy
        lines = ["xcenter = %r" % centre[0], "ycenter = %r" % centre[1]]
        text = "\n".join(lines + [f"factor{i} = {factor!r}" for i, factor in enumerate(factors)]) + "\n"
        ours, _ = run_fbp(args, "preprocess", "--projections", "{image}", "--distortion", "{lens}" + beyond, image=image,
                          lens=text)
        peers = [("NumPy, cubic convolution", by_cubic_convolution(image, xs, ys)),
                 ("algotom, `unwarp_projection`", correction.unwarp_projection(image, *centre, factors))]
        if unwarp_image_backward:
            peers += [(f"discorpy, `order={order}`", unwarp_image_backward(image, *centre, factors, order=order))
                      for order in (1, 3)]
        for peer, theirs in peers:
            row(f"`{name}`", peer, ours, theirs, truth)
        if beyond:
            continue
        ours, _ = run_fbp(args, "preprocess", "--projections", "{image}", "--distortion", "{x},{y}", image=image, x=xs, y=ys)
        maps = DetectorDistortionMapsXZ(xs, ys)
        _, _, first, end = maps.set_sub_region_transformation((None, None, 0, None))
        for peer, theirs in [("NumPy, cubic convolution", by_cubic_convolution(image, xs, ys)),
                             ("nabu, `DetectorDistortionMapsXZ`", maps.transform(image[first:end]))]:
            row("images of positions", peer, ours, theirs, truth)


def beams(height, width, random):
    """Counts of flats and of projections of ellipses in a beam whose stripes move, and the transmissions of the ellipses."""
    y, x = np.mgrid[:height, :width].astype(float)
    still = 20000 * (1 - 0.3 * ((x - width / 2) / width) ** 2)

    def beam():
        return still * (1 + 0.06 * np.sin(2 * np.pi * y / 17 + 0.4 * np.sin(x / 30) + random.uniform(0, 2 * np.pi)))

    def counted(counts):
        return (100 + counts + np.sqrt(counts) * random.normal(size=counts.shape)).astype(np.float32)

    truth = []
    for p in range(PROJECTIONS):
        lines = np.zeros((height, width))
        for density, a, c, dx, dy in [(0.012, 48, 55, 0, 0), (0.02, 9, 14, 20, -18), (-0.012, 14, 9, -17, 22)]:
            at = width / 2 + dx * np.cos(2 * np.pi * p / PROJECTIONS)
            lines += 2 * density * a * np.sqrt(np.maximum(1 - ((x - at) / a) ** 2 - ((y - height / 2 - dy) / c) ** 2, 0))
        truth.append(np.exp(-lines))
    flats = np.stack([counted(beam()) for _ in range(24)])
    return flats, np.stack([counted(beam() * transmission) for transmission in truth]), np.stack(truth)


def blocks(image):
    height, width = image.shape
    return image.reshape(height // 2, 2, width // 2, 2).mean(axis=(1, 3))


def components_of(frames, images, count):
    """Sums of images with the factors of the frames' principal components."""
    flat = frames.reshape(len(frames), -1)
    values, vectors = np.linalg.eigh(flat @ flat.T)
    return np.einsum("fk,fyx->kyx", vectors[:, ::-1][:, :count], images) / np.sqrt(len(frames))


def of_lines(transmission):
    """Total variation of line integrals, as docs/preprocessing.md defines it."""
    lines = -np.log(transmission)
    return sum(np.sqrt(np.diff(lines, axis=axis) ** 2 + 1e-6).sum() for axis in (0, 1))


def of_transmissions(transmission):
    """That of transmissions, by the sizes of gradients, as in the paper of Van Nieuwenhove and others."""
    return np.hypot(*np.gradient(transmission)).sum()


def by_least_variation(flats, projections, count, variation, reduce):
    """Projections by the mean of the flats and components with the weights that have the least total variation."""
    mean = flats.mean(axis=0)
    components = components_of(np.stack([reduce(flat - mean) for flat in flats]), flats - mean, count)
    small = [reduce(component) for component in components]
    result = []
    for projection in projections:
        counts, level = reduce(projection), reduce(mean)

        def cost(weights):
            beam = level + np.tensordot(weights, small, 1)
            return variation(counts / beam * beam.mean()) if beam.min() > 0 else np.inf

        found = minimize(cost, np.zeros(count), method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-9, "maxiter": 2000})
        result.append(projection / (mean + np.tensordot(found.x, components, 1)))
    return np.stack(result)


def by_air(flats, projections, count, air):
    """The same with the weights that are nearest to the air at both sides; then a line through it is divided out."""
    mean, width = flats.mean(axis=0), flats.shape[2]
    components = components_of(np.stack([blocks(flat - mean) for flat in flats]), flats - mean, count)
    inside = np.r_[:air, width - air:width]
    columns = np.stack([image[:, inside].ravel() for image in (mean, *components)], axis=1)
    result = []
    for projection in projections:
        factors = np.linalg.lstsq(columns, projection[:, inside].ravel(), rcond=None)[0]
        image = projection / (mean + np.tensordot(factors[1:] / factors[0], components, 1))
        ends = [(air - 1) / 2, width - 1 - (air - 1) / 2]
        level = [np.interp(np.arange(width), ends, [line[:air].mean(), line[-air:].mean()]) for line in image]
        result.append(image / level)
    return np.stack(result)


def by_nabu(flats, dark, projections, air):
    """nabu's principal components of the logarithm of flats."""
    found = PCAFlatsDecomposer(flats - dark, dark)
    normalizer = PCAFlatsNormalizer(np.array(found.components), dark, found.mean)
    result = projections.copy()
    normalizer.normalize_radios(result, prop=air / flats.shape[2])
    return result


def moving_beam(args):
    flats, projections, truth = beams(128, 160, np.random.default_rng(1))
    dark = np.full(truth.shape[1:], 100, np.float32)
    above, counts = flats.astype(float) - dark, projections.astype(float) - dark
    air = LEFT_OUT

    def ours(*words):
        return run_fbp(args, "preprocess", "--projections", "{data}", "--flats", "{flats}", "--darks", "{darks}",
                       "--no-minus-log", *words, data=projections, flats=flats, darks=dark[None])[0]

    by_lines = by_least_variation(above, counts, 2, of_lines, blocks)
    head("`--eigen-flats`, 24 flats and projections, noise of 0.7 %")
    row("`--eigen-flats 0`", "NumPy, the mean of the flats", ours("--eigen-flats", 0), counts / above.mean(axis=0), truth)
    row("`--eigen-flats 2`", "NumPy, variation of line integrals", ours("--eigen-flats", 2), by_lines, truth)
    row("`--eigen-flats`", "NumPy, variation of line integrals", ours("--eigen-flats"), by_lines, truth)
    row("`--eigen-flats 2`", "NumPy, the paper's variation of transmissions", ours("--eigen-flats", 2),
        by_least_variation(above, counts, 2, of_transmissions, lambda image: image), truth)
    by_sides = ours("--eigen-flats", 2, "--normalize-air", f"{air},{air}")
    row(f"`--eigen-flats 2 --normalize-air {air},{air}`", "NumPy, the same air", by_sides, by_air(above, counts, 2, air), truth)
    row(f"`--eigen-flats 2 --normalize-air {air},{air}`", "nabu, `PCAFlatsNormalizer`", by_sides,
        by_nabu(flats, dark, projections, air), truth)


def double_flat(args):
    truth = scenes(160, 128)
    pattern = np.exp(0.05 * np.random.default_rng(2).normal(size=truth.shape[1:]))
    data = (truth * pattern).astype(np.float32)
    head("`--double-flat`")
    for sigma in (None, 5.0):
        words = ["--double-flat", *([] if sigma is None else [sigma])]
        ours, _ = run_fbp(args, "preprocess", "--projections", "{data}", "--flats", "{flats}", "--no-minus-log", *words,
                          data=data, flats=np.ones((1, *pattern.shape)))
        if sigma is None:
            common = data.mean(axis=0, dtype=float)
        else:
            lines = -np.log(data.astype(float)).mean(axis=0)
            common = np.exp(-(lines - gaussian_filter(lines, sigma, mode="reflect")))
        nabu = DoubleFlatField(data.shape, input_is_mlog=False, average_is_on_log=sigma is not None, sigma_filter=sigma)
        theirs = nabu.apply_double_flatfield(data.copy())
        # without a width, the mean of the sample goes, too
        wanted = truth / truth.mean(axis=0) if sigma is None else truth
        step = f"`{' '.join(map(str, words))}`"
        row(step, "NumPy", ours, data / common, wanted)
        row(step, "nabu, `DoubleFlatField`", ours, theirs, wanted)


def current(args):
    truth = scenes(160, 128)
    count, y, x = PROJECTIONS, *np.mgrid[:128, :160]
    first, last = 20000 + 20 * x, 19000 + 30 * x  # per unit of the current
    currents = 200 - 0.5 * np.arange(count + 2)
    frames = np.arange(1, count + 1) / (count + 1)
    beam = first + frames[:, None, None] * (last - first)
    data = (currents[1:-1, None, None] * beam * truth).astype(np.float32)
    fields = [(field * current)[None].astype(np.float32) for field, current in [(first, currents[0]), (last, currents[-1])]]
    text = "\n".join(map(str, currents)) + "\n"
    ours, _ = run_fbp(args, "preprocess", "--projections", "{data}", "--flats", "{before}", "--flats2", "{after}",
                      "--no-minus-log", "--beam-current", "{currents}", data=data, before=fields[0], after=fields[1],
                      currents=text)
    between = np.arange(count) / (count - 1)
    of_flats = currents[0] + between * (currents[-1] - currents[0])
    flat = fields[0] + between[:, None, None] * (fields[1].astype(float) - fields[0])
    exact = data / flat * (of_flats / currents[1:-1])[:, None, None]
    head("`--beam-current`, flats before and after")
    row("`--beam-current`", "NumPy", ours, exact, truth)
    for name, places, at in [("flats beside the scan", (0, count + 1), np.arange(1, count + 1)),
                             ("flats at its ends", (0, count - 1), np.arange(count))]:
        nabu = FlatField(data.shape, {place: field[0] for place, field in zip(places, fields)},
                         {0: np.zeros((128, 160), np.float32)}, radios_indices=at, radios_srcurrent=currents[1:-1],
                         flats_srcurrent=currents[[0, -1]])
        row("`--beam-current`", f"nabu, `FlatField`, {name}", ours, nabu.normalize_radios(data.copy()), truth)


def powers(p, wanted, count):
    """The factors of p^2, p^3 ... of the polynomial nearest to what is wanted, and that of p."""
    scale, *others = np.linalg.lstsq(np.stack([p**k for k in range(1, count + 1)], 1), wanted, rcond=None)[0]
    return [other / scale for other in others], scale


def hardening(args):
    thickness = np.linspace(0, 12, 128 * 160).reshape(128, 160)
    transmission = 0.5 * np.exp(-0.3 * thickness) + 0.5 * np.exp(-0.1 * thickness)
    p = -np.log(transmission).astype(np.float32)
    truth = 0.2 * thickness

    def curve(at, opt):
        q, n, scale = at
        return -scale * np.log(correction.non_linear_function(np.exp(-p.astype(float)), q, n, opt))

    def ours(factors):
        words = "--beam-hardening=" + ",".join(f"{factor:.9g}" for factor in factors)
        return run_fbp(args, "preprocess", "--projections", "{data}", words, data=p[None])[0]

    head("`--beam-hardening`")
    factors, scale = powers(p.ravel().astype(float), truth.ravel(), 3)
    exact = p + sum(factor * p.astype(float) ** k for k, factor in enumerate(factors, 2))
    row("2 factors fitted to steps", "NumPy", scale * ours(factors), scale * exact, truth)
    bounds = [(0.005, 50), (2, 20), (0.1, 10)]
    tried = [(opt, minimize(lambda at: rms(curve(at, opt) - truth), [1, 3, 1], method="Nelder-Mead", bounds=bounds,
                            options={"maxiter": 4000, "xatol": 1e-8, "fatol": 1e-12})) for opt in (True, False)]
    opt, found = min(tried, key=lambda one: one[1].fun)
    fitted = curve(found.x, opt)
    name = f"algotom, `q={found.x[0]:.3g}`, `n={found.x[1]:.3g}`, `opt={opt}`, fitted to steps"
    row("2 factors fitted to steps", name, scale * ours(factors), fitted, truth)
    for count in (2, 4, 8):
        factors, scale = powers(p.ravel().astype(float), fitted.ravel(), count + 1)
        row(f"{count} factors fitted to algotom's curve", name, scale * ours(factors), fitted, truth)


def joined(first, second, offset, cosine):
    """Two parts with the second `offset` columns further, by docs/scans.md."""
    length = first.shape[1]
    start = int(np.ceil(offset - 1e-6))
    weights = keys(start - offset) if start != offset else [0, 1, 0, 0]
    at = np.arange(second.shape[1] if start == offset else second.shape[1] - 1)
    columns = [second[:, np.clip(at + i, 0, second.shape[1] - 1)] for i in (-1, 0, 1, 2)]
    moved = sum(weight * column for weight, column in zip(weights, columns))
    shared = length - start
    w = np.arange(1, shared + 1) / (shared + 1)
    w = (1 - np.cos(np.pi * w)) / 2 if cosine else w
    both = first[:, start:] + w * (moved[:, :shared] - first[:, start:])
    return np.hstack([first[:, :start], both, moved[:, shared:]])


def by_algotom(parts, window=30):
    """Parts joined by algotom with the overlap that it finds in the middle of the scan, and this."""
    middle = PROJECTIONS // 2
    overlap = calculation.find_overlap(parts[0][middle], parts[1][middle], window, side=1, ncore=1)[0]
    return float(overlap), lambda width: np.stack([conversion.stitch_image(a, b, width, 1) for a, b in zip(*parts)])


def by_nabu_stitching(parts, estimate):
    """The same by nabu, across rows."""
    middle = PROJECTIONS // 2
    upper, lower = parts[0][middle][-estimate:], parts[1][middle][:estimate]
    overlap, _ = find_frame_relative_shifts(upper, lower, (estimate, 0), 0, "nabu-fft", "nabu-fft")
    kernel = ImageStichOverlapKernel(0, parts[0].shape[2], "linear weights", overlap)
    pages = [np.vstack([a[:-overlap], kernel.stitch(a[-overlap:], b[:overlap])[0], b[overlap:]]) for a, b in zip(*parts)]
    return overlap, np.stack(pages)


def parts_of_scans(args):
    head("parts, noise of 0.2 %")
    width, height = 256, 96
    random = np.random.default_rng(4)
    for flag, shared in [("--side-by-side", 36.0), ("--side-by-side", 36.4), ("--stack", 36.0), ("--stack", 36.4)]:
        beside = flag == "--side-by-side"
        y, x = np.mgrid[:height, :(width + 36) // 2].astype(float)
        long = x.shape[1]

        def page(p, offset):
            along, across = x + offset, y
            return scene(along, across, p, width, height) if beside else scene(across + 80, along, p, width, width)

        parts = [np.stack([page(p, offset) for p in range(PROJECTIONS)]) for offset in (0, long - shared)]
        parts = [(part + 0.002 * random.normal(size=part.shape)).astype(np.float32) for part in parts]
        parts[1] *= np.float32(0.95)
        # as algotom takes them, along columns; fbp takes rows
        turn = (lambda images: images) if beside else (lambda images: images.transpose(0, 2, 1))
        words = ["--flats", "{here}/{part}/flat.tif", "--projections", "{here}/{part}/data.tif", "--no-minus-log"]
        files = {f"{name}__data": turn(part) for name, part in zip("ab", parts)}
        files |= {f"{name}__flat": turn(np.ones((1, *parts[0].shape[1:]))) for name in "ab"}
        ours, said = run_fbp(args, "preprocess", flag, "a", "b", *words, **files)
        found, level = re.search(r"overlap ([\d.]+) .*level ([\d.]+)", said).groups()
        whole = shared if beside else round(shared)
        every = np.arange(ours.shape[2] if beside else ours.shape[1], dtype=float)
        truth = np.stack([scene(*np.meshgrid(every, y[:, 0]), p, width, height) if beside else
                          scene(*np.meshgrid(y[:, 0] + 80, every), p, width, width) for p in range(PROJECTIONS)])
        step = f"`{flag}`, {shared:g} shared: found {found}, level {level}"
        offset = long - (float(found) if beside else round(float(found)))
        theirs = np.stack([joined(a, b * float(level), offset, beside) for a, b in zip(*parts)])
        row(step, "NumPy, the same place and level", ours, turn(theirs), truth)
        overlap, join = by_algotom(parts)
        size = truth.shape[2] if beside else truth.shape[1]
        row(step, f"algotom, `stitch_image`, found {overlap:.2f}", ours, turn(join(overlap)[:, :, :size]), truth)
        if not beside:
            overlap, theirs = by_nabu_stitching([turn(part) for part in parts], 48)
            row(step, f"nabu, linear weights, found {overlap}", ours, theirs[:, :size], truth)


def filtered(rows):
    """Rows by the ramp, extended by their outermost bins, as docs/geometry.md defines it."""
    bins, length = rows.shape[-1], max(64, 2 ** int(np.ceil(np.log2(2 * rows.shape[-1]))))
    k = np.abs(np.fft.fftfreq(length) * length)
    ramp = np.fft.fft(np.where(k == 0, 0.25, np.where(k % 2 == 1, -1 / (np.pi * np.maximum(k, 1)) ** 2, 0))).real
    before = (length - bins) // 2
    padded = np.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(before, length - bins - before)], mode="edge")
    return np.fft.ifft(np.fft.fft(padded) * ramp).real[..., before:before + bins]


def between_pixels(image, u, v):
    """Bilinear interpolation inside an image."""
    columns = np.clip(np.floor(u).astype(int), 0, image.shape[1] - 2)
    rows = np.clip(np.floor(v).astype(int), 0, image.shape[0] - 2)
    across, down = u - columns, v - rows
    upper = (1 - across) * image[rows, columns] + across * image[rows, columns + 1]
    lower = (1 - across) * image[rows + 1, columns] + across * image[rows + 1, columns + 1]
    return (1 - down) * upper + down * lower


def laminography(args):
    """Slices about an inclined axis, where every projection sees them."""
    bins, size, height, projections, degrees, slab = 64, 65, 33, 90, 30, range(14, 19)
    phi, theta = np.radians(degrees), 2 * np.pi * np.arange(projections) / projections
    scan = ["--overall-angle", 360, "--lamino-angle", degrees, "--center", 32]
    with tempfile.TemporaryDirectory() as directory:
        data, truth = Path(directory, "data"), Path(directory, "truth.tif")
        call(args, "phantom", "--kind", "asymmetric", "--size", size, "--bins", bins, "--projections", projections,
             "--slices", height, *scan, "--as", "projections", "--output", data, "--truth", truth)
        images = np.stack([tifffile.imread(file) for file in sorted(data.iterdir())]).astype(float)
        truth = tifffile.imread(truth)[slab.start:slab.stop].astype(float)
    ours, _ = run_fbp(args, "reconstruct", "--projections", "{data}", *scan, "--size", size, "--slab",
                      f"{slab.start}..{slab.stop}", data=images)
    rows = filtered(images) * np.pi / projections * np.cos(phi)
    y, x = np.mgrid[:size, :size] - (size - 1) // 2
    seen = np.hypot(x, y) < 28
    by_definition, by_tomocupy = np.zeros(ours.shape), np.zeros(ours.shape)
    for k, z in enumerate(slab):
        for image, angle in zip(rows, theta):
            cos, sin = np.cos(angle), np.sin(angle)
            u = 32 + x * cos - y * sin
            v = (height - 1) / 2 + (z - (height - 1) / 2) * np.cos(phi) - (x * sin + y * cos) * np.sin(phi)
            by_definition[k] += between_pixels(image, u, v)
            # its pixels are counted upwards, from the integer half of the number of bins, and its angle from the beam
            up, inclined = -y, np.pi / 2 + phi
            u = x * cos + up * sin + bins // 2
            v = np.cos(inclined) * (x * sin - up * cos) + np.sin(inclined) * (z - height // 2) + height // 2
            by_tomocupy[k] += between_pixels(image, u, v)
    head("`--lamino-angle`")
    for peer, theirs in [("NumPy", by_definition), ("NumPy, tomocupy's formula", by_tomocupy)]:
        row(f"`--lamino-angle {degrees}`", peer, ours[:, seen], theirs[:, seen], truth[:, seen])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fbp", default=ROOT / "target" / "release" / "fbp", help="the program")
    args = arguments(parser, PEERS)
    for group in (lens, moving_beam, double_flat, current, hardening, parts_of_scans, laminography):
        group(args)


if __name__ == "__main__":
    main()
