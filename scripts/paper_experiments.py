"""The experiments of scripts/paper: which kernels repeat a table or figure of the paper, as profiles for fbp bench.

Every variant is a kernel of a shipped profile (configs/), with some parameters changed. The paper's figures come from
docs/dev/paper/tables.toml.
"""

import copy
from dataclasses import dataclass, field, replace
from pathlib import Path

try:
    import tomllib
except ImportError:  # before Python 3.11
    try:
        import tomli as tomllib
    except ImportError:
        from pip._vendor import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
TABLES = ROOT / "docs/dev/paper/tables.toml"
# a kernel for the automatic choices of a variant's profile, which the experiments do not run
FILLER = {"interpolation": ["linear", "nearest"], "mode": ["precise", "fast"], "slices": [32],
          "vector": {"common": {"sampler": "buffer", "constants": "global"}}}


@dataclass(frozen=True)
class Variant:
    """A kernel, and what the paper measured of it, if it did."""

    label: str
    profile: str
    family: str
    interpolation: str
    mode: str
    slices: int
    parameters: dict
    paper: float | None = None
    gpu: str = ""
    group: str = ""  # speeds are compared with the first variant of the group
    side: int = 1  # bins and pixels of a side are the device's problem by this number
    part: int = 1  # and projections by this one


@dataclass
class Experiment:
    """Variants that belong together; ratios are to the first of a group."""

    key: str
    title: str
    where: str
    variants: list[Variant] = field(default_factory=list)
    processors: bool = False  # only where it is a processor that is measured
    rounds: int = 1  # every kernel is measured so often, in turns


def load(path):
    with open(path, "rb") as file:
        return tomllib.load(file)


class Profiles:
    """The shipped profiles, and kernels of them."""

    def __init__(self):
        self.read = {}

    def __getitem__(self, name):
        if name not in self.read:
            self.read[name] = load(ROOT / f"configs/{name}.toml")
        return self.read[name]

    def parameters(self, name, family, interpolation, mode, slices):
        """A copy of the parameters of one kernel."""
        for entry in self[name]["kernel"]:
            if (family in entry and interpolation in entry["interpolation"] and mode in entry["mode"]
                    and slices in entry["slices"]):
                return copy.deepcopy(entry[family])
        raise SystemExit(f"scripts/paper: {name} has no {family} kernel, {interpolation} {mode}, {slices} slices")


def changed(parameters, **changes):
    """The parameters with changes; `common_x` is x in the table `common`."""
    result = copy.deepcopy(parameters)
    for key, value in changes.items():
        key = key.replace("_", "-")
        if key.startswith("common-"):
            result.setdefault("common", {})[key.removeprefix("common-")] = value
        else:
            result[key] = value
    return result


def slices_of(count):
    return f"{count} slice{'s' * (count > 1)}"


def value(item):
    """As TOML."""
    if isinstance(item, bool):
        return str(item).lower()
    if isinstance(item, str):
        return '"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(item, list):
        return "[" + ", ".join(map(value, item)) + "]"
    if isinstance(item, dict):
        return "{ " + ", ".join(f"{key} = {value(entry)}" for key, entry in item.items()) + " }"
    return repr(item)


def profile_text(variant, name, profiles):
    """A profile with this one kernel, for the hardware and with the rates of the shipped one."""
    base = profiles[variant.profile]
    lines = ["schema = 2", f"name = {value(name)}", f"title = {value(variant.label)}",
             'source = "scripts/paper: a variant of a shipped profile"']
    for table in ("hardware", "throughput", "build"):
        if table in base:
            lines += [f"[{table}]"] + [f"{key} = {value(entry)}" for key, entry in base[table].items()]
    for interpolation in ("linear", "nearest"):
        for mode in ("precise", "fast"):
            lines += ["[[auto]]", f"interpolation = {value(interpolation)}", f"mode = {value(mode)}",
                      'algorithm = "vector"', "slices = 32"]
    kernel = {"interpolation": [variant.interpolation], "mode": [variant.mode], "slices": [variant.slices],
              variant.family: variant.parameters}
    for entry in (FILLER, kernel):
        lines += ["[[kernel]]"] + [f"{key} = {value(item)}" for key, item in entry.items()]
    return "\n".join(lines) + "\n"


