/* standard-linear-float-x1-buffer */
#define CONSTANTS __constant
#define GUARD 2
#define HALF_STORAGE 0
#define LINEAR 1
#define SLICES 1
#define UNROLL 1
#define WORK_X 16
#define WORK_Y 16

/* ---- common.cl ---- */
/* common.cl: types and positions that every back-projection kernel shares.
 *
 * Defines (the generator sets all of them; the defaults let this file compile alone)
 *   SLICES        slices reconstructed at once: 1, 2, 4, 8 or 16 (paper, 5.2)
 *   LINEAR        1 linear interpolation, 0 nearest
 *   HALF_STORAGE  1 the sinogram is stored as half, 0 as float; arithmetic is always float (5.3)
 *   WORK_X/Y      work-group
 *   CONSTANTS     address space of the per-projection constants
 *   UNROLL        unroll hint of the projection loop; 1 leaves it to the compiler
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
#ifndef UNROLL
#define UNROLL 1
#endif

#define KERNEL __kernel __attribute__((reqd_work_group_size(WORK_X, WORK_Y, 1)))

#define PRAGMA_(text) _Pragma(#text)
#define PRAGMA(text) PRAGMA_(text)
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
#else
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
inline float half_range_factor(uint peak)
{
    const int exponent = (int)(peak >> 23) - 127;
    return peak == 0 ? 1.0f : as_float((uint)(clamp(13 - exponent, -100, 100) + 127) << 23);
}

/* Where a ray meets the detector: whole bins, and the distance from there in bins (not always in [0, 1)). */
typedef struct {
    float whole;
    float rest;
} position_t;

/* Equation 1 of the paper for pixel `f` of a block, whose first pixel is at column.x + row.x whole bins plus
 * column.y + row.y. Only the pixels inside the block are multiplied, so the error does not grow with the detector. */
inline position_t position_in_block(float2 column, float2 row, float2 turn, float2 f)
{
    position_t h;
    h.whole = column.x + row.x;
    h.rest = mad(f.x, turn.x, mad(-f.y, turn.y, column.y + row.y));
    return h;
}

/* Stores pixel `at` of every slice that the output has. `unit` is pi / P; the factor undoes what the half range needed. */
inline void store_slices(__global float *out, values_t sum, ulong at, ulong plane, int valid, float unit,
                         __global const uint *peaks)
{
#define STORE_SLICE(s, member) \
    if (s < valid) \
        out[s * plane + at] = sum member * (unit / half_range_factor(peaks[s]));
    EACH_SLICE(STORE_SLICE)
#undef STORE_SLICE
}

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
#define LOAD(at, row) LOAD_HALVES(at, row)
#elif SLICES == 1
typedef float stored_t;
#define LOAD(at, row) (row)[at]
#else
typedef values_t stored_t;
#define LOAD(at, row) (row)[at]
#endif

#define SINOGRAM __global const stored_t *restrict

/* The value of projection `p` at position `h`; `bins` is the detector's width. */
inline values_t sample(__global const stored_t *restrict sinogram, int bins, int p, position_t h)
{
#if HALF_STORAGE
    __global const half *row = sinogram + (ulong)p * (bins + 2 * GUARD) * SLICES;
#else
    __global const stored_t *row = sinogram + (ulong)p * (bins + 2 * GUARD);
#endif
#if LINEAR
    const float below = floor(h.rest);
    const int i = clamp((int)(h.whole + below), -GUARD, bins) + GUARD;
    const float w = h.rest - below;
    const values_t a = LOAD(i, row);
    const values_t b = LOAD(i + 1, row);
    return mad((values_t)(w), b - a, a);
#else
    const int i = clamp((int)(h.whole + floor(h.rest + 0.5f)), -GUARD, bins) + GUARD;
    return LOAD(i, row);
#endif
}

/* ---- backproject_standard.cl ---- */
/* backproject_standard.cl: the standard kernel (paper, 5.1, Algorithm 1).
 *
 * One work-item is one pixel, a work-group a block of WORK_X x WORK_Y pixels; it walks over all projections and adds
 * the filtered value where the pixel's ray meets the detector.
 *
 *   sinogram       compound sinogram, already weighted per projection
 *   columns, rows  [block][projection] detector position of the block's first pixel: whole bins, rest
 *   turns          [projection] cosine and sine of the angle
 *   peaks          [slice] see half_range_factor
 *   roi            x, y, width, height of the region in the full slice
 *   origin         first pixel of block (0, 0) in the full slice
 *   first          where the output starts in `slices`
 *   valid          slices that exist; the others of SLICES are not stored
 */
KERNEL
void backproject(SINOGRAM sinogram, __global const float2 *restrict columns, __global const float2 *restrict rows,
                 CONSTANTS float2 *restrict turns, __global const uint *restrict peaks, __global float *restrict slices,
                 int projections, int bins, int4 roi, int2 origin, ulong first, int valid, float unit)
{
    const float2 f = (float2)(get_local_id(0), get_local_id(1));
    columns += (ulong)get_group_id(0) * projections;
    rows += (ulong)get_group_id(1) * projections;

    values_t sum = (values_t)(0.0f);
    UNROLL_LOOP
    for (int p = 0; p < projections; p++)
        sum += sample(sinogram, bins, p, position_in_block(columns[p], rows[p], turns[p], f));

    const int x = origin.x + (int)get_global_id(0) - roi.x;
    const int y = origin.y + (int)get_global_id(1) - roi.y;
    if (x >= 0 && x < roi.z && y >= 0 && y < roi.w)
        store_slices(slices + first, sum, (ulong)y * roi.z + x, (ulong)roi.z * roi.w, valid, unit, peaks);
}
