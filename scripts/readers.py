#!/usr/bin/env python3
"""Checks fbp's formats with other people's readers and writers; scripts/readers runs it."""

import argparse
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import fabio.edfimage
import h5py
import hdf5plugin
import numpy as np
import tifffile
import zarr
from ome_zarr.io import parse_url
from ome_zarr.reader import Reader
from ome_zarr_models import open_ome_zarr
from numcodecs import LZ4, Blosc, GZip, Zlib, Zstd
from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec

from interop import PHANTOM, RUN, SIDE, SLICES, check

DTYPES = {"f32": np.float32, "f16": np.float16, "u16": np.uint16, "u8": np.uint8}


def scaled(dtype):
    """The values that become the smallest and largest integer; floats have none."""
    return ["--range=-1,2"] if dtype in ("u16", "u8") else []


def halved(volume):
    """Means of two by two by two; at the ends of what there is."""
    wide = volume.astype(np.float64)
    for axis in range(3):
        even = np.take(wide, range(0, wide.shape[axis], 2), axis)
        odd = np.take(wide, range(1, wide.shape[axis], 2), axis)
        lone = np.take(even, range(odd.shape[axis], even.shape[axis]), axis)
        paired = np.take(even, range(odd.shape[axis]), axis)
        wide = np.concatenate([(paired + odd) / 2, lone], axis)
    return wide


def check_tiff(fbp, dtype, expected):
    for compression, tag in (("none", 1), ("deflate", 8), ("lzw", 5), ("zstd", 50000)):
        for name in (f"{dtype}-{compression}", f"{dtype}-{compression}.tif"):
            fbp(*RUN, "--dtype", dtype, *scaled(dtype), "--compression", compression, "-o", name)
            found = tifffile.imread(sorted(Path().glob(f"{name}/*.tif")) if not name.endswith("tif") else name)
            check(found.dtype == DTYPES[dtype] and np.array_equal(found, expected), name)
        with tifffile.TiffFile(f"{dtype}-{compression}.tif") as file:
            tags = file.pages[0].tags
            sides = [np.divide(*tags[name].value) for name in ("XResolution", "YResolution")]
            check(np.allclose(sides, 1e4 / 0.65) and tags["ResolutionUnit"].value == 3, f"{name}: resolution")
            # a page that would not become smaller stays as it is
            tags = {page.compression.value for page in file.pages}
            check(tags == {tag} or (compression == "lzw" and tags <= {1, 5}), f"{dtype} {compression}: {tags}")


def check_big_tiff(fbp, reference):
    """Files of several pages are BigTIFF from 4 GiB; a hook for tests makes this smaller."""
    for compression in ("none", "deflate"):
        name = f"big-{compression}.tif"
        fbp(*RUN, "--compression", compression, "-o", name, faults="classic=0")
        with tifffile.TiffFile(name) as file:
            check(file.is_bigtiff and len(file.pages) == SLICES and np.array_equal(file.asarray(), reference), name)
        check(json.loads(fbp("compare", name, "plain", "--json"))["max_abs"] == 0, name)


def check_hdf5(fbp, dtype, expected, parts, compression):
    name = f"{dtype}-{parts}-{compression}.h5"
    fbp(*RUN, "--dtype", dtype, *scaled(dtype), "--hdf5-parts", str(parts), "--compression", compression, "-o", name)
    place = Path(f"moved-{dtype}-{parts}-{compression}")
    place.mkdir()
    check(len(list(Path().glob(f"{name}.parts/*/*.h5"))) == (parts if parts > 1 else 0), f"{name}: parts")
    for path in Path().glob(f"{name}*"):
        path.rename(place / path)
    with h5py.File(place / name) as file:
        # as silx view and nexusformat find what to show
        group = file
        while "default" in group.attrs:
            group = group[group.attrs["default"]]
        data = group[group.attrs["signal"]]
        check(data.name == "/entry/reconstruction/results/data", data.name)
        check(data.dtype == DTYPES[dtype] and np.array_equal(data[()], expected), name)
        check(data.is_virtual == (parts > 1), f"{name}: virtual")
        if parts == 1:
            check_filters(data, compression, name)
        check(data.attrs["units"] == "1/um", "units")
        if dtype in ("u8", "u16"):
            values = data[()] * data.attrs["scaling_factor"] + data.attrs["offset"]
            step = 3 / np.iinfo(DTYPES[dtype]).max
            check(np.abs(values - np.clip(check.reference, -1, 2)).max() <= 0.51 * step, f"{name}: scale")
        check(list(group["slice"][()]) == list(range(SLICES)), "numbers of slices")
        check_metadata(file, group)
        run = file["/entry/reconstruction/configuration/run"][()].decode()
    Path("again.toml").write_text(run)
    fbp("reconstruct", "--config", "again.toml", "--quiet", "--overwrite", "-o", "again.tif")
    check(np.array_equal(tifffile.imread("again.tif"), expected), f"{name}: the run in it")


