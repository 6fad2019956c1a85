#!/usr/bin/env python3
"""Measures the rates of a device's units, each alone: what a profile's [throughput] says (docs/dev/model.md).

    pip install pyopencl numpy; python3 scripts/bench/rates.py

Prints operations of one work-item, bytes or texels, per compute unit and clock at the highest clock, and in 10^9 a
second over the device. The first device of the first platform is taken; it must be a GPU, because compilers for
processors move the work out of the loops. Rates in PTX are left out where it is not
understood, and formats where an image of them cannot be created.
"""

import numpy as np
import pyopencl as cl

TURNS = 512
GROUP = 256

device = cl.get_platforms()[0].get_devices()[0]
context = cl.Context([device])
queue = cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)
if not device.type & cl.device_type.GPU:
    raise SystemExit(f"rates.py: {device.name} is not a GPU")
items = device.max_compute_units * 8 * GROUP
sink = cl.Buffer(context, cl.mem_flags.READ_WRITE, 1 << 26)


def measure(name, source, work, *arguments):
    """Runs `f`, whose every item does `work`, and prints the best of six."""
    try:
        kernel = cl.Program(context, source).build().f
        seconds = []
        for _ in range(6):
            event = kernel(queue, (items,), (GROUP,), *arguments)
            event.wait()
            seconds.append((event.profile.end - event.profile.start) * 1e-9)
    except cl.Error as error:
        print(f"{name:32} left out: {str(error).splitlines()[0]}")
        return
    rate = items * work / min(seconds)
    clocks = device.max_compute_units * device.max_clock_frequency * 1e6
    print(f"{name:32} {rate / clocks:9.2f} a unit and clock {rate * 1e-9:12.1f} G/s", flush=True)


def arithmetic(name, declaration, step, operations=8):
    """`step` is done on eight independent variables, $."""
    every = lambda text: " ".join(text.replace("$", f"x{i}") for i in range(8))
    total = "+".join(f"(float)x{i}" for i in range(8))
    source = f"""__kernel void f(__global float *o, float a, int b) {{
        {every(declaration + ' $ = get_local_id(0);')}
        for (int i = 0; i < {TURNS}; i++) {{
            _Pragma("unroll") for (int j = 0; j < 16; j++) {{ {every(step)} }}
        }}
        if (b == 12345) o[get_global_id(0)] = {total};
    }}"""
    measure(name, source, TURNS * 16 * operations, sink, np.float32(1.1), np.int32(3))


def loads(name, kind, bytes_, parameter, before, index, argument=sink):
    """Sixteen loads a turn from `values`."""
    parts = {4: "v", 8: "v.x + v.y", 16: "v.x + v.y + v.z + v.w"}[bytes_]
    source = f"""__kernel void f(__global float *o, {parameter}, int b) {{
        int l = get_local_id(0); float s = 0;
        {before}
        for (int i = 0; i < {TURNS}; i++) {{
            _Pragma("unroll") for (int j = 0; j < 16; j++) {{ {kind} v = values[{index}]; s += {parts}; }}
        }}
        if (b == 12345) o[get_global_id(0)] = s;
    }}"""
    measure(name, source, TURNS * 16 * bytes_, sink, argument, np.int32(1))


def texels(channels, kind, reading):
    try:
        form = cl.ImageFormat(getattr(cl.channel_order, channels), getattr(cl.channel_type, kind))
        image = cl.create_image(context, cl.mem_flags.READ_WRITE, form, shape=(256, 256))
    except cl.Error:
        return
    source = f"""__constant sampler_t S = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_{reading};
    __kernel void f(__global float *o, read_only image2d_t image, int b) {{
        int l = get_local_id(0); float4 s = 0; float2 p = (float2)((l & 7) * 0.9f + 3.25f, (l >> 3 & 3) + 0.5f);
        for (int i = 0; i < {TURNS}; i++) {{
            _Pragma("unroll") for (int j = 0; j < 8; j++)
                s += read_imagef(image, S, p + (float2)(j * 0.5f, (float)(i * b & 31)));
        }}
        if (b == 12345) o[get_global_id(0)] = s.x + s.y + s.z + s.w;
    }}"""
    measure(f"texels {channels} {kind} {reading}".lower(), source, TURNS * 8, sink, image, np.int32(1))


def matrix():
    source = f"""__kernel void f(__global float *o, float a, int b) {{
        int l = get_local_id(0); uint x = l * b, y = l; float d[8][4];
        for (int i = 0; i < 8; i++) for (int j = 0; j < 4; j++) d[i][j] = 0;
        for (int i = 0; i < {4 * TURNS}; i++) {{
            _Pragma("unroll") for (int j = 0; j < 8; j++)
                asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                    "{{%0,%1,%2,%3}}, {{%4,%4,%5,%5}}, {{%4,%5}}, {{%0,%1,%2,%3}};"
                    : "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3]) : "r"(x), "r"(y));
        }}
        float s = 0; for (int i = 0; i < 8; i++) for (int j = 0; j < 4; j++) s += d[i][j];
        if (b == 12345) o[get_global_id(0)] = s;
    }}"""
    # a warp of 32 does 16 x 8 x 16 multiply-adds with each
    measure("matrix multiply-adds", source, 4 * TURNS * 8 * 16 * 8 * 16 / 32, sink, np.float32(0), np.int32(3))


print(f"{device.name}: {device.max_compute_units} compute units, {device.max_clock_frequency} MHz")
arithmetic("fused multiply-add", "float", "$ = fma($, a, a);")
arithmetic("integer addition and xor", "int", "$ = ($ + b) ^ i;", 16)
arithmetic("rotation", "uint", "$ = rotate($, (uint)b);")
ptx = lambda code, out: f'{{ {out} z; asm volatile("{code}" : "={"f" if out == "float" else "r"}"(z) : '
arithmetic("floor", "int", ptx("cvt.rmi.f32.f32 %0, %1;", "float") + '"f"(as_float($))); $ = as_int(z); }')
arithmetic("float to integer", "int", ptx("cvt.rzi.s32.f32 %0, %1;", "int") + '"f"(as_float($))); $ = z; }')
arithmetic("integer to float", "int", ptx("cvt.rn.f32.s32 %0, %1;", "float") + '"r"($)); $ = as_int(z); }')
arithmetic("two floats to halves", "int", ptx("cvt.rn.f16x2.f32 %0, %1, %1;", "int") + '"f"(as_float($))); $ = z; }')
for kind, size in (("float", 4), ("float2", 8), ("float4", 16)):
    fill = f"__local {kind} values[1024]; for (int i = l; i < 1024; i += {GROUP}) values[i] = ({kind})(i); barrier(1);"
    loads(f"local memory, bytes, {kind}", kind, size, "__global float *unused", fill, "(l & 31) + j * 32 + (i & 7) * 32")
for kind, size in (("float", 4), ("float2", 8), ("float4", 16)):
    loads(f"first cache, bytes, {kind}", kind, size, f"__global const {kind} *restrict values", "",
          "(l & 31) + (i * b & 7) * 32 + j * 32")
constants = cl.Buffer(context, cl.mem_flags.READ_ONLY, 1 << 15)
for kind, size in (("float", 4), ("float4", 16)):
    loads(f"constant memory, bytes, {kind}", kind, size, f"__constant {kind} *values", "", "(i * b & 31) * 16 + j", constants)
for reading in ("LINEAR", "NEAREST"):
    for channels in ("R", "RG", "RGBA"):
        for kind in ("HALF_FLOAT", "FLOAT"):
            texels(channels, kind, reading)
matrix()
