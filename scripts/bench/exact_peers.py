#!/usr/bin/env python3
"""Measures exact interpolation beside the Fourier methods and filtered back projections of other programs, on processors.

    scripts/bench/exact_peers.py [--fbp target/release/fbp] [--sizes 512 1024 2048] [--programs fbp tomoxide] [--json FILE]

Seconds of whole programs, from sinograms in one TIFF file to slices in another, with their start: SIZE projections of SIZE
bins, 64 slices, 16 of 2048 and more; the ramp filter, no logarithm. Programs take turns; the best and the worst of --rounds
are printed.

  fbp exact    fbp reconstruct --interpolation exact, --accuracy 1e-3 and 1e-5
  fbp linear   fbp reconstruct --interpolation linear
  algotom DFI  direct Fourier inversion (algotom.rec.reconstruction.dfi_reconstruction), slices on all processors
  silx         silx.opencl.backprojection, linear interpolation, on the device that fbp takes
  tomoxide     its gridrec and fourierrec on all processors (tomoxide::recon::recon, backend Cpu)

Sinograms are noise that falls off to zero at the ends of the detector, so that programs which pad in other ways have the
same task. The error is that of the first slice at sampled pixels inside half the radius, against the sum in float64 that
defines the exact slice (docs/geometry.md), relative to the root mean square of its values; each program's slice is first
multiplied by the factor, turned, mirrored and moved by half a pixel in the way that fits best.

The peers are installed from PyPI into target/peers; tomoxide is a Rust crate, which target/peers-tomoxide builds.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from environment import ROOT, Environment, arguments

PEERS = Environment("peers", ["silx", "pyopencl", "algotom", "numpy", "tifffile"], None)
ALGOTOM = """
import sys
from concurrent.futures import ProcessPoolExecutor
import numpy as np
import tifffile
from algotom.rec.reconstruction import dfi_reconstruction

def slice_of(sinogram):
    angles = np.arange(len(sinogram)) * np.pi / len(sinogram)
    centre = (sinogram.shape[1] - 1) / 2
    return dfi_reconstruction(sinogram, centre, angles=angles, filter_name=None, apply_log=False, pad_rate=0.5)

if __name__ == "__main__":
    source, target = sys.argv[1:]
    sinograms = tifffile.imread(source)
    with ProcessPoolExecutor() as pool:
        slices = np.stack(list(pool.map(slice_of, sinograms)))
    tifffile.imwrite(target, slices.astype(np.float32))
"""
SILX = """
import sys
import numpy as np
import pyopencl
import tifffile
from silx.opencl.backprojection import Backprojection
source, target = sys.argv[1:]
sinograms = tifffile.imread(source)
angles = np.arange(sinograms.shape[1]) * np.pi / sinograms.shape[1]
kinds = [pyopencl.device_type.CPU]
device = [d for p in pyopencl.get_platforms() for d in p.get_devices() if d.type in kinds][0]
fbp = Backprojection(sinograms.shape[1:], axis_position=(sinograms.shape[2] - 1) / 2, angles=angles,
                     ctx=pyopencl.Context([device]))
tifffile.imwrite(target, np.stack([fbp(sinogram) for sinogram in sinograms]))
"""
TOMOXIDE_MANIFEST = """
[package]
name = "peer"
version = "0.1.0"
edition = "2021"

[workspace]

