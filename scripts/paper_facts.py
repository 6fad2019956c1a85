"""The numbers in the remarks of docs/dev/paper.md, from the paper's tables, the model and the measurements.

remarks.toml names them in braces. A number that is neither computed here nor part of a name is an error.
"""

import re

from paper_figures import LEAST_GAIN


def percent(new, old):
    """How much more `new` is than `old`, in percent."""
    return 100 * (new / old - 1)


def whole(number):
    """Rounded; a half, which may be a little less by its representation, is rounded up, and nothing has a sign."""
    text = f"{number + 1e-9:.0f}"
    return "0" if text == "-0" else text


def span(numbers, form=whole):
    """The range of numbers, as text."""
    low, high = form(min(numbers)), form(max(numbers))
    return low if low == high else f"{low} to {high}"


def decimals(count):
    return lambda number: f"{number:.{count}f}"


class Row:
    """A row of an experiment: what the paper has, the bound on the paper's GPU, and the devices' speeds and bounds."""

    def __init__(self, variant, model, found):
        self.label, self.gpu, self.paper, self.variant = variant.label, variant.gpu, variant.paper, variant
        self.bound = model and model["gu_per_s"]
        self.found = found

    def share(self):
        return 100 * self.paper / self.bound

    def speed(self, device):
        return self.found[device]["gu_per_s"]

    def of_bound(self, device):
        return 100 * self.speed(device) / self.found[device]["bound_gu_per_s"]


