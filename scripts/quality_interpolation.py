"""Writes docs/quality.md: resolution, noise and errors by interpolation and filter, measured for scripts/quality."""

import json
import re
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import tifffile

from quality_tools import Failed, number, paragraph, run, save

FILTERS = ["ramp", "shepp-logan", "cosine", "hann"]


@dataclass(frozen=True)
class Way:
    """A way to read between bins, and how the kernel that must come of it begins."""

    name: str
    options: str
    kernel: str
    color: str


OVERSAMPLE = "--profile nvidia-maxwell --algorithm oversample --mode fast"
EXACT = "--profile default --interpolation exact"
REFERENCE = "2e-6"
NEAREST = Way("nearest", "--profile default --interpolation nearest", "standard-nearest-float", "tab:red")
LINEAR = Way("linear", "--profile default", "standard-linear-float", "black")
WAYS = [
    NEAREST,
    LINEAR,
    Way("oversampling", OVERSAMPLE, "oversample-linear-float", "tab:blue"),
    Way("exact", f"{EXACT} --accuracy {REFERENCE}", "gridding-exact-float", "tab:green"),
]
BOUNDS = [Way(f"exact, `--accuracy {e}`", f"{EXACT} --accuracy {e}", "gridding-exact-float", "tab:green")
          for e in ["1e-2", "1e-3", "1e-5"]]

# what the page recommends: the wish, the flags, and whose numbers stand beside them
CHOICES = [
    ("slices that agree with those of other programs", "nothing", "linear", "ramp"),
    ("the sharpest slice", "`--interpolation exact`", "exact", "ramp"),
    ("nearly as sharp, with less noise", "`--interpolation exact --filter shepp-logan`", "exact", "shepp-logan"),
    ("much less noise", "`--interpolation exact --filter cosine`", "exact", "cosine"),
    ("little noise", "`--interpolation exact --filter hann`", "exact", "hann"),
    ("the least noise of these", "`--filter hann`", "linear", "hann"),
]

SIZE, PROJECTIONS = 1024, 1608  # as many projections as the rim needs: pi / 2 for each bin
NOISE_SIZE, NOISE_PROJECTIONS, NOISE_SLICES = 256, 402, 512
MASK = 0.9
PIXELS = 128  # that are compared with a direct sum
REACH, STEP = 16, 1 / 8  # pixels on each side of an edge, and the width of the intervals of distance


# ---- measures


def disc_distance(x, y, centre, radius):
    return np.hypot(x - centre[0], y - centre[1]) - radius


def ellipse_distance(x, y, a, b):
    """Distance from an ellipse about the origin, positive outside, by circles of curvature (as base/src/phantom has it)."""
    u, v = np.abs(x), np.abs(y)
    cos = sin = np.full_like(u, np.sqrt(0.5))
    for _ in range(8):
        middle_u, middle_v = (a * a - b * b) * cos**3 / a, (b * b - a * a) * sin**3 / b
        radius, reach = np.hypot(a * cos - middle_u, b * sin - middle_v), np.hypot(u - middle_u, v - middle_v)
        cos = np.clip(((u - middle_u) * radius / reach + middle_u) / a, 0, 1)
        sin = np.clip(((v - middle_v) * radius / reach + middle_v) / b, 0, 1)
        norm = np.hypot(cos, sin)
        cos, sin = cos / norm, sin / norm
    outside = (u / a) ** 2 + (v / b) ** 2 > 1
    return np.where(outside, 1, -1) * np.hypot(u - a * cos, v - b * sin)


