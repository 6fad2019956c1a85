"""The methods that scripts/quality compares, and where its scans are."""

import os
from dataclasses import dataclass
from pathlib import Path

MASK = 0.95
DATA = Path(os.environ.get("FBP_TEST_DATA", "../shared/data"))


@dataclass(frozen=True)
class Method:
    """A way to reconstruct: what is asked for, and how the kernel that must come of it begins (the number of slices and
    image or buffer follow in its name)."""

    name: str
    title: str
    options: str
    kernel: str
    color: str = "black"


STANDARD = Method("standard", "standard linear", "--profile default", "standard-linear-float", "black")
METHODS = [
    STANDARD,
    Method("nearest", "nearest", "--profile default --interpolation nearest", "standard-nearest-float", "tab:red"),
    Method("half", "half linear", "--profile default --mode fast", "standard-linear-half", "tab:green"),
    Method("half-nearest", "half nearest", "--profile default --mode fast --interpolation nearest",
           "standard-nearest-half"),
    Method("oversample", "oversampling", "--profile nvidia-maxwell --algorithm oversample --mode fast",
           "oversample-linear-float", "tab:blue"),
    Method("texture", "texture linear", "--profile nvidia-maxwell --algorithm texture", "texture-linear-float"),
    Method("alu", "ALU linear", "--profile nvidia-maxwell --algorithm alu", "alu-linear-float"),
    Method("hybrid", "hybrid linear", "--profile nvidia-maxwell --algorithm hybrid", "hybrid-linear-float"),
]
# what the figures show, in the order in which it is drawn
DRAWN = ["nearest", "oversample", "half"]
DASHES = (0, (4, 3))  # of half, which would hide the standard reconstruction
# other ways to the standard reconstruction
SAME = ["texture", "alu", "hybrid"]
BY_NAME = {method.name: method for method in METHODS}
# four slices a texel as half values in forged floats (5.3 of the paper), which a texture unit hands over untouched
FORGED = Method("forged", "half nearest, four slices forged",
                "--profile nvidia-maxwell --algorithm texture --interpolation nearest --mode fast --slices-per-pass 4",
                "texture-nearest-half", "tab:purple")


def scan(name, row, center):
    """How a measured scan is read."""
    folder = DATA / name
    return ["--projections", str(folder / "proj"), "--flats", str(folder / "flat"), "--darks", str(folder / "dark"),
            "--angles", str(folder / "angles_deg.txt"), "--rows", str(row), "--center", str(center)]
