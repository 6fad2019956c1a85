#!/usr/bin/env python3
"""Measures how the cost of back projection grows with the problem and with the number of slices, and draws it.

    scripts/bench/growth.py measure --fbp target/release/fbp --sizes 512 1024 2048 4096 RESULT.json
    scripts/bench/growth.py plot RESULT.json PICTURE.svg
    scripts/bench/growth.py cost --fbp target/release/fbp --sizes 256 512 1024 2048 4096 COST.json
    scripts/bench/growth.py plot-cost COST.json ... PICTURE.svg

Sizes: bins, projections and side of the slice are the same number; `fbp bench` times the kernels that the device's profile
takes by itself. Projections and bins: only these grow, from SIDE to four times SIDE; the cost of back projection should grow
with the projections and not with the bins. Slices: `fbp reconstruct` of 1 to 256 slices of SIDE x SIDE, automatic choices, GU/s of the device's back
projection by its report. GU/s is 10^9 pixel-projection updates a second over all slices; a flat line is cost that grows
as it should. Cost: milliseconds a slice, back projection and filter together, of the kernels that are chosen for linear and
for exact interpolation; one panel a device.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

COLOURS = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#999933", "#000000"]


def run(fbp, *arguments):
    return subprocess.run([fbp, *map(str, arguments)], check=True, text=True, stdout=subprocess.PIPE).stdout


def bench(options, flag, values, *more):
    """GU/s of every kernel as one number of the problem grows, and the device."""
    lines, device = {}, None
    for value in values:
        rows = json.loads(run(options.fbp, "bench", "--json", "--quiet", flag, value, *more, *options.bench))
        for row in rows:
            if row["gu_per_s"]:
                device = row["device"]
                name = f"{row['interpolation']} {row['mode']} {row['algorithm']} x{row['slices']}"
                lines.setdefault(name, []).append([value, row["gu_per_s"], row["error"]])
    return lines, device


def measure(options):
    by_size, device = bench(options, "--size", options.sizes)
    growing = [options.side * factor for factor in (1, 2, 4)]
    by_projections, _ = bench(options, "--projections", growing, "--size", options.side)
    by_bins, _ = bench(options, "--bins", growing, "--size", options.side)
    by_slices = {}
    with tempfile.TemporaryDirectory(dir=options.directory) as folder:
        stack, output, report = Path(folder, "in"), Path(folder, "out"), Path(folder, "report.json")
        run(options.fbp, "phantom", "--size", options.side, "--projections", options.side, "--slices", 256, "--output", stack)
        for mode in ("precise", "fast"):
            for interpolation in ("linear", "nearest"):
                line = by_slices.setdefault(f"{interpolation} {mode}", [])
                for slices in (1, 2, 4, 8, 16, 32, 64, 128, 256):
                    # the second run is warm
                    for _ in range(2):
                        run(options.fbp, "reconstruct", "--quiet", "--sinograms", stack, "--rows", f"0..{slices}", "--mode",
                            mode, "--interpolation", interpolation, "--output", output, "--overwrite", "--report", report)
                    result = json.loads(report.read_text())
                    line.append([slices, result["gu_per_s"], result["kernels"][0]["name"]])
    result = {"device": device, "side": options.side, "by_size": by_size, "by_projections": by_projections,
              "by_bins": by_bins, "by_slices": by_slices}
    Path(options.result).write_text(json.dumps(result, indent=1) + "\n")


def cost(options):
    # what is there stays
    result = Path(options.result)
    lines, device = json.loads(result.read_text())["lines"] if result.exists() else {}, None
    for size in options.sizes:
        for mode in ("fast", "precise"):
            for interpolation, algorithm in (("linear", options.linear), ("exact", "gridding")):
                rows = json.loads(run(options.fbp, "bench", "--json", "--quiet", "--size", size, "--mode", mode, "--interpolation",
                                      interpolation, "--algorithm", algorithm, *options.bench))
                best = max((row for row in rows if row["gu_per_s"]), key=lambda row: row["gu_per_s"])
                device = best["device"]
                seconds = size**3 / best["gu_per_s"] / 1e9 + best["filter_seconds_per_slice"]
                line = lines.setdefault(f"{interpolation}, {mode}", [])
                line.append([size, float(f"{seconds * 1e3:.4g}"), best["algorithm"], best["slices"], best["error"]])
                print(device, size, interpolation, mode, line[-1], flush=True)
    result.write_text(json.dumps({"device": device, "lines": lines}, indent=1) + "\n")


def plot_cost(options):
    results = [json.loads(Path(name).read_text()) for name in options.results]
    panels = [panel(result["device"], result["lines"], 60 + 460 * place, "bins, projections and side of the slice", "ms")
              for place, result in enumerate(results)]
    write_picture(options.picture, "Milliseconds a slice", panels)


def panel(title, lines, left, unit, what=""):
    """Lines of (x, y) with logarithmic axes, as SVG; x doubles from mark to mark."""
    top, width, height = 60, 380, 320
    xs = sorted({x for line in lines.values() for x, *_ in line})
    low = min(y for line in lines.values() for _, y, *_ in line)
    high = max(y for line in lines.values() for _, y, *_ in line)
    marks = [m * 10**e for e in range(-3, 6) for m in (1, 2, 5)]
    marks = [m for m in marks if low / 2.5 < m < high * 2.5]
    from math import log
    scale = log(marks[-1] / marks[0])
    place = lambda x, y: (left + width * xs.index(x) / max(len(xs) - 1, 1), top + height - height * log(y / marks[0]) / scale)
    svg = [f'<text x="{left}" y="{top - 16}" font-weight="bold">{title}</text>']
    for mark in marks:
        y = place(xs[0], mark)[1]
        svg.append(f'<path d="M{left},{y:.1f}h{width}" stroke="#dddddd"/>')
        svg.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{mark:g}</text>')
    for x in xs:
        svg.append(f'<text x="{place(x, marks[0])[0]:.1f}" y="{top + height + 18}" text-anchor="middle">{x}</text>')
    svg.append(f'<text x="{left + width / 2}" y="{top + height + 36}" text-anchor="middle">{unit}</text>')
    for number, (name, line) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        dash = ' stroke-dasharray="5 3"' if number >= len(COLOURS) else ""
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in (place(x, y) for x, y, *_ in line))
        svg.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        y = top + height + 58 + 16 * number
        end = float(f"{line[-1][1]:.3g}")
        svg.append(f'<path d="M{left},{y - 4}h24" stroke="{colour}" stroke-width="2"{dash}/>')
        svg.append(f'<text x="{left + 30}" y="{y}">{name}: {end:g}{" " + what if what else ""} at the end</text>')
    return svg, top + height + 58 + 16 * len(lines)


def fastest(lines):
    """Of kernels for the same slices the one that is fastest at the end."""
    best = {}
    for name, line in lines.items():
        interpolation, mode, _, slices = name.split()
        kind = interpolation, mode, slices
        if kind not in best or line[-1][1] > best[kind][1][-1][1]:
            best[kind] = name, line
    return dict(best.values())


def plot(options):
    result = json.loads(Path(options.result).read_text())
    side = f"{result['side']} x {result['side']}"
    kinds = [(fastest(result["by_size"]), "GU/s by size", "bins, projections and side of the slice"),
             (fastest(result["by_projections"]), f"GU/s by projections, {side}", "projections"),
             (fastest(result["by_bins"]), f"GU/s by bins, {side}", "bins"),
             (result["by_slices"], f"GU/s by slices, {side}", "slices of the run")]
    panels = [panel(title, lines, 60 + 460 * place, unit) for place, (lines, title, unit) in enumerate(kinds)]
    write_picture(options.picture, result["device"], panels)


def write_picture(path, title, panels):
    height, width = max(end for _, end in panels) + 10, 460 * len(panels)
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
            '<rect width="100%" height="100%" fill="white"/>',
            f'<text x="16" y="24" font-size="16" font-weight="bold">{title}</text>']
    Path(path).write_text("\n".join(head + sum((svg for svg, _ in panels), []) + ["</svg>"]) + "\n")


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
commands = parser.add_subparsers(required=True)
command = commands.add_parser("measure")
command.add_argument("--fbp", default="target/release/fbp")
command.add_argument("--sizes", type=int, nargs="+", default=[128, 256, 512])
command.add_argument("--side", type=int, default=512, help="of the slices whose number grows")
command.add_argument("--directory", help="for the stack, such as a RAM disk")
command.add_argument("--bench", action="append", default=[], help="one more option of fbp bench, as --bench=--mode=fast")
command.add_argument("result")
command.set_defaults(work=measure)
command = commands.add_parser("plot")
command.add_argument("result")
command.add_argument("picture")
command.set_defaults(work=plot)
command = commands.add_parser("cost")
command.add_argument("--fbp", default="target/release/fbp")
command.add_argument("--sizes", type=int, nargs="+", default=[128, 256, 512])
command.add_argument("--linear", default="tensor", help="kernel family for linear interpolation")
command.add_argument("--bench", action="append", default=[], help="one more option of fbp bench, as --bench=--device=cpu")
command.add_argument("result")
command.set_defaults(work=cost)
command = commands.add_parser("plot-cost")
command.add_argument("results", nargs="+")
command.add_argument("picture")
command.set_defaults(work=plot_cost)
options = parser.parse_args()
options.work(options)
