#!/usr/bin/env python3
"""Writes OME-Zarr images and Zarr arrays with other people's libraries; scripts/readers.py has fbp read them.

    zarr_images.py LIBRARY COUNTS.npy      writes into the working directory, and prints what it wrote as JSON:
                                           the directory, what it is, and words of the error if fbp must refuse it
"""

import json
import logging
import sys
import warnings
from pathlib import Path

import numpy as np

CHUNKS = (2, 250, 256)  # do not divide the shape
written = []


def wrote(path, what, *refused):
    written.append([str(path), what, refused])


def has_version_3():
    """Whether zarr-python is version 3, whose functions have other names."""
    import zarr

    return int(zarr.__version__.split(".")[0]) > 2


def of_dimensions(counts):
    """The counts with axes of one element before them, as the axes of an image."""
    yield counts, "zyx"
    yield counts[None], "tzyx"
    yield counts[None], "czyx"
    yield counts[None, None], "tczyx"


def levels_of(counts):
    return [counts, counts[..., ::2, ::2], counts[..., ::4, ::4]]


def ome_zarr(counts):
    """ome-zarr-py: every number of dimensions, levels by other names."""
    import zarr
    from numcodecs import GZip
    from ome_zarr.format import FormatV03, FormatV04
    from ome_zarr.writer import write_image, write_multiscale, write_multiscales_metadata

    if has_version_3():
        from ome_zarr.format import FormatV05

        formats = [FormatV04(), FormatV05()]
    else:
        formats = [FormatV03(), FormatV04()]

    def group(name, form):
        return zarr.open_group(name, mode="w", **({"zarr_format": form.zarr_format} if has_version_3() else {}))

    for form in formats:
        for data, axes in of_dimensions(counts):
            name = f"{form.version}-{axes}.zarr"
            chunks = (1,) * (len(axes) - 3) + CHUNKS
            write_image(data, group(name, form), axes=axes, fmt=form, storage_options={"chunks": chunks})
            wrote(name, f"{axes}, {form.version}")
        name = f"{form.version}-times.zarr"
        write_image(np.stack([counts, counts]), group(name, form), axes="tzyx", fmt=form)
        wrote(name, f"two times, {form.version}", "2x5x600x600", "write the frames")
    form = FormatV04()
    name = "gzip.zarr"
    write_multiscale(levels_of(counts), group(name, form), axes="zyx", fmt=form,
                     storage_options={"chunks": CHUNKS, "compressor": GZip(1)})
    wrote(name, "gzip")
    for paths in (["full", "half"], ["scale0/image", "scale1/image"], ["./7", "./8"]):
        name = f"named-{paths[0].strip('./').replace('/', '-')}.zarr"
        root = group(name, form)
        for path, data in zip(paths, levels_of(counts)):
            create = root.create_array if has_version_3() else root.create_dataset
            create(path.removeprefix("./"), data=data, chunks=CHUNKS)
        scale = lambda factor: [{"type": "scale", "scale": [1, factor, factor]}]
        datasets = [{"path": path, "coordinateTransformations": scale(1 + n)} for n, path in enumerate(paths)]
        write_multiscales_metadata(root, datasets, fmt=form, axes="zyx")
        wrote(name, f"levels {paths}")


def bioformats(counts):
    """The layout that bioformats2raw writes: an image in a group, five dimensions, big-endian."""
    import zarr

    root = zarr.open_group("bioformats2raw.zarr", mode="w", **({"zarr_format": 2} if has_version_3() else {}))
    root.attrs["bioformats2raw.layout"] = 3
    image = root.create_group("0")
    axes = [{"name": name, "type": kind} for name, kind in zip("tczyx", ("time", "channel", *["space"] * 3))]
    image.attrs["multiscales"] = [{"version": "0.4", "axes": axes, "datasets": [{"path": "0"}, {"path": "1"}]}]
    for level, data in enumerate(levels_of(counts[None, None])[:2]):
        options = {"dtype": ">u2", "chunks": (1, 1, 1, 256, 256)}
        if has_version_3():
            options["chunk_key_encoding"] = {"name": "v2", "separator": "/"}
            array = image.create_array(str(level), shape=data.shape, **options)
        else:
            array = image.create_dataset(str(level), shape=data.shape, dimension_separator="/", **options)
        array[:] = data
    wrote("bioformats2raw.zarr/0", "bioformats2raw")
    wrote("bioformats2raw.zarr", "bioformats2raw, the group", "name one of the images or arrays in it", "bioformats2raw.zarr/0")


