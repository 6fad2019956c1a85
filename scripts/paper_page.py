"""Writes docs/dev/paper.md: the paper's figures as cited data, the model's bounds, and what scripts/paper measured."""

import json
import tempfile
import textwrap
from pathlib import Path

import paper_experiments as experiments
import paper_figures as figures
from paper_facts import Facts, filled
from paper_figures import table, three

ROOT = experiments.ROOT
REMARKS = ROOT / "docs/dev/paper/remarks.toml"
HEAD = (
    "`scripts/paper` wrote this page: it takes measurements from `fbp bench` and bounds from `fbp model`, and prints both "
    "next to the results of the paper (S. Chilingaryan and others, *Reviewing GPU architectures to build efficient back "
    "projection for parallel geometries*, J. Real-Time Image Processing 17, 2020), which are listed in "
    "[paper/tables.toml](paper/tables.toml). Measurements are stored as JSON in `docs/dev/paper/`, one file per device; "
    "`scripts/paper --help` explains how to add one.",
    "Columns: **paper**, GU/s that the paper measured on the GPU named; **bound**, the limit set by [the model](model.md) for "
    "fbp's kernel with these parameters on that GPU; **share**, the paper's speed relative to the bound. Further columns give "
    "GU/s of the same kernel on each measured device, for the problem in the list below. The number after *x* is the ratio to "
    "the first row of the table or its part; for GPUs, it is followed by the share of the model's bound for that device and "
    "the limiting unit, as `fbp bench` printed them with the measurement. A dash means not measured, or not in the paper.",
    "Positions: the texture kernel counts from bin 0, as Algorithm 3 has it, and the standard kernel in Table 11, as Algorithm 1. "
    "The profiles of the paper's GPUs have Algorithm 6's positions for the arithmetic, oversampling and hybrid kernels; in mode "
    "`precise`, the arithmetic kernel with linear interpolation counts from blocks all the same "
    "([profiles.md](../profiles.md#positions)). So bounds are for positions from blocks in the rows for linear interpolation of "
    "floats by the arithmetic kernel (Tables 17 to 20 and 22, and the kernel alone in Table 23), for positions from bin 0 in all "
    "others. {measured}",
)
# a result without this was measured before the profiles had positions from bin 0 for these kernels
BLOCKS = ("All measurements of arithmetic, oversampling and hybrid kernels in these tables were made with positions from blocks, "
          "but for those that compare both forms, and those of Kepler's texture kernels before their loop over projections was unrolled.",
          "Those of {names} were measured with positions from blocks but where both forms are compared, and before the loop over projections was unrolled "
          "in Kepler's texture kernels.", "")


def paragraph(text, bullet=False):
    """Text as a paragraph or a point of a list, in lines of up to 120 characters."""
    return textwrap.fill(" ".join(text.split()), 120, initial_indent="* " if bullet else "",
                         subsequent_indent="  " if bullet else "", break_long_words=False,
                         break_on_hyphens=False) + "\n"


class Bounds:
    """What the model says of variants on the GPUs of their profiles."""

    def __init__(self, fbp, run, profiles):
        self.fbp, self.run, self.profiles, self.known = fbp, run, profiles, {}

    def of(self, variant):
        if "throughput" not in self.profiles[variant.profile]:
            return None
        key = repr((variant.profile, variant.family, variant.interpolation, variant.mode, variant.slices, variant.parameters))
        if key not in self.known:
            self.known[key] = self.ask(variant)
        return self.known[key]

    def ask(self, variant):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "variant.toml"
            path.write_text(experiments.profile_text(variant, "variant", self.profiles))
            rows = json.loads(self.run([self.fbp, "model", "--profile", path, "--json"]))
        return next(row for row in rows if row["spec"].startswith(variant.family + "-"))


