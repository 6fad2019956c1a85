"""Figures of the paper that are drawn without numbers, as tables of docs/dev/paper.md: from its tables, the model, and what was
measured; and the tables of what kernels use, and of pairs of units."""

import json

import paper_experiments as experiments

UNITS = experiments.ROOT / "docs/dev/paper/units"
# what the first table of Figure 20 compares, and the row of Table 10
PEAKS = (("floating-point operations", "gflops"), ("conversions", "conversions"), ("shared memory", "shared-bandwidth"),
         ("constant memory", "constant-bandwidth"), ("texels of 32 bits", "texels"), ("device memory", "memory-bandwidth"))


def three(number):
    """Three digits."""
    if number is None:
        return "-"
    decimals = next((count for least, count in ((100, 0), (10, 1), (1, 2)) if abs(number) >= least), 3)
    return f"{number:.{decimals}f}"


def table(head, rows):
    """A Markdown table; all columns but the first are numbers."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def times(new, old):
    return f"x{new / old:.2f}" if new and old else "-"


def percent(part, whole):
    return f"{100 * part / whole:.0f} %" if part and whole else "-"


class Figures:
    """Figures 6, 20 and 21 for all devices of the model; `page` has the tables and the results."""

    def __init__(self, page):
        self.page, self.tables = page, page.tables
        self.gpus = [gpu["name"] for gpu in self.tables["gpu"]]
        # the best bound of every kind of kernel, by profile
        self.bounds = {}
        for row in page.kernels:
            family, interpolation, storage, slices = row["spec"].split("-")[:4]
            if interpolation in ("linear", "nearest"):
                key = row["profile"], family, interpolation, storage, int(slices[1:])
                self.bounds[key] = max(row["gu_per_s"], self.bounds.get(key, 0))

    def bound(self, profile, family, interpolation="linear", storage="float", slices=None):
        """The bound of a kernel, or the highest for any number of slices."""
        found = [bound for (of, *rest, count), bound in self.bounds.items()
                 if [of, *rest] == [profile, family, interpolation, storage] and slices in (None, count)]
        return max(found, default=None)

    def texture_rate(self, number, slices):
        """Interpolations of a column of Table 10 in a second if each texel has so many slices; four are halves, nearest."""
        row = {1: "texels", 2: "texels-64-linear", 4: "texels-64-nearest"}[slices]
        return self.tables["table-10"][row][number] * slices

    def speed(self, result, key, label):
        rows = result["experiments"].get(key, {}).get("rows", [])
        return next((row for row in rows if row["label"] == label), None)

    def figure_6(self):
        paper = {(row["gpu"], row["slices"]): row["speed"] for row in self.tables["table-13"]["rows"]}
        standard = {(row["slices"], row["mapping"]): row["speed"] for row in self.tables["table-11"]["rows"]}
        rows = []
        for number, gpu in enumerate(self.gpus):
            profile = self.page.builder.of_gpu[gpu]
            for slices in (1, 2, 4):
                rate = self.texture_rate(number, slices)
                kind = ("nearest", "half") if slices == 4 else ("linear", "float")
                old = self.bound(profile, "standard", *(kind[0], "float"), slices)
                new = self.bound(profile, "texture", *kind, slices)
                speed = paper.get((gpu, slices))
                if not speed:
                    continue
                measured = []
                for result in self.page.results:
                    row = self.speed(result, "texture", f"{gpu}, {experiments.slices_of(slices)}")
                    of_texture = row and result["gpu"] and row["limit"] == "texture"
                    measured.append(percent(row["gu_per_s"], row["bound_gu_per_s"]) if of_texture else "-")
                linear = percent(standard.get((slices, "linear")), rate) if gpu == "Titan X" else "-"
                rows.append([f"{gpu}, {experiments.slices_of(slices)}", three(rate), linear, percent(old and min(old, rate), rate),
                             percent(speed, rate), percent(new and min(new, rate), rate), *measured])
        head = ["share of the texture unit's rate", "rate, GU/s", "standard, paper", "standard, model", "texture, paper",
                "texture, model", *(f"texture, {letter}" for letter in self.page.letters)]
        return table(head, rows)

    def best(self, gpu, interpolation):
        """The paper's highest speed on a GPU, with any number of slices and either kind of value."""
        speeds = [row["speed"] for row in self.tables["table-13"]["rows"]
                  if row["gpu"] == gpu and (row["slices"] < 4 or interpolation == "nearest")]
        speeds += [row[interpolation] for row in self.tables["table-20"]["rows"] if row["gpu"] == gpu]
        if interpolation == "linear":
            speeds += [row["speed"] for row in self.tables["table-23"]["rows"] if row["gpu"] == gpu]
        return max(speeds)

    def figure_20(self):
        """The GPUs of NVIDIA, from 2009 to 2016."""
        gpus = [gpu for gpu in self.gpus if self.page.builder.of_gpu[gpu].startswith("nvidia-")]
        columns = [self.gpus.index(gpu) for gpu in gpus]
        rows = [(label, [self.tables["table-10"][key][column] for column in columns]) for label, key in PEAKS]
        rows.append(("standard kernel, 1 slice, by the model",
                     [self.bound(self.page.builder.of_gpu[gpu], "standard", slices=1) for gpu in gpus]))
        rows += [(f"fastest kernel, {interpolation}, paper", [self.best(gpu, interpolation) for gpu in gpus])
                 for interpolation in ("linear", "nearest")]
        first = [[label, *(times(value, values[0]) for value in values)] for label, values in rows]
        steps = [[label, *(times(new, old) for old, new in zip(values, values[1:]))] for label, values in rows]
        return (table([f"over the {gpus[0]}", *gpus], first) + "\n"
                + table(["over the GPU before", *gpus[1:]], steps))

    def figure_21(self):
        """The model's bounds over its bound of the standard kernel of one slice, for every profile with rates."""
        rows = []
        names = {self.page.builder.of_gpu[gpu]: gpu for gpu in self.gpus}
        for profile in dict.fromkeys(row["profile"] for row in self.page.kernels):
            base = self.bound(profile, "standard", slices=1) or self.bound(profile, "standard", storage="half", slices=1)
            if not base:
                continue
            over = lambda family, interpolation="linear": times(max(
                (self.bound(profile, family, interpolation, storage) or 0 for storage in ("float", "half")), default=0), base)
            gpu = names.get(profile)
            paper = [times(self.best(gpu, interpolation), base) for interpolation in ("linear", "nearest")] if gpu else ["-", "-"]
            rows.append([gpu or profile, three(base), times(self.bound(profile, "texture", slices=1), base), over("texture"), over("alu"),
                         over("hybrid"), over("oversample"), over("alu", "nearest"), over("texture", "nearest"), *paper])
        return table(["bounds over the standard kernel's", "standard, GU/s", "texture, 1 slice", "texture", "arithmetic", "hybrid",
                      "oversampling", "nearest, arithmetic", "nearest, texture", "paper, linear", "paper, nearest"], rows)