class Builder:
    """Makes the experiments."""

    def __init__(self):
        self.tables = load(TABLES)
        self.profiles = Profiles()
        self.of_gpu = {gpu["name"]: gpu["profile"] for gpu in self.tables["gpu"]}

    def rows(self, table):
        return self.tables[f"table-{table}"]["rows"]

    def kernel(self, label, gpu, family, interpolation, slices, mode="precise", paper=None, group="", **changes):
        profile = self.of_gpu[gpu]
        parameters = changed(self.profiles.parameters(profile, family, interpolation, mode, slices), **changes)
        return Variant(label, profile, family, interpolation, mode, slices, parameters, paper, gpu, group)

    def experiment(self, key, where, title, variants, processors=False, rounds=1):
        return Experiment(key, title, where, variants, processors, rounds)

    def positions(self):
        """Both forms of Algorithm 6's positions, one after the other with the same parameters: for every kernel of the Titan X
        that has both, as floats and as halves, and for those that the profile of Hopper ships."""
        variants = []

        def both(label, profile, family, interpolation, slices, parameters, gpu=""):
            table = "alu" if family == "hybrid" else None
            for form, words in (("block", "from blocks"), ("absolute", "from bin 0")):
                changes = {**parameters[table], "positions": form} if table else form
                made = changed(parameters, **{table or "positions": changes})
                # precise counts from blocks where a kernel interpolates itself
                variants.append(Variant(f"{label}, {words}", profile, family, interpolation, "fast", slices, made, None, gpu, label))

        for family, interpolation, counts in (("standard", "linear", (1, 2, 4)), ("standard", "nearest", (1, 2, 4)),
                                              ("alu", "linear", (1, 2, 4)), ("alu", "nearest", (1, 2, 4)),
                                              ("oversample", "linear", (1, 2, 4)), ("hybrid", "linear", (1, 2, 4))):
            for slices in counts:
                for storage in ("float", "half"):
                    # the profile has no hybrid kernel of four slices; four are halves in mode fast
                    of = min(slices, 2) if family == "hybrid" else slices
                    mode = "fast" if family == "oversample" or storage == "half" else "precise"
                    parameters = self.profiles.parameters(self.of_gpu["Titan X"], family, interpolation, mode, of)
                    inner = parameters["alu"] if family == "hybrid" else parameters
                    inner["common"]["storage"] = storage
                    if storage == "half" and family in ("alu", "hybrid") and inner.get("cache") != "advanced":
                        inner["half-cache"] = True
                    both(f"Titan X {family}, {interpolation}, {storage}, {slices_of(slices)}", self.of_gpu["Titan X"], family,
                         interpolation, slices, parameters, "Titan X")
        for entry in self.profiles["nvidia-hopper"]["kernel"]:
            family = next(family for family in ("standard", "alu", "oversample", "hybrid", None) if family is None or family in entry)
            for interpolation in entry["interpolation"] if family else ():
                for slices in entry["slices"]:
                    storage = entry[family].get("common", {}).get("storage", "float")
                    label = f"Hopper {family}, {interpolation}, {storage}, {slices_of(slices)}"
                    if "fast" in entry["mode"] or interpolation == "nearest":
                        both(label, "nvidia-hopper", family, interpolation, slices, entry[family])
        return self.experiment("positions", "Algorithms 1 and 6", "Positions from blocks and from bin 0", variants, rounds=3)

    def sizes(self):
        """5.6 and 6.9: the texture kernel for small images."""
        variants = []
        for part in (16, 8, 4, 2, 1):
            side = f"1/{part} of the side" if part > 1 else "the whole side"
            for interpolation, slices in (("linear", 1), ("linear", 2), ("nearest", 1)):
                what = f"{side}, {interpolation}, {slices_of(slices)}"
                for family in ("texture", "alu", "hybrid"):
                    if family != "hybrid" or interpolation == "linear":
                        made = self.kernel(f"{what}: {family}", "Titan X", family, interpolation, slices, group=what)
                        variants.append(replace(made, side=part, part=part))
        return self.experiment("sizes", "5.6 and 6.9", "Small images", variants)

    def launches(self):
        """Lecture 8: projections for each launch, from all of them to 1/64, which are 2048 to 32 on a GPU."""
        variants = []
        for family, slices in (("standard", 1), ("texture", 2), ("alu", 1), ("alu", 2)):
            what = f"{family}, {slices_of(slices)}"
            for part in (1, 2, 4, 8, 16, 32, 64):
                label = f"{what}: " + (f"1/{part} of the projections" if part > 1 else "all projections")
                variants.append(replace(self.kernel(label, "Titan X", family, "linear", slices, group=what), part=part))
        return self.experiment("launches", "Lecture 8", "Projections for each launch", variants)

    def mappings(self):
        paper = {(row["slices"], row["mapping"] == "z-order"): row["speed"] for row in self.rows(11)}
        best = {row["slices"]: row["speed"] for row in self.rows(13) if row["gpu"] == "Titan X"}
        variants = []
        for slices, interpolation, mode, storage in ((1, "linear", "precise", "float"),
                                                     (2, "linear", "precise", "float"),
                                                     (4, "nearest", "fast", "half")):
            what = f"{slices_of(slices)}, {interpolation}, {storage}"
            for order in (False, True):
                variants.append(self.kernel(
                    f"{what}: standard, {'Z-order' if order else 'linear order'}", "Titan X", "standard",
                    interpolation, slices, mode, paper.get((slices, order)), what, z_order=order, common_storage=storage))
                shipped = variants[-1].parameters
            if "positions" in shipped:
                variants.append(self.kernel(f"{what}: standard, Z-order, positions from blocks", "Titan X", "standard",
                                            interpolation, slices, mode, None, what, z_order=True,
                                            common_storage=storage, positions="block"))
            variants.append(self.kernel(f"{what}: texture kernel", "Titan X", "texture", interpolation, slices, mode,
                                        best[slices], what))
        return self.experiment("order", "Table 11, Figures 3 and 6", "Order of items, and the texture kernel",
                               variants)

    def texture_occupancy(self):
        paper = {None if not row["restricted"] else 100: row["speed"] for row in self.rows(12)}
        variants = [self.kernel(f"2 slices, occupancy {target or 'left to the compiler'}", "Titan", "texture", "linear",
                                2, paper=paper.get(target), group="all", common_occupancy=target or 0)
                    for target in (None, 50, 75, 100)]
        return self.experiment("texture-occupancy", "Table 12", "Occupancy targets of the texture kernel", variants)

    def texture(self):
        variants = []
        for row in self.rows(13):
            nearest = row["slices"] == 4
            variants.append(self.kernel(f"{row['gpu']}, {slices_of(row['slices'])}", row["gpu"], "texture",
                                        "nearest" if nearest else "linear", row["slices"],
                                        "fast" if nearest else "precise", row["speed"]))
        return self.experiment("texture", "Table 13", "The texture kernel of each GPU", variants)

    def draft(self):
        """The draft's table of kernels for Kepler, whose constants are in local memory with 4 projections at once."""
        changes = {
            "standard": {"cached_constants": 256},
            "same centre": {"cached_constants": 256, "same_centre": True},
            "coalescing": {"cached_constants": 256, "regroup": True},
            "16 projections": {"projections_at_once": 16},
            "float index": {"projections_at_once": 16, "float_index": True},
        }
        variants = [self.kernel(f"{row['gpu']}, {row['kernel']}", row["gpu"], "texture", "linear", 1, paper=row["speed"],
                                group=row["gpu"], common_occupancy=row["occupancy"], **changes[row["kernel"]])
                    for row in self.tables["draft-kepler"]["rows"]]
        return self.experiment("draft", "Draft", "Texture kernels for Kepler", variants)

    def rounding(self):
        variants = [self.kernel(f"1 slice, rounding {row['rounding']}", "Titan", "alu", "linear", 1,
                                paper=row["speed"], group="all", rounding=row["rounding"]) for row in self.rows(17)]
        return self.experiment("rounding", "Table 17", "Units that round", variants)

    def caches(self):
        one = lambda label, **changes: self.kernel(f"1 slice, {label}", "Titan X", "alu", "linear", 1, group="one",
                                                  **changes)
        four = lambda label, mode="precise", **changes: self.kernel(f"4 slices, {label}", "Titan X", "alu", "linear", 4,
                                                                    mode, group="four", **changes)
        return self.experiment("caches", "Table 18 and 6.3 to 6.8", "Caches of the arithmetic kernel, one changed at a time", [
            one("as Table 18 has it: advanced cache, row starts (h_m), rotation (c_s)"),
            one("standard cache", cache="standard"),
            one("no row starts", offsets="none"),
            one("items in squares of 16 x 16", mapping="block"),
            one("column starts (h_x), items in squares of 16 x 16", offsets="column", mapping="block"),
            one("no rotation", rotation_cache=False),
            one("row starts of 256 projections at once (s_p)", stage=256),
            one("items along rows in place of squares (6.3)", mapping="rows"),
            four("as Table 18 has it: standard cache, row starts"),
            four("advanced cache", cache="advanced", arrays=4),
            four("rotation", rotation_cache=True),
            four("two arrays (Algorithm 8)", arrays=2),
            four("half values in the cache (6.7)", "fast"),
        ])

    def occupancy(self):
        paper = {(row["interpolation"], row["target"]): row["speed"] for row in self.rows(19)}
        variants = [self.kernel(f"{interpolation}, occupancy {target if target != '-' else 'left to the compiler'}",
                                "Titan X", "alu", interpolation, 1, paper=paper.get((interpolation, target)),
                                group=interpolation, common_occupancy=0 if target == "-" else target)
                    for interpolation in ("linear", "nearest") for target in ("-", 50, 75, 100)]
        return self.experiment("occupancy", "Table 19", "Occupancy targets of the arithmetic kernel", variants)

    def arithmetic(self):
        variants = []
        for row in self.rows(20):
            mode = "fast" if row.get("half") else "precise"
            for interpolation in ("linear", "nearest"):
                variants.append(self.kernel(f"{row['gpu']}, {slices_of(row['slices'])}, {interpolation}", row["gpu"], "alu",
                                            interpolation, row["slices"], mode, row[interpolation]))
        return self.experiment("arithmetic", "Table 20", "The arithmetic kernel of each GPU", variants)

    def processors(self):
        paper = {(row["method"], row["slices"]): row["xeon-intel"] for row in self.rows(21)}
        buffer = {"common_sampler": "buffer"}
        variants = []
        for slices in (1, 4):
            variants.append(self.kernel(f"standard, {slices_of(slices)}", "HD7970", "standard", "linear", slices,
                                        paper=paper["standard", slices], z_order=False, **buffer))
            variants.append(self.kernel(f"synchronized, {slices_of(slices)}", "HD7970", "standard", "linear", slices,
                                        paper=paper["synchronized", slices], z_order=False, synchronized=True, **buffer))
            variants.append(Variant(f"arithmetic, {slices_of(slices)}", "cpu", "alu", "linear", "precise", slices,
                                    self.profiles.parameters("cpu", "alu", "linear", "precise", slices),
                                    paper["alu", slices]))
        vector = self.profiles.parameters("cpu", "vector", "linear", "precise", 16)
        variants.append(Variant("this program's kernel for processors, 16 slices", "cpu", "vector", "linear", "precise",
                                16, vector))
        return self.experiment("processors", "Table 21", "Kernels for GPUs on a CPU", variants, processors=True)

    def balance(self):
        paper = {row["algorithm"]: row["speed"] for row in self.rows(22)}
        variants = [self.kernel(f"2 slices, {family}", "Titan X", family, "linear", 2,
                                "fast" if family == "oversample" else "precise", paper[family], "all")
                    for family in ("texture", "alu", "hybrid", "oversample")]
        return self.experiment("balance", "Table 22", "Four algorithms side by side", variants)

    def hybrid(self):
        paper = {(row["gpu"], row["slices"]): row for row in self.rows(23)}
        variants = []
        texture = {row["slices"]: row["speed"] for row in self.rows(13) if row["gpu"] == "Titan X"}
        alone = {row["slices"]: row["linear"] for row in self.rows(20) if row["gpu"] == "Titan X"}
        for slices in (1, 2):
            row = paper["Titan X", slices]
            for family, speeds, what in (("alu", alone, "arithmetic"), ("texture", texture, "texture")):
                variants.append(self.kernel(f"{slices_of(slices)}, the {what} kernel alone", "Titan X", family, "linear",
                                            slices, paper=speeds[slices], group=str(slices)))
            for blocks, alu in ((1, 7), (1, 3), (3, 5), (1, 1), (5, 3)):
                same = (blocks, alu) == (row["texture-blocks"], row["alu-blocks"])
                variants.append(self.kernel(f"{slices_of(slices)}, {blocks} by texture units to {alu}", "Titan X", "hybrid",
                                            "linear", slices, paper=row["speed"] if same else None,
                                            group=str(slices), texture_blocks=blocks, alu_blocks=alu))
            variants.append(self.kernel(f"{slices_of(slices)}, as for the GTX 980", "GTX980", "hybrid", "linear", slices,
                                        paper=paper["GTX980", slices]["speed"]))
        return self.experiment("hybrid", "Table 23", "The hybrid kernel, by shares of the units", variants)

    def oversampling(self):
        variants = [self.kernel(f"{row['gpu']}, {slices_of(row['slices'])}", row["gpu"], "oversample", "linear",
                                row["slices"], "fast", row["speed"]) for row in self.rows(24)]
        return self.experiment("oversampling", "Table 24", "The arithmetic kernel with oversampling of each GPU",
                               variants)

    def all(self):
        return [self.mappings(), self.texture_occupancy(), self.texture(), self.draft(), self.rounding(),
                self.caches(), self.occupancy(), self.arithmetic(), self.processors(), self.balance(), self.hybrid(),
                self.oversampling(), self.positions(), self.sizes(), self.launches()]
