#!/usr/bin/env python3
"""The quality figures of the paper (7, 8, 18 and 19) in numbers on one device, its texture unit included.

    python3 scripts/quality_device.py --fbp BINARY --device gpu       measures, writes docs/dev/quality/device-NAME.json
    python3 scripts/quality_device.py --page                          writes docs/dev/quality-devices.md and its pictures

Measuring needs Python 3 with numpy and tifffile, the page matplotlib, too. The scan is tooth in ../shared/data beside the
checkout, or in FBP_TEST_DATA; it is left out where it is not there. scripts/quality has the same methods on the device that fbp
chooses, with more figures; here a kernel of four slices as forged half values is among them.
"""

import argparse
import datetime
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from quality_methods import BY_NAME, DASHES, DATA, FORGED, MASK, METHODS, SAME, STANDARD

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "docs/dev/quality"
SLICES = 4
DRAWN = ["nearest", "oversample", "half", "forged"]
HEAD = """# Image quality on texture units

`scripts/quality_device.py` wrote this page from measurements on the devices below.
[quality-methods.md](quality-methods.md) explains the methods and the numbers; it was made on a CPU, which interpolates
images exactly. A texture unit has 8-bit weights (NVIDIA's programming guide: 1.8 fixed point). *Half nearest, four
slices forged* is the method of the paper's 5.3: the texture kernel with four half values in the bits of two floats
(`image-forged` in the kernel's name; on a device without images of two floats, four halves). It is compared with float
*nearest* of the same slices. If a ray is half-way between two bins, kernels may take either, which causes most of that
difference.
"""


def run(fbp, *arguments):
    command = [str(fbp), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"quality_device.py: {' '.join(command)}\n{done.stderr.rstrip()}")
    return done.stdout


class Case:
    """A scan of four slices; all but the forged kernel are compared on the third, which of a phantom is the plain one."""

    def __init__(self, fbp, work, device, name, flags, column):
        self.fbp, self.work, self.device, self.name, self.flags, self.column = fbp, work, device, name, flags, column
        self.reports = {}

    def reconstruct(self, method, rows):
        import tifffile

        file = self.work / f"{self.name}-{method.name}-{rows.replace('..', '-')}.tif"
        report = file.with_suffix(".json")
        one = [] if method is FORGED else ["--slices-per-pass", 1]
        run(self.fbp, "reconstruct", *self.flags, *method.options.split(), *one, *self.device, "--rows", rows, "--output",
            file, "--report", report, "--overwrite", "--quiet")
        self.reports[method.name] = json.loads(report.read_text())
        (kernel,) = {kernel["name"] for kernel in self.reports[method.name]["kernels"]}
        # where images of two floats are missing, the device interpolates four halves
        slices = "x4-image-" if method is FORGED else "x1-"
        if not kernel.startswith(f"{method.kernel}-{slices}"):
            raise SystemExit(f"quality_device.py: {method.title}: expected {method.kernel}-{slices}, got {kernel}")
        pages = tifffile.imread(file)
        return file, kernel, pages if pages.ndim == 2 else pages[2]

    def compare(self, a, b):
        return json.loads(run(self.fbp, "compare", a, b, "--json", "--mask", MASK))

    @staticmethod
    def drawn(line, base):
        """What the picture needs of a column: its values, and how far they are from those of a base."""
        return {"line": [float(f"{value:.4g}") for value in line],
                "difference": [float(f"{value:.3g}") for value in abs(line - base)]}

    def measure(self, truth):
        results, files, lines = {}, {}, {}
        for method in METHODS:
            files[method.name], kernel, image = self.reconstruct(method, "2..3")
            lines[method.name] = image[:, self.column].astype(float)
            results[method.name] = {"kernel": kernel}
            if method.name in [STANDARD.name, *DRAWN]:
                results[method.name].update(self.drawn(lines[method.name], lines[STANDARD.name]))
            if method is not STANDARD:
                results[method.name]["standard"] = self.compare(files[method.name], files[STANDARD.name])
            if truth:
                results[method.name]["truth"] = self.compare(files[method.name], truth)
        file, kernel, image = self.reconstruct(FORGED, f"0..{SLICES}")
        nearest, _, _ = self.reconstruct(BY_NAME["nearest"], f"0..{SLICES}")
        line = self.drawn(image[:, self.column].astype(float), lines["nearest"])
        results["forged"] = {"kernel": kernel, **line, "nearest": self.compare(file, nearest)}
        return results


def third(path, source):
    """The third page of a file, as a file."""
    import tifffile

    tifffile.imwrite(path, tifffile.imread(source)[2])
    return path


def tooth(work):
    """The tooth, its two rows twice, so that there are four."""
    import numpy as np
    import tifffile

    for folder in ("proj", "flat", "dark"):
        (work / "tooth" / folder).mkdir(parents=True)
        for path in sorted((DATA / "tooth" / folder).glob("*.tif")):
            frame = tifffile.imread(path)
            tifffile.imwrite(work / "tooth" / folder / path.name, np.concatenate([frame, frame]))
    folder = work / "tooth"
    return ["--projections", folder / "proj", "--flats", folder / "flat", "--darks", folder / "dark", "--angles",
            DATA / "tooth/angles_deg.txt", "--center", 295.5]