class Facts:
    """Numbers by section; `gpu` and `cpu` are the measured devices that remarks are about."""

    def __init__(self, page):
        self.page, self.tables = page, page.tables
        self.gpu, self.cpu = (page.about(gpu) for gpu in (True, False))
        self.made = {}

    def rows(self, key):
        """Rows of an experiment by label."""
        if key not in self.made:
            experiment = next(experiment for experiment in self.page.every if experiment.key == key)
            self.made[key] = {variant.label: Row(variant, self.page.bounds.of(variant), self.page.measured(experiment, number))
                              for number, variant in enumerate(experiment.variants)}
        return self.made[key]

    def table(self, number, **wanted):
        """The only row of a table with these values."""
        found = [row for row in self.tables[f"table-{number}"]["rows"]
                 if all(row.get(key) == value for key, value in wanted.items())]
        assert len(found) == 1, (number, wanted)
        return found[0]

    def of(self, key):
        """Numbers of a section by name."""
        function = getattr(self, key.replace("-", "_"), None)
        return function() if function else {}

    def table_10(self):
        data, hopper = self.tables["table-10"], self.page.builder.profiles["nvidia-hopper"]["throughput"]
        gflops, texels = 2 * hopper["alu"], hopper["texels"][0]
        return {"operations": whole(gflops / texels), "operations_paper": span(data["gflops-to-texture"]),
                "words": whole(hopper["local"] / 4 / texels), "words_paper": span(data["shared-to-texture"]),
                "conversions": whole(hopper["sfu"] / texels), "conversions_paper": span(data["conversions-to-texture"]),
                "of_conversion": f"{gflops / hopper['sfu']:.1f}", "of_conversion_paper": span(data["gflops-to-conversions"])}

    def order(self):
        rows = self.rows("order")
        groups = [what for what in ("1 slice, linear, float", "2 slices, linear, float", "4 slices, nearest, half")]
        by = lambda kind: [rows[f"{group}: {kind}"] for group in groups]
        linear, ordered, blocks, texture = (by(kind) for kind in ("standard, linear order", "standard, Z-order",
                                                                  "standard, Z-order, positions from blocks", "texture kernel"))
        gains = lambda new, old, device: [percent(a.speed(device), b.speed(device)) for a, b in zip(new, old)]
        figure = self.tables["figure-6"]
        one, two = (whole(percent(ordered[place].paper, linear[place].paper)) for place in (0, 1))
        made = {"one": one, "two": two,
                "share_one": whole(texture[0].share()), "share_two": whole(texture[1].share()),
                "share_four": whole(texture[2].share()), "above": figure["one-slice-percent-at-least"],
                "several": "-".join(map(str, figure["several-slices-percent"]))}
        if self.gpu is not None:
            z = gains(ordered, linear, self.gpu)
            made |= {"gpu_one": whole(z[0]), "gpu_two": whole(z[1]), "gpu_bin_0": span(gains(ordered, blocks, self.gpu)),
                     "gpu_texture": span([row.of_bound(self.gpu) for row in texture]),
                     "gpu_faster": span(gains(texture, ordered, self.gpu)),
                     "gpu_standard": span([row.of_bound(self.gpu) for row in ordered])}
        if self.cpu is not None:
            most = max(gains(ordered, linear, self.cpu) + gains(texture, linear, self.cpu))
            base = linear[0].speed(self.cpu)
            made |= {"cpu_most": whole(most), "cpu_two": whole(linear[1].speed(self.cpu) / base),
                     "cpu_four": whole(linear[2].speed(self.cpu) / base)}
        return made

    def texture_occupancy(self):
        rows = list(self.rows("texture-occupancy").values())
        made = {"gain": whole(percent(rows[-1].paper, rows[0].paper))}
        if self.gpu is not None:
            made["gpu"] = span([row.of_bound(self.gpu) for row in rows])
        return made

    def texture(self):
        rows = self.rows("texture").values()
        made = {"shares": span([row.share() for row in rows])}
        if self.gpu is not None:
            made["gpu"] = span([row.of_bound(self.gpu) for row in rows])
        return made

    def table_15(self):
        estimated, measured = self.table(15, kind="estimated"), self.table(15, kind="measured")
        both, total = measured["int-and-fp"], estimated["int"] + estimated["fp"]
        more = [percent(measured[key], estimated[key]) for key in ("shared", "constant")]
        return {"measured": both, "estimated": f"{total:.2f}", "below": whole(-percent(both, total)), "above": span(more)}

    def table_16(self):
        off = 0
        for row in self.tables["table-16"]["rows"]:
            model = self.page.paper_models()[row["gpu"]]["units"]
            for unit in ("memory", "alu", "sfu", "instructions"):
                if row[unit] != "-":
                    off = max(off, abs(percent(model[unit], row[unit])))
        exceeding = [row["gpu"] for row in self.tables["table-16"]["rows"]
                     if self.table(20, gpu=row["gpu"], slices=1)["linear"] > row[row["limit"]]]
        assert exceeding == ["GTX680", "Titan", "Titan X"], exceeding
        return {"off": f"{off:.1f}", "titan_x": self.table(16, gpu="Titan X")["memory"],
                "larger": whole(self.rows("occupancy")["linear, occupancy 100"].bound)}

    def rounding(self):
        convert, add, index = self.rows("rounding").values()
        data, titan = self.tables["table-10"], [gpu["name"] for gpu in self.tables["gpu"]].index("Titan")
        rate, turbo, clock = (data[key][titan] for key in ("conversions", "turbo-mhz", "benchmark-mhz"))
        count = self.table(17, rounding="convert")["conversions"]
        made = {"gain": whole(percent(add.paper, convert.paper)), "gain_index": whole(percent(index.paper, convert.paper)),
                "speed": convert.paper, "bound": whole(convert.bound), "table_16": self.table(16, gpu="Titan")["sfu"],
                "count": count, "rate": rate, "alone": whole(rate / count), "turbo": turbo, "clock": clock,
                "at_turbo": whole(convert.bound * turbo / clock),
                "bounds": ", ".join(whole(row.bound) for row in (convert, add, index))}
        if self.gpu is not None:
            made |= {"gpu_gain": whole(percent(add.speed(self.gpu), convert.speed(self.gpu))),
                     "gpu_share": whole(convert.of_bound(self.gpu)),
                     "gpu_loss": whole(-percent(index.speed(self.gpu), add.speed(self.gpu)))}
        if self.cpu is not None:
            made["cpu_gain"] = f"{add.speed(self.cpu) / convert.speed(self.cpu):.1f}"
        return made

    def caches(self):
        rows = self.rows("caches")
        names = {"all": "1 slice, as Table 18 has it: advanced cache, row starts (h_m), rotation (c_s)",
                 "standard": "1 slice, standard cache", "no_starts": "1 slice, no row starts",
                 "squares": "1 slice, items in squares of 16 x 16",
                 "columns": "1 slice, column starts (h_x), items in squares of 16 x 16",
                 "along_rows": "1 slice, items along rows in place of squares (6.3)",
                 "four": "4 slices, as Table 18 has it: standard cache, row starts", "four_advanced": "4 slices, advanced cache",
                 "four_arrays": "4 slices, two arrays (Algorithm 8)", "four_half": "4 slices, half values in the cache (6.7)"}
        row = {name: rows[label] for name, label in names.items()}
        text = self.tables["text"]
        made = {"squares": text["squares-percent"], "columns": text["column-starts-percent"], "half": text["half-cache-percent"],
                "bound_half": whole(percent(row["four_half"].bound, row["four"].bound))}
        for device, name in ((self.gpu, "gpu"), (self.cpu, "cpu")):
            if device is None:
                continue
            more = lambda new, old: whole(percent(row[new].speed(device), row[old].speed(device)))
            less = lambda new, old: whole(-percent(row[new].speed(device), row[old].speed(device)))
            made |= {f"{name}_starts": more("all", "no_starts"), f"{name}_advanced": more("all", "standard"),
                     f"{name}_squares": more("all", "along_rows"), f"{name}_column_loss": less("columns", "all"),
                     f"{name}_column_gain": more("columns", "all"), f"{name}_block_gain": more("squares", "all"),
                     f"{name}_half": less("four_half", "four"), f"{name}_arrays": less("four_arrays", "four"),
                     f"{name}_four_advanced": less("four_advanced", "four"),
                     f"{name}_order": whole(abs(percent(row["along_rows"].speed(device), row["all"].speed(device))))}
        return made

    def occupancy(self):
        rows = self.rows("occupancy")
        speed = lambda interpolation, target: self.table(19, interpolation=interpolation, target=target)["speed"]
        made = {"linear": whole(percent(speed("linear", 100), speed("linear", "-"))),
                "nearest": whole(-percent(speed("nearest", 100), speed("nearest", "-")))}
        if self.gpu is not None:
            left = lambda row: rows[f"{row.label.split(',')[0]}, occupancy left to the compiler"]
            moved = [abs(percent(row.speed(self.gpu), left(row).speed(self.gpu))) for row in rows.values()]
            made["gpu"] = f"{max(moved):.1f}"
        return made

    def arithmetic(self):
        rows, table = self.rows("arithmetic"), self.tables["table-20"]["rows"]
        shares = lambda chosen: span([row.share() for row in rows.values() if chosen(row)])
        amd = lambda row: row.gpu[:2] in ("HD", "R9")
        gains = {row["gpu"]: percent(row["linear"], self.table(20, gpu=row["gpu"], slices=1)["linear"])
                 for row in table if row["slices"] == 4}
        assert all(row.paper <= row.bound for row in rows.values())
        kepler = [rows[f"{gpu}, 1 slice, linear"].share() for gpu in ("Titan", "GTX680")]
        made = {"nvidia": shares(lambda row: not amd(row)), "amd": shares(amd), "vliw": shares(lambda row: row.gpu == "HD5970"),
                "vliw_occupancy": self.tables["text"]["vliw-occupancy-percent"], "kepler": " and ".join(map(whole, kepler)),
                "four": span(gains.values()), "most": " and ".join(sorted(gains, key=gains.get, reverse=True)[:2])}
        best = lambda device, slices, interpolation: max(
            (row for row in rows.values() if row.label.endswith(f", {slices}, {interpolation}")
             and row.found[device]), key=lambda row: row.speed(device)).gpu
        if self.gpu is not None:
            made |= {"gpu": span([row.of_bound(self.gpu) for row in rows.values()])}
            made |= {f"gpu_{slices[0]}_{kind}": best(self.gpu, slices, kind) for slices in ("1 slice", "4 slices")
                     for kind in ("linear", "nearest")}
        if self.cpu is not None:
            made |= {f"cpu_1_{kind}": best(self.cpu, "1 slice", kind) for kind in ("linear", "nearest")}
            by_conversions = [row["gpu"] for row in table if row["slices"] == 4 and row["rounding"] != "ALU"
                              and self.table(20, gpu=row["gpu"], slices=1)["rounding"] != "ALU"]
            for kind in ("linear", "nearest"):
                made[f"cpu_four_{kind}"] = span(
                    [rows[f"{gpu}, 4 slices, {kind}"].speed(self.cpu) / rows[f"{gpu}, 1 slice, {kind}"].speed(self.cpu)
                     for gpu in by_conversions], decimals(1))
        return made

    def processors(self):
        cores = self.page.builder.profiles["cpu"]["throughput"]["compute-units"]
        if self.cpu is None:
            return {"cores": cores}
        rows = self.rows("processors")
        speed = lambda label: rows[label].speed(self.cpu)
        one, four = ((self.table(21, method=method, slices=count)) for method, count in (("standard", 1), ("standard", 4)))
        waiting = [self.table(21, method="synchronized", slices=count) for count in (1, 4)]
        alu = [self.table(21, method="alu", slices=count) for count in (1, 4)]
        lost = [-percent(speed(f"synchronized, {count}"), speed(f"standard, {count}")) for count in ("1 slice", "4 slices")]
        gained = [percent(new["xeon-intel"], old["xeon-intel"]) for new, old in zip(waiting, (one, four))]
        fastest = max(row.speed(self.cpu) for row in rows.values() if row.variant.family != "vector")
        arrow = lambda old, new, unit: f"{old[unit]} to {new[unit]}"
        return {"speed": f"{speed('standard, 1 slice'):.2f}", "paper": one["xeon-intel"], "cores": cores,
                "per_core": f"{speed('standard, 1 slice') / cores:.2f}", "paper_per_core": f"{one['xeon-intel'] / 12:.2f}",
                "gain_one": arrow(one, alu[0], "xeon-intel"), "gain_four": arrow(four, alu[1], "xeon-intel"),
                "lost": span(lost), "amd_one": arrow(one, waiting[0], "xeon-amd"), "amd_four": arrow(four, waiting[1], "xeon-amd"),
                "gained": span(gained), "own": whole(speed("this program's kernel for processors, 16 slices") / fastest)}

    def balance(self):
        rows = self.rows("balance")
        off, alu_of_texture = 0, None
        for row in self.tables["table-22"]["rows"]:
            units = self.page.bounds.of(rows[f"2 slices, {row['algorithm']}"].variant)["units"]
            for column, unit in (("texture", "texture"), ("shared", "local"), ("alu", "alu"), ("sfu", "sfu")):
                if not units.get(unit):
                    continue
                share = 100 * row["speed"] / units[unit]
                if (row["algorithm"], column) == ("texture", "alu"):
                    alu_of_texture = row[column], whole(share)
                else:
                    off = max(off, abs(row[column] - share))
        return {"points": whole(off), "paper_alu": alu_of_texture[0], "alu": alu_of_texture[1],
                "hybrid": whole(rows["2 slices, hybrid"].share())}

    def hybrid(self):
        rows = self.rows("hybrid")
        one, two = (lambda what, count=count: rows[f"{count}, {what}"] for count in ("1 slice", "2 slices"))
        alu, texture, paper = "the arithmetic kernel alone", "the texture kernel alone", "3 by texture units to 5"
        half, quarter, most = "1 by texture units to 1", "1 by texture units to 3", "5 by texture units to 3"
        ratio = lambda of, speed: f"{speed(of(alu)) / speed(of(texture)):.2f}"
        made = {"one": whole(percent(one(paper).paper, one(alu).paper)), "two": whole(percent(two(half).paper, two(alu).paper)),
                "two_texture": whole(percent(two(half).paper, two(texture).paper)), "at_3_5": whole(one(paper).bound),
                "at_1_3": whole(one(quarter).bound), "at_1_1": whole(one(half).bound), "two_5_3": whole(two(most).bound),
                "paper_one": ratio(one, lambda row: row.paper), "paper_two": ratio(two, lambda row: row.paper)}
        if self.gpu is not None:
            made |= {"gpu_one": ratio(one, lambda row: row.speed(self.gpu)), "gpu_two": ratio(two, lambda row: row.speed(self.gpu))}
        if self.cpu is not None:
            made["blocks"] = (self.page.results[self.cpu]["size"] // 64) ** 2
        return made

    def oversampling(self):
        rows, arithmetic = self.rows("oversampling"), self.rows("arithmetic")
        overs, alu = (self.table(22, algorithm=name)["speed"] for name in ("oversample", "alu"))
        bound = rows["Titan X, 2 slices"].bound
        made = {"shares": span([row.share() for row in rows.values()]), "speed": overs, "share": whole(100 * overs / bound),
                "bound": whole(bound), "alu_share": whole(100 * alu / self.rows("balance")["2 slices, alu"].bound)}
        gain = lambda row, device: percent(row.speed(device), arithmetic[f"{row.label}, linear"].speed(device))
        of = lambda row: self.table(20, gpu=row.gpu, slices=row.variant.slices)
        if self.gpu is not None:
            made["gpu_gain"] = span([gain(row, self.gpu) for row in rows.values() if row.variant.slices < 4])
            four = [gain(row, self.gpu) for row in rows.values() if row.variant.slices == 4 and not of(row).get("half")]
            made["gpu_four"] = span(four)
        if self.cpu is not None:
            large = [row for row in rows.values() if row.variant.slices == 1 and row.variant.parameters["block"] == 64
                     and of(row)["rounding"] != "ALU"]
            made["cpu_gain"] = span([gain(row, self.cpu) for row in large])
        return made

    def figure_21(self):
        base = self.table(11, slices=1, mapping="linear")["speed"]
        figure = self.tables["figure-21"]
        return {"linear": f"{self.table(23, gpu='Titan X', slices=2)['speed'] / base:.2f}",
                "nearest": f"{self.table(13, gpu='Titan X', slices=4)['speed'] / base:.2f}",
                "one": f"{self.table(23, gpu='Titan X', slices=1)['speed'] / base:.2f}",
                "text_linear": figure["titan-x-linear"], "text_nearest": figure["titan-x-nearest"],
                "text_one": whole(figure["titan-x-one-slice"])}

    def figure_6(self):
        figure = self.tables["figure-6"]
        return {"above": figure["one-slice-percent-at-least"], "several": "-".join(map(str, figure["several-slices-percent"]))}

    def sizes(self):
        if self.gpu is None:
            return {}
        rows = self.rows("sizes")
        side = lambda part: f"1/{part} of the side" if part > 1 else "the whole side"
        kinds = ("linear, 1 slice", "linear, 2 slices", "nearest, 1 slice")

        def ratios(parts):
            """The arithmetic kernel beside the texture kernel."""
            pairs = [[rows[f"{side(part)}, {kind}: {family}"].speed(self.gpu) for family in ("alu", "texture")]
                     for part in parts for kind in kinds]
            return [alu / texture for alu, texture in pairs]

        size = self.page.results[self.gpu]["size"]
        assert max(ratios((16, 8, 4))) < 1 < min(ratios((2, 1)))
        return {"gpu_small": span([1 / ratio for ratio in ratios((16, 8, 4))], decimals(1)), "gpu_most": size // 4,
                "gpu_large": span(ratios((2, 1)), decimals(1)), "gpu_from": size // 2}

    def launches(self):
        if self.gpu is None:
            return {}
        speeds = {label: row.speed(self.gpu) for label, row in self.rows("launches").items()}
        gains, losses = [], []
        for label, speed in speeds.items():
            change = percent(speed, speeds[f"{label.partition(':')[0]}: all projections"])
            (losses if label.endswith("1/64 of the projections") else gains).append(change)
        return {"gpu_gain": f"{max(gains):.1f}", "gpu_loss": span([-loss for loss in losses])}

    def positions(self):
        made = {"least": whole(100 * LEAST_GAIN)}
        if self.gpu is not None and "positions" in self.page.results[self.gpu]["experiments"]:
            rows, gains = self.rows("positions"), {}
            for label, row in rows.items():
                if label.startswith("Titan X") and label.endswith("from bin 0"):
                    blocks = rows[label.replace("from bin 0", "from blocks")]
                    if row.speed(self.gpu) and blocks.speed(self.gpu):
                        gains.setdefault(row.variant.family, []).append(percent(row.speed(self.gpu), blocks.speed(self.gpu)))
            made |= {f"gpu_{family}": span(found) for family, found in gains.items()}
        return made

    def draft(self):
        """Where the draft and Table 13 have the same number of projections and slices."""
        paper = {(row["gpu"], row["slices"]): row["speed"] for row in self.tables["table-13"]["rows"]}
        apart = [abs(percent(row["speed"], paper[row["gpu"], row["slices"]])) for row in self.tables["draft-texture"]["rows"]
                 if row["at-once"] == 4 and (row["gpu"], row["slices"]) in paper]
        made = {"apart": whole(max(apart))}
        if self.gpu is not None:
            made["gpu_bound"] = span([row.of_bound(self.gpu) for row in self.rows("draft").values()])
        return made

    def inconsistencies(self):
        text, ten = self.tables["text"], self.tables["table-10"]
        names = [gpu["name"] for gpu in self.tables["gpu"]]
        nineteen = lambda interpolation, target: self.table(19, interpolation=interpolation, target=target)["speed"]
        hybrid = lambda gpu: whole(percent(self.table(23, gpu=gpu, slices=2)["speed"], max(
            self.table(13, gpu=gpu, slices=2)["speed"], self.table(20, gpu=gpu, slices=2)["linear"])))
        twenty, ratios = self.table(20, gpu="Titan X", slices=1), ten["gflops-to-conversions"]
        draft = lambda table, **wanted: next(row["speed"] for row in self.tables[f"draft-{table}"]["rows"]
                                             if all(row[key] == value for key, value in wanted.items()))
        full, left = nineteen("linear", 100), nineteen("linear", "-")
        return {"occupancy_text": text["occupancy-percent"], "occupancy": whole(percent(full, left)), "full": full, "left": left,
                "hybrid_text": text["hybrid-percent"], "hybrid_texture": text["hybrid-over-texture-percent"],
                "hybrid": hybrid("Titan X"), "hybrid_980": hybrid("GTX980"), "linear": twenty["linear"],
                "half": nineteen("nearest", 50), "nearest": twenty["nearest"],
                "titan_12": self.table(12, restricted=True)["speed"], "titan_13": self.table(13, gpu="Titan", slices=2)["speed"],
                "alu_20": self.table(20, gpu="Titan X", slices=2)["linear"], "alu_22": self.table(22, algorithm="alu")["speed"],
                "wide": text["wide-loads-percent"], "fold": text["conversions-fold"], "least": min(ratios), "most": max(ratios),
                "wide_cypress": ten["gain-of-64-bit-loads-percent"][names.index("HD5970")],
                "wide_tahiti": ten["gain-of-64-bit-loads-percent"][names.index("HD7970")],
                "change": whole(max(ratios) / min(ratios)),
                "draft_kepler": draft("kepler", gpu="GTX680", kernel="16 projections"),
                "draft_texture": draft("texture", gpu="GTX680", slices=1)}

    def quality(self):
        cases = [case for _, case in self.page.quality_cases()]
        error = lambda case, rule: case[rule]["standard"]["nrmse"]
        return {"factor": span([error(case, "nearest") / error(case, "oversample") for case in cases])}


def filled(text, facts):
    """A remark with its numbers. Other numbers may stand only in names: tables, sections, devices, formats, ratios."""
    rest = re.sub(r"\{\w+\}", "", text)
    for number in re.findall(r"(?<![\w.])\d[\d.]*(?= (?:%|GU/s|GT/s|times|points|MHz))", rest):
        raise SystemExit(f"scripts/paper: {number} in a remark is not computed: {text}")
    return re.sub(r"\{(\w+)\}", lambda found: str(facts[found[1]]), text)