[dependencies]
ndarray = "0.16"
tiff = "0.11"
tomoxide = "=0.10.3"
"""
TOMOXIDE = """
use ndarray::{Array3, Axis};
use std::{env, error::Error, f32::consts::PI, fs::File, io::BufReader, io::BufWriter};
use tiff::decoder::{Decoder, DecodingResult, Limits};
use tiff::encoder::{colortype::Gray32Float, TiffEncoder};
use tomoxide::{Algorithm, Angles, BackendKind, Center, Engine, FilterName, Geometry, Layout, ReconParams, Tomo};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().collect();
    let algorithm: Algorithm = arguments[1].parse()?;
    let mut decoder = Decoder::new(BufReader::new(File::open(&arguments[2])?))?.with_limits(Limits::unlimited());
    let (bins, projections) = decoder.dimensions()?;
    let (bins, projections) = (bins as usize, projections as usize);
    let mut values = Vec::new();
    loop {
        let DecodingResult::F32(page) = decoder.read_image()? else { return Err("not 32-bit floats".into()) };
        values.extend(page);
        if !decoder.more_images() {
            break;
        }
        decoder.next_image()?;
    }
    let slices = values.len() / (projections * bins);
    let angles = (0..projections).map(|p| p as f32 * PI / projections as f32).collect();
    let mut geometry = Geometry::parallel(Angles(angles), bins, slices, 1.0);
    geometry.center = Center::Scalar((bins as f32 - 1.0) / 2.0);
    let parameters = ReconParams { filter_name: FilterName::Ramp, ..ReconParams::default() };
    let sinograms = Tomo::new(Array3::from_shape_vec((slices, projections, bins), values)?, Layout::Sinogram);
    let engine = Engine::new(BackendKind::Cpu)?;
    let volume = tomoxide::recon::recon(&sinograms, &geometry, algorithm, &parameters, engine.backend())?;
    let mut encoder = TiffEncoder::new(BufWriter::new(File::create(&arguments[3])?))?;
    for slice in volume.array.axis_iter(Axis(0)) {
        let values: Vec<f32> = slice.iter().copied().collect();
        encoder.write_image::<Gray32Float>(bins as u32, bins as u32, &values)?;
    }
    Ok(())
}
"""

if PEERS.entered:  # else this script starts anew
    import numpy as np
    import tifffile


def noise(size, slices):
    random = np.random.default_rng(1)
    window = np.cos(np.linspace(-np.pi / 2, np.pi / 2, size)) ** 2
    return (random.standard_normal((slices, size, size)) * window).astype(np.float32)


class Exact:
    """The exact slice at some pixels: the filtered rows, as the trigonometric sums that their values are samples of."""

    def __init__(self, sinogram, pixels=100):
        size = len(sinogram)
        length = 2 * size
        kernel = np.zeros(length)
        odd = np.arange(1, size, 2)
        kernel[0], kernel[odd], kernel[-odd] = 0.25, -1 / (np.pi * odd) ** 2, -1 / (np.pi * odd) ** 2
        spectra = np.fft.rfft(sinogram.astype(float), length) * np.fft.rfft(kernel).real / length
        spectra[:, 1:-1] *= 2
        random = np.random.default_rng(2)
        radius, turn = size / 4 * np.sqrt(random.random(pixels)), random.random(pixels) * 2 * np.pi
        centre = (size - 1) / 2
        self.x, self.y = (np.rint(centre + radius * f(turn)).astype(int) for f in (np.cos, np.sin))
        # some programs have the axis between pixels, others in the middle of one
        moves = np.array([(0, 0), (-0.5, -0.5), (-0.5, 0.5), (0.5, -0.5), (0.5, 0.5)])[:, :, None]
        x, y = (self.x - centre + moves[:, 0]).ravel(), (self.y - centre + moves[:, 1]).ravel()
        frequencies = 2j * np.pi / length * np.arange(size + 1)
        want = np.zeros(len(x))
        for p, spectrum in enumerate(spectra):
            angle = p * np.pi / size
            position = centre + x * np.cos(angle) - y * np.sin(angle)
            want += (np.exp(position[:, None] * frequencies) @ spectrum).real
        self.wanted = want.reshape(len(moves), pixels) * np.pi / size

    def error(self, image):
        """Of a slice in any orientation and scale."""
        errors = []
        for turned in range(4):
            for mirrored in (False, True):
                view = np.rot90(image, turned)
                got = (view.T if mirrored else view)[self.y, self.x].astype(float)
                for want in self.wanted:
                    factor = got @ want / (got @ got)
                    errors.append(np.linalg.norm(factor * got - want) / np.linalg.norm(want))
        return float(min(errors))


def tomoxide():
    """The program that reconstructs with tomoxide."""
    folder = ROOT / "target/peers-tomoxide"
    (folder / "src").mkdir(parents=True, exist_ok=True)
    for path, text in [(folder / "Cargo.toml", TOMOXIDE_MANIFEST), (folder / "src/main.rs", TOMOXIDE)]:
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    subprocess.run(["cargo", "build", "--release", "--quiet", "--target-dir", folder / "target"], cwd=folder, check=True)
    return folder / "target/release/peer"


def measure(args, size, directory):
    slices = 16 if size >= 2048 else 64
    source, algotom = directory / "sinograms.tif", directory / "algotom_dfi.py"
    data = noise(size, slices)
    tifffile.imwrite(source, data)
    exact = Exact(data[0])
    del data
    fbp = [args.fbp, "reconstruct", "--device", "cpu", "--sinograms", source, "--padding", "zero", "--no-minus-log",
           "--overwrite", "--quiet", "--output"]
    commands = {
        "fbp exact, 1e-3": lambda out: [*fbp, out, "--interpolation", "exact", "--accuracy", "1e-3"],
        "fbp exact, 1e-5": lambda out: [*fbp, out, "--interpolation", "exact", "--accuracy", "1e-5"],
        "fbp linear": lambda out: [*fbp, out, "--interpolation", "linear"],
        "algotom DFI": lambda out: [sys.executable, algotom, source, out],
        "silx": lambda out: [sys.executable, "-c", SILX, source, out],
        "tomoxide gridrec": lambda out: [args.tomoxide, "gridrec", source, out],
        "tomoxide fourierrec": lambda out: [args.tomoxide, "fourierrec", source, out],
    }
    commands = {name: command for name, command in commands.items() if name.split()[0] in args.programs}
    algotom.write_text(ALGOTOM)  # processes of a pool read it again
    seconds, errors = {name: [] for name in commands}, {}
    for number in range(args.rounds + 1):  # the first fills caches
        for name, command in commands.items():
            if number > 1 and seconds[name][-1] > 120:
                continue  # whoever takes minutes is measured once
            out = directory / f"{name.replace(' ', '-').replace(',', '')}.tif"
            start = time.perf_counter()
            done = subprocess.run(list(map(str, command(out))), capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"{name}: {done.stderr.strip()[-2000:]}")
            taken = time.perf_counter() - start
            if number > 0 or taken > 120:
                seconds[name].append(taken)
            if number == 0:
                errors[name] = exact.error(tifffile.imread(out, key=0))
    return {"size": size, "slices": slices,
            "programs": {name: {"seconds": seconds[name], "error": errors[name]} for name in commands}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fbp", type=Path, default=ROOT / "target/release/fbp", metavar="PATH")
    parser.add_argument("--sizes", type=int, nargs="+", default=[512, 1024, 2048], metavar="N")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    programs = ["fbp", "algotom", "silx", "tomoxide"]
    parser.add_argument("--programs", nargs="+", default=programs, choices=programs, help="only these")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results as JSON, too")
    args = arguments(parser, PEERS)
    if "tomoxide" in args.programs:
        args.tomoxide = tomoxide()
    results = []
    for size in args.sizes:
        with tempfile.TemporaryDirectory(prefix="fbp-exact.") as directory:
            results.append(measure(args, size, Path(directory)))
        print(f"\n{size} x {size} pixels, {results[-1]['slices']} slices; {os.cpu_count()} cores\n\n"
              "| program | seconds best | worst | ms a slice | error against the exact slice |\n"
              "|---|---:|---:|---:|---:|", flush=True)
        for name, row in results[-1]["programs"].items():
            best, worst = min(row["seconds"]), max(row["seconds"])
            print(f"| {name} | {best:.2f} | {worst:.2f} | {1e3 * best / results[-1]['slices']:.0f} | {row['error']:.1e} |",
                  flush=True)
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