def edges():
    """Pixels near an edge, by place: their distances from it (positive outside), and values inside and outside."""
    half = SIZE / 2
    row, column = np.indices((SIZE, SIZE))
    x, y = column - (SIZE - 1) / 2, (SIZE - 1) / 2 - row
    radius = np.hypot(x, y)
    # the disc of `discs` beside the axis, and the outline of the Shepp-Logan phantom where it is thick
    beside = disc_distance(x, y, (-0.12 * half, -0.02 * half), 0.15 * half)
    outline = ellipse_distance(x, y, 0.69 * half, 0.92 * half)
    return {
        "axis": ("discs", (np.abs(beside) < REACH) & (radius < 0.1 * half), beside, (0.0, 0.2)),
        "rim": ("shepp-logan", (np.abs(outline) < REACH) & (radius > 0.85 * half) & (y > 0), outline, (1.0, 0.0)),
    }


@dataclass
class Edge:
    """Response of an edge: distance, relative value; frequency in units of Nyquist, and contrast that is left there."""

    distance: np.ndarray
    response: np.ndarray
    frequency: np.ndarray
    mtf: np.ndarray

    def width(self):
        """From 10 to 90 %, in pixels, each where the response first has it on its way from the middle."""
        middle = np.argmin(np.abs(self.distance))
        low = next(i for i in range(middle, len(self.distance)) if self.response[i] < 0.1)
        high = next(i for i in range(middle, -1, -1) if self.response[i] > 0.9)
        def between(i, level):
            a, b = self.response[i - 1], self.response[i]
            return self.distance[i - 1] + (self.distance[i] - self.distance[i - 1]) * (level - a) / (b - a)
        return between(low, 0.1) - between(high + 1, 0.9)

    def overshoot(self):
        """How far the response goes beyond that of the inside, as a share of the step."""
        return max(self.response[np.abs(self.distance) < 4].max() - 1, 0)

    def falls_to(self, level):
        """The frequency from which less than that is left."""
        i = next(i for i in range(len(self.mtf)) if self.mtf[i] < level)
        a, b = self.mtf[i - 1], self.mtf[i]
        return self.frequency[i - 1] + (self.frequency[i] - self.frequency[i - 1]) * (level - a) / (b - a)


def edge(image, pixels, distance, levels):
    count = int(2 * REACH / STEP)
    where = np.floor((distance[pixels] + REACH) / STEP).astype(int)
    pixels_in = np.bincount(where, minlength=count)
    if np.any(pixels_in == 0):
        raise Failed("an interval of distances from an edge has no pixel")
    inside, outside = levels
    response = np.bincount(where, image[pixels].astype(np.float64), count) / pixels_in
    response = (response - outside) / (inside - outside)
    places = (np.arange(count) + 0.5) * STEP - REACH
    # the derivative, tapered; intervals and differences each multiply contrasts by a sinc
    line = -np.diff(response) * np.hanning(count + 1)[1:-1]
    padded = 1 << 14
    mtf = np.abs(np.fft.rfft(line, padded))
    frequency = np.fft.rfftfreq(padded, STEP)
    mtf = mtf / mtf[0] / np.sinc(frequency * STEP) ** 2
    shown = frequency <= 1
    return Edge(places, response, 2 * frequency[shown], mtf[shown])


@dataclass
class Noise:
    """Of slices of white noise, in units of the sinogram's over the root of the number of projections."""

    on_axis: float  # standard deviation of the pixel on the axis
    elsewhere: float  # and of those from 0.2 to 0.9 of the radius
    by_radius: np.ndarray
    above_half: float  # shares of power above half of the Nyquist frequency, and above it
    above: float


