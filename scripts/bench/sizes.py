#!/usr/bin/env python3
"""Measures which kernel of a profile is the fastest for slices of each size, and says which [[auto]] entries with up-to-size
that makes.

    scripts/bench/sizes.py --fbp target/release/fbp [--device SEL] [--profile NAME] [--sizes 256 512 1024 2048] [--runs FILE]

Bins, projections and side of the slice are the same number. For each size `fbp bench` times every kernel of the profile that the
automatic choice may take (right, and with the rule of its interpolation). The table has the fastest of them, the kernel that
the choice without up-to-size takes, and the gain. An entry is proposed where the fastest kernel is faster by --gain (5 %
unless said) at a size; it is for slices up to that size. --runs keeps all measurements; with it, what the file has
is not measured again.
"""

import argparse
import json
import subprocess
from pathlib import Path


def run(*command):
    return subprocess.run(list(map(str, command)), check=True, text=True, stdout=subprocess.PIPE).stdout


def tables(text, name):
    """Keys of the tables [[name]] of a TOML text; the values that are looked at are one word or number each."""
    found, table = [], None
    for line in text.splitlines():
        if line.startswith("["):
            table = {} if line.strip() == f"[[{name}]]" else None
            if table is not None:
                found.append(table)
        elif table is not None and " = " in line:
            key, value = line.split(" = ", 1)
            table[key] = value.strip('"')
    return found


def bench(options, size, kept):
    key = f"{options.profile or 'auto'} {size}"
    if key not in kept:
        chosen = ["--device", options.device] if options.device else []
        chosen += ["--profile", options.profile] if options.profile else []
        # a kernel that is wrong makes the exit code 1, and still all rows are printed
        done = subprocess.run([options.fbp, "bench", "--json", "--quiet", "--size", str(size), "--passes", str(options.passes),
                               *chosen], text=True, stdout=subprocess.PIPE)
        if done.returncode not in (0, 1) or not done.stdout:
            raise SystemExit(f"fbp bench --size {size} ended with {done.returncode}")
        kept[key] = json.loads(done.stdout)
        if options.runs:
            options.runs.write_text(json.dumps(kept, indent=1))
    return [row for row in kept[key] if row["gu_per_s"] and row["algorithm"] != "oversample"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fbp", default="target/release/fbp")
    parser.add_argument("--device")
    parser.add_argument("--profile", help="a name; the profile of the device unless said")
    parser.add_argument("--sizes", type=int, nargs="+", default=[128, 256, 512, 768, 1024, 2048])
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--gain", type=float, default=1.05)
    parser.add_argument("--runs", type=Path)
    options = parser.parse_args()
    kept = json.loads(options.runs.read_text()) if options.runs and options.runs.exists() else {}

    measured = {size: bench(options, size, kept) for size in sorted(options.sizes)}
    first = next(row for rows in measured.values() for row in rows)
    profile = run(options.fbp, "profiles", "show", options.profile or first["profile"])
    print(f"{first['device']}, driver {first['driver']}, profile {first['profile']}\n")
    print("| size | interpolation | mode | automatic | GU/s | fastest | GU/s | gain |")
    print("|---:|---|---|---|---:|---|---:|---:|")
    entries = {}
    for auto in tables(profile, "auto"):
        if "up-to" in auto or "up-to-size" in auto:
            continue
        what = (auto["interpolation"], auto["mode"])
        for size, rows in measured.items():
            of = [row for row in rows if (row["interpolation"], row["mode"]) == what]
            usual = [r for r in of if (r["algorithm"], str(r["slices"])) == (auto["algorithm"], auto["slices"])]
            if not of or not usual:
                continue
            best = max(of, key=lambda row: row["gu_per_s"])
            gain = best["gu_per_s"] / usual[0]["gu_per_s"]
            print(f"| {size} | {what[0]} | {what[1]} | {auto['algorithm']} x{auto['slices']} | {usual[0]['gu_per_s']:.0f} "
                  f"| {best['algorithm']} x{best['slices']} | {best['gu_per_s']:.0f} | {gain:.2f} |")
            if gain >= options.gain:
                entries.setdefault(what, []).append((size, best))
    print("\nEntries that this makes; of neighbours with the same kernel the largest size is enough:")
    for (interpolation, mode), found in entries.items():
        for (size, best), (_, after) in zip(found, [*found[1:], (None, None)]):
            same = after and (after["algorithm"], after["slices"]) == (best["algorithm"], best["slices"])
            if not same:
                print(f"""
[[auto]]
interpolation = "{interpolation}"
mode = "{mode}"
algorithm = "{best['algorithm']}"
slices = {best['slices']}
up-to-size = {size}
source = "{first['device']}, {size} x {size} pixels: {best['gu_per_s']:.0f} GU/s" """.rstrip())


if __name__ == "__main__":
    main()
