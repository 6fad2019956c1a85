#!/usr/bin/env python3
"""Opens fbp's outputs in silx view, napari and ImageJ; scripts/viewers runs it."""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import tifffile

from interop import PHANTOM, RUN, SIDE, SLICES, check

# ImageJ writes micro in one of two ways
MICROMETRES = ("\u00b5m", "\u03bcm", "um", "micron")


INTEGERS = ["--dtype", "u16", "--range=-1,2"]
COMPRESSED = {
    f"{dtype}-{compression}.tif": [*flags, "--compression", compression]
    for dtype, flags in (("f32", []), ("u16", INTEGERS)) for compression in ("deflate", "lzw", "zstd")
}


def within_seconds(look):
    """What `look` finds while a viewer works."""
    from PyQt6.QtWidgets import QApplication

    until = time.monotonic() + 30
    while time.monotonic() < until:
        QApplication.processEvents()
        if found := look():
            return found
        time.sleep(0.02)
    return None


def shown(window):
    """The image of the plot that a window of silx shows, its title, and its axes, as soon as there is one."""
    from silx.gui.plot import PlotWidget

    def image():
        for plot in window.findChildren(PlotWidget):
            if plot.isVisible() and plot.getActiveImage() is not None:
                active, labels = plot.getActiveImage(), [plot.getXAxis().getLabel(), plot.getYAxis().getLabel()]
                return active.getData(), plot.getGraphTitle(), (active.getScale(), active.getOrigin(), labels)

    found = within_seconds(image)
    check(found, "silx view shows no image")
    return found


def check_silx():
    """Opens files, of which silx view shows the default."""
    from silx.app.view.Viewer import Viewer
    from silx.gui import qt

    application, windows = qt.QApplication([]), []
    for name in ("one.h5", "parts.h5", "deflate.h5"):
        window = Viewer()
        window.show()
        window.appendFile(name)
        image, title, (scale, origin, labels) = shown(window)
        check(np.array_equal(image, slices_of("plain")[0]), f"silx view, {name}: values")
        check("1/um" in title, f"silx view, {name}: {title}")
        check(labels == ["x (um)", "y (um)"], f"silx view, {name}: {labels}")
        places = [0.65] * 2 + [-0.65 * (SIDE - 1) / 2] * 2
        check(np.allclose([*scale, *origin], places), f"silx view, {name}: {scale} from {origin}")
        window.hide()
        windows.append(window)  # until the process ends
    return application, windows


def check_napari():
    check_layer("v0.4.zarr", slices_of("plain"), "napari-ome-zarr", [0.65] * 3)
    check_layer("v0.5.zarr", slices_of("plain"), "napari-ome-zarr", [0.65] * 3)
    for name in COMPRESSED:
        with tifffile.TiffFile(name) as file:
            check(all(page.compression != 1 for page in file.pages), f"{name}: not compressed")
    for name in ("u16.tif", *COMPRESSED):
        check_layer(name, slices_of(name), "napari", None)


def check_layer(name, slices, plugin, scale):
    import napari

    viewer = napari.Viewer()
    layer, *rest = viewer.open(name, plugin=plugin)
    values = layer.data[0] if layer.multiscale else layer.data
    check(not rest and np.array_equal(np.asarray(values), slices), f"napari, {name}: values")
    if scale:
        levels = [level.shape for level in layer.data]
        check(levels[1] == tuple((side + 1) // 2 for side in slices.shape), f"napari, {name}: levels {levels}")
        check(np.allclose(layer.scale, scale), f"napari, {name}: scale {layer.scale}")
        check({str(unit) for unit in layer.units} == {"micrometer"}, f"napari, {name}: units {layer.units}")
    layer.contrast_limits = (float(slices.min()), float(slices.max()))
    check(within_seconds(lambda: viewer.screenshot(canvas_only=True, flash=False)[..., :3].std() > 1),
          f"napari, {name}: nothing is drawn")
    viewer.close()


def check_imagej():
    here = os.getcwd()
    check_stack("plain", slices_of("plain"), f'run("Image Sequence...", "open={here}/plain/slice_00000.tif sort");')
    # of compressed files, this version reads integers in LZW; it ignores the predictor of deflate
    for name in ("u16.tif", "u16-lzw.tif"):
        check_stack(name, slices_of(name), f'open("{here}/{name}");')


def check_stack(path, slices, command):
    """Opens a stack and compares what ImageJ says of one of its slices; it prints four digits."""
    macro = f"""{command}
setSlice(3); getStatistics(area, mean, min, max); getPixelSize(unit, width, height);
print(nSlices, bitDepth(), getWidth(), getHeight(), d2s(mean, 6), d2s(min, 6), d2s(max, 6), unit, width);
eval("script", "System.exit(0)");"""
    Path("look.ijm").write_text(macro)
    done = subprocess.run(["imagej", "-x", "500", "-b", "look.ijm"], capture_output=True, text=True, timeout=120)
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith(f"{SLICES} ")]
    check(len(lines) == 1, f"ImageJ, {path}: {done.stdout}{done.stderr}")
    count, bits, width, height, *numbers, unit, side = lines[0]
    expected = [SLICES, 8 * slices.itemsize, SIDE, SIDE]
    check([int(count), int(bits), int(width), int(height)] == expected, f"ImageJ, {path}: {lines[0]}")
    third = slices[2].astype(np.float64)
    means = [third.mean(), third.min(), third.max()]
    check(np.allclose([float(n) for n in numbers], means, rtol=1e-4, atol=2e-6), f"ImageJ, {path}: {lines[0]}, {means}")
    check(unit in MICROMETRES and float(side) == 0.65, f"ImageJ, {path}: pixels of {side} {unit}")


def slices_of(name):
    return tifffile.imread(sorted(Path(name).glob("*.tif")) if Path(name).is_dir() else name)


VIEWERS = {"silx": check_silx, "napari": check_napari, "imagej": check_imagej}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fbp", required=True)
    parser.add_argument("--viewer", choices=VIEWERS, help="only look at the files in the working directory")
    given = parser.parse_args()
    if given.viewer:
        kept = VIEWERS[given.viewer]()  # while the rest is done
        print(check.passed, flush=True)
        # taking windows apart may crash
        os._exit(0)
    program, total = Path(given.fbp).resolve(), 0
    with tempfile.TemporaryDirectory() as work:
        def run(*command):
            done = subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=300)
            if done.returncode:
                raise SystemExit(f"FAILED: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
            return done.stdout

        run(program, *PHANTOM)
        for output in (["plain"], ["u16.tif", *INTEGERS], *([name, *flags] for name, flags in COMPRESSED.items()), ["one.h5"],
                       ["parts.h5", "--hdf5-parts", "3"], ["deflate.h5", "--compression", "deflate"],
                       ["v0.4.zarr"], ["v0.5.zarr", "--ome-zarr", "0.5"]):
            run(program, *RUN, "-o", *output)
        # one viewer a process: their toolkits do not get along
        for viewer in VIEWERS:
            total += int(run(sys.executable, Path(__file__).resolve(), "--fbp", program, "--viewer", viewer).split()[-1])
    print(f"{total} passed, 0 failed")


if __name__ == "__main__":
    main()
