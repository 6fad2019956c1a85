"""Does what scripts/pictures says; that script finds the packages and builds the program."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import tifffile
from PIL import Image, ImageDraw, ImageFont

ROOT = Path(__file__).resolve().parents[1]
BACKGROUND, TEXT = 32, 230
# grey levels of a picture: with noise, 256 would make files of three times the size
GREYS, SMOOTH = 40, 128

# the simulated scan of a sample of one material: lengths in metres
ENERGY, DISTANCE, RATIO, PIXEL = 20, 0.02, 300, 0.65e-6
WAVELENGTH = 1.2398e-9 / ENERGY
# water: classical electron radius, and electrons per cubic metre
DELTA = 2.818e-15 * WAVELENGTH**2 * 3.343e29 / (2 * np.pi)
BLUR = 0.8 * PIXEL
BINS, FINER, ROWS, PROJECTIONS, PHOTONS, DARK = 512, 4, 96, 800, 20000, 100


def run(fbp, *arguments):
    done = subprocess.run([fbp, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"scripts/pictures: fbp {' '.join(map(str, arguments))}\n{done.stderr}")
    return done.stdout


def panel(values, low, high, crop, scale):
    """A square of a slice, enlarged, between two values."""
    x, y, side = crop
    part = np.clip((values[y : y + side, x : x + side] - low) / (high - low), 0, 1)
    image = Image.fromarray(np.uint8(np.round(255 * part)))
    return image.resize((side * scale, side * scale), Image.Resampling.BICUBIC)


def write(path, picture, greys=GREYS, limit=150_000):
    """A grey picture in a small file."""
    step = 255 / (greys - 1)
    picture = picture.point([round(round(grey / step) * step) for grey in range(256)])
    picture.quantize(greys, dither=Image.Dither.NONE).save(path, optimize=True)
    size = path.stat().st_size
    print(f"{path}: {picture.width} x {picture.height}, {size / 1000:.0f} kB")
    if size > limit:
        sys.exit(f"scripts/pictures: {path} has {size} bytes, more than {limit}")


def save(path, panels, greys=GREYS):
    """Panels side by side, each with its label above."""
    gap, band = 8, 30
    width = sum(image.width for _, image in panels) + gap * (len(panels) + 1)
    height = band + max(image.height for _, image in panels) + gap
    picture = Image.new("L", (width, height), BACKGROUND)
    draw, font, left = ImageDraw.Draw(picture), ImageFont.load_default(15), gap
    for label, image in panels:
        assert draw.textlength(label, font) <= image.width, label
        draw.text((left, band / 2), label, TEXT, font, anchor="lm")
        picture.paste(image, (left, band))
        left += image.width + gap
    write(path, picture, greys)


def scan_of(data, name):
    """Arguments for a real scan, without its axis."""
    scan = data / name
    names = {"--projections": "proj", "--flats": "flat", "--darks": "dark", "--angles": "angles_deg.txt"}
    return [word for flag, part in names.items() for word in (flag, scan / part)]


def tooth(fbp, work, data, out):
    """The tooth about a wrong axis and about the right one, with rings and without."""
    scan = [*scan_of(data, "tooth"), "--rows", 0, "--overwrite", "--quiet"]
    slices = {}
    for name, flags in [("wrong", ["--center", 290.9]), ("right", ["--center", 295.9]),
                        ("clean", ["--center", 295.9, "--stripes", "dead,titarenko"])]:  # fmt: skip
        run(fbp, "reconstruct", *scan, *flags, "--output", work / f"{name}.tif")
        slices[name] = tifffile.imread(work / f"{name}.tif")
    window = np.percentile(slices["right"], [1, 99.7])
    crop = (190, 190, 200)
    save(out / "pictures" / "axis.png", [
        ("wrong axis: --center 290.9, 5 bins off", panel(slices["wrong"], *window, crop, 2)),
        ("right axis: --center auto, 295.90", panel(slices["right"], *window, crop, 2)),
    ])  # fmt: skip
    crop = (250, 250, 140)
    save(out / "pictures" / "rings.png", [
        ("before: rings about the axis", panel(slices["right"], *window, crop, 3)),
        ("after: --stripes dead,titarenko", panel(slices["clean"], *window, crop, 3)),
    ])  # fmt: skip


def propagated(lines, wavelength, distance, pixel):
    """Intensities on a detector behind a sample, by Fresnel propagation of the wave along the rows.

    `lines` are integrals of the density in metres, for a material of which DELTA and RATIO hold at density 1. The sample is
    the same at all heights, so that the wave varies along the rows alone, and this is exact.
    """
    k = 2 * np.pi / wavelength
    wave = np.exp(-(1j + 1 / RATIO) * k * DELTA * lines)
    bins = lines.shape[1]
    # the wave is periodic: air on both sides of twice the width
    wave = np.pad(wave, ((0, 0), (bins // 2, bins // 2)), constant_values=1)
    frequency = np.fft.fftfreq(wave.shape[1], pixel)
    wave = np.fft.ifft(np.fft.fft(wave) * np.exp(-1j * np.pi * wavelength * distance * frequency**2))
    seen = np.fft.ifft(np.fft.fft(np.abs(wave) ** 2) * np.exp(-2 * (np.pi * BLUR * frequency) ** 2)).real
    return seen[:, bins // 2 : -(bins // 2)]


def phase(fbp, work, out):
    """A simulated scan with phase contrast: slices without phase retrieval, with it, and with wrong ratios of delta and beta."""
    fine = BINS * FINER
    run(fbp, "phantom", "--kind", "asymmetric", "--size", fine, "--projections", PROJECTIONS, "--output", work / "exact", "--overwrite")
    lines = tifffile.imread(sorted((work / "exact").glob("*.tif"))[0]).reshape(PROJECTIONS, fine) * (PIXEL / FINER)
    intensity = propagated(lines, WAVELENGTH, DISTANCE, PIXEL / FINER)
    intensity = intensity.reshape(PROJECTIONS, BINS, FINER).mean(axis=2)
    noise = np.random.default_rng(1)
    counts = lambda beam, frames: DARK + noise.poisson(PHOTONS * beam, (frames, ROWS, BINS)).astype(np.uint16)
    tifffile.imwrite(work / "projections.tif", counts(intensity[:, None, :], PROJECTIONS))
    tifffile.imwrite(work / "flats.tif", counts(1, 20))
    tifffile.imwrite(work / "darks.tif", np.full((2, ROWS, BINS), DARK, np.uint16))
    scan = [word for name in ("projections", "flats", "darks") for word in (f"--{name}", work / f"{name}.tif")]
    scan += ["--center", (BINS - 1) / 2, "--rows", ROWS // 2, "--pixel-size", f"{PIXEL * 1e6}um", "--overwrite", "--quiet"]
    retrieval = ["--phase", "paganin", "--energy-kev", ENERGY, "--distance", f"{DISTANCE * 1e3:g}mm", "--delta-beta"]
    slices = {}
    for ratio in [None, RATIO // 10, RATIO, 10 * RATIO]:
        flags = [*retrieval, ratio] if ratio else []
        run(fbp, "reconstruct", *scan, *flags, "--output", work / "slice.tif")
        slices[ratio] = tifffile.imread(work / "slice.tif")
    # attenuation per um where the phantom is 1
    one = 2 * (2 * np.pi / WAVELENGTH) * DELTA / RATIO * 1e-6
    levels = (-0.3 * one, 1.5 * one)
    rims = np.percentile(slices[None], [0.5, 99.5])
    crop = (96, 64, 380)
    save(out / "pictures" / "phase.png", [
        ("before: bright and dark rims at edges", panel(slices[None], *rims, crop, 1)),
        (f"after: --phase paganin --delta-beta {RATIO}", panel(slices[RATIO], *levels, crop, 1)),
    ], SMOOTH)  # fmt: skip
    crop = (220, 130, 130)
    save(out / "pictures" / "ratio.png", [
        (f"--delta-beta {RATIO // 10}: too small", panel(slices[RATIO // 10], *levels, crop, 2)),
        (f"--delta-beta {RATIO}: right", panel(slices[RATIO], *levels, crop, 2)),
        (f"--delta-beta {10 * RATIO}: too large", panel(slices[10 * RATIO], *levels, crop, 2)),
    ], SMOOTH)  # fmt: skip


def real(fbp, work, data, out):
    """The pictures of docs/real.md, by its command."""
    flags = ["--center", "auto", "--stripes", "sorting:size=11", "--mask", "--overwrite", "--quiet"]
    run(fbp, "reconstruct", *scan_of(data, "tooth"), *flags, "--output", work / "tooth", "--preview", work / "tooth.png")
    run(fbp, "reconstruct", *scan_of(data, "tomo77"), *flags, "--output", work / "tomo77", "--sections", work / "tomo77.png")
    for name in ["tooth", "tomo77"]:
        with Image.open(work / f"{name}.png") as picture:
            write(out / "real" / f"{name}.png", picture.convert("L"), limit=200_000)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fbp", required=True)
    parser.add_argument("--work", required=True, type=Path)
    parser.add_argument("--out", default=ROOT / "docs", type=Path)
    arguments = parser.parse_args()
    fbp, work, out = arguments.fbp, arguments.work, arguments.out
    for directory in [work, out / "pictures", out / "real"]:
        directory.mkdir(parents=True, exist_ok=True)
    phase(fbp, work, out)
    data = Path(os.environ.get("FBP_TEST_DATA", ROOT / ".." / "shared" / "data"))
    if not (data / "tooth").is_dir():
        sys.exit(f"scripts/pictures: no scans in {data}: the pictures of real scans are as they were; set FBP_TEST_DATA")
    tooth(fbp, work, data, out)
    real(fbp, work, data, out)


if __name__ == "__main__":
    main()
