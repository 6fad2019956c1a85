"""Does what scripts/quality says; that script finds the packages and builds the program."""

import argparse
import io
import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import tifffile
from PIL import Image

MASK = 0.95
DATA = Path("../shared/data/tooth")


@dataclass(frozen=True)
class Method:
    """A way to reconstruct: what is asked for, and how the kernel that must come of it begins (the number of slices and
    image or buffer follow in its name)."""

    name: str
    title: str
    options: str
    kernel: str
    color: str = "black"


STANDARD = Method("standard", "standard, linear", "--profile default", "standard-linear-float", "black")
METHODS = [
    STANDARD,
    Method("nearest", "nearest", "--profile default --interpolation nearest", "standard-nearest-float", "tab:red"),
    Method("half", "half, linear", "--profile default --mode fast", "standard-linear-half", "tab:green"),
    Method("half-nearest", "half, nearest", "--profile default --mode fast --interpolation nearest",
           "standard-nearest-half"),
    Method("oversample", "oversampling", "--profile nvidia-maxwell --algorithm oversample --mode fast",
           "oversample-linear-float", "tab:blue"),
    Method("texture", "texture, linear", "--profile nvidia-maxwell --algorithm texture", "texture-linear-float"),
    Method("alu", "ALU, linear", "--profile nvidia-maxwell --algorithm alu", "alu-linear-float"),
    Method("hybrid", "hybrid, linear", "--profile nvidia-maxwell --algorithm hybrid", "hybrid-linear-float"),
]
# what the figures show, in the order in which it is drawn
DRAWN = ["nearest", "oversample", "half"]
BY_NAME = {method.name: method for method in METHODS}


@dataclass(frozen=True)
class Case:
    name: str
    title: str
    unit: str
    column: int  # the vertical line of the profiles
    zoom: tuple[int, int]  # the rows of the figure's right half
    input: list[str]


class Failed(Exception):
    pass


def run(fbp, *arguments):
    """Runs fbp and returns what it prints; its complaints are shown when it fails."""
    command = [str(fbp), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}\n{done.stderr.rstrip()}")
    return done.stdout


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
        self.truth = None if truth is None else tifffile.imread(truth)


# ---- pictures


def save(figure, path):
    """A PNG of 256 colours: a third of the size, and the same bytes for the same pixels."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=100)
    plt.close(figure)
    image = Image.open(buffer).convert("RGB").quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    image.save(path, optimize=True)


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
                     ls=(0, (4, 3)) if name == "half" else "-", label=method.title, zorder=3 if name == "half" else 2)
        top.set_xlim(rows[part][0], rows[part][-1])
        differences(axes[1, column], rows, part, {n: line[n] - line[STANDARD.name] for n in DRAWN})
        if truth is not None:
            differences(axes[2, column], rows, part, {n: line[n] - truth for n in [STANDARD.name, *DRAWN]})
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


def differences(axis, rows, part, lines):
    """Absolute values on a log scale, thin; their running root mean square on top of them, thick."""
    for name, values in lines.items():
        magnitude = np.abs(values)
        shown = np.where(magnitude > 0, magnitude, np.nan)
        color = BY_NAME[name].color
        axis.plot(rows[part], shown[part], color=color, lw=0.5, alpha=0.35)
        axis.plot(rows[part], running_rms(values)[part], color=color, lw=1.6)
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


def number(value, digits=2):
    """0.0026 as 2.6e-3; what JSON cannot hold is infinite."""
    if value is None:
        return "inf"
    if value == 0:
        return "0"
    mantissa, exponent = f"{value:.{digits}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def table(results, numbers):
    text = "| method | kernel | RMSE | NRMSE | PSNR (dB) | SSIM | largest difference |\n"
    text += "|---|---|---:|---:|---:|---:|---:|\n"
    for method in METHODS:
        if method.name not in numbers:
            continue
        c = numbers[method.name]
        psnr = "inf" if c["psnr"] is None else f"{c['psnr']:.1f}"
        text += (f"| {method.title} | `{kernel_of(results.reports[method.name])}` | {number(c['rmse'])} | "
                 f"{number(c['nrmse'])} | {psnr} | {c['ssim']:.6f} | {number(c['max_abs'])} |\n")
    return text


def page(all_results, missing):
    report = all_results[0].reports[STANDARD.name]
    phantom = all_results[0]
    rounding = ["texture", "alu", "hybrid"]

    def ratio(results, a, b, what="rmse"):
        return results.against_standard[a][what] / results.against_standard[b][what]

    def each(format_one):
        return ", ".join(f"{format_one(r)} ({r.case.name})" for r in all_results)

    fallbacks = sorted({(method.title, kernel_of(r.reports[method.name]).endswith("buffer"))
                        for r in all_results for method in METHODS})
    buffers = [method.title for method in METHODS if (method.title, True) in fallbacks]
    images = [method.title for method in METHODS if (method.title, True) not in fallbacks]

    text = f"""# What the fast methods cost in quality

`scripts/quality` wrote this page; it reconstructs everything again and takes about two minutes on two processor cores.
It repeats Figures 7, 8, 18 and 19 of the paper (sections 2.4, 5.3 and 7.2) with this program.

Device: {report["device"]}. Driver: {report["platform"]} {report["driver"]}. Program: fbp {report["version"]}.