def zarr_python(counts):
    """zarr-python before version 3: byte orders, separators, compressors, chunks larger than the shape, filters."""
    import zarr
    from numcodecs import BZ2, Blosc, Delta, GZip, Zlib, Zstd

    codecs = [None, Blosc("zstd", 3, Blosc.BITSHUFFLE), Blosc("lz4"), GZip(5), Zlib(1), Zstd(3)]
    for number, codec in enumerate(codecs):
        for kind, separator in (("<u2", "."), (">u2", "/"), (">f4", ".")):
            name = f"v2-{number}-{kind[1:]}-{separator == '/'}.zarr"
            shape = CHUNKS if number % 2 else (8, 1000, 77)
            array = zarr.open_array(name, mode="w", shape=counts.shape, chunks=shape, dtype=kind, compressor=codec,
                                    dimension_separator=separator)
            array[:] = counts
            wrote(name, f"{kind}, {separator}, {codec}, chunks of {shape}")
    array = zarr.open_array("nested.zarr", mode="w", shape=(1, 1, *counts.shape), chunks=(1, 1, *CHUNKS), dtype="u2")
    array[0, 0] = counts
    wrote("nested.zarr", "five dimensions, .")
    array = zarr.open_array("wide.zarr", mode="w", shape=(1, *counts.shape), chunks=(4, *CHUNKS), dtype="u2")
    array[0] = counts
    wrote("wide.zarr", "chunks of several times, of which there is one", "chunks", "write")
    for name, options, words in [
        ("bz2.zarr", {"compressor": BZ2(1)}, ("bz2", "gzip")),
        ("delta.zarr", {"filters": [Delta("u2")]}, ("filters", "without")),
        ("fortran.zarr", {"order": "F"}, ("order F", "expected C")),
        ("long.zarr", {"dtype": "i8"}, ()),
    ]:
        array = zarr.open_array(name, mode="w", shape=counts.shape, chunks=CHUNKS, **{"dtype": "u2", **options})
        array[:] = counts
        wrote(name, f"{options}", *words)


def zarr_python_3(counts):
    """zarr-python 3: what its own codecs and those of numcodecs are called, byte orders, shards, key encodings."""
    import zarr
    from zarr.codecs import BloscCodec, BytesCodec, GzipCodec, ZstdCodec

    def array(name, data=counts, **options):
        made = zarr.create_array(name, shape=data.shape, overwrite=True, **{"dtype": "u2", "chunks": CHUNKS, **options})
        made[:] = data

    for number, codec in enumerate([None, BloscCodec(cname="zstd"), GzipCodec(), ZstdCodec(checksum=True)]):
        for endian in ("little", "big"):
            for key in ({"name": "default", "separator": "."}, {"name": "v2", "separator": "/"}, {"name": "v2", "separator": "."}):
                name = f"v3-{number}-{endian}-{key['name']}-{key['separator'] == '/'}.zarr"
                array(name, compressors=codec, serializer=BytesCodec(endian=endian), chunk_key_encoding=key)
                wrote(name, f"version 3, {codec}, {endian}, {key}")
    for data, axes in of_dimensions(counts):
        ones = (1,) * (len(axes) - 3)
        for shards, chunks in (((2, 512, 512), (1, 256, 128)), ((8, 600, 600), (2, 200, 600))):
            name = f"sharded-{axes}-{chunks[0]}.zarr"
            array(name, data, shards=(*ones, *shards), chunks=(*ones, *chunks), serializer=BytesCodec(endian="big"))
            wrote(name, f"{axes} in shards of {shards}")
    empty = counts.copy()
    empty[1:, :200] = 0
    array("empty-parts.zarr", np.where(empty > 0, counts, 0), chunks=(1, 100, 600))
    np.save("empty-parts.npy", empty)
    wrote("empty-parts.zarr", "chunks that are not there as they have fill values only")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the names are not in the specification
        from zarr.codecs import numcodecs as others

        for codec in (others.Zlib(level=1), others.GZip(level=1), others.Zstd(level=1), others.LZ4(), others.Blosc(cname="lz4")):
            name = f"{codec.codec_name}.zarr"
            array(name, compressors=codec)
            wrote(name, codec.codec_name)
        array("lzma.zarr", compressors=others.LZMA(preset=1))
        wrote("lzma.zarr", "lzma", "lzma", "expected none, gzip")
        array("delta.zarr", filters=others.Delta(dtype="<u2"))
        wrote("delta.zarr", "delta", "delta", "expected bytes")
    from zarr.codecs import TransposeCodec

    array("transposed.zarr", filters=TransposeCodec(order=(2, 1, 0)))
    wrote("transposed.zarr", "transposed", "transpose", "without transposing")
    store = zarr.storage.ZipStore("zipped.zarr.zip", mode="w")
    array(store)
    store.close()
    wrote("zipped.zarr.zip", "a store in a ZIP file", "is a ZIP archive", "unzip")


