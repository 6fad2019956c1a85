"""Does what scripts/quality says; that script finds the packages and builds the program."""

import argparse
import json
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import tifffile

from quality_interpolation import Interpolation
from quality_methods import BY_NAME, DATA, DASHES, DRAWN, MASK, METHODS, SAME, STANDARD, scan
from quality_tools import Failed, number, paragraph, run, save

BESIDE = "`../shared/data` beside the checkout, or `FBP_TEST_DATA`"


@dataclass(frozen=True)
class Case:
    name: str
    title: str
    unit: str
    column: int  # the vertical line of the profiles
    zoom: tuple[int, int]  # the rows of the figure's right half
    input: list[str]


def compare(fbp, a, b):
    return json.loads(run(fbp, "compare", a, b, "--json", "--mask", MASK))


def kernel_of(report):
    (kernel,) = {kernel["name"] for kernel in report["kernels"]}
    return kernel


class Results:
    """Slices and numbers of one case."""

    def __init__(self, fbp, work, device, case, truth=None):
        self.case = case
        self.slices, self.reports, self.against_standard, self.against_truth = {}, {}, {}, {}
        files = {method.name: work / f"{case.name}-{method.name}.tif" for method in METHODS}
        for method in METHODS:
            print(f"{case.name}: {method.title}", flush=True)
            report = work / f"{case.name}-{method.name}.json"
            run(fbp, "reconstruct", *case.input, *method.options.split(), *device, "--output", files[method.name],
                "--report", report, "--overwrite", "--quiet")
            self.reports[method.name] = json.loads(report.read_text())
            kernel = kernel_of(self.reports[method.name])
            if not re.fullmatch(re.escape(method.kernel) + r"-x1-(buffer|image-[a-z-]+)", kernel):
                raise Failed(f"{method.title}: expected {method.kernel}, got {kernel}")
            self.slices[method.name] = tifffile.imread(files[method.name])
            if method is not STANDARD:
                self.against_standard[method.name] = compare(fbp, files[method.name], files[STANDARD.name])
            if truth is not None:
                self.against_truth[method.name] = compare(fbp, files[method.name], truth)
        self.half_from_nearest = compare(fbp, files["half-nearest"], files["nearest"])
        self.truth = None if truth is None else tifffile.imread(truth)

    def away_from_edges(self):
        """Root mean square difference from the truth where it is constant over 9 x 9 pixels, by method."""
        windows = np.lib.stride_tricks.sliding_window_view(self.truth, (9, 9))
        flat = np.ptp(windows, axis=(2, 3)) < 1e-6
        y, x = np.indices(flat.shape) + 4 - (self.truth.shape[0] - 1) / 2
        flat &= np.hypot(x, y) <= MASK * self.truth.shape[0] / 2
        error = {name: (image.astype(np.float64) - self.truth)[4:-4, 4:-4] for name, image in self.slices.items()}
        return {name: np.sqrt(np.mean(e[flat] ** 2)) for name, e in error.items()}


# ---- pictures


def running_rms(values, width=15):
    """Root mean square over `width` neighbours, fewer at the ends."""
    ones = np.ones(width)
    squares = np.convolve(values.astype(np.float64) ** 2, ones, "same")
    return np.sqrt(squares / np.convolve(np.ones(len(values)), ones, "same"))


