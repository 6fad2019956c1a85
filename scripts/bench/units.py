#!/usr/bin/env python3
"""Measures which instructions run at the same time (section 3.7 of the paper), and texels by the order of fetches (Figure 3).

    scripts/bench/units.py [--device NAME] [--results DIR]

Each instruction is timed alone, then each pair in one loop, as many of both as of each alone. Two that share a unit take longer
together than the slower of them. The fetches are 16 from a square of 4 x 4 texels, a little off their centres, in linear order
and in Z-order. Writes JSON to docs/dev/paper/units/, from which scripts/paper makes its page. Needs Python and OpenCL's library
alone, which is called through ctypes: the machines with GPUs have no packages. On a processor the numbers say nothing, as its
compiler moves work out of the loops.
"""

import argparse
import ctypes
import datetime
import json
import re
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GROUP = 256
FLOAT, HALF = 0x10DE, 0x10DD
R, RG, RGBA = 0x10B0, 0x10B2, 0x10B5
TEXELS = (("32 bits (float)", R, FLOAT), ("64 bits (2 floats)", RG, FLOAT), ("64 bits (4 halves)", RGBA, HALF))
# steps on $, which is a float x, or an integer n
STEPS = {
    "multiply-add": "x = fma(x, a, a);",
    "integer addition": "n = (n ^ i) + b;",
    "shift": "n = (n << 1) ^ (n >> b);",
    "rounding": "x = floor(x * a);",
    "float to integer": "n = convert_int_rtz(as_float(n));",
    "integer to float": "n = as_int((float)n);",
    "sine": "x = native_sin(x);",
}


class OpenCl:
    """One device, its queue and what the measurements need of OpenCL 1.1."""

    def __init__(self, wanted):
        self.cl = ctypes.CDLL("libOpenCL.so.1")
        for name in ("clCreateContext", "clCreateCommandQueue", "clCreateBuffer", "clCreateImage2D", "clCreateProgramWithSource",
                     "clCreateKernel"):
            getattr(self.cl, name).restype = c_void_p
        self.device = self.find(wanted)
        self.name, self.driver = self.text(0x102B), self.text(0x102D)
        self.is_gpu = bool(self.number(0x1000, c_uint64) & 4)
        self.units = self.number(0x1002, c_uint)
        error = c_int()
        self.context = c_void_p(self.cl.clCreateContext(None, c_uint(1), byref(self.device), None, None, byref(error)))
        self.check(error.value, "clCreateContext")
        self.queue = c_void_p(self.cl.clCreateCommandQueue(self.context, self.device, c_uint64(2), byref(error)))
        self.check(error.value, "clCreateCommandQueue")

    def check(self, error, what):
        if error:
            raise SystemExit(f"units.py: {what} ended with {error}")

    def find(self, wanted):
        """The first device of this name, else the first GPU, else the first."""
        platforms, count = (c_void_p * 16)(), c_uint()
        self.check(self.cl.clGetPlatformIDs(c_uint(16), platforms, byref(count)), "clGetPlatformIDs")
        found = []
        for platform in platforms[: count.value]:
            devices, number = (c_void_p * 16)(), c_uint()
            if self.cl.clGetDeviceIDs(c_void_p(platform), c_uint64(0xFFFFFFFF), c_uint(16), devices, byref(number)) == 0:
                found += [c_void_p(device) for device in devices[: number.value]]
        for device in found:
            self.device = device
            gpu = bool(self.number(0x1000, c_uint64) & 4)
            if wanted and wanted.lower() in self.text(0x102B).lower() or not wanted and gpu:
                return device
        if wanted or not found:
            raise SystemExit(f"units.py: no device {wanted or ''}")
        return found[0]

    def number(self, what, kind):
        value = kind()
        self.check(self.cl.clGetDeviceInfo(self.device, c_uint(what), c_size_t(ctypes.sizeof(value)), byref(value), None), "info")
        return value.value

    def text(self, what):
        value = ctypes.create_string_buffer(512)
        self.check(self.cl.clGetDeviceInfo(self.device, c_uint(what), c_size_t(512), value, None), "clGetDeviceInfo")
        return value.value.decode().strip()

    def kernel(self, source):
        error, text = c_int(), c_char_p(source.encode())
        program = c_void_p(self.cl.clCreateProgramWithSource(self.context, c_uint(1), byref(text), None, byref(error)))
        if self.cl.clBuildProgram(program, c_uint(1), byref(self.device), c_char_p(b""), None, None):
            log = ctypes.create_string_buffer(10000)
            self.cl.clGetProgramBuildInfo(program, self.device, c_uint(0x1183), c_size_t(10000), log, None)
            raise SystemExit(f"units.py: {log.value.decode()}\n{source}")
        kernel = c_void_p(self.cl.clCreateKernel(program, c_char_p(b"f"), byref(error)))
        self.check(error.value, "clCreateKernel")
        return kernel

    def buffer(self, size):
        error = c_int()
        made = c_void_p(self.cl.clCreateBuffer(self.context, c_uint64(1), c_size_t(size), None, byref(error)))
        self.check(error.value, "clCreateBuffer")
        return made

    def image(self, channels, kind, side):
        """An image, or None where there is no such format."""
        error, form = c_int(), (c_uint * 2)(channels, kind)
        made = self.cl.clCreateImage2D(self.context, c_uint64(4), form, c_size_t(side), c_size_t(side), c_size_t(0), None, byref(error))
        return c_void_p(made) if error.value == 0 else None

    def seconds(self, kernel, items, *arguments):
        """The least of six runs."""
        for place, value in enumerate(arguments):
            self.check(self.cl.clSetKernelArg(kernel, c_uint(place), c_size_t(ctypes.sizeof(value)), byref(value)), "clSetKernelArg")
        best = None
        for _ in range(6):
            event, begin, end = c_void_p(), c_uint64(), c_uint64()
            self.check(self.cl.clEnqueueNDRangeKernel(self.queue, kernel, c_uint(1), None, byref(c_size_t(items)),
                                                      byref(c_size_t(GROUP)), c_uint(0), None, byref(event)), "clEnqueueNDRangeKernel")
            self.check(self.cl.clFinish(self.queue), "clFinish")
            for what, value in ((0x1282, begin), (0x1283, end)):
                self.cl.clGetEventProfilingInfo(event, c_uint(what), c_size_t(8), byref(value), None)
            taken = (end.value - begin.value) * 1e-9
            best = taken if best is None else min(best, taken)
        return best