def noise(images):
    side = images.shape[1]
    variance = np.mean(images.astype(np.float64) ** 2, axis=0) * NOISE_PROJECTIONS
    row, column = np.indices((side, side)) - (side - 1) // 2
    radius = np.hypot(row, column)
    away = (radius > 0.1 * side) & (radius < 0.45 * side)
    rings = np.floor(radius * 2 + 0.5).astype(int)
    count = np.bincount(rings.ravel())
    with np.errstate(invalid="ignore"):  # of rings without a pixel
        by_radius = np.sqrt(np.bincount(rings.ravel(), variance.ravel()) / count)

    part = slice(side // 2 - 64, side // 2 + 64)  # a square in the middle
    window = np.hanning(130)[1:-1]
    window = window[:, None] * window[None, :]
    power = sum(np.abs(np.fft.fft2(image[part, part] * window)) ** 2 for image in images)
    frequency = 2 * np.hypot(*np.meshgrid(np.fft.fftfreq(128), np.fft.fftfreq(128)))
    return Noise(
        np.sqrt(variance[radius == 0].item()), np.sqrt(variance[away].mean()), by_radius,
        power[frequency > 0.5].sum() / power.sum(), power[frequency > 1].sum() / power.sum())


def relative(a, b):
    """Root mean square of the difference over that of the second, inside MASK of the circle; of single slices."""
    row, column = np.indices(b.shape) - (b.shape[0] - 1) / 2
    inside = np.hypot(row, column) <= MASK * b.shape[0] / 2
    a, b = a[inside].astype(np.float64), b[inside].astype(np.float64)
    return np.sqrt(np.mean((a - b) ** 2) / np.mean(b**2))


def direct_sum(sinogram, pixels, size, center):
    """Values of the exact slice, plain ramp and zero padding, by its definition: a sum over all frequencies of all
    projections in double precision."""
    projections, bins = sinogram.shape
    length = 1 << (2 * bins - 1).bit_length()
    offset = np.arange(length)
    offset = np.minimum(offset, length - offset)
    kernel = np.where(offset % 2 == 1, -1 / (np.pi * np.maximum(offset, 1)) ** 2, np.where(offset == 0, 0.25, 0))
    spectra = np.fft.rfft(sinogram.astype(np.float64), length) * np.fft.rfft(kernel).real
    spectra[:, 1:] *= 2  # the negative frequencies
    spectra[:, -1] = spectra[:, -1].real / 2  # the highest one is a cosine
    x, y = pixels[:, 1] - (size - 1) / 2, (size - 1) / 2 - pixels[:, 0]
    frequency = 2j * np.pi / length * np.arange(length // 2 + 1)
    total = np.zeros(len(pixels))
    for p, row in enumerate(spectra):
        angle = np.pi * p / projections
        total += (np.exp((center + x * np.cos(angle) + y * np.sin(angle))[:, None] * frequency) @ row).real
    return total * np.pi / (projections * length)


# ---- the run


class Interpolation:
    """Everything that is measured."""

    def __init__(self, fbp, work, device, scans):
        self.fbp, self.work, self.device, self.kernels = fbp, work, device, {}
        self.edges, self.noise, self.between, self.truth, self.noisy = {}, {}, {}, {}, {}
        sinograms, truth = self.phantoms()
        white = work / "white"
        run(fbp, "phantom", "--size", NOISE_SIZE, "--projections", NOISE_PROJECTIONS, "--slices", NOISE_SLICES,
            "--kind", "disc", "--scale", "1e-9", "--noise", 1, "--output", white)
        white_on = ["--sinograms", white, "--size", NOISE_SIZE - 1, "--padding", "zero", "--center"]
        middle = NOISE_SIZE // 2 - 1  # a bin
        places = edges()
        for way in WAYS:
            for name in FILTERS:
                print(f"interpolation: {way.name}, {name}", flush=True)
                key = way.name, name
                images = self.slices(way, ["--sinograms", sinograms, "--padding", "zero"], name)
                by_kind = dict(zip(["discs", "shepp-logan", "noisy"], images))
                self.edges[key] = {place: edge(by_kind[kind], *rest) for place, (kind, *rest) in places.items()}
                self.truth[key] = self.rmse(by_kind["shepp-logan"], truth)
                self.noisy[key] = self.rmse(by_kind["noisy"], truth)
                self.noise[key] = noise(self.slices(way, [*white_on, middle], name))
            self.between[way.name] = noise(self.slices(way, [*white_on, middle + 0.5], "ramp"))

        cases = {"white noise": ["--sinograms", self.pages("one", [white / "sino_00000.tif"]), "--padding", "zero"],
                 "Shepp-Logan": ["--sinograms", self.pages("head", [sinograms / "page_1.tif"]), "--padding", "zero"],
                 **scans}
        self.differences, self.from_sum = {}, {}
        for case, options in cases.items():
            print(f"interpolation: differences, {case}", flush=True)
            reference = self.slices(WAYS[-1], options, "ramp")[0]
            self.differences[case] = {way.name: relative(self.slices(way, options, "ramp")[0], reference)
                                      for way in [*WAYS[:-1], *BOUNDS]}
            if case not in scans:
                self.from_sum[case] = self.against_sum(options[1], reference)
        self.scans = list(scans)
        self.thin, self.thin_noisy, self.windows = {}, {}, {}
        self.measure_windows(scans.get("tooth"))

    def measure_windows(self, tooth):
        """Every window on thin plates, against their truth, and on the tooth, against its exact slice."""
        truth, files = self.work / "plates-truth.tif", []
        for options in [["--truth", truth], ["--noise", 1]]:
            out = self.work / f"plates-{len(files)}"
            run(self.fbp, "phantom", "--size", SIZE, "--projections", PROJECTIONS, "--kind", "asymmetric", *options,
                "--output", out)
            files.append(out / "sino_00000.tif")
        plates, truth = ["--sinograms", self.pages("plates", files), "--padding", "zero"], tifffile.imread(truth)
        for name in FILTERS:
            print(f"interpolation: windows, {name}", flush=True)
            for way in WAYS:
                images = self.slices(way, plates, name)
                self.thin[way.name, name], self.thin_noisy[way.name, name] = (self.rmse(i, truth) for i in images)
            if tooth:
                exact = self.slices(WAYS[-1], tooth, name)[0]
                for way in WAYS[:-1]:
                    self.windows[way.name, name] = relative(self.slices(way, tooth, name)[0], exact)

    def against_sum(self, folder, image):
        """Root mean square of the difference from the direct sum over that of the sum, at pixels of a circle."""
        (file,) = folder.iterdir()
        size = image.shape[0]
        turns, radius = np.arange(PIXELS) * (3 - np.sqrt(5)) / 2, np.sqrt((np.arange(PIXELS) + 0.5) / PIXELS)
        middle, reach = (size - 1) / 2, MASK * size / 2
        pixels = np.stack([middle + reach * radius * np.sin(2 * np.pi * turns),
                           middle + reach * radius * np.cos(2 * np.pi * turns)], axis=1).round().astype(int)
        expected = direct_sum(tifffile.imread(file), pixels, size, middle)
        got = image[pixels[:, 0], pixels[:, 1]].astype(np.float64)
        return np.sqrt(np.mean((got - expected) ** 2) / np.mean(expected**2))

    def phantoms(self):
        """Sinograms of discs, of Shepp and Logan's head, and of the head with noise; and the truth of the head."""
        truth, files = self.work / "head-truth.tif", []
        for name, options in [("discs", []), ("shepp-logan", ["--truth", truth]), ("shepp-logan", ["--noise", 1])]:
            out = self.work / f"sinogram-{len(files)}"
            run(self.fbp, "phantom", "--size", SIZE, "--projections", PROJECTIONS, "--kind", name, *options,
                "--output", out)
            files.append(out / "sino_00000.tif")
        return self.pages("phantoms", files), tifffile.imread(truth)

    def pages(self, name, files):
        """A directory with these files as its pages."""
        out = self.work / name
        out.mkdir()
        for i, file in enumerate(files):
            (out / f"page_{i}.tif").symlink_to(file.resolve())
        return out

    def slices(self, way, options, filter_name):
        output, report = self.work / "slices.tif", self.work / "slices.json"
        run(self.fbp, "reconstruct", *options, "--filter", filter_name, *way.options.split(), *self.device, "--output",
            output, "--report", report, "--overwrite", "--quiet")
        for kernel in json.loads(report.read_text())["kernels"]:
            if not re.match(re.escape(way.kernel) + "-x", kernel["name"]):
                raise Failed(f"{way.name}: expected {way.kernel}, got {kernel['name']}")
        images = tifffile.imread(output)
        return images.reshape(-1, *images.shape[-2:])

    def rmse(self, image, truth):
        row, column = np.indices(truth.shape) - (truth.shape[0] - 1) / 2
        inside = np.hypot(row, column) <= MASK * truth.shape[0] / 2
        return np.sqrt(np.mean((image.astype(np.float64) - truth)[inside] ** 2))

    def draw(self, path):
        """Edge responses, MTF, and noise by distance from the axis."""
        figure, axes = plt.subplots(1, 3, figsize=(15, 4.6), layout="constrained")
        for way in WAYS:
            for name, dashes in [("ramp", "-"), ("hann", (0, (4, 3)))]:
                found = self.edges[way.name, name]["rim"]
                near = np.abs(found.distance) < 4
                label = f"{way.name}, {name}"
                axes[0].plot(found.distance[near], found.response[near], color=way.color, ls=dashes, lw=1, label=label)
                axes[1].plot(found.frequency, found.mtf, color=way.color, ls=dashes, lw=1)
            unit = self.noise["exact", "ramp"].elsewhere
            for found, dashes in [(self.noise[way.name, "ramp"], "-"), (self.between[way.name], ":")]:
                drawn = np.flatnonzero(np.isfinite(found.by_radius[:25]))
                axes[2].plot(drawn / 2, found.by_radius[drawn] / unit, color=way.color, lw=1, ls=dashes)
        axes[0].set(title="edge near the rim", xlabel="distance in pixels")
        axes[1].set(title="MTF near the rim", xlabel="frequency / Nyquist")
        axes[2].set(title="noise near the axis, ramp",
                    xlabel="distance from the axis in pixels", ylim=(0, None))
        for axis in axes:
            axis.grid(alpha=0.25, lw=0.5)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(WAYS), frameon=False)
        save(figure, path)

    # ---- the page

    def check(self):
        """What the page says in words must be so."""
        for name in FILTERS:
            for place in ["axis", "rim"]:
                width = {way.name: self.edges[way.name, name][place].width() for way in WAYS}
                if not width["exact"] < width["nearest"] < width["linear"]:
                    raise Failed(f"{name}, {place}: edges are not in the order exact, nearest, linear")
            sd = {way.name: self.noise[way.name, name].elsewhere for way in WAYS}
            over = {way.name: self.edges[way.name, name]["rim"].overshoot() for way in WAYS}
            if name == "ramp" and not over["exact"] > over["linear"]:
                raise Failed("with the plain ramp, exact overshoots less than linear")
            if not (sd["linear"] < sd["oversampling"] < sd["exact"] and abs(sd["nearest"] / sd["exact"] - 1) < 0.02):
                raise Failed(f"{name}: noise is not in the order linear, oversampling, exact, nearest like exact")
            rmse = {way.name: self.truth[way.name, name] for way in WAYS}
            if not rmse["exact"] == min(rmse.values()):
                raise Failed(f"{name}: exact is not closest to the truth")
        if not self.noisy["exact", "ramp"] > self.noisy["linear", "ramp"]:
            raise Failed("with noise and plain ramp, exact is closer to the truth than linear")
        if not self.noise["exact", "cosine"].elsewhere < self.noise["linear", "ramp"].elsewhere:
            raise Failed("exact with the cosine window has more noise than linear with the plain ramp")
        for case, numbers in self.differences.items():
            for way in BOUNDS:
                if not numbers[way.name] <= float(way.options.split()[-1]):
                    raise Failed(f"{case}: {way.name} is {numbers[way.name]:.2e} off")
        for case, error in self.from_sum.items():
            if not error <= float(REFERENCE):
                raise Failed(f"{case}: the exact slice is {error:.2e} off the direct sum")

    def page(self, missing):
        unit = self.noise["exact", "ramp"].elsewhere

        def sd(way, name):
            return self.noise[way, name].elsewhere / unit

        text = self.answer(sd)
        text += "\n## The effect of interpolation\n\n" + paragraph(f"""
            Filtered rows are sums of waves up to the Nyquist frequency of the bins. `--interpolation exact` evaluates
            these sums between bins, to within `--accuracy`. Linear and nearest interpolation multiply the same waves
            by sinc^2 and sinc of their frequency, and add copies of them above the Nyquist frequency.
            `scripts/quality` wrote this page. It measures these effects with: {", ".join(f"*{way.name}* `{way.options}`"
            for way in WAYS)}; and with `--padding zero`, except for scans. *Oversampling* takes the nearest of four
            samples per bin; only `--algorithm oversample` requests it.""")
        text += "\n### Resolution\n\n" + paragraph(f"""
            {SIZE} x {SIZE} pixels from {PROJECTIONS} projections of {SIZE} bins, `fbp phantom`, no noise. *Axis*: the
            edge of a disc of the phantom `discs` within 0.1 of the radius from the axis; *rim*: the outline of the
            Shepp-Logan phantom beyond 0.85 of the radius. Values are averaged over intervals of {STEP:g} pixel of the
            distance from the edge, {REACH} pixels to either side. *Edge* is the width from 10 to 90 % in pixels,
            *overshoot* how far values next to the edge exceed those inside, as a fraction of the step. 50 % and 10 %
            are the frequencies, in units of Nyquist, at which the MTF has fallen to these values. The MTF is the
            transform of the derivative, tapered with a Hann window, so sharp cutoffs look wider by about 1/{REACH} of
            Nyquist. Rows of the phantom are means over bins, which affects all numbers (it alone reduces the MTF to
            {np.sinc(0.5):.2f} at Nyquist). Frequencies above 1 are aliased by the pixels.""")
        text += ("\n| interpolation | filter | edge, axis | edge, rim | overshoot, rim | 50 %, axis | 50 %, rim | "
                 "10 %, axis | 10 %, rim |\n|---|---|---:|---:|---:|---:|---:|---:|---:|\n")
        for way in WAYS:
            for name in FILTERS:
                both = [self.edges[way.name, name][place] for place in ["axis", "rim"]]
                numbers = [*(f"{e.width():.2f}" for e in both), f"{100 * both[1].overshoot():.1f} %"]
                numbers += [f"{e.falls_to(level):.2f}" for level in [0.5, 0.1] for e in both]
                text += f"| {way.name} | {name} | {' | '.join(numbers)} |\n"

        linear, exact, nearest = (self.between[name].on_axis / unit for name in ["linear", "exact", "nearest"])
        on_bin = self.noise["linear", "ramp"].on_axis / unit
        text += "\n### Noise\n\n" + paragraph(f"""
            Slices of {NOISE_SLICES} sinograms of white noise, {NOISE_PROJECTIONS} projections of {NOISE_SIZE} bins.
            Standard deviations are relative to that of exact with the plain ramp, which is {unit:.3f} of the
            sinogram's, divided by the square root of the number of projections (in theory pi / sqrt(12) = {np.pi /
            np.sqrt(12):.3f}). *Slice* is the region from 0.1 to 0.45 of the side away from the axis; *axis* is the
            pixel on the axis, with the axis on the centre of a bin, and is known to within {100 / np.sqrt(2 *
            NOISE_SLICES):.0f} %. The last columns give the fraction of the power of 128 x 128 pixels in the middle at
            frequencies above half of Nyquist, and above Nyquist (only in the corners of the spectrum).""")
        text += ("\n| interpolation | filter | slice | axis | power above Nyquist / 2 | above Nyquist |\n"
                 "|---|---|---:|---:|---:|---:|\n")
        for way in WAYS:
            for name in FILTERS:
                n = self.noise[way.name, name]
                text += (f"| {way.name} | {name} | {n.elsewhere / unit:.3f} | {n.on_axis / unit:.3f} | "
                         f"{100 * n.above_half:.1f} % | {100 * n.above:.2f} % |\n")
        text += "\n" + paragraph(f"""
            With exact and nearest, the noise is uniform. With linear, it depends on where the rays through a pixel
            fall between bins: on the axis all fall on the same place, so with the plain ramp the noise there is
            {on_bin:.2f} if the axis is on a bin and {linear:.2f} if it is half-way between two (exact {exact:.2f},
            nearest {nearest:.2f}). Around the axis are rings with alternately more and less noise; some pixels away,
            it is {sd("linear", "ramp"):.2f} on average.""")

        text += "\n### Difference from the exact slice\n\n"
        names = {"tooth": "tooth, row 0", "tomo77": "tomo77, row 40"}
        errors = " and ".join(f"{number(e)} ({case})" for case, e in self.from_sum.items())
        about = f"""
            Root mean square of the difference, relative to that of the exact slice, inside {MASK} of the circle, with
            the plain ramp. The exact slice is `--interpolation exact --accuracy {REFERENCE}`. Tests compare the
            kernels of exact interpolation with a direct sum over all frequencies in double precision. So does this
            script, with its own sum at {PIXELS} pixels: the difference is {errors}. White noise is one of the slices
            above, the phantom is the Shepp-Logan phantom above, and scans use the default padding."""
        if self.scans:
            about += " Scans are described in [real.md](real.md)."
        if missing:
            about += f" Not done, because not there: {', '.join(missing)}."
        text += paragraph(about)
        text += f"\n| interpolation | {' | '.join(names.get(c, c) for c in self.differences)} |\n"
        text += "|---|" + "---:|" * len(self.differences) + "\n"
        for way in [*WAYS[:-1], *BOUNDS]:
            numbers = [number(numbers[way.name]) for numbers in self.differences.values()]
            text += f"| {way.name} | {' | '.join(numbers)} |\n"
        text += "\n" + paragraph("""
            The width of a gridding kernel is a whole number of cells, so a slice is usually more accurate than
            requested.""")

        text += "\n### Error against the truth\n\n" + paragraph(f"""
            RMSE inside {MASK} of the circle, for the Shepp-Logan phantom with {SIZE} x {SIZE} pixels from
            {PROJECTIONS} projections, without noise, and with white noise of standard deviation 1 on the line
            integrals (`--noise 1`).""")
        text += f"\n| interpolation | {' | '.join(f'{n} | {n}, noise' for n in FILTERS)} |\n"
        text += "|---|" + "---:|" * 2 * len(FILTERS) + "\n"
        for way in WAYS:
            numbers = [f"{found[way.name, name]:.4f}" for name in FILTERS for found in [self.truth, self.noisy]]
            text += f"| {way.name} | {' | '.join(numbers)} |\n"

        text += self.windows_page()
        return text

    def answer(self, sd):
        """The first part: what to give, and why."""
        text = "# Which interpolation and which window\n\n" + paragraph("""
            Start with the defaults, `--interpolation linear` and `--filter ramp`: slices agree with those of other
            programs. For sharp slices with uniform noise, use `--interpolation exact`, and a window as strong as the
            noise requires. The edge is its width from 10 to 90 % of the step near the rim, the noise that of a slice
            of white noise relative to exact with the plain ramp.""")
        text += "\n| you want | use | edge, pixels | noise |\n|---|---|---:|---:|\n"
        for want, flags, way, name in CHOICES:
            text += f"| {want} | {flags} | {self.edges[way, name]['rim'].width():.2f} | {sd(way, name):.2f} |\n"
        text += "\n![Edges, MTF and noise](quality/interpolation.png)\n\n" + paragraph("""
            Where oversampling cannot be seen, it coincides with linear. In the right plot, lines are for an axis on
            the centre of a bin, dots for an axis half-way between two bins.""")
        text += "\n" + paragraph("""
            `--filter` takes ramp, shepp-logan, cosine, hamming, hann, parzen, butterworth or none; `--filter-cutoff
            0.5` sets the cutoff to half the Nyquist frequency. `--padding edge` (default), `zero` or `mirror` extends
            rows beyond the detector ([geometry.md](geometry.md#padding-and-the-mean)).""")
        text += "\n" + paragraph("""
            `--mode fast` changes slices much less than the interpolation does: [performance.md](performance.md#fast-mode)
            has its errors, and [dev/quality-methods.md](dev/quality-methods.md) pictures of them.""")

        def best(numbers):
            way, name = min(numbers, key=numbers.get)
            return f"{way} with {name}, {numbers[way, name]:.4f}"

        over = {way.name: 100 * self.edges[way.name, "ramp"]["rim"].overshoot() for way in WAYS}
        edge = {key: found["rim"].width() for key, found in self.edges.items()}
        return text + "\n## Which to choose\n\n" + paragraph(f"""
            Exact interpolation preserves everything that the filter passes, including the noise of the full band.
            Linear interpolation is itself a low-pass filter, so with the same filter the exact slice is sharper and
            noisier: with the plain ramp, an edge near the rim is {edge["exact", "ramp"]:.2f} pixels wide instead of
            {edge["linear", "ramp"]:.2f}, and the noise of linear is {sd("linear", "ramp"):.2f} of that of exact.
            With the plain ramp, exact also overshoots at edges, by {over["exact"]:.1f} % of the step (linear
            {over["linear"]:.1f} %). Without noise, exact is closest to the truth with every filter here; with the
            noise above and the plain ramp, linear is closer ({self.noisy["linear", "ramp"]:.4f}, exact
            {self.noisy["exact", "ramp"]:.4f}). The smallest error in the table is that of {best(self.truth)}; with
            noise it is that of {best(self.noisy)}. A window removes the additional noise: exact with `--filter
            cosine` has {sd("exact", "cosine"):.2f} and with `hann` {sd("exact", "hann"):.2f}, at edges of
            {edge["exact", "cosine"]:.2f} and {edge["exact", "hann"]:.2f} pixels. So use exact for sharpness, or if
            noise must be uniform and nothing may be aliased, and choose the filter according to the noise. Use linear
            if slices must agree with those of other programs that interpolate linearly, or if it is faster. Nearest
            has the noise of exact without all of its sharpness, and the most power above Nyquist; oversampling is
            equivalent to linear within the precision of the tables. Use these two only for speed.""")

    def windows_page(self):
        """The part on thin plates and the tooth."""
        text = "\n### Thin plates and the tooth, by filter\n\n" + paragraph(f"""
            The phantom `asymmetric` has plates {0.008 * SIZE:.0f} and {0.012 * SIZE:.0f} pixels thick, like those of
            an insect, between ellipses of other contrasts. RMSE inside {MASK} of the circle against the truth, {SIZE} x {SIZE} pixels from {PROJECTIONS}
            projections, without noise, and with white noise of standard deviation 1 on the line integrals.""")
        text += f"\n| interpolation | {' | '.join(f'{n} | {n}, noise' for n in FILTERS)} |\n"
        text += "|---|" + "---:|" * 2 * len(FILTERS) + "\n"
        for way in WAYS:
            numbers = [f"{found[way.name, name]:.4f}" for name in FILTERS for found in [self.thin, self.thin_noisy]]
            text += f"| {way.name} | {' | '.join(numbers)} |\n"
        if self.windows:
            text += "\n" + paragraph(f"""
                The tooth, row 0: root mean square of the difference from the exact slice with the same filter,
                relative to that of the exact slice, inside {MASK} of the circle. Windows pass less of the high
                frequencies, at which interpolations differ.""")
            text += f"\n| interpolation | {' | '.join(FILTERS)} |\n|---|" + "---:|" * len(FILTERS) + "\n"
            for way in WAYS[:-1]:
                text += f"| {way.name} | {' | '.join(number(self.windows[way.name, n]) for n in FILTERS)} |\n"
        return text
