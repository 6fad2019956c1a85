/* histogram.cl: the values of slices, counted in bins, and the moments of their rows.
 *
 * First each row, a work-group each; then, as bins follow from the smallest and the largest value of a slice, the counts.
 * Values are those that are written: times the unit of length, within the mask. Results are those of the host bit for
 * bit: places are exact, sums are in double precision and in the host's order, and nothing is contracted.
 *
 * Defines
 *   LANES         work-group of `row_moments`, and sums of a row; a power of two
 *   GROUP         work-group of `count_values`
 *   BINS          of a slice
 *   LOCAL_COUNTS  1: a work-group counts in local memory first
 *
 * Layouts
 *   slices    [slice][y][x] float
 *   inside    [y] {first pixel that the mask leaves, first after these}
 *   extremes  [slice] {smallest, largest} finite value, as integers of the same order
 *   moments   [slice][y] {mean, sum of squares about it}, and in `finite` the number of finite values
 *   places    [slice] {scale, first}: a value times scale, rounded down, less first is the number of its bin
 *   counts    [slice][BINS]
 */
#ifndef LANES
#define LANES 64
#endif
#ifndef GROUP
#define GROUP 64
#endif
#ifndef BINS
#define BINS 4096
#endif
#ifndef LOCAL_COUNTS
#define LOCAL_COUNTS 1
#endif

#pragma OPENCL FP_CONTRACT OFF
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

/* The sum of all lanes: the upper half is added to the lower until one is left. All items call it. */
HELPER double total_of_lanes(__local double *lanes, double sum)
{
    const int item = get_local_id(0);
    lanes[item] = sum;
    for (int half_of = LANES / 2; half_of > 0; half_of /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < half_of)
            lanes[item] += lanes[item + half_of];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const double total = lanes[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return total;
}

/* Global size: LANES, rows, slices; work-group LANES. */
__kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
void row_moments(__global const float *restrict slices, __global const int2 *restrict inside,
                 __global uint *restrict extremes, __global double2 *restrict moments, __global uint *restrict finite,
                 float factor, int width)
{
    __local double lanes[LANES];
    __local uint extent[2], all;
    const int item = get_local_id(0), y = get_global_id(1), slice = get_global_id(2), height = get_global_size(1);
    const ulong row = (ulong)slice * height + y;
    const int2 span = inside[y];
    const int length = span.y - span.x;
    __global const float *values = slices + row * width + span.x;
    if (item == 0) {
        all = 0;
        extent[0] = UINT_MAX;
        extent[1] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    double sum = 0.0;
    uint count = 0;
    float low = INFINITY, high = -INFINITY;
    for (int i = item; i < length; i += LANES) {
        const float value = values[i] * factor;
        if (isfinite(value)) {
            low = value < low ? value : low;
            high = value > high ? value : high;
            sum += (double)value;
            count++;
        }
    }
    if (count > 0) {
        atomic_add(&all, count);
        atomic_min(extent, ascending(low));
        atomic_max(extent + 1, ascending(high));
    }
    /* waits for `all`, too */
    sum = total_of_lanes(lanes, sum);
    const double mean = all > 0 ? sum / (double)all : 0.0;
    double squares = 0.0;
    for (int i = item; i < length; i += LANES) {
        const float value = values[i] * factor;
        if (isfinite(value)) {
            const double step = (double)value - mean;
            squares += step * step;
        }
    }
    squares = total_of_lanes(lanes, squares);
    if (item == 0) {
        moments[row] = (double2)(mean, squares);
        finite[row] = all;
        if (all > 0) {
            atomic_min(extremes + 2 * slice, extent[0]);
            atomic_max(extremes + 2 * slice + 1, extent[1]);
        }
    }
}

/* Adds to counts. Global size: GROUP, parts of `rows` rows, slices; work-group GROUP. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void count_values(__global const float *restrict slices, __global const int2 *restrict inside,
                  __global const double2 *restrict places, __global uint *restrict counts, float factor, int width,
                  int height, int rows)
{
    const int item = get_local_id(0), slice = get_global_id(2);
    const int start = get_global_id(1) * rows, end = min(start + rows, height);
    const double2 place = places[slice];
    __global uint *total = counts + (ulong)slice * BINS;
#if LOCAL_COUNTS
    __local uint own[BINS];
    for (int bin = item; bin < BINS; bin += GROUP)
        own[bin] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
#else
    __global uint *own = total;
#endif
    for (int y = start; y < end; y++) {
        const int2 span = inside[y];
        __global const float *row = slices + ((ulong)slice * height + y) * width;
        for (int x = span.x + item; x < span.y; x += GROUP) {
            const double number = floor((double)(row[x] * factor) * place.x) - place.y;
            /* false for what is infinite or no number */
            if (number >= 0.0 && number < (double)BINS)
                atomic_inc(own + (int)number);
        }
    }
#if LOCAL_COUNTS
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int bin = item; bin < BINS; bin += GROUP)
        if (own[bin] > 0)
            atomic_add(total + bin, own[bin]);
#endif
}