def check_metadata(file, group):
    """Where silx, nabu and tomoscan look for the pixel size and the angles, and NXtomoproc for the slices."""
    places = (np.arange(SIDE) - (SIDE - 1) / 2) * 0.65
    check(list(group.attrs["axes"]) == ["z", "y", "x"], "axes")
    for axis, expected in (("z", np.arange(SLICES) * 0.65), ("y", places), ("x", places)):
        check(np.allclose(group[axis][()], expected) and group[axis].attrs["units"] == "um", f"axis {axis}")
    check(file["/entry/data"].name == "/entry/data" and file["/entry/data"] == group, "link to the slices")
    angles = file["/entry/sample/rotation_angle"]
    check(np.allclose(angles[()], np.arange(24) * 7.5) and angles.attrs["units"] == "degree", "angles")
    options = file["/entry/reconstruction/configuration/processing_options/reconstruction"]
    check(np.allclose(options["voxel_size_cm"][()], [0.65e-4] * 3), "voxel size")
    check(np.allclose(options["angles"][()], np.deg2rad(np.arange(24) * 7.5)), "angles in radians")
    check(file["/entry/reconstruction/parameters/rotation_axis"][()] == (SIDE - 1) / 2, "axis")
    check("instrument" not in file["/entry"], "nobody said an energy")


def check_filters(data, compression, name):
    """What the library says of the chunks of a dataset; h5py has no plugins here."""
    if compression == "none":
        return check(data.chunks is None, f"{name}: chunks")
    check((data.chunks, data.compression, data.shuffle) == ((1, SIDE, SIDE), "gzip", True), f"{name}: filters")
    chunks = [data.id.get_chunk_info(number) for number in range(data.id.get_num_chunks())]
    check([chunk.chunk_offset for chunk in chunks] == [(slice, 0, 0) for slice in range(SLICES)], f"{name}: index")
    check(data.id.get_storage_size() == sum(chunk.size for chunk in chunks) < 0.9 * data.nbytes, f"{name}: sizes")
    tools = [["h5dump", "-d", f"{data.name}[0,0,0;1,1,1;5,1,1]"], ["h5stat"], ["h5ls", "-rv"]]
    for tool in tools:
        if shutil.which(tool[0]):
            done = subprocess.run([*tool, data.file.filename], capture_output=True, text=True)
            check(done.returncode == 0, f"{name}: {tool[0]}: {done.stderr}")


def check_npy(fbp, dtype, expected):
    name = f"{dtype}.npy"
    fbp(*RUN, "--dtype", dtype, *scaled(dtype), "-o", name)
    for mode in (None, "r"):
        found = np.load(name, mmap_mode=mode)
        check(found.dtype == DTYPES[dtype] and np.array_equal(found, expected), f"{name} {mode}")


def check_zarr(fbp, dtype, expected):
    for version in ("0.4", "0.5"):
        for compression in ("none", "deflate", "zstd"):
            name = f"{dtype}-{version}-{compression}.zarr"
            fbp(*RUN, "--dtype", dtype, *scaled(dtype), "--ome-zarr", version, "--compression", compression, "-o", name)
            group = zarr.open_group(name, mode="r")
            check(group.metadata.zarr_format == (2 if version == "0.4" else 3), name)
            check(group["0"].dtype == DTYPES[dtype] and np.array_equal(group["0"][:], expected), name)
            below = expected
            for level in ("1", "2"):
                found, mean = group[level][:], halved(below)
                near = 0.5 if dtype[0] == "u" else {"f32": 1e-6, "f16": 1e-3}[dtype] * np.abs(mean).max()
                check(found.shape == mean.shape and np.abs(found - mean).max() <= near, f"{name}: level {level}")
                below = found
            scan = group.attrs["fbp"]["scan"]
            check(scan["pixel"] == "0.65um" and scan["axis"] == [(SIDE - 1) / 2] * 2, f"{name}: metadata")
            check(np.allclose(scan["angles"], np.arange(24) * 7.5), f"{name}: angles")
            model = open_ome_zarr(group)
            image = (model.attributes if version == "0.4" else model.attributes.ome).multiscales[0]
            check([axis.unit for axis in image.axes] == ["micrometer"] * 3, f"{name}: units")
            scales = [level.coordinateTransformations[0].scale for level in image.datasets]
            check(np.allclose(scales, [[0.65 * f] * 3 for f in (1, 2, 4)]), f"{name}: {scales}")
            node = next(iter(Reader(parse_url(name))()))
            check([a.shape for a in node.data] == [group[p].shape for p in "012"], f"{name}: ome-zarr")
            check(np.array_equal(np.asarray(node.data[0]), expected), f"{name}: ome-zarr")