def draw_profiles(results, path):
    """Profiles along the line, below them the differences; the right half enlarges a part."""
    case = results.case
    rows = np.arange(results.slices[STANDARD.name].shape[0])
    line = {name: image[:, case.column] for name, image in results.slices.items()}
    truth = None if results.truth is None else results.truth[:, case.column]
    panels = 2 if truth is None else 3
    figure, axes = plt.subplots(panels, 2, figsize=(12, 1 + 3 * panels), sharex="col", squeeze=False,
                                gridspec_kw={"width_ratios": [3, 2]}, layout="constrained")
    inside = slice(case.zoom[0], case.zoom[1] + 1)

    for column, part in enumerate([slice(None), inside]):
        top = axes[0, column]
        if truth is not None:
            top.plot(rows[part], truth[part], color="0.6", lw=2.5, label="truth")
        for name in [STANDARD.name, *DRAWN]:
            method = BY_NAME[name]
            top.plot(rows[part], line[name][part], color=method.color, lw=0.8,
                     ls=DASHES if name == "half" else "-", label=method.title, zorder=3 if name == "half" else 2)
        top.set_xlim(rows[part][0], rows[part][-1])
        zoomed = column == 1
        differences(axes[1, column], rows, part, {n: line[n] - line[STANDARD.name] for n in DRAWN}, zoomed)
        if truth is not None:
            differences(axes[2, column], rows, part, {n: line[n] - truth for n in [STANDARD.name, *DRAWN]}, zoomed)
    for row in axes[1:]:  # both halves in one scale
        low, high = zip(*(axis.get_ylim() for axis in row))
        for axis in row:
            axis.set_ylim(min(low), max(high))

    for axis in axes.flat:
        axis.grid(alpha=0.25, lw=0.5)
    axes[0, 0].axvspan(*case.zoom, color="tab:orange", alpha=0.15, lw=0)
    axes[0, 0].set_title(f"{case.title}, column {case.column}", fontsize=11)
    axes[0, 1].set_title(f"rows {case.zoom[0]} to {case.zoom[1]}", fontsize=11)
    axes[0, 0].set_ylabel(f"attenuation ({case.unit})")
    axes[1, 0].set_ylabel("|difference from standard|")
    if truth is not None:
        axes[2, 0].set_ylabel("|difference from truth|")
    for axis in axes[-1]:
        axis.set_xlabel("row")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    save(figure, path)


def differences(axis, rows, part, lines, zoomed):
    """Absolute values on a log scale; over the whole line thin, with their running root mean square on top of them."""
    for name, values in lines.items():
        magnitude = np.abs(values)
        shown = np.where(magnitude > 0, magnitude, np.nan)
        color, dashes = BY_NAME[name].color, DASHES if name == "half" else "-"
        if zoomed:
            axis.plot(rows[part], shown[part], color=color, lw=1, ls=dashes)
        else:
            axis.plot(rows[part], shown[part], color=color, lw=0.5, alpha=0.3)
            axis.plot(rows[part], running_rms(values)[part], color=color, lw=1.6, ls=dashes)
    axis.set_yscale("log")
    thick = np.concatenate([running_rms(values) for values in lines.values()])
    axis.set_ylim(thick[thick > 0].min() / 30, max(np.abs(values).max() for values in lines.values()) * 2)


def draw_slices(all_results, path):
    """The standard reconstructions with the line of the profiles."""
    figure, axes = plt.subplots(1, len(all_results), figsize=(5.2 * len(all_results), 5.5), squeeze=False,
                                layout="constrained")
    for axis, results in zip(axes[0], all_results):
        image = results.slices[STANDARD.name]
        side = image.shape[0]
        distance = np.hypot(*np.meshgrid(*[np.arange(side) - (side - 1) / 2] * 2))
        low, high = np.percentile(image[distance < MASK * side / 2], [0.5, 99.5])
        if results.truth is not None:
            low, high = 0.1, 0.4  # the skull is 1, all that is inside is 0 to 0.4
        axis.imshow(image, cmap="gray", vmin=low, vmax=high, interpolation="antialiased")
        axis.axvline(results.case.column, color="red", lw=1)
        axis.set_title(f"{results.case.title}: grey {low:.2g} to {high:.2g}", fontsize=11)
    save(figure, path)


# ---- the page


def table(numbers):
    text = ("| method | RMSE | NRMSE | PSNR (dB) | SNR (dB) | SSIM | largest difference |\n"
            "|---|---:|---:|---:|---:|---:|---:|\n")
    for name, c in numbers.items():
        psnr, snr = ("inf" if c[key] is None else f"{c[key]:.1f}" for key in ("psnr", "snr"))
        text += (f"| {BY_NAME[name].title} | {number(c['rmse'])} | {number(c['nrmse'])} | {psnr} | {snr} | "
                 f"{c['ssim']:.6f} | {number(c['max_abs'])} |\n")
    return text