def measure(fbp, selector):
    device = ["--device", selector] if selector else []
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        run(fbp, "phantom", "--size", 1024, "--projections", 1024, "--slices", SLICES, "--output", work / "phantom",
            "--truth", work / "truths.tif")
        truth = third(work / "truth.tif", work / "truths.tif")
        phantom = Case(fbp, work, device, "phantom", ["--sinograms", work / "phantom", "--center", 511.5], 512)
        cases = {"phantom": phantom.measure(truth)}
        if (DATA / "tooth").is_dir():
            cases["tooth"] = Case(fbp, work, device, "tooth", tooth(work), 320).measure(None)
        report = phantom.reports[STANDARD.name]
    result = {key: report[key] for key in ("device", "platform", "driver", "version")}
    result.update(date=datetime.date.today().isoformat(), cases=cases)
    slug = re.sub(r"[^a-z0-9]+", "-", report["device"].lower()).strip("-")
    path = OUT / f"device-{slug}.json"
    path.write_text(json.dumps(result) + "\n")
    print(path.relative_to(ROOT))


def draw(result, path):
    """Profiles along the column, and how far they are from the standard reconstruction, or forged from nearest."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    import numpy as np
    from quality_tools import save

    cases = result["cases"]
    figure, axes = plt.subplots(2, len(cases), figsize=(7 * len(cases), 7), sharex="col", squeeze=False,
                                layout="constrained")
    methods = {method.name: method for method in [*METHODS, FORGED]}
    for (name, case), (top, below) in zip(cases.items(), axes.T):
        lines = {key: np.array(found["line"]) for key, found in case.items() if "line" in found}
        for key in [STANDARD.name, *DRAWN]:
            top.plot(lines[key], color=methods[key].color, lw=0.7, ls=DASHES if key in ("half", "forged") else "-",
                     label=methods[key].title)
        for key in DRAWN:
            difference = np.array(case[key]["difference"])
            below.plot(np.where(difference > 0, difference, np.nan), color=methods[key].color, lw=0.5)
        top.set_title(f"{name}", fontsize=11)
        below.set_yscale("log")
        below.set_xlabel("row")
    axes[0, 0].set_ylabel("attenuation (1/pixel)")
    axes[1, 0].set_ylabel("|difference from standard|; forged: from nearest")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    save(figure, path)


def row(title, kernel, numbers):
    psnr, snr = ("inf" if numbers[key] is None else f"{numbers[key]:.1f}" for key in ("psnr", "snr"))
    return (f"| {title} | `{kernel}` | {numbers['rmse']:.2e} | {numbers['nrmse']:.2e} | {psnr} | {snr} "
            f"| {numbers['ssim']:.6f} |\n")


def page():
    text = HEAD
    for path in sorted(OUT.glob("device-*.json")):
        result = json.loads(path.read_text())
        text += f"\n## {result['device']}\n\n{result['platform']}, {result['driver']}; fbp {result['version']}, {result['date']}\n"
        for name, case in result["cases"].items():
            for against, what in (("standard", "Against the standard reconstruction"),
                                  ("truth", "Against the truth")):
                found = [(method.title, case[method.name]) for method in METHODS if against in case[method.name]]
                if not found:
                    continue
                text += f"\n{what}, {name}:\n\n| method | kernel | RMSE | NRMSE | PSNR (dB) | SNR (dB) | SSIM |\n|---|---|---:|---:|---:|---:|---:|\n"
                text += "".join(row(title, part["kernel"], part[against]) for title, part in found)
            forged = case["forged"]
            text += f"\nAgainst float nearest, {name}, four slices:\n\n| method | kernel | RMSE | NRMSE | PSNR (dB) | SNR (dB) | SSIM |\n|---|---|---:|---:|---:|---:|---:|\n"
            text += row(FORGED.title, forged["kernel"], forged["nearest"])
        worst = max(case[name]["standard"]["nrmse"] for case in result["cases"].values() for name in SAME)
        text += (f"\nThe NRMSE from the standard reconstruction is at most {worst:.1e} for texture, ALU and hybrid kernels"
                 f" and {max(c['half']['standard']['nrmse'] for c in result['cases'].values()):.1e} for half linear; that of"
                 f" forged half from float nearest {max(c['forged']['nearest']['nrmse'] for c in result['cases'].values()):.1e}.\n")
        picture = OUT / f"{path.stem}.png"
        draw(result, picture)
        text += f"\n![Profiles and differences on {result['device']}](quality/{picture.name})\n"
    (ROOT / "docs/dev/quality-devices.md").write_text(text)
    print("docs/dev/quality-devices.md")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fbp", type=Path, metavar="BINARY")
    parser.add_argument("--device", metavar="SEL", help="as in fbp reconstruct")
    parser.add_argument("--page", action="store_true", help="write the page from what was measured")
    arguments = parser.parse_args()
    if not arguments.page and not arguments.fbp:
        parser.error("--fbp BINARY says which program to measure")
    if arguments.fbp:
        measure(arguments.fbp.resolve(), arguments.device)
    if arguments.page:
        page()


if __name__ == "__main__":
    sys.exit(main())
