/* encode_slices.cl: slices as the samples that are written.
 *
 * A work-group encodes a row of a slice: the unit of length, the mask, the sample type. The result is that of the host bit
 * for bit: whole numbers are scaled in double precision, and nothing is contracted. Floats stay where they are.
 *
 * Defines
 *   DTYPE  0 float, 1 half, 2 unsigned with 16 bits, 3 unsigned with 8 bits
 *   GROUP  work-group, a power of two
 *
 * Layouts
 *   slices   [slice][y][x] float
 *   samples  [slice][y][x]; may be in the memory of other rows than those that are encoded
 *   inside   [y] {first pixel that the mask leaves, first after these}
 *   clamped  [slice] values outside the range, or finite ones that became infinite
 */
#ifndef DTYPE
#define DTYPE 1
#endif
#ifndef GROUP
#define GROUP 64
#endif

#pragma OPENCL FP_CONTRACT OFF

#if DTYPE == 0

/* Global size: GROUP, rows, slices; work-group GROUP. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void encode_slices(__global float *restrict slices, __global const int2 *restrict inside, float factor, int width)
{
    const int item = get_local_id(0), y = get_global_id(1), slice = get_global_id(2), height = get_global_size(1);
    const ulong first = ((ulong)slice * height + y) * width;
    const int2 span = inside[y];
    for (int x = item; x < width; x += GROUP)
        slices[first + x] = x >= span.x && x < span.y ? slices[first + x] * factor : 0.0f;
}

#else

#if DTYPE == 1
typedef half sample_t;
typedef float scale_t;
#else
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double scale_t;
#if DTYPE == 2
typedef ushort sample_t;
#define TOP 65535.0
#define ROUNDED convert_ushort_rte
#else
typedef uchar sample_t;
#define TOP 255.0
#define ROUNDED convert_uchar_rte
#endif
#endif

/* Global size: GROUP, rows, slices, or GROUP, some rows, 1 from a row on; work-group GROUP. `low` maps to 0 and `high` to the largest number. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void encode_slices(__global const float *restrict slices, __global sample_t *restrict samples,
                   __global const int2 *restrict inside, __global uint *restrict clamped, float factor, int width,
                   float low, float high)
{
    __local uint all;
    const int item = get_local_id(0), y = get_global_id(1), slice = get_global_id(2), height = get_global_size(1);
    const ulong first = ((ulong)slice * height + y) * width;
    const int2 span = inside[y];
#if DTYPE != 1
    const scale_t scale = TOP / ((scale_t)high - (scale_t)low);
#endif
    if (item == 0)
        all = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint count = 0;
    for (int x = item; x < width; x += GROUP) {
        const float value = x >= span.x && x < span.y ? slices[first + x] * factor : 0.0f;
#if DTYPE == 1
        vstore_half_rte(value, first + x, samples);
        /* from here on the nearest half is infinite */
        count += isfinite(value) && fabs(value) >= 65520.0f;
#else
        const scale_t place = ((scale_t)value - (scale_t)low) * scale;
        samples[first + x] = ROUNDED(fmin(fmax(place, 0.0), TOP));
        count += !(value >= low && value <= high);
#endif
    }
    if (count > 0)
        atomic_add(&all, count);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0 && all > 0)
        atomic_add(clamped + slice, all);
}

#endif