def resources(page, experiment, number):
    """Registers, bytes outside them and occupancy: the paper's, and what drivers and the model say on measured devices."""
    rows = page.tables[f"table-{number}"]["rows"]
    said = {}
    for row in rows:
        target = row.get("target", 100 if row.get("restricted") else "-")
        said[row.get("interpolation", "2 slices"), "left to the compiler" if target == "-" else str(target)] = row
    lines = []
    for place, variant in enumerate(experiment.variants):
        what, target = variant.label.split(", occupancy ")
        row = said.get((what, target))
        cells = [f"{row['registers']}, {row['local-bytes']}, {row['occupancy']} %" if row else "-"]
        for found in page.measured(experiment, place):
            if found and found.get("registers"):
                share = f"{100 * found['occupancy']:.0f} % {found['occupancy_limit']}" if found.get("occupancy") else "-"
                cells.append(f"{found['registers']}, {found.get('private_bytes', '-')}, {share}")
            else:
                cells.append("-")
        lines.append([variant.label, *cells])
    return table(["registers, bytes outside them, occupancy", "paper", *page.letters], lines)


def decided(page, experiment):
    """The kernels of the Hopper profile: which form of positions each device's measurement chooses, and the profile has."""
    lines = []
    for letter, result in zip(page.letters, page.results):
        rows = {row["label"]: row for row in result["experiments"].get(experiment.key, {}).get("rows", [])}
        for variant in experiment.variants:
            if variant.profile != "nvidia-hopper" or not variant.label.endswith("from blocks") or not result["gpu"]:
                continue
            blocks, absolute = rows.get(variant.label), rows.get(f"{variant.group}, from bin 0")
            if not blocks or not absolute or not blocks["gu_per_s"] or not absolute["gu_per_s"]:
                continue
            faster = is_faster(absolute, blocks)
            lines.append([f"{letter}: {variant.group}", three(blocks["gu_per_s"]), three(absolute["gu_per_s"]),
                          times(absolute["gu_per_s"], blocks["gu_per_s"]), "bin 0" if faster else "blocks"])
    return "\n" + table(["kernel of the profile", "from blocks", "from bin 0", "ratio", "choice"], lines) if lines else ""


# a form is chosen if it is faster by more than this in the median, and in every round
LEAST_GAIN = 0.01


def is_faster(new, old):
    pairs = zip(new.get("rounds", [new["gu_per_s"]]), old.get("rounds", [old["gu_per_s"]]))
    return new["gu_per_s"] > old["gu_per_s"] * (1 + LEAST_GAIN) and all(one > other for one, other in pairs)


def read_units():
    return [json.loads(path.read_text()) for path in sorted(UNITS.glob("*.json"))]


def units():
    """Figure 3's orders of fetches, and pairs of instructions (3.7), by scripts/bench/units.py."""
    parts = []
    for result in read_units():
        parts.append(f"{result['device']}, driver {result['driver']}, {result['date']}:\n")
        rows = [[f"{row['texel']}, {row['filter']}", three(row["linear"]), three(row["z-order"]), times(row["z-order"], row["linear"])]
                for row in result["fetches"]]
        parts.append(table(["16 fetches from a square of 4 x 4, GT/s", "linear order", "Z-order", "gain"], rows))
        names = [row["first"] for row in result["pairs"] if row["first"] == row["second"]]
        cells = {(row["first"], row["second"]): row for row in result["pairs"]}
        rows = []
        for name in names:
            alone = cells[name, name]
            rows.append([name, three(alone["rate"]), *(
                "-" if (name, other) not in cells or name == other else f"{cells[name, other]['slower']:.2f}" for other in names)])
        parts.append(table(["time of both, over that of the slower", "alone, G/s", *names], rows))
    return "\n".join(parts) if parts else "Not measured yet.\n"