class Page:
    def __init__(self, builder, every, fbp, run):
        self.builder, self.every = builder, every
        self.tables = builder.tables
        self.bounds = Bounds(fbp, run, builder.profiles)
        self.model = json.loads(run([fbp, "model", "--json"]))
        # every kernel of every shipped profile with rates
        self.kernels = json.loads(run([fbp, "model", "--profile", "all", "--json"]))
        files = sorted((ROOT / "docs/dev/paper").glob("*.json"))
        self.results = [json.loads(file.read_text()) for file in files]
        # processors last
        self.results.sort(key=lambda result: (not result["gpu"], result["device"], -result["size"]))
        self.letters = list("ABCDEFGH"[: len(self.results)])
        self.remarks = experiments.load(REMARKS)
        self.facts = Facts(self)

    def devices(self):
        rows = []
        for letter, result in zip(self.letters, self.results):
            size = result["size"]
            seconds = sum(part["seconds"] for part in result["experiments"].values())
            rows.append([letter, result["device"], result["driver"], result["program"],
                         f"{size} projections of {size} bins, {size} x {size} pixels", self.protocol(result), result["date"],
                         f"{seconds:.0f}"])
        head = ["", "device", "driver", "program", "problem", "timed over", "date", "seconds"]
        return table(head, rows) + self.steadiness() if rows else "No device has been measured.\n"

    @staticmethod
    def protocol(part):
        return f"{part['slices']} slices" if "slices" in part else f"{part['passes']} passes"

    def steadiness(self):
        """Kernels whose rate or clock was another after their passes than before (2.3)."""
        said = []
        for letter, result in zip(self.letters, self.results):
            rows = [row for part in result["experiments"].values() for row in part["rows"]]
            known = [row for row in rows if row.get("moved") is not None]
            if known:
                moved = [row for row in known if row["moved"]]
                text = f"{letter}: the rate of {len(moved)} of {len(known)} kernels moved while they were timed"
                clocks = [row["clock_mhz"] for row in known if row.get("clock_mhz")]
                if clocks:
                    apart = sum(abs(after / before - 1) > 0.02 for before, after in clocks)
                    lowest, highest = (pick(pick(pair) for pair in clocks) for pick in (min, max))
                    text += (f"; the driver told the clock of {len(clocks)}, {lowest} to {highest} MHz, "
                             f"which was another by more than 2 % afterwards for {apart}")
                said.append(text + ".")
        return "\n" + paragraph(" ".join(said)) if said else ""

    def if_measured(self, experiment):
        """The table of an experiment for which the paper has no speeds."""
        if any(experiment.key in result["experiments"] for result in self.results):
            return self.experiment(experiment)
        return f"Not measured yet (`scripts/paper --only {experiment.key}`).\n"

    def when(self, experiment):
        """Which columns of a table were measured at another time than the device's others."""
        said = []
        for letter, result in zip(self.letters, self.results):
            part = result["experiments"].get(experiment.key, {})
            if any(part.get(key, result[key]) != result[key] for key in ("date", "driver", "program")):
                said.append(f"{letter} here: {part['date']}, {part['program']}, driver {part['driver']}, {self.protocol(part)}.")
        return "\n" + paragraph(" ".join(said)) if said else ""

    def measured(self, experiment, number):
        """Speeds of a variant by device."""
        found = []
        for result in self.results:
            rows = result["experiments"].get(experiment.key, {}).get("rows", [])
            label = experiment.variants[number].label
            row = next((row for row in rows if row["label"] == label), None)
            found.append(row)
        return found

    def experiment(self, experiment):
        head = ["kernel", "paper", "bound", "share", *self.letters]
        rows, first, group = [], None, None
        for number, variant in enumerate(experiment.variants):
            model = self.bounds.of(variant)
            bound = model and model["gu_per_s"]
            found = self.measured(experiment, number)
            speeds = [variant.paper] + [row and row["gu_per_s"] for row in found]
            if variant.group != group or not group:
                first, group = None, variant.group
            cells = [self.cell(speed, base) for speed, base in zip(speeds, first or [None] * len(speeds))]
            first = first or speeds
            for index, (row, result) in enumerate(zip(found, self.results)):
                if row and row["verdict"] != "right":
                    cells[index + 1] = row["verdict"]
                elif row and result["gpu"] and row["bound_gu_per_s"]:
                    cells[index + 1] += f" ({100 * row['gu_per_s'] / row['bound_gu_per_s']:.0f} % of {row['limit']})"
            limit = f"{three(bound)} ({model['limit']})" if bound else "-"
            share = f"{100 * variant.paper / bound:.0f} %" if variant.paper and bound else "-"
            rows.append([variant.label, cells[0], limit, share, *cells[1:]])
        return table(head, rows) + self.when(experiment)

    @staticmethod
    def cell(speed, base):
        return three(speed) + (f" x{speed / base:.2f}" if speed and base else "")

    def section(self, key, title, body):
        text = f"\n## {title}\n\n{body}"
        remark = self.remarks.get(key, {})
        kinds = ["text"] + ["gpu"] * self.has(key, True) + ["processor"] * self.has(key, False)
        facts = self.facts.of(key)
        return text + "".join("\n" + paragraph(filled(remark[kind], facts)) for kind in kinds if kind in remark)

    def has(self, key, gpu):
        """Whether a device of this kind was measured; for an experiment, whether the one that remarks are about was in it."""
        place = self.about(gpu)
        if place is None or all(experiment.key != key for experiment in self.every):
            return place is not None
        return key in self.results[place]["experiments"]

    def about(self, gpu):
        """Which device remarks are about: the H200 if it is among the GPUs, else the first of its kind."""
        places = [place for place, result in enumerate(self.results) if result["gpu"] == gpu]
        return min(places, key=lambda place: "H200" not in self.results[place]["device"], default=None)

    def head(self):
        """What the page is, its columns, and where positions are counted from."""
        old = [letter for letter, result in zip(self.letters, self.results)
               if "positions" not in result and any("positions" not in part for part in result["experiments"].values())]
        which = 0 if len(old) == len(self.results) else 1 if old else 2
        measured = BLOCKS[which].format(names=" and ".join(old)) if self.results else ""
        parts = [paragraph(part.replace("{measured}", measured)) for part in HEAD]
        return "# The paper's experiments\n\n" + "\n".join(parts)

    def paper_models(self):
        """The model of the paper's kernel (6.5) by GPU."""
        names = {gpu["profile"]: gpu["name"] for gpu in self.tables["gpu"]}
        return {names[row["profile"]]: row for row in self.model if row["profile"] in names}

    def table_10(self):
        """Rates of the GPUs, and of devices that were measured by rates.py."""
        names = [gpu["name"] for gpu in self.tables["gpu"]]
        rows = []
        data = self.tables["table-10"]
        for key, label in (("gflops", "GFlops"), ("conversions", "conversions, G/s"), ("shifts", "shifts, G/s"),
                           ("shared-bandwidth", "shared memory, GB/s"), ("constant-bandwidth", "constant memory, GB/s"),
                           ("texels", "texels of 32 bits, G/s"), ("texels-64-linear", "of 64 bits, linear"),
                           ("texels-64-nearest", "of 64 bits, nearest"), ("texels-128-nearest", "of 128 bits, nearest")):
            rows.append([label] + [str(item) for item in data[key]])
        hopper = self.builder.profiles["nvidia-hopper"]["throughput"]
        ours = [2 * hopper["alu"], hopper["sfu"], None, hopper["local"], hopper["constant"], *hopper["texels"]]
        for row, number in zip(rows, ours):
            row.append(three(number))
        return table(["rate"] + names + [hopper["device"]], rows)

    def table_15(self):
        rows = {row["kind"]: row for row in self.tables["table-15"]["rows"]}
        load = next(row["load"] for row in self.model if row["profile"] == "nvidia-pascal")
        estimated, measured = rows["estimated"], rows["measured"]
        lines = []
        for key, label in (("sfu", "SFU"), ("int", "Int"), ("fp", "FP"), ("shared", "Shared"), ("constant", "Constant")):
            ours = load[{"sfu": "conversions", "int": "shifts", "shared": "local"}.get(key, key)]
            lines.append([label, str(estimated[key]), str(measured.get(key, "-")), str(ours)])
        return table(["operations of an update", "paper, estimated", "paper, measured", "fbp model"], lines)

    def table_16(self):
        ours = self.paper_models()
        speeds = {row["gpu"]: row["linear"] for row in self.tables["table-20"]["rows"] if row["slices"] == 1}
        rows = []
        for row in self.tables["table-16"]["rows"]:
            model = ours[row["gpu"]]
            cells = [row["gpu"]]
            for column, unit in (("memory", "memory"), ("alu", "alu"), ("sfu", "sfu"), ("instructions", "instructions")):
                cells.append(f"{row[column]} / {three(model['units'][unit])}")
            cells += [f"{row['limit']} / {model['limit']}", str(speeds[row["gpu"]])]
            rows.append(cells)
        return table(["GPU", "Mem", "ALU", "SFU", "OPS", "limit", "Table 20, 1 slice"], rows)

    def figure_21(self):
        """Speed-up over the standard kernel of one slice, of what the paper and devices have."""
        rows = []
        texture = {(row["gpu"], row["slices"]): row["speed"] for row in self.tables["table-13"]["rows"]}
        alu = {(row["gpu"], row["slices"]): row for row in self.tables["table-20"]["rows"]}
        hybrid = {(row["gpu"], row["slices"]): row["speed"] for row in self.tables["table-23"]["rows"]}
        base = self.tables["table-11"]["rows"][0]["speed"]
        x = "Titan X"
        wanted = [
            ("texture kernel, 1 slice", texture[x, 1], ("texture", f"{x}, 1 slice")),
            ("texture kernel, 2 slices", texture[x, 2], ("texture", f"{x}, 2 slices")),
            ("arithmetic kernel, 1 slice", alu[x, 1]["linear"], ("arithmetic", f"{x}, 1 slice, linear")),
            ("arithmetic kernel, 2 slices", alu[x, 2]["linear"], ("arithmetic", f"{x}, 2 slices, linear")),
            ("hybrid kernel, 1 slice", hybrid[x, 1], ("hybrid", "1 slice, 3 by texture units to 5")),
            ("hybrid kernel, 2 slices", hybrid[x, 2], ("hybrid", "2 slices, 1 by texture units to 1")),
            ("oversampling, 2 slices", self.tables["table-22"]["rows"][3]["speed"], ("balance", "2 slices, oversample")),
            ("nearest, arithmetic kernel, 1 slice", alu[x, 1]["nearest"], ("arithmetic", f"{x}, 1 slice, nearest")),
            ("nearest, texture kernel, 4 slices of half", texture[x, 4], ("texture", f"{x}, 4 slices")),
        ]
        for label, paper, (key, variant) in wanted:
            cells = [label, f"x{paper / base:.2f}"]
            for result in self.results:
                parts = {name: {row["label"]: row["gu_per_s"] for row in part["rows"]}
                         for name, part in result["experiments"].items()}
                ours = parts.get("order", {}).get("1 slice, linear, float: standard, linear order")
                speed = parts.get(key, {}).get(variant)
                cells.append(f"x{speed / ours:.2f}" if speed and ours else "-")
            rows.append(cells)
        head = ["over the standard kernel, 1 slice, linear", "paper, Titan X (Pascal)"]
        return table(head + self.letters, rows)

    def utilization(self, experiment):
        """Table 22: what of a unit is used, by the paper's profiler, and by the model at the paper's speed."""
        rows = []
        for row, variant in zip(self.tables["table-22"]["rows"], experiment.variants):
            units = self.bounds.of(variant)["units"]
            cells = [row["algorithm"]]
            for column, unit in (("texture", "texture"), ("shared", "local"), ("alu", "alu"), ("sfu", "sfu")):
                rate = units.get(unit)
                cells.append(f"{row[column]} / " + (f"{100 * row['speed'] / rate:.0f}" if rate else "-"))
            rows.append(cells)
        return table(["percent used, paper / model", "texture", "shared", "ALU", "SFU"], rows)

    def table_25(self):
        """The fastest exact kernel by measurement, for the parameters of every GPU."""
        rows = []
        for gpu in self.tables["gpu"]:
            cells = [gpu["name"]]
            for interpolation in ("linear", "nearest"):
                speeds = self.paper_speeds(gpu["name"], interpolation)
                cells.append(self.best(speeds))
                for result in self.results:
                    cells.append(self.best(self.own_speeds(result, gpu["name"], interpolation)))
            rows.append(cells)
        head = ["GPU whose parameters"] + [f"linear, {name}" for name in ["paper", *self.letters]]
        return table(head + [f"nearest, {name}" for name in ["paper", *self.letters]], rows)

    def paper_speeds(self, gpu, interpolation):
        speeds = {}
        for row in self.tables["table-13"]["rows"]:
            if row["gpu"] == gpu and row["slices"] < 4:
                speeds[f"texture x{row['slices']}"] = row["speed"]
        for row in self.tables["table-20"]["rows"]:
            if row["gpu"] == gpu and not row.get("half"):
                speeds[f"alu x{row['slices']}"] = row[interpolation]
        for row in self.tables["table-23"]["rows"]:
            if row["gpu"] == gpu and interpolation == "linear":
                speeds[f"hybrid x{row['slices']}"] = row["speed"]
        return speeds

    def own_speeds(self, result, gpu, interpolation):
        speeds = {}
        for experiment in self.every:
            for variant in experiment.variants:
                if (variant.gpu != gpu or variant.interpolation != interpolation or variant.mode != "precise"
                        or experiment.key not in ("texture", "arithmetic", "hybrid")):
                    continue
                rows = result["experiments"].get(experiment.key, {}).get("rows", [])
                speed = next((row["gu_per_s"] for row in rows if row["label"] == variant.label), None)
                # of the shares of the hybrid kernel only the paper's
                if speed and (experiment.key != "hybrid" or variant.paper):
                    speeds[f"{variant.family} x{variant.slices}"] = speed
        return speeds

    @staticmethod
    def best(speeds):
        if not speeds:
            return "-"
        name = max(speeds, key=speeds.get)
        return f"{name}, {three(speeds[name])}"

    @staticmethod
    def quality_cases():
        """Cases of scripts/quality_device.py with their names."""
        results = [json.loads(path.read_text()) for path in sorted((ROOT / "docs/dev/quality").glob("device-*.json"))]
        return [(f"{name}, {result['device']}", case) for result in results for name, case in result["cases"].items()]

    def quality(self):
        """Relative differences that scripts/quality_device.py measured."""
        cases = self.quality_cases()
        head, columns = ["NRMSE against the standard reconstruction"] + [name for name, _ in cases], [case for _, case in cases]
        rows = []
        for key, label in (("half", "half values, linear (Figures 7 and 8)"), ("nearest", "nearest (Figures 18 and 19)"),
                           ("oversample", "oversampling (Figures 18 and 19)")):
            rows.append([label] + [f"{case[key]['standard']['nrmse']:.1e}" for case in columns])
        rows.append(["half values of four slices, nearest, against float nearest (5.3)"]
                    + [f"{case['forged']['nearest']['nrmse']:.1e}" for case in columns])
        return table(head, rows)

    def misprints(self):
        rows = [f"* {m['where']}: {m['proof']}." for m in self.tables["misprint"]]
        return "\n".join(paragraph(row[2:], bullet=True).rstrip() for row in rows) + "\n"

    def inconsistencies(self):
        facts = self.facts.of("inconsistencies")
        rows = [f"{row['where']}: {filled(row['proof'], facts)}." for row in self.tables["inconsistency"]]
        return "\n".join(paragraph(row, bullet=True).rstrip() for row in rows) + "\n"

    def draft(self, experiment):
        """The draft's three tables."""
        paper = {(row["gpu"], row["slices"]): row["speed"] for row in self.tables["table-13"]["rows"]}
        kernels = [[f"{row['gpu']}, {experiments.slices_of(row['slices'])}", str(row["at-once"]), str(row["groups"]),
                    str(row["cache"]), str(row["speed"]), str(paper.get((row["gpu"], row["slices"]), "-"))]
                   for row in self.tables["draft-texture"]["rows"]]
        limited = [[f"{row['gpu']}, {row['approach']}", *(str(row[key]) for key in (
            "shared-kb", "registers", "local-variables", "occupancy", "speed"))] for row in self.tables["draft-occupancy"]["rows"]]
        return "\n".join([
            self.experiment(experiment),
            table(["kernel", "projections at once", "groups", "cached constants", "draft", "Table 13"], kernels),
            table(["4 slices, nearest, half", "local KB", "registers", "in local memory", "occupancy, %", "draft"], limited)])

    def not_taken(self):
        rows = [f"{row['where'][0].upper()}{row['where'][1:]}: {row['reason']}." for row in self.tables["not-taken"]]
        return "\n".join(paragraph(row, bullet=True).rstrip() for row in rows) + "\n"

    def text(self):
        by_key = {experiment.key: experiment for experiment in self.every}
        made = lambda key: self.section(key, f"{by_key[key].where}: {by_key[key].title[0].lower()}{by_key[key].title[1:]}",
                                        self.experiment(by_key[key]))
        parts = [self.head(), "\n", self.devices()]
        parts.append(self.section("table-10", "Table 10: rates of devices", self.table_10()))
        drawn = figures.Figures(self)
        used = lambda key, number: self.section(
            key, f"Table {number}: {by_key[key].title[0].lower()}{by_key[key].title[1:]}",
            self.experiment(by_key[key]) + "\n" + figures.resources(self, by_key[key], number))
        parts.append(self.section("units", "Figure 3 and 3.7: order of fetches, and pairs of instructions", figures.units()))
        parts += [made("order"), used("texture-occupancy", 12), made("texture")]
        parts.append(self.section("figure-6", "Figure 6: what is used of the texture unit", drawn.figure_6()))
        parts.append(self.section("draft", "The draft's tables", self.draft(by_key["draft"])))
        parts.append(self.section("table-15", "Table 15: operations of an update", self.table_15()))
        title = "Table 16: bounds by the paper's list of operations, paper / fbp model"
        parts.append(self.section("table-16", title, self.table_16()))
        parts += [made("rounding"), made("caches"), used("occupancy", 19), made("arithmetic"), made("processors")]
        balance = by_key["balance"]
        parts.append(self.section("balance", f"Table 22: {balance.title[0].lower()}{balance.title[1:]}",
                                  self.experiment(balance) + "\n" + self.utilization(balance)))
        parts += [made("hybrid"), made("oversampling")]
        parts.append(self.section("table-25", "Table 25: the fastest kernel that keeps the rule", self.table_25()))
        parts.append(self.section("figure-20", "Figure 20: NVIDIA's GPUs from 2009 to 2016", drawn.figure_20()))
        parts.append(self.section("figure-21", "Figure 21: speed-up over the standard kernel",
                                  self.figure_21() + "\n" + drawn.figure_21()))
        forms = by_key["positions"]
        parts.append(self.section("positions", "Algorithms 1 and 6: positions from blocks and from bin 0",
                                  self.if_measured(forms) + figures.decided(self, forms)))
        parts += [self.section(key, f"{by_key[key].where}: {by_key[key].title[0].lower()}{by_key[key].title[1:]}",
                               self.if_measured(by_key[key])) for key in ("sizes", "launches")]
        parts.append(self.section("quality", "Figures 7, 8, 18 and 19: quality", self.quality()))
        parts.append(self.section("misprints", "Misprints", self.misprints()))
        parts.append(self.section("inconsistencies", "Inconsistencies", self.inconsistencies()))
        parts.append(self.section("not-taken", "What profiles do not take from the tables", self.not_taken()))
        return "".join(parts)


def write(builder, every, fbp, run, path):
    path.write_text(Page(builder, every, fbp, run).text())
