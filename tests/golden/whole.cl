/* standard-linear-float-x1-buffer */
#define ABSOLUTE 0
#define CONSTANTS __constant
#define GUARD 2
#define HALF_STORAGE 0
#define LINEAR 1
#define PACKED 1
#define SLICES 1
#define SYNCHRONIZED 0
#define UNROLL 1
#define WORK_X 16
#define WORK_Y 16
#define Z_ORDER 0

/* ---- common.cl ---- */
/* common.cl: types and positions that every back-projection kernel shares.
 *
 * Defines (the generator sets all of them; the defaults let this file compile alone)
 *   SLICES        slices reconstructed at once: 1, 2, 4, 8 or 16 (paper, 5.2); more only where a family has no values_t
 *   LINEAR        1 linear interpolation, 0 nearest
 *   HALF_STORAGE  1 the sinogram is stored as half, 0 as float; arithmetic is always float (5.3)
 *   WORK_X/Y      work-group
 *   CONSTANTS     address space of the per-projection constants
 *   PACKED        1 the constants of a projection are one float4, 0 four arrays
 *   UNROLL        unroll hint of the projection loop; 1 leaves it to the compiler
 *   ABSOLUTE      1 positions are counted from bin 0, by the constants alone (Algorithm 1); 0 from the first pixel of a
 *                 block; only families that have both look at it
 *   ACCUMULATE    1 sums are added to what the slices hold of other projections; only defined then
 *
 * Layouts
 *   compound sinogram  [projection][bin][slice]   one element holds a bin of all SLICES slices
 *   slices             [slice][y][x]              float
 */
#ifndef SLICES
#define SLICES 1
#endif
#ifndef LINEAR
#define LINEAR 1
#endif
#ifndef HALF_STORAGE
#define HALF_STORAGE 0
#endif
#ifndef WORK_X
#define WORK_X 16
#endif
#ifndef WORK_Y
#define WORK_Y 16
#endif
#ifndef CONSTANTS
#define CONSTANTS __constant
#endif
#ifndef PACKED
#define PACKED 1
#endif
#ifndef UNROLL
#define UNROLL 1
#endif
#ifndef ACCUMULATE
#define ACCUMULATE 0
#endif
#ifndef ABSOLUTE
#define ABSOLUTE 0
#endif

/* A plain inline function has no body where a compiler chooses to call it. */
#define HELPER inline __attribute__((always_inline))

#define KERNEL __kernel __attribute__((reqd_work_group_size(WORK_X, WORK_Y, 1)))

#define PRAGMA_(text) _Pragma(#text)
#define PRAGMA(text) PRAGMA_(text)
/* in front of short loops over an item's pixels, so that their sums stay in registers */
#define UNROLL_ALL PRAGMA(unroll)
#if UNROLL > 1
#define UNROLL_LOOP PRAGMA(unroll UNROLL)
#else
#define UNROLL_LOOP
#endif

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

/* EACH_SLICE(M) expands M(number, member) for every slice of a values_t. */
#if SLICES == 1
typedef float values_t;
#define LOAD_HALVES vload_half
#define EACH_SLICE(M) M(0, )
#elif SLICES <= 16
typedef JOIN(float, SLICES) values_t;
#define LOAD_HALVES JOIN(vload_half, SLICES)
#define EACH_SLICE_2(M) M(0, .s0) M(1, .s1)
#define EACH_SLICE_4(M) EACH_SLICE_2(M) M(2, .s2) M(3, .s3)
#define EACH_SLICE_8(M) EACH_SLICE_4(M) M(4, .s4) M(5, .s5) M(6, .s6) M(7, .s7)
#define EACH_SLICE_16(M) EACH_SLICE_8(M) M(8, .s8) M(9, .s9) M(10, .sa) M(11, .sb) \
    M(12, .sc) M(13, .sd) M(14, .se) M(15, .sf)
#define EACH_SLICE(M) JOIN(EACH_SLICE_, SLICES)(M)
#endif

/* A power of two that brings values up to `peak` (bits of a float >= 0) to at most 2^14, inside the range of half.
 * 1 when nothing was measured (float storage) or all values are 0. Only the exponent counts, so it is exact. */
HELPER float half_range_factor(uint peak)
{
    const int exponent = (int)(peak >> 23) - 127;
    return peak == 0 ? 1.0f : as_float((uint)(clamp(13 - exponent, -100, 100) + 127) << 23);
}

/* Constants of a projection: cosine and sine of its angle, axis c + d_p in bins, and `lowest`, how far below a block's
 * first pixel the block's lowest position is (<= 0 bins), less what a family keeps free below it. PACKED 1: one float4 each
 * (paper, 5.7); 0: four arrays. */