def page(all_results, missing):
    report = all_results[0].reports[STANDARD.name]
    phantom = all_results[0]

    def each(numbers):
        """A number for each case."""
        return " and ".join(f"{numbers(results)} ({results.case.name})" for results in all_results)

    def nrmse(name):
        return each(lambda results: number(results.against_standard[name]["nrmse"]))

    def factor(a, b):
        return each(lambda results: f"{results.against_standard[a]['rmse'] / results.against_standard[b]['rmse']:#.3g}")

    def reads(where):
        """Methods whose kernels read the sinogram from there."""
        found = [method.title for method in METHODS
                 if all(f"-x1-{where}" in kernel_of(results.reports[method.name]) for results in all_results)]
        return ", ".join(found) or "none"

    text = "# Image quality of fast methods\n\n" + paragraph("""
        `scripts/quality` wrote this page: it repeats all reconstructions, measurements and figures, which takes about
        eight minutes with PoCL on two CPU cores; `scripts/quality --device WHICH` uses another device. The page
        reproduces Figures 7, 8, 18 and 19 of the paper (sections 2.4, 5.3 and 7.2). [quality.md](../quality.md) has
        the effect of interpolation and filters, which is not from the paper.""")
    text += f"""
| | |
|---|---|
| device | {report["device"]} |
| driver | {report["platform"]}, {report["driver"]} |
| program | fbp {report["version"]} |
| phantom | Shepp-Logan, 1024 x 1024 pixels from 1024 projections of 1024 bins over 180 degrees, no noise |
"""
    if missing:
        text += f"| tooth | not done: it is not in {BESIDE} |\n"
    else:
        text += (f"| tooth | in {BESIDE}: 181 projections of 640 bins, 10 flats, 10 darks; row 0, axis at bin "
                 "295.5 |\n")
    text += "\n" + paragraph(f"""
        Each method is `fbp reconstruct` with the options below, one slice per pass and the plain ramp filter. All are
        compared with the *standard reconstruction*: the standard kernel with float storage and explicit linear
        interpolation. The script stops if a report names a kernel other than the expected one. These methods read the
        sinogram from a buffer: {reads("buffer")}; these as an image: {reads("image")}.""")
    text += "\n| method | options | kernel |\n|---|---|---|\n"
    for method in METHODS:
        text += f"| {method.title} | `{method.options}` | `{kernel_of(phantom.reports[method.name])}` |\n"
    text += "\n" + paragraph(f"""
        The numbers are from `fbp compare --mask {MASK}`: inside {MASK} of the slice's circle; NRMSE relative to the
        standard deviation of the reference, PSNR and SSIM to its range, SNR to its root mean square.""")

    text += "\n![Standard reconstructions and the lines of the profiles](quality/slices.png)\n"
    if not missing:
        text += "\n" + paragraph("""
            The standard reconstructions, with profiles along the red lines. The tooth is TomoPy's `tooth.h5`,
            measured at the Advanced Photon Source (BSD-3, UChicago Argonne).""")
    for results in all_results:
        case = results.case
        text += f"\n## {case.title[0].upper()}{case.title[1:]}\n\nAgainst the standard reconstruction:\n\n"
        text += table(results.against_standard)
        below = "below, the absolute difference from the standard reconstruction"
        if results.truth is not None:
            text += "\nAgainst the truth, whose pixels are means over 4 x 4 points:\n\n"
            text += table(results.against_truth)
            below += " (Figures 7 and 18), and at the bottom from the truth (Figure 18)"
        else:
            below += " (Figures 8 and 19)"
        text += f"\n![Profiles and differences: {case.name}](quality/{case.name}.png)\n\n"
        text += paragraph(f"""
            Top: profiles; {below}. Thin lines are pixels, thick ones the root mean square over 15 rows. The right half
            enlarges the shaded rows, pixel by pixel. Half lies on top of standard, so it is dashed.""")

    same = max(results.against_standard[name]["nrmse"] for results in all_results for name in SAME)
    away = phantom.away_from_edges()
    truth = {name: numbers["nrmse"] for name, numbers in phantom.against_truth.items()}
    half = each(lambda results: number(results.half_from_nearest["nrmse"]))
    text += "\n## Results\n\n"
    text += paragraph(f"""
        Texture, ALU and hybrid kernels compute the standard reconstruction in other ways: their NRMSE from it is at
        most {number(same)}.""", True)
    text += paragraph(f"""
        Half storage costs next to nothing: the NRMSE is {nrmse("half")} with linear interpolation. Between half
        nearest and float nearest it is {half}, far below the cost of nearest itself.""", True)
    text += paragraph(f"""
        Nearest differs from linear the most: NRMSE {nrmse("nearest")}.""", True)
    text += paragraph(f"""
        Oversampling is closer to linear than nearest is, by a factor of {factor("nearest", "oversample")} in RMSE; it
        takes the nearest of four values per bin, so it is off by at most an eighth of a bin instead of half a
        bin.""", True)
    text += paragraph(f"""
        Against the truth the phantom's NRMSE is {truth["standard"]:.4f} for standard, {truth["half"]:.4f} for half,
        {truth["oversample"]:.4f} for oversampling and {truth["nearest"]:.4f} for nearest. Edges, which no method
        reproduces sharply, are a large part of this: where the truth is constant over 9 x 9 pixels, the RMSE is
        {number(away["standard"])}, {number(away["half"])}, {number(away["oversample"])} and
        {number(away["nearest"])}.""", True)
    text += "\n" + paragraph("""
        Texture units of GPUs interpolate with 8-bit weights, while PoCL interpolates images exactly. So if the
        texture unit interpolates (texture, hybrid, and half linear when it reads an image), results on a GPU differ
        slightly from those on a CPU. Oversampling only uses quarters of a bin, which 8 bits represent exactly.
        [quality-devices.md](quality-devices.md) has the same figures from devices with texture units.""")
    return text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fbp", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("docs"))
    parser.add_argument("--device")
    arguments = parser.parse_args()
    fbp, work, out = arguments.fbp, arguments.work / "work", arguments.out
    device = ["--device", arguments.device] if arguments.device else []
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    for directory in ["quality", "dev/quality"]:
        (out / directory).mkdir(parents=True, exist_ok=True)

    truth = work / "truth.tif"
    run(fbp, "phantom", "--size", 1024, "--projections", 1024, "--output", work / "phantom", "--truth", truth)
    phantom = Case("phantom", "Shepp-Logan phantom", "1/pixel", 512, (780, 860),
                   ["--sinograms", str(work / "phantom"), "--center", "511.5"])
    tooth = Case("tooth", "tooth", "1/pixel", 320, (200, 260), scan("tooth", 0, 295.5))
    all_results = [Results(fbp, work, device, phantom, truth)]
    missing = not (DATA / "tooth").is_dir()
    if missing:
        print(f"there is no {DATA}/tooth: only the phantom is done")
        (out / "dev/quality/tooth.png").unlink(missing_ok=True)
    else:
        all_results.append(Results(fbp, work, device, tooth))

    scans = {"tooth": tooth.input, "tomo77": scan("tomo77", 40, 39)}
    absent = [name for name in scans if not (DATA / name).is_dir()]
    interpolation = Interpolation(fbp, work, device, {name: scans[name] for name in scans if name not in absent})
    interpolation.draw(out / "quality/interpolation.png")

    draw_slices(all_results, out / "dev/quality/slices.png")
    for results in all_results:
        draw_profiles(results, out / f"dev/quality/{results.case.name}.png")
    (out / "dev/quality-methods.md").write_text(page(all_results, missing))
    (out / "quality.md").write_text(interpolation.page(absent))
    print(f"wrote quality.md, dev/quality-methods.md and their pictures to {out}")

    interpolation.check()
    # what the paper finds must be found here, too
    for results in all_results:
        rmse = {name: c["rmse"] for name, c in results.against_standard.items()}
        if not rmse["half"] < rmse["oversample"] < rmse["nearest"]:
            raise Failed(f"{results.case.name}: half, oversampling and nearest are not in this order of difference")
        for name in SAME:
            c, report = results.against_standard[name], results.reports[name]
            # only a texture unit has weights of 8 bits
            exact = name == "alu" or report["platform"] == "Portable Computing Language"
            if c["nrmse"] > (1e-5 if exact else 2e-3):
                raise Failed(f"{results.case.name}: {BY_NAME[name].title} differs from standard by {c['nrmse']:.2e}")


if __name__ == "__main__":
    try:
        main()
    except Failed as error:
        sys.exit(f"scripts/quality: {error}")