def ngff_zarr(counts):
    """ngff-zarr: its names of levels, both versions, shards."""
    import ngff_zarr as ngff

    for version, options in (("0.4", {}), ("0.5", {}), ("0.5", {"chunks_per_shard": 2})):
        for data, axes in of_dimensions(counts):
            image = ngff.to_ngff_image(data, dims=list(axes))
            levels = ngff.to_multiscales(image, scale_factors=[2, 4], chunks=130, method=ngff.Methods.ITKWASM_BIN_SHRINK)
            name = f"ngff-{version}-{axes}-{len(options)}.zarr"
            ngff.to_ngff_zarr(name, levels, version=version, **options)
            wrote(name, f"{axes}, {version}, {options}")


def tensorstore(counts):
    """TensorStore: metadata and codecs by an implementation in C++."""
    import tensorstore

    def array(name, driver, metadata, data=counts):
        spec = {"driver": driver, "kvstore": {"driver": "file", "path": f"{name}/"}, "metadata": metadata}
        made = tensorstore.open(spec, create=True, delete_existing=True).result()
        made.write(data.astype(made.dtype.numpy_dtype)).result()
        wrote(name, f"{driver}, {metadata}")

    compressors = [None, {"id": "zlib", "level": 1}, {"id": "zstd", "level": 1},
                   {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 2, "blocksize": 0}]
    for number, compressor in enumerate(compressors):
        for kind, separator in ((">u2", "."), ("<u4", "/")):
            array(f"ts2-{number}-{kind[1:]}.zarr", "zarr", {
                "shape": counts.shape, "chunks": CHUNKS, "dtype": kind, "compressor": compressor,
                "dimension_separator": separator,
            })
    blosc = {"cname": "zstd", "clevel": 3, "shuffle": "bitshuffle", "typesize": 2, "blocksize": 0}
    chains = [[], ["crc32c"], [{"name": "gzip", "configuration": {"level": 1}}], ["zstd"],
              [{"name": "blosc", "configuration": blosc}, "crc32c"]]
    for number, chain in enumerate(chains):
        for endian in ("little", "big"):
            bytes_codec = {"name": "bytes", "configuration": {"endian": endian}}
            grid = lambda shape: {"name": "regular", "configuration": {"chunk_shape": shape}}
            meta = {"shape": counts.shape, "data_type": "uint16", "chunk_grid": grid(CHUNKS), "codecs": [bytes_codec, *chain]}
            array(f"ts3-{number}-{endian}.zarr", "zarr3", meta)
            for place in ("start", "end"):
                sharding = {"chunk_shape": [2, 150, 100], "codecs": [bytes_codec, *chain], "index_location": place,
                            "index_codecs": [bytes_codec, "crc32c"]}
                meta = {"shape": (1, *counts.shape), "data_type": "uint16", "chunk_grid": grid([1, 4, 300, 400])}
                sharding["chunk_shape"] = [1, *sharding["chunk_shape"]]
                meta["codecs"] = [{"name": "sharding_indexed", "configuration": sharding}]
                array(f"ts3-{number}-{endian}-{place}.zarr", "zarr3", meta, counts[None])


LIBRARIES = {
    "ome-zarr": [ome_zarr, bioformats], "zarr-2": [zarr_python], "zarr-3": [zarr_python_3], "ngff-zarr": [ngff_zarr],
    "tensorstore": [tensorstore],
}


def main():
    logging.disable(logging.WARNING)
    _, library, counts = sys.argv
    counts = np.load(counts)
    for write in LIBRARIES[library]:
        write(counts)
    check = [path for path, *_ in written if not Path(path).exists()]
    if check:
        raise SystemExit(f"not written: {check}")
    print(json.dumps(written))


if __name__ == "__main__":
    main()