#if PACKED
typedef float4 constant_t;
#define ROTATION(constants, p, count) ((constants)[p].xy)
#define AXIS(constants, p, count) ((constants)[p].z)
#define LOWEST(constants, p, count) ((constants)[p].w)
#else
typedef float constant_t;
#define ROTATION(constants, p, count) ((float2)((constants)[p], (constants)[(count) + (p)]))
#define AXIS(constants, p, count) ((constants)[2 * (count) + (p)])
#define LOWEST(constants, p, count) ((constants)[3 * (count) + (p)])
#endif

/* Where a ray meets the detector: whole bins, and the distance from there in bins (not always in [0, 1)). */
typedef struct {
    float whole;
    float rest;
} position_t;

/* Equation 1 of the paper for pixel `f` of a block, whose first pixel is at column.x + row.x whole bins plus
 * column.y + row.y. Only the pixels inside the block are multiplied, so the error does not grow with the detector. */
HELPER position_t position_in_block(float2 column, float2 row, float2 rotation, float2 f)
{
    position_t h;
    h.whole = column.x + row.x;
    h.rest = mad(f.x, rotation.x, mad(-f.y, rotation.y, column.y + row.y));
    return h;
}

/* Equation 1 of the paper for pixel `f`, counted from the pixel on the axis: all in one float, whose last bit grows with
 * the detector (Algorithm 1). */
HELPER float position_from_bin_0(float axis, float2 rotation, float2 f)
{
    return mad(f.x, rotation.x, mad(-f.y, rotation.y, axis));
}

/* Position `at` of a pixel moved by columns and rows that the compiler knows. A product with 0 takes an operation (it may
 * be NaN, which a compiler must keep), so there is none. */
HELPER float moved(float at, float2 rotation, int x, int y)
{
    if (x != 0)
        at = mad((float)x, rotation.x, at);
    if (y != 0)
        at = mad((float)-y, rotation.y, at);
    return at;
}

/* A position from bin 0 as whole bins and rest; -0 may be added to anything without changing it, so compilers leave it
 * out. */
HELPER position_t absolute_position(float axis, float2 rotation, float2 f)
{
    position_t h;
    h.whole = -0.0f;
    h.rest = position_from_bin_0(axis, rotation, f);
    return h;
}

/* Where a ray meets the detector, for pixel `f` of a block whose first pixel is `from_axis` from the one on the axis, in a
 * kernel with KERNEL_ARGUMENTS. */
#if ABSOLUTE
#define POSITION(p, from_axis, f) \
    absolute_position(AXIS(constants, p, projections), ROTATION(constants, p, projections), (from_axis) + (f))
#else
#define POSITION(p, from_axis, f) position_in_block(columns[p], rows[p], ROTATION(constants, p, projections), f)
#endif

/* Item 0..15 of a 4 x 4 square along the Z-order curve (paper, Algorithm 2). */
HELPER int2 z_order(int item)
{
    return (int2)((item & 1) + 2 * ((item >> 2) & 1), ((item >> 1) & 1) + 2 * ((item >> 3) & 1));
}

/* The output of a kernel run: where the slices are and which part of them is wanted. */
typedef struct {
    __global float *slices;        /* first slice of this run */
    __global const uint *peaks;    /* [slice] see half_range_factor */
    int4 roi;                      /* x, y, width, height of the region in the full slice */
    int valid;                     /* slices that exist; the others of SLICES are not stored */
    float unit;                    /* pi / P */
} output_t;

/* Stores a value of a slice. */
#if ACCUMULATE
#define STORE(place, value) place += value
#else
#define STORE(place, value) place = value
#endif

#if SLICES <= 16
/* Stores the sums of pixel (x, y) of the full slice, if it is in the region. */
HELPER void store_pixel(output_t out, values_t sum, int x, int y)
{
    x -= out.roi.x;
    y -= out.roi.y;
    if (x < 0 || x >= out.roi.z || y < 0 || y >= out.roi.w)
        return;
    const ulong at = (ulong)y * out.roi.z + x, plane = (ulong)out.roi.z * out.roi.w;
#define STORE_SLICE(s, member) \
    if (s < out.valid) \
        STORE(out.slices[s * plane + at], sum member * (out.unit / half_range_factor(out.peaks[s])));
    EACH_SLICE(STORE_SLICE)
#undef STORE_SLICE
}
#endif

/* Arguments that every back-projection kernel has, in this order:
 *   sinogram       compound sinogram, already weighted per projection
 *   columns, rows  [block][projection] detector position of the block's first pixel: whole bins, rest
 *   constants      [projection] see PACKED
 *   peaks, slices  see output_t
 *   counters       [multiprocessor] blocks started there; only kernels that balance two units use it
 *   projections, bins
 *   roi            see output_t
 *   origin         first pixel of block (0, 0) in the full slice
 *   first          where this run's slices start in `slices`
 *   valid, unit    see output_t
 *   centre         x0 = y0, the pixel that the axis goes through */