* **phantom**: Shepp-Logan, 1024 x 1024 pixels from 1024 projections of 1024 bins, no noise.
* **tooth**: a human tooth, 181 projections of 640 bins with 10 flats and 10 darks, row 0, axis at bin 295.5
  (`tooth.h5` of TomoPy, Advanced Photon Source, BSD-3, UChicago Argonne; `../shared/data/tooth` beside the checkout).
"""
    if missing:
        text += f"  Not done here: there is no `{DATA}`.\n"
    text += """
Everything else has its default: plain ramp, one slice per pass. A difference is that of `fbp compare --mask 0.95`:
NRMSE is over the standard deviation of the reference, PSNR and SSIM over its range, within 0.95 of the inscribed circle.
The *standard reconstruction* is the standard kernel with float storage and explicit linear interpolation.

| method | `fbp reconstruct` with |
|---|---|
"""
    for method in METHODS:
        text += f"| {method.title} | `{method.options}` |\n"
    text += "\nOn this device images are read by: " + (", ".join(images) or "none") + ". From buffers read: "
    text += (", ".join(buffers) or "none") + ".\n"

    text += "\n![Standard reconstructions and the lines of the profiles](quality/slices.png)\n"
    for results in all_results:
        case = results.case
        text += f"\n## {case.title[0].upper()}{case.title[1:]}\n\nAgainst the standard reconstruction:\n\n"
        text += table(results, results.against_standard)
        if results.truth is not None:
            text += "\nAgainst the truth (pixels averaged over 8 x 8 points; edges alone make most of this error):\n\n"
            text += table(results, results.against_truth)
        text += f"\n![Profiles and differences, {case.name}](quality/{case.name}.png)\n"
        below = "below it the absolute difference from the standard reconstruction"
        if results.truth is not None:
            below += " (as in Figure 7), at the bottom from the truth (as in Figure 18)"
        text += f"\nTop: profiles along the red line; {below}. Thin lines are pixels, thick ones their root mean square\n"
        text += "over 15 rows. The right half enlarges the shaded rows.\n"

    worst = max(r.against_standard[name]["nrmse"] for r in all_results for name in rounding)
    truth = {name: phantom.against_truth[name]["nrmse"] for name in phantom.against_truth}
    text += f"""
## What they show

* Texture, ALU and hybrid kernels compute the standard reconstruction in another order: the largest NRMSE among them is
  {number(worst)}.
* Half storage is the smallest of the real differences: NRMSE {each(lambda r: number(r.against_standard["half"]["nrmse"]))}.
  With nearest interpolation it changes the result no more: half and nearest together are as far from the standard
  reconstruction as nearest alone (RMSE ratio {each(lambda r: f"{ratio(r, 'half-nearest', 'nearest'):.3f}")}).
* Nearest differs from linear the most: NRMSE {each(lambda r: number(r.against_standard["nearest"]["nrmse"]))}.
* Oversampling is closer to linear than nearest is: its RMSE is smaller by a factor of
  {each(lambda r: f"{ratio(r, 'nearest', 'oversample'):.1f}")}. Half storage is closer than that by
  {each(lambda r: f"{ratio(r, 'oversample', 'half'):.0f}")}.
* Against the truth the phantom's NRMSE is {truth["standard"]:.4f} for standard, {truth["half"]:.4f} for half,
  {truth["oversample"]:.4f} for oversampling and {truth["nearest"]:.4f} for nearest. Linear interpolation smooths a little and nearest
  does not, so a smaller number at sharp edges does not make nearest the better picture.

Texture units of GPUs interpolate with weights of 8 bits, PoCL interpolates images exactly. On a GPU the kernels that
interpolate with the texture unit (texture, hybrid, half over images, oversampling) therefore differ a little more from
the standard reconstruction than the numbers above, which are from a processor, say.
"""
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
    (out / "quality").mkdir(parents=True, exist_ok=True)

    truth = work / "truth.tif"
    run(fbp, "phantom", "--size", 1024, "--projections", 1024, "--output", work / "phantom", "--truth", truth)
    phantom = Case("phantom", "Shepp-Logan phantom", "1/pixel", 512, (780, 860),
                   ["--sinograms", str(work / "phantom"), "--center", "511.5"])
    tooth = Case("tooth", "tooth", "1/pixel", 320, (200, 260), [
        "--projections", str(DATA / "proj"), "--flats", str(DATA / "flat"), "--darks", str(DATA / "dark"),
        "--angles", str(DATA / "angles_deg.txt"), "--rows", "0", "--center", "295.5"])
    all_results = [Results(fbp, work, device, phantom, truth)]
    missing = not DATA.is_dir()
    if missing:
        print(f"there is no {DATA}: only the phantom is done")
        (out / "quality/tooth.png").unlink(missing_ok=True)
    else:
        all_results.append(Results(fbp, work, device, tooth))

    draw_slices(all_results, out / "quality/slices.png")
    for results in all_results:
        draw_profiles(results, out / f"quality/{results.case.name}.png")
    (out / "quality.md").write_text(page(all_results, missing))
    print(f"wrote {out}/quality.md and {out}/quality/*.png")

    # what the paper finds must be found here, too
    for results in all_results:
        difference = {name: c["rmse"] for name, c in results.against_standard.items()}
        if not difference["half"] < difference["oversample"] < difference["nearest"]:
            raise Failed(f"{results.case.name}: half, oversampling and nearest are not in this order of difference")


if __name__ == "__main__":
    try:
        main()
    except Failed as error:
        sys.exit(f"scripts/quality: {error}")