def check_input(fbp, reference):
    counts = np.round((reference - reference.min()) * 1000).astype(np.uint16)
    tifffile.imwrite("counts.tif", counts)

    def same(path, what, reference="counts.tif"):
        result = fbp("compare", path, reference, "--json")
        check(json.loads(result)["max_abs"] == 0, what)

    codecs = [(2, None), (2, Zlib(1)), (2, GZip(1)), (2, Zstd(1)), (2, LZ4()), (3, None), (3, GzipCodec()), (3, ZstdCodec())]
    for name in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
        codecs += [(2, Blosc(name, 5, shuffle)) for shuffle in (Blosc.NOSHUFFLE, Blosc.SHUFFLE, Blosc.BITSHUFFLE)]
        codecs += [(3, BloscCodec(cname=name, shuffle=shuffle)) for shuffle in ("noshuffle", "shuffle", "bitshuffle")]
    for number, (version, codec) in enumerate(codecs):
        name = f"input-{number}.zarr"
        array = zarr.create_array(name, shape=counts.shape, chunks=(2, 250, 256), dtype="u2", zarr_format=version,
                                  compressors=codec)
        array[:] = counts
        same(name, f"Zarr {version} with {codec}")
    for number, (location, codec) in enumerate([("end", None), ("start", None), ("end", ZstdCodec()), ("start", GzipCodec())]):
        name = f"shards-{number}.zarr"
        shards = {"shape": (4, 512, 512), "index_location": location}
        array = zarr.create_array(name, shape=counts.shape, chunks=(2, 256, 128), shards=shards, dtype="u2",
                                  compressors=codec)
        array[:] = counts
        check(len([path for path in Path(name).rglob("c/*/*/*") if path.is_file()]) == 8, f"{name}: shards")
        same(name, f"Zarr with shards, index at the {location}, {codec}")
    for kind in (">u2", "<f4", "f8"):
        with h5py.File(f"input-{kind[1:]}.h5", "w") as file:
            file.create_dataset("a/b", data=counts.astype(kind))
        same(f"input-{kind[1:]}.h5::/a/b", f"HDF5 {kind}")
    check_images(same, counts)
    check_chunks(same, counts)
    check_virtual(same, counts)
    Path("edf").mkdir()
    for number, frame in enumerate(counts):
        fabio.edfimage.EdfImage(data=frame).write(f"edf/p_{number}.edf")
    same("edf", "EDF")
    counts.astype(">u2").tofile("input.raw")
    same(f"input.raw,{SIDE}x{SIDE}x{SLICES},u16be", "raw")
    for number, kind in enumerate((">u2", "<i4", "<f4", ">f8")):
        np.save(f"input-{number}.npy", counts.astype(kind))
        same(f"input-{number}.npy", f"NumPy {kind}")


def check_images(same, counts):
    """OME-Zarr images and Zarr arrays by other libraries: what they write is read, or refused with what to do."""
    np.save("counts.npy", counts)
    writer = Path(__file__).resolve().with_name("zarr_images.py")
    writers = [(library, sys.executable) for library in ("ome-zarr", "zarr-3", "ngff-zarr", "tensorstore")]
    writers += [(library, check.zarr_2) for library in ("ome-zarr", "zarr-2")]
    for library, python in writers:
        place = Path(f"by-{library}-{python == check.zarr_2}")
        place.mkdir()
        done = subprocess.run([python, writer, library, "../counts.npy"], cwd=place, capture_output=True, text=True)
        check(done.returncode == 0, f"{writer.name} {library}: {done.stderr}")
        for path, what, words in json.loads(done.stdout):
            path, what = place / path, f"{library}: {what}"
            values = path.with_suffix(".npy")
            if values.exists():
                tifffile.imwrite("values.tif", np.load(values))
            if words:
                refused = subprocess.run([check.program, "compare", path, "counts.tif"], capture_output=True, text=True)
                told = all(word in refused.stderr for word in [*words, str(path)])
                check(refused.returncode == 3 and told, f"{what}: {refused.returncode}, {refused.stderr}")
            else:
                same(path, what, "values.tif" if values.exists() else "counts.tif")