#define KERNEL_ARGUMENTS \
    SINOGRAM sinogram, __global const float2 *restrict columns, __global const float2 *restrict rows, \
    CONSTANTS constant_t *restrict constants, __global const uint *restrict peaks, __global float *restrict slices, \
    __global uint *restrict counters, int projections, int bins, int4 roi, int2 origin, ulong first, int valid, \
    float unit, float centre

#define OUTPUT {slices + first, peaks, roi, valid, unit}

/* ---- sample_buffer.cl ---- */
/* sample_buffer.cl: the sinogram in a plain buffer, for devices without the image format and for CPUs.
 *
 * Every row has GUARD zero bins before and after it, so a position is clamped once and never tested:
 * bins outside the detector count as 0, as they do with an image's border.
 */
#ifndef GUARD
#define GUARD 2
#endif

#if HALF_STORAGE
typedef half stored_t;
#define ELEMENT SLICES
#define LOAD(row, at) LOAD_HALVES(at, row)
#else
typedef values_t stored_t;
#define ELEMENT 1
#define LOAD(row, at) (row)[at]
#endif

#define SINOGRAM __global const stored_t *restrict

/* Row of projection `p`, from its first guard bin on. */
HELPER __global const stored_t *sinogram_row(__global const stored_t *sinogram, int bins, int p)
{
    return sinogram + (ulong)p * (bins + 2 * GUARD) * ELEMENT;
}

/* The value of projection `p` in the bin with the whole number `bin`. */
HELPER values_t fetch_bin(__global const stored_t *sinogram, int bins, int p, float bin)
{
    return LOAD(sinogram_row(sinogram, bins, p), clamp((int)bin, -GUARD, bins) + GUARD);
}

/* The value of projection `p` at `rest` after bin `whole`, between two bins. */
HELPER values_t fetch_between(__global const stored_t *sinogram, int bins, int p, float whole, float rest)
{
    __global const stored_t *row = sinogram_row(sinogram, bins, p);
    const float below = floor(rest);
    const int i = clamp((int)(whole + below), -GUARD, bins) + GUARD;
    const values_t a = LOAD(row, i), b = LOAD(row, i + 1);
    return mad((values_t)(rest - below), b - a, a);
}

/* See sample_image.cl. */
#define FROM_EDGE (LINEAR ? -0.0f : 0.5f)

HELPER values_t fetch_at(__global const stored_t *sinogram, int bins, float row, float at)
{
#if LINEAR
    return fetch_between(sinogram, bins, (int)row, -0.0f, at);
#else
    return fetch_bin(sinogram, bins, (int)row, floor(at));
#endif
}

/* ---- sample.cl ---- */
/* sample.cl: a value of the sinogram by the chosen interpolation. */

/* The value of projection `p` at position `h`. */
#if LINEAR
#define sample(sinogram, bins, p, h) fetch_between(sinogram, bins, p, (h).whole, (h).rest)
#else
#define sample(sinogram, bins, p, h) fetch_bin(sinogram, bins, p, (h).whole + floor((h).rest + 0.5f))
#endif

/* ---- backproject_standard.cl ---- */
/* backproject_standard.cl: the standard kernel (paper, 5.1, Algorithm 1).
 *
 * One work-item is one pixel, a work-group a block of WORK_X x WORK_Y pixels; it walks over all projections and adds
 * the filtered value where the pixel's ray meets the detector.
 *
 *   Z_ORDER  1 the items of a 16 x 16 work-group fill 4 x 4 squares along a Z-order curve, so that neighbouring items
 *            read neighbouring bins (paper, 5.5, Algorithm 2); 0 items and pixels have the same coordinates
 *   SYNCHRONIZED  1 items of a work-group wait for each other at every projection, so that a processor, which runs one
 *            item after the other, finds the bins of all of them in its cache (paper, 6.10)
 */
#ifndef Z_ORDER
#define Z_ORDER 0
#endif
#ifndef SYNCHRONIZED
#define SYNCHRONIZED 0
#endif

KERNEL
void backproject(KERNEL_ARGUMENTS)
{
    const output_t out = OUTPUT;
#if Z_ORDER
    const int square = get_local_id(1);
    const int2 pixel = z_order(get_local_id(0)) + 4 * (int2)(square % 4, square / 4);
#else
    const int2 pixel = (int2)(get_local_id(0), get_local_id(1));
#endif
    const float2 f = convert_float2(pixel);
    const int2 block = origin + (int2)(get_group_id(0) * WORK_X, get_group_id(1) * WORK_Y);
#if ABSOLUTE
    const float2 from_axis = convert_float2(block) - centre;
#else
    columns += (ulong)get_group_id(0) * projections;
    rows += (ulong)get_group_id(1) * projections;
#endif

    values_t sum = (values_t)(0.0f);
    UNROLL_LOOP
    for (int p = 0; p < projections; p++) {
        const position_t h = POSITION(p, from_axis, f);
        sum += sample(sinogram, bins, p, h);
#if SYNCHRONIZED
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
    }
    store_pixel(out, sum, block.x + pixel.x, block.y + pixel.y);
}
