/* filter.cl: rows into the complex transform, times the filter, and out again as a compound sinogram.
 *
 * Two real rows travel as one complex row (slides, 'Optimizing filtering step'): the filter's spectrum is real and
 * even, so the real and the imaginary part are filtered independently. Pairs are made inside a slice; a slice's
 * values never depend on its neighbours in the batch.
 *
 * Defines, beside those of halves.cl
 *   SLICES        slices of a compound sinogram
 *   CHANNELS      values stored per bin, at least SLICES; the rest stay 0 (image formats with more channels)
 *   HALF_STORAGE  1 store half, 0 float
 *   GUARD         zero bins before and after each row of the compound sinogram
 *   SPLIT         1 the second SLICES channels hold what is left of the first when they are stored as half
 *   PLANAR        1 filtered rows are real, as they came; 0 pairs of them are complex
 *   GROUP         work-group of `multiply_spectrum` and `measure_peaks`: one for every row
 *   TILE          bins of a work-group of `interleave`, and its items in a row; it has TILE_ROWS of these
 *
 * Layouts
 *   rows      [slice][projection][bin] float          as they arrive
 *   spectra   [slice][pair][length] float2            pair k holds projections 2k and 2k + 1
 *   filtered  as rows if PLANAR, else as spectra
 *   sinogram  [projection][guard, bin, guard][channel]
 */
#ifndef CHANNELS
#define CHANNELS SLICES
#endif
#ifndef GUARD
#define GUARD 2
#endif
#ifndef PLANAR
#define PLANAR 0
#endif
#ifndef GROUP
#define GROUP 64
#endif
#ifndef TILE
#define TILE 32
#endif
#ifndef TILE_ROWS
#define TILE_ROWS 8
#endif

#if PLANAR
#define FILTERED __global const float *restrict
#else
#define FILTERED __global const float2 *restrict

/* Global size: GROUP, complex rows; work-group GROUP. The spectrum carries the 1 / length of the backward transform. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void multiply_spectrum(__global float2 *restrict spectra, __global const float *restrict spectrum, int length)
{
    __global float2 *row = spectra + (ulong)get_global_id(1) * length;
    for (int x = get_local_id(0); x < length; x += GROUP)
        row[x] *= spectrum[x];
}
#endif

/* Filtered values of a pair of projections. `stride` is the number of values from one row to the next. */
HELPER float2 filtered_pair(FILTERED filtered, int slice, int pair, int bin, int stride, int projections)
{
#if PLANAR
    filtered += ((ulong)slice * projections + 2 * pair) * stride + bin;
    return (float2)(filtered[0], 2 * pair + 1 < projections ? filtered[stride] : 0.0f);
#else
    return filtered[((ulong)slice * ((projections + 1) / 2) + pair) * stride + bin];
#endif
}

/* The relative weights w_p P / pi of a pair of projections. */
HELPER float2 pair_weights(__global const float *weights, int pair, int projections)
{
    return (float2)(weights[2 * pair], 2 * pair + 1 < projections ? weights[2 * pair + 1] : 0.0f);
}

/* Largest absolute value of every slice, as the bits of a float (they sort as integers): what half storage scales by.
 * Global size: GROUP, pairs, slices; work-group GROUP. `peaks` starts at 0; the batch starts at value `first`. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void measure_peaks(FILTERED filtered, __global const float *restrict weights, __global uint *restrict peaks,
                   ulong first, int bins, int stride, int projections)
{
    __local float partial[GROUP];
    const int item = get_local_id(0), pair = get_global_id(1), slice = get_global_id(2);
    const float2 weight = pair_weights(weights, pair, projections);
    float peak = 0.0f;
    for (int bin = item; bin < bins; bin += GROUP) {
        const float2 value = fabs(weight * filtered_pair(filtered + first, slice, pair, bin, stride, projections));
        peak = fmax(peak, fmax(value.x, value.y));
    }
    partial[item] = peak;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0) {
        for (int other = 1; other < GROUP; other++)
            peak = fmax(peak, partial[other]);
        atomic_max(&peaks[slice], as_uint(peak));
    }
}

/* Filtered rows of SLICES slices into one compound sinogram (paper, 5.2): a pair of projections and TILE bins a
 * work-group, turned in local memory so that both sides are read and written in order.
 * Work-group: TILE, TILE_ROWS. Global size: bins + 2 GUARD rounded up to TILE, TILE_ROWS, pairs. The batch starts at value
 * `first`; slices from `valid` on are 0. */
__kernel __attribute__((reqd_work_group_size(TILE, TILE_ROWS, 1)))
void interleave(FILTERED filtered, __global const float *restrict weights, __global const uint *restrict peaks,
#if HALF_STORAGE
                __global half *restrict sinogram,
#else
                __global float *restrict sinogram,
#endif
                ulong first, int bins, int stride, int projections, int valid)
{
    /* one more, so that columns are in different banks */
    __local float2 tile[SLICES][TILE + 1];
    const int x = get_local_id(0), y = get_local_id(1), pair = get_global_id(2);
    const int left = get_group_id(0) * TILE, width = bins + 2 * GUARD, bin = left + x - GUARD;
    const int count = min(TILE, width - left) * CHANNELS;
    const float2 weight = pair_weights(weights, pair, projections);

    for (int slice = y; slice < SLICES; slice += TILE_ROWS) {
        float2 value = (float2)(0.0f);
        if (bin >= 0 && bin < bins && slice < valid)
            value = weight * filtered_pair(filtered + first, slice, pair, bin, stride, projections) *
                    half_range_factor(peaks[slice]);
        tile[slice][x] = value;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int part = 0; part < 2 && 2 * pair + part < projections; part++) {
        const ulong start = ((ulong)(2 * pair + part) * width + left) * CHANNELS;
        for (int i = y * TILE + x; i < count; i += TILE * TILE_ROWS) {
            const int channel = i % CHANNELS;
            const float2 both = tile[channel % SLICES][i / CHANNELS];
            float value = channel < ROW_VALUES ? part ? both.y : both.x : 0.0f;
#if SPLIT
            if (channel >= SLICES)
                value -= rounded_to_half(value);
#endif
#if HALF_STORAGE
            vstore_half_rte(value, start + i, sinogram);
#else
            sinogram[start + i] = value;
#endif
        }
    }
}