def filters():
    """What h5py and hdf5plugin write chunks with."""
    yield "none", {}
    yield "gzip", {"compression": "gzip", "compression_opts": 1}
    yield "gzip, shuffle, fletcher32", {"compression": "gzip", "shuffle": True, "fletcher32": True}
    yield "lz4", hdf5plugin.LZ4()
    yield "lz4 in blocks", hdf5plugin.LZ4(nbytes=1000)
    yield "zstd, shuffle", {"shuffle": True, **hdf5plugin.Zstd(clevel=3)}
    for name in ("none", "lz4", "zstd"):
        yield f"bitshuffle, {name}", hdf5plugin.Bitshuffle(cname=name)
    yield "bitshuffle in small blocks", hdf5plugin.Bitshuffle(nelems=64)
    for name in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
        for shuffle in (0, 1, 2):
            yield f"blosc, {name}, {shuffle}", hdf5plugin.Blosc(cname=name, clevel=5, shuffle=shuffle)


def check_chunks(same, counts):
    """Chunks of HDF5 that fbp decodes itself: no plugin is where the library would look for it."""
    shapes = [(1, SIDE, SIDE), (SLICES, SIDE, SIDE), (2, 17, 130)]
    for library, kinds in (("earliest", ("u1", "<u2", ">u2", "<f4")), ("v110", ("<u2",))):
        for kind in kinds:
            data = (counts // 256 if kind == "u1" else counts).astype(kind)
            tifffile.imwrite("chunks.tif", data)
            for number, (name, options) in enumerate(filters()):
                chunks = shapes[number % len(shapes)]
                with h5py.File("chunks.h5", "w", libver=(library, "v110")) as file:
                    file.create_dataset("d", data=data, chunks=chunks, **options)
                same("chunks.h5::/d", f"HDF5 {library}, {kind}, {chunks}, {name}", "chunks.tif")


def check_virtual(same, counts):
    """Files of frames that a virtual dataset joins, in turn and frame by frame, without plugins as above."""
    for step in (1, 3):
        layout = h5py.VirtualLayout(counts.shape, counts.dtype)
        places = [slice(start, None, step) for start in range(step)] if step > 1 else [slice(0, 1), slice(1, None)]
        for (number, place), library in zip(enumerate(places), ("earliest", "v110", "earliest")):
            data = counts[place]
            with h5py.File(f"part-{number}.h5", "w", libver=(library, "v110")) as file:
                shape = (None, *counts.shape[1:])
                options = hdf5plugin.Bitshuffle(cname="lz4")
                part = file.create_dataset("d", data=data, maxshape=shape, chunks=(1, SIDE, SIDE), **options)
                layout[place] = h5py.VirtualSource(part)
        with h5py.File("virtual.h5", "w", libver=("earliest", "v110")) as file:
            file.create_virtual_dataset("d", layout)
        same("virtual.h5::/d", f"HDF5, virtual, {step}")
    # libraries before 1.12 do not know selections of this version
    with h5py.File("latest.h5", "w", libver="latest") as file:
        file.create_virtual_dataset("d", layout)
    done = subprocess.run([check.program, "compare", "latest.h5::/d", "counts.tif"], capture_output=True, text=True)
    check(done.returncode == 0 or "a newer HDF5 library" in done.stderr, f"HDF5, latest: {done.stderr}")


def main():
    # it says what version it finds
    logging.disable(logging.WARNING)
    parser = argparse.ArgumentParser()
    parser.add_argument("--fbp", required=True)
    parser.add_argument("--zarr-2", required=True, help="Python with zarr-python before version 3")
    given = parser.parse_args()
    program, zarr_2 = Path(given.fbp).resolve(), os.path.abspath(given.zarr_2)
    with tempfile.TemporaryDirectory() as work:
        def fbp(*args, faults=""):
            env = {**os.environ, "FBP_TEST_FAULT": faults}
            done = subprocess.run([program, *args], cwd=work, capture_output=True, text=True, env=env)
            if done.returncode:
                raise SystemExit(f"FAILED: fbp {' '.join(args)}\n{done.stderr}")
            return done.stdout

        os.chdir(work)
        check.program, check.zarr_2 = program, zarr_2
        fbp(*PHANTOM)
        fbp(*RUN, "-o", "plain")
        reference = check.reference = tifffile.imread(sorted(Path("plain").glob("*.tif")))
        check_big_tiff(fbp, reference)
        for dtype in DTYPES:
            fbp(*RUN, "--dtype", dtype, *scaled(dtype), "-o", f"plain-{dtype}")
            expected = tifffile.imread(sorted(Path(f"plain-{dtype}").glob("*.tif")))
            check_tiff(fbp, dtype, expected)
            for parts in (1, 3):
                for compression in ("none", "deflate"):
                    check_hdf5(fbp, dtype, expected, parts, compression)
            check_npy(fbp, dtype, expected)
            check_zarr(fbp, dtype, expected)
        check_input(fbp, reference)
    print(f"{check.passed} passed, 0 failed")


if __name__ == "__main__":
    main()
