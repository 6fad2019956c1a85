"""What users write, for mypy --strict."""

from __future__ import annotations

import numpy
from numpy.typing import NDArray

import fbp


def show(done: int, total: int) -> None:
    print(done, total)


def slices_of(path: str) -> NDArray[numpy.float32]:
    scan = fbp.open(path)
    axis: fbp.Center = fbp.find_center(scan.data, scan.angles, flats=scan.flats, darks=scan.darks)
    if axis.verdict != "ok":
        raise fbp.InputError(f"{axis.value:.2f} +- {axis.sd:.2f}: {axis.verdict}")
    out = numpy.empty((4, 64, 64), numpy.float32)
    fbp.reconstruct(scan.data, scan.angles, axis.value, rows=slice(0, 4), stripes=["dead", "mean"], out=out)
    geometry = fbp.convert.from_tofu(1024.0, overall_angle=180.0, projections=1500)
    again = fbp.Reconstructor(center=geometry.center, mode="fast", progress=show)
    return again(fbp.preprocess(scan.data, minus_log=False))