def instructions(names, turns):
    """A kernel whose items do 16 x 8 of each named step a turn, on variables of their own."""
    numbered = [(name, place, number) for place, name in enumerate(names) for number in range(8)]
    variable = lambda place, number: f"v{place}_{number}"
    declared = []
    for name, place, number in numbered:
        kind = "float" if re.search(r"\bx\b", STEPS[name]) else "int"
        declared.append(f"{kind} {variable(place, number)} = get_local_id(0) + {number};")
    # eight of one, then eight of the other, so that neither waits for itself
    steps = [re.sub(r"\b[xn]\b", variable(place, number), STEPS[name]) for name, place, number in numbered]
    total = " + ".join(f"(float){variable(place, number)}" for _, place, number in numbered)
    return f"""__kernel void f(__global float *o, float a, int b) {{
        {' '.join(declared)}
        for (int i = 0; i < {turns}; i++) {{
            {' '.join(steps * 16)}
        }}
        if (b == 12345) o[get_global_id(0)] = {total};
    }}"""


def fetches(ordered, reading, turns):
    """A kernel whose items fetch from a square of 4 x 4 for each 16 of them."""
    place = "(int2)((l & 1) | (l >> 1 & 2), (l >> 1 & 1) | (l >> 2 & 2))" if ordered else "(int2)(l & 3, l >> 2)"
    return f"""__constant sampler_t S = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_{reading};
    __kernel void f(__global float *o, read_only image2d_t image, int b) {{
        const int l = get_local_id(0) & 15, group = get_local_id(0) >> 4;
        const float2 at = convert_float2({place}) + (float2)(4 * (group & 3) + 0.6f, 4 * (group >> 2) + 0.6f);
        float4 s = 0;
        for (int i = 0; i < {turns}; i++)
            for (int j = 0; j < 8; j++)
                s += read_imagef(image, S, at + (float2)((float)(4 * j), (float)(4 * (i * b & 7))));
        if (b == 12345) o[get_global_id(0)] = s.x + s.y + s.z + s.w;
    }}"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", metavar="NAME", help="part of a name; the first GPU unless said")
    parser.add_argument("--results", type=Path, metavar="DIR", default=ROOT / "docs/dev/paper/units", help="where JSON goes")
    parser.add_argument("--turns", type=int, metavar="N", default=256, help="length of loops")
    arguments = parser.parse_args()
    cl = OpenCl(arguments.device)
    if not cl.is_gpu:
        print(f"units.py: {cl.name} is not a GPU, so its numbers say nothing")
    items = cl.units * 8 * GROUP
    sink = cl.buffer(4 * items)
    taken = lambda *names: cl.seconds(cl.kernel(instructions(names, arguments.turns)), items, sink, ctypes.c_float(1.0001), c_int(3))
    alone = {name: taken(name) for name in STEPS}
    count = items * arguments.turns * 128
    pairs, names = [], list(STEPS)
    for place, first in enumerate(names):
        pairs.append({"first": first, "second": first, "rate": count / alone[first] * 1e-9, "slower": None})
        for second in names[place + 1:]:
            slower = taken(first, second) / max(alone[first], alone[second])
            print(f"{first:18} {second:18} {slower:5.2f} of the slower", flush=True)
            for one, other in ((first, second), (second, first)):
                pairs.append({"first": one, "second": other, "rate": count / alone[one] * 1e-9, "slower": slower})
    texels = []
    for name, channels, kind in TEXELS:
        image = cl.image(channels, kind, 256)
        if not image:
            continue
        for reading in ("LINEAR", "NEAREST"):
            rates = {key: items * arguments.turns * 8e-9 / cl.seconds(cl.kernel(fetches(ordered, reading, arguments.turns)), items,
                                                                     sink, image, c_int(1))
                     for key, ordered in (("linear", False), ("z-order", True))}
            texels.append({"texel": name, "filter": reading.lower(), **rates})
            print(f"{name} {reading.lower()}: {rates['linear']:.1f} GT/s in linear order, {rates['z-order']:.1f} in Z-order", flush=True)
    arguments.results.mkdir(parents=True, exist_ok=True)
    slug = re.sub(r"[^a-z0-9]+", "-", cl.name.lower()).strip("-")
    result = {"device": cl.name, "driver": cl.driver, "date": datetime.date.today().isoformat(), "pairs": pairs, "fetches": texels}
    (arguments.results / f"{slug}.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
