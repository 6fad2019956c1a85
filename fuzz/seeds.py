#!/usr/bin/env python3
"""Writes the seeds of fuzz/corpus: small valid inputs that lead a fuzzer into every branch.

    python3 fuzz/seeds.py
"""

import gzip
import json
import struct
import zlib
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
# 8 x 8 grey pixels of the value 100
JPEG = bytes.fromhex(
    "ffd8ffdb004300020101010101020101010202020202040302020202050404030406050606060506060607090806070907060608"
    "0b08090a0a0a0a0a06080b0c0b0a0c090a0a0affc0000b080008000801011100ffc4001400010000000000000000000000000000"
    "0007ffc40014100100000000000000000000000000000000ffda0008010100003f000f7fffd9"
)
# sample format, bytes
U8, U16, I32, F16, F32, F64 = (1, 1), (1, 2), (2, 4), (3, 2), (3, 4), (3, 8)


def lzw(data):
    """Codes of 9 bits that never grow: the table is cleared before it has 512 entries."""
    codes = []
    for start in range(0, len(data), 200):
        codes += [256, *data[start : start + 200]]
    bits = "".join(f"{code:09b}" for code in [*codes, 257])
    bits += "0" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


def packbits(data):
    chunks = [data[at : at + 128] for at in range(0, len(data), 128)]
    return b"".join(bytes([len(chunk) - 1]) + chunk for chunk in chunks)


SQUEEZE = {1: bytes, 5: lzw, 7: lambda _: JPEG, 8: zlib.compress, 32773: packbits, 32946: zlib.compress}


