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