def tiff(
    order="<", big=False, sample=F32, compression=1, predictor=1, tile=None, rows=4, pages=1, size=(8, 8), text=b""
):
    """Pages of a ramp, data before directories; what is not a strip of `rows` rows is a tile."""
    width, height = size
    kind, step = sample
    word = "Q" if big else "I"
    out = bytearray((b"II" if order == "<" else b"MM") + struct.pack(order + "H", 43 if big else 42))
    out += struct.pack(order + ("HHQ" if big else "I"), *((8, 0, 0) if big else (0,)))
    link = len(out) - struct.calcsize(word)
    for page in range(pages):
        down, across = (tile or rows), (tile or width)
        blocks = -(-height // down) * -(-width // across)
        places = []
        for block in range(blocks):
            lines = down if tile else min(down, height - block * down)
            values = bytes((page + block + i // step) % 251 for i in range(lines * across * step))
            data = SQUEEZE[compression](values)
            places.append((len(out), len(data)))
            out += data
        entries = [
            (256, 3, [width]), (257, 3, [height]), (258, 3, [8 * step]), (259, 3, [compression]), (262, 3, [1]),
            (277, 3, [1]), (317, 3, [predictor]), (339, 3, [kind]),
        ]
        offsets, counts = [place[0] for place in places], [place[1] for place in places]
        if tile:
            entries += [(322, 3, [tile]), (323, 3, [tile]), (324, 4, offsets), (325, 4, counts)]
        else:
            entries += [(273, 4, offsets), (278, 3, [rows]), (279, 4, counts)]
        if text:
            entries.append((270, 2, list(text + b"\0")))
        tables = []
        for tag, number, values in sorted(entries):
            data = struct.pack(order + str(len(values)) + {2: "B", 3: "H", 4: "I"}[number], *values)
            room = struct.calcsize(word)
            if len(data) > room:
                at = len(out)
                out += data
                data = struct.pack(order + word, at)
            tables.append(struct.pack(order + "HH" + word, tag, number, len(values)) + data.ljust(room, b"\0"))
        struct.pack_into(order + word, out, link, len(out))
        out += struct.pack(order + ("Q" if big else "H"), len(tables)) + b"".join(tables)
        link = len(out)
        out += struct.pack(order + word, 0)
    return bytes(out)


def imagej():
    text = b"ImageJ=1.11a\nimages=3\n"
    data = tiff(sample=U8, rows=8, text=text)
    # the data come first here; what follows the header are the other images
    return data + bytes(128)


def profile(algorithm, slices, kernel, head=""):
    auto = "".join(
        f"""
[[auto]]
interpolation = "{interpolation}"
mode = "{mode}"
algorithm = "{algorithm}"
slices = {slices}
"""
        for interpolation in ("linear", "nearest")
        for mode in ("precise", "fast")
    )
    return f"""schema = 2
name = "seed"
title = "a seed"
source = "chosen"
{head}{auto}
[[kernel]]
interpolation = ["linear", "nearest"]
mode = ["precise", "fast"]
slices = [{slices}]
[kernel.{algorithm}]
{kernel}
""".encode()




def edf(kind, order, size, frames=1, extra=""):
    text = f"{{\nHeaderID = EH:000001:000000:000000 ;\nByteOrder = {order} ;\nDataType = {kind} ;\n{extra}Dim_1 = 4 ;\nDim_2 = 3 ;\n"
    header = text.encode().ljust(510) + b"}\n"
    return b"".join(header + bytes(range(12 * size)) for _ in range(frames))


def compound(streams, gaps=False):
    """A compound file (OLE2, version 3) of streams by their paths; with gaps, sectors of long streams are in reverse."""
    storages = {path.rpartition("/")[0] for path in streams}
    entries = [("Root Entry", "", 5)] + [(name, "", 1) for name in sorted(storages)]
    entries += [(path.rpartition("/")[2], path.rpartition("/")[0], 2) for path in streams]
    def order(number):
        name = entries[number][0].upper()
        return len(name), name
    # the children of a storage are a tree without left branches
    child, right = {}, {}
    for parent, (name, _, kind) in enumerate(entries):
        of = [n for n, (_, above, k) in enumerate(entries) if n and (k == 1 if kind == 5 else k == 2 and above == name)]
        if kind != 2 and of:
            of.sort(key=order)
            child[parent] = of[0]
            right.update(zip(of, of[1:]))
    FREE, END, FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
    fat, sectors, mini, minifat, starts = [FAT], [b""], b"", [], {}
    def chain(data):
        count = -(-len(data) // 512)
        if not count:
            return END
        numbers = list(range(len(sectors), len(sectors) + count))
        places = numbers[::-1] if gaps else numbers
        sectors.extend([b""] * count)
        fat.extend([END] * count)
        for at, number in enumerate(places):
            sectors[number] = data[512 * at : 512 * (at + 1)].ljust(512, b"\0")
            fat[number] = places[at + 1] if at + 1 < count else END
        return places[0]
    for path, data in streams.items():
        if len(data) >= 4096:
            starts[path] = chain(data)
            continue
        count = -(-len(data) // 64)
        starts[path] = len(minifat) if count else END
        minifat += [len(minifat) + at + 1 for at in range(count - 1)] + [END] * (count > 0)
        mini += data.ljust(64 * count, b"\0")
    first_minifat = chain(struct.pack(f"<{len(minifat)}I", *minifat).ljust(-(-len(minifat) // 128) * 512, b"\xff"))
    root = chain(mini)
    directory = b""
    for number, (name, above, kind) in enumerate(entries):
        path = f"{above}/{name}"
        start, size = (root, len(mini)) if kind == 5 else (starts[path], len(streams[path])) if kind == 2 else (0, 0)
        text = name.encode("utf-16-le") + b"\0\0"
        directory += text.ljust(64, b"\0") + struct.pack(
            "<HBBIII16sIQQIQ", len(text), kind, 1, FREE, right.get(number, FREE), child.get(number, FREE), b"", 0, 0, 0,
            start, size)
    empty = bytes(64) + struct.pack("<HBBIII16sIQQIQ", 0, 0, 0, FREE, FREE, FREE, b"", 0, 0, 0, 0, 0)
    directory += empty * (-len(entries) % 4)
    first_directory = chain(directory)
    assert len(fat) <= 128, "one sector of the table is written"
    sectors[0] = struct.pack(f"<{len(fat)}I", *fat).ljust(512, b"\xff")
    header = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(16)
    header += struct.pack("<HHHHH6xIIIIIIIII", 0x3E, 3, 0xFFFE, 9, 6, 0, 1, first_directory, 0, 4096, first_minifat,
                          -(-len(minifat) // 128), END, 0)
    return header + struct.pack("<I", 0).ljust(436, b"\xff") + b"".join(sectors)


def xrm(kind, size, shape, count, gaps=False, **more):
    """Images as Xradia's microscopes write them, and other streams."""
    width, height = shape
    streams = {f"ImageInfo/{name}": struct.pack("<i", value) for name, value in (
        ("ImageWidth", width), ("ImageHeight", height), ("DataType", kind), ("ImagesTaken", count),
        ("NoOfImages", count + 1), ("XrayGeometry", 0))}
    for number in range(count):
        data = bytes((number + at) % 251 for at in range(width * height * size))
        streams[f"ImageData{number // 100 + 1}/Image{number + 1}"] = data
    streams["ImageInfo/Angles"] = struct.pack(f"<{count + 1}f", *(90.0 * at for at in range(count + 1)))
    streams["ImageInfo/PixelSize"] = struct.pack("<f", 0.065)
    streams["ImageInfo/StoRADistance"] = struct.pack("<f", -300.0)
    return compound({**streams, **more}, gaps)


def zarr(version, kind, data, compressor=None, codecs=(), shape=(2, 3, 4), chunk=(2, 3, 4)):
    """Metadata, and after a NUL the bytes of the first chunk."""
    if version == 2:
        meta = {"zarr_format": 2, "shape": shape, "chunks": chunk, "dtype": kind, "compressor": compressor,
                "fill_value": 0, "order": "C", "filters": None}
    else:
        grid = {"name": "regular", "configuration": {"chunk_shape": chunk}}
        meta = {"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": kind, "chunk_grid": grid,
                "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "fill_value": 0,
                "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, *codecs], "attributes": {}}
    return json.dumps(meta).encode() + b"\0" + data


def crc32c(data):
    """The data before their CRC-32C."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return data + struct.pack("<I", crc ^ 0xFFFFFFFF)


def shard(location, checksum):
    """One shard of three chunks and one that was never written, with its index."""
    names = ["bytes", "crc32c"] if checksum else ["bytes"]
    codecs = [{"name": name, "configuration": {"endian": "little"} if name == "bytes" else {}} for name in names]
    size = 64 + 4 * checksum
    start = size if location == "start" else 0
    index = b"".join(struct.pack("<QQ", start + 8 * n, 8) for n in range(3)) + b"\xff" * 16
    index = crc32c(index) if checksum else index
    data = index + bytes(range(24)) if location == "start" else bytes(range(24)) + index
    meta, _, _ = zarr(3, "uint8", b"", shape=(2, 3, 4), chunk=(2, 4, 4)).partition(b"\0")
    meta = json.loads(meta)
    meta["codecs"] = [{"name": "sharding_indexed", "configuration": {
        "chunk_shape": (1, 2, 4), "codecs": codecs[:1], "index_codecs": codecs, "index_location": location}}]
    return json.dumps(meta).encode() + b"\0" + data


def chunk(kind, size, filters, length, stored, skipped=0):
    """What the target `chunk` takes: a compressor, filters around it, the length of the values, and the stored bytes."""
    return struct.pack("<BBBBH", kind, size - 1, filters, skipped, length) + stored


def lookup3(data):
    """The checksum of HDF5's structures."""
    turn = lambda value, by: (value << by | value >> 32 - by) & 0xFFFFFFFF
    a = b = c = (0xDEADBEEF + len(data)) & 0xFFFFFFFF
    while True:
        words = struct.unpack("<3I", data[:12].ljust(12, b"\0"))
        a, b, c = ((old + new) & 0xFFFFFFFF for old, new in zip((a, b, c), words))
        if len(data) <= 12:
            break
        data = data[12:]
        for first, second, third in ((4, 6, 8), (16, 19, 4)):
            a, c = (a - c & 0xFFFFFFFF) ^ turn(c, first), c + b & 0xFFFFFFFF
            b, a = (b - a & 0xFFFFFFFF) ^ turn(a, second), a + c & 0xFFFFFFFF
            c, b = (c - b & 0xFFFFFFFF) ^ turn(b, third), b + a & 0xFFFFFFFF
    for by in (14, 11, 25, 16, 4, 14, 24):
        a, b, c = b, (c ^ b) - turn(b, by) & 0xFFFFFFFF, a
    return b


def index(kind, shape, parameters, blocks, limits=None, unlimited=None, chunk=(1, 1, 4), count=None):
    """What is known of a dataset of bytes, and a file whose index has these blocks, by their addresses."""
    file = bytearray(struct.pack("<8s4B", b"\x89HDF\r\n\x1a\n", 2, 8, 8, 0).ljust(1024, b"\0"))
    address = struct.pack("<Q", 192)
    if kind == "tree":
        body = bytes([3, 2, 4]) + address
    else:
        number = {"row": 2, "fixed": 3, "extensible": 4}[kind]
        body = bytes([4, 2, 0, 4, 1, *chunk, 1, number, *parameters]) + address
    header = b"OHDR" + bytes([2, 0, len(body) + 4]) + struct.pack("<BHB", 8, len(body), 0) + body
    for at, block, checked in [(48, header, False), *blocks]:
        file[at : at + len(block)] = block
        if checked:
            struct.pack_into("<I", file, at + len(block), lookup3(block))
    known = [1 | (0 if unlimited is None else unlimited + 1 << 1), *shape, *(limits or shape), *chunk]
    return bytes(known) + struct.pack("<HBB", shape[0] if count is None else count, 48, 4) + bytes(file)


def block(signature, kind, body):
    return signature + bytes([0, kind]) + struct.pack("<Q", 192) + body


def elements(chunks, filtered):
    one = lambda chunk: struct.pack("<QHI", chunk * 4, 4, 1) if filtered else struct.pack("<Q", chunk * 4)
    return b"".join(map(one, chunks))


def indexes():
    """The indexes of HDF5's chunks, with and without filters, blocks of addresses and pages."""
    nothing = 2**64 - 1
    nodes = b"".join(struct.pack("<II4QQ", 4, 0, frame, 0, 0, 0, 4 * frame) for frame in range(3))
    leaf = lambda first, count: b"TREE" + struct.pack("<BBHQQ", 1, 0, count, nothing, nothing) + nodes[48 * first :][: 48 * count]
    upper = struct.pack("<II4QQ", 0, 0, 0, 0, 0, 0, 512) + struct.pack("<II4QQ", 0, 0, 2, 0, 0, 0, 768)
    root = b"TREE" + struct.pack("<BBHQQ", 1, 1, 2, nothing, nothing) + upper
    yield "tree", index("tree", (3, 1, 4), (), [(192, root, False), (512, leaf(0, 2), False), (768, leaf(2, 1), False)])
    yield "row", index("row", (9, 1, 4), (), [])
    head = lambda kind, width, page, count: b"FAHD" + struct.pack("<4BQQ", 0, kind, width, page, count, 512)
    plain = block(b"FADB", 0, elements(range(5), False))
    yield "fixed", index("fixed", (5, 1, 4), (10,), [(192, head(0, 8, 10, 5), True), (512, plain, True)])
    # the second of three pages is not there
    pages = [(512, block(b"FADB", 1, b"\xa0"), True), (531, elements((0, 1), True), True), (595, elements((4,), True), True)]
    yield "fixed-pages", index("fixed", (5, 1, 4), (1,), [(192, head(1, 14, 1, 5), True), *pages], count=3)

    def extensible(kind, width, unlimited, shape, limits=None):
        """2 elements in the index block, then data blocks of 2, 4, 2 of 4, and 2 of 8 in 2 pages each."""
        filtered = kind == 1
        head = b"EAHD" + struct.pack("<8B", 0, kind, width, 5, 2, 2, 2, 2) + bytes(48) + struct.pack("<Q", 512)
        own = elements(range(2), filtered) + struct.pack("<5Q", 600, 640, 720, 880, nothing)
        data = lambda first, count: block(b"EADB", kind, b"\0" + elements(range(first, first + count), filtered))
        supers = [struct.pack("<B2Q", 0, 760, 820), struct.pack("<3B2Q", 0, 0x80, 0, 920, nothing)]
        supers = [block(b"EASB", kind, body) for body in supers]
        blocks = [(192, head, True), (512, block(b"EAIB", kind, own), True), (600, data(2, 2), True), (640, data(4, 4), True)]
        blocks += [(720, supers[0], True), (760, data(8, 4), True), (820, data(12, 4), True), (880, supers[1], True)]
        blocks += [(920, block(b"EADB", kind, b"\0"), True), (939, elements(range(16, 20), filtered), True)]
        return index("extensible", shape, (5, 2, 2, 2, 2), blocks, limits, unlimited, count=20)

    yield "extensible", extensible(0, 8, 0, (32, 1, 4))
    yield "extensible-rows", extensible(0, 8, 1, (1, 32, 4))


def lz4(data):
    """One run of bytes as they are; at least 15."""
    return bytes([0xF0, *[255] * ((len(data) - 15) // 255), (len(data) - 15) % 255]) + data


def blosc(data, codec, size, flags, packed):
    """A container of one block in one part."""
    block = struct.pack("<I", len(packed)) + packed
    head = struct.pack("<BBBBIII", 2, 1, codec << 5 | 16 | flags, size, len(data), len(data), 20 + len(block))
    return head + struct.pack("<I", 20) + block


RAMP = bytes(range(128))
ZSTD = bytes.fromhex("28b52ffd201845000010000001000ac002")
SEEDS = {
    "chunk": {
        "gzip": chunk(0, 1, 0, 128, gzip.compress(RAMP, mtime=0)),
        "zlib-shuffle-fletcher": chunk(1, 2, 1, 128, zlib.compress(RAMP)),
        "zstd": chunk(2, 1, 0, 24, ZSTD),
        "lz4": chunk(3, 1, 0, 128, struct.pack("<I", 128) + lz4(RAMP)),
        "lz4-blocks": chunk(4, 1, 0, 128, struct.pack(">QI", 128, 64) + b"".join(struct.pack(">I", 64) + part for part in (RAMP[:64], RAMP[64:]))),
        "bits": chunk(5, 2, 0, 128, RAMP),
        "bits-lz4": chunk(6, 2, 0, 128, struct.pack(">QII", 128, 128, len(lz4(RAMP))) + lz4(RAMP)),
        "bits-zstd": chunk(7, 1, 0, 24, struct.pack(">QII", 24, 64, len(ZSTD)) + ZSTD),
        "blosc-lz4": chunk(8, 2, 0, 128, blosc(RAMP, 1, 2, 1, lz4(RAMP))),
        "blosc-zlib": chunk(8, 2, 0, 128, blosc(RAMP, 3, 2, 4, zlib.compress(RAMP))),
        "blosc-zstd": chunk(8, 1, 0, 24, blosc(RAMP[:24], 4, 1, 0, ZSTD)),
        "blosclz": chunk(8, 1, 0, 16, blosc(bytes(16), 0, 1, 0, bytes([2, 1, 2, 3, 7 << 5, 4, 2]))),
        "skipped": chunk(1, 2, 1, 128, RAMP, skipped=3),
    },
    "edf": {
        "short": edf("UnsignedShort", "LowByteFirst", 2),
        "float-big": edf("FloatValue", "HighByteFirst", 4, frames=2),
        "size": edf("SignedByte", "LowByteFirst", 1, extra="Size = 12 ;\n"),
        "blanks": edf("Unsigned16", "LowByteFirst", 2, frames=2) + b" \r\n" + bytes(600),
    },
    "raw": {
        "short": b"3x2x2,u16le\0" + bytes(24),
        "offset": b"3x2x1,f32be,7\0" + bytes(31),
        "rest": b"2x2x2,i8\0" + bytes(9),
    },
    "zarr": {
        "v2": zarr(2, "<u2", bytes(48)),
        "v2-zlib": zarr(2, ">f4", zlib.compress(bytes(96)), {"id": "zlib", "level": 1}),
        "v2-gzip": zarr(2, "|u1", gzip.compress(bytes(24), mtime=0), {"id": "gzip"}, shape=(1, 1, 2, 3, 4), chunk=(1, 1, 2, 3, 4)),
        "v3": zarr(3, "float32", bytes(96)),
        "v3-gzip": zarr(3, "int16", gzip.compress(bytes(48), mtime=0), codecs=[{"name": "gzip", "configuration": {"level": 1}}]),
        "v3-zstd": zarr(3, "uint8", bytes.fromhex("28b52ffd201845000010000001000ac002"), codecs=[{"name": "zstd", "configuration": {"level": 1}}]),
        "v3-checksum": zarr(3, "uint8", crc32c(bytes(24)), codecs=[{"name": "crc32c"}]),
        "v3-shard": shard("end", True),
        "v3-shard-start": shard("start", False),
    },
    "tiff": {
        "plain.tif": tiff(),
        "big-endian.tif": tiff(order=">", sample=U16),
        "bigtiff.tif": tiff(big=True, sample=I32),
        "pages.tif": tiff(pages=3, sample=U8),
        "tiles.tif": tiff(tile=16, size=(20, 18), sample=U16),
        "half.tif": tiff(sample=F16),
        "double.tif": tiff(sample=F64, order=">"),
        "lzw.tif": tiff(compression=5, sample=U16),
        "deflate.tif": tiff(compression=8, predictor=3),
        "deflate-tiles.tif": tiff(compression=32946, predictor=2, tile=16, sample=U16, size=(20, 18)),
        "packbits.tif": tiff(compression=32773, sample=U8, rows=8),
        "jpeg.tif": tiff(compression=7, sample=U8, rows=8),
        "imagej.tif": imagej(),
    },
    "profile": {
        "standard.toml": profile(
            "standard",
            4,
            'work-group = [16, 16]\nz-order = true\ncommon = { sampler = "image", storage = "float" }',
            '[match]\nvendor = ["example"]\n[build]\nmad = true\nopencl-c = "2.0"\n[fft]\nrows = "transform"\n',
        ),
        "alu.toml": profile(
            "alu",
            2,
            'common = { sampler = "buffer", unroll = 2, occupancy = 50 }\nblock = 32\nitems = 128\n'
            'cached-projections = 8\nrow-items = 16',
            "[hardware]\nregisters-at-full-occupancy = 32\nmax-registers = 255\n",
        ),
        "vector.toml": profile("vector", 16, "tile = 16\ncolumns = 4\nprojections-at-once = 8"),
    },
    "run": {
        "numbers.toml": b"""sinograms = "s"
output = "out/r-%05i.tif"
angles = "a.txt"
center-shifts = "c.txt"
center = 7.25
rows = "1..=5:2"
roi = [1, 2, 3, 4]
exclude = "3,5..7"
size = 24
pixel-size = "0.65um"
mask = 0.9
dtype = "u8"
percentile = [1, 99]
slices-per-pass = 4
memory = "8G"
device-memory = "1.5GiB"
shard = "1/3"
""",
        "words.toml": b"""projections = "p/*.tif"
flats = "f"
darks = "d"
flats2 = "g"
field-mode = "median"
no-minus-log = true
start-angle = -3.5
overall-angle = 360
angle-weights = "uniform"
filter = "butterworth"
filter-cutoff = 0.7
padding = "mirror"
device = "0:1"
profile = "cpu"
algorithm = "vector"
interpolation = "nearest"
mode = "fast"
range = "-1,4"
dtype = "u16"
progress = "json"
report = "r.json"
output = "out"
overwrite = true
""",
    },
    "xrm": {
        "small": xrm(5, 2, (4, 3), 2),
        "long": xrm(10, 4, (64, 40), 2),
        "pieces": xrm(5, 2, (64, 40), 3, gaps=True, **{
            "ReferenceData/Image": bytes(64 * 40 * 4), "ReferenceData/DataType": struct.pack("<i", 10),
            "Alignment/X-Shifts": struct.pack("<4f", 1.5, 0.0, -2.0, 0.0),
            "Alignment/Y-Shifts": struct.pack("<4f", 0.0, 0.25, 0.0, 0.0)}),
    },
    "index": dict(indexes()),
    "angles": {
        "angles.txt": b"# degrees\n0\n 22.5 # half\n45\n\n67.5\n9e1\n-1.125e2\n180\n180.0000001\n",
        "same.txt": b"0\n0\n180\n360\n",
    },
    "output": {
        "directory": b"out/slices",
        "pattern": b"out/r-%05i.tif",
        "digits": b"../%dx.tiff",
        "single": b"/tmp/out.tif",
    },
}

for target, seeds in SEEDS.items():
    for name, data in seeds.items():
        path = CORPUS / target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
