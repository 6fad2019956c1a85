/* filter_spectra.cl: the filtered spectra of rows, for kernels that back-project frequencies (docs/geometry.md).
 *
 * Two rows of a slice are one complex row. Their spectra are taken apart (that of a real row is the same for opposite
 * frequencies, but for the sign of its imaginary part), multiplied by the filter and by the projection's weight, and turned
 * by the projection's phase. Frequencies from 0 to 1/2 period a bin are stored, the last one half, since it stands at either
 * end of the spectrum.
 *
 * Defines, beside those of pad_rows.cl, and of transform_row.cl for `filter_spectra`
 *   FUSED     1 `filter_spectra`, which does all of it; 0 `keep_spectra`, after `pad_rows` and a transform
 *   ROWS      complex rows of a work-group of `filter_spectra`
 *   STRIDE    stored frequencies of a row, and room
 *
 * Layouts
 *   rows      [slice][projection][bin] float
 *   spectra   [slice][projection][STRIDE] float2
 *   shifts    [projection] see phase.cl
 */
#ifndef FUSED
#define FUSED 0
#endif
#ifndef ROWS
#define ROWS 1
#endif
#ifndef STRIDE
#define STRIDE 40
#endif

/* Frequency k of the first or second row of a pair, twice, from the complex row's values at k and at -k. */
HELPER float2 of_row(float2 at, float2 opposite, bool second)
{
    return second ? (float2)(at.y + opposite.y, opposite.x - at.x) : (float2)(at.x + opposite.x, at.y - opposite.y);
}

/* What twice the frequency k of a row is multiplied by, but for its phase. */
HELPER float factor_of(__global const float *restrict spectrum, float weight, int k, int length)
{
    return spectrum[k] * weight * (2 * k == length ? 0.25f : 0.5f);
}

#if FUSED
/* Values of a row at the places opposite to an item's first POINTS / 2 + 1. */
HELPER void opposites(const float2 *v, float2 *opposite, __local exchanged_t *room, int item)
{
#define OPPOSITE(n) PLACE((LENGTH - item - (n) * ROW_ITEMS) & (LENGTH - 1))
    barrier(CLK_LOCAL_MEM_FENCE);
#if PARTS == 1
    UNROLL_ALL
    for (int n = 0; n < POINTS; n++)
        room[PLACE(item + n * ROW_ITEMS)] = v[n];
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL_ALL
    for (int n = 0; n <= POINTS / 2; n++)
        opposite[n] = room[OPPOSITE(n)];
#else
    UNROLL_ALL
    for (int n = 0; n < POINTS; n++)
        room[PLACE(item + n * ROW_ITEMS)] = v[n].x;
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL_ALL
    for (int n = 0; n <= POINTS / 2; n++)
        opposite[n].x = room[OPPOSITE(n)];
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL_ALL
    for (int n = 0; n < POINTS; n++)
        room[PLACE(item + n * ROW_ITEMS)] = v[n].y;
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL_ALL
    for (int n = 0; n <= POINTS / 2; n++)
        opposite[n].y = room[OPPOSITE(n)];
#endif
}

/* Work-group: LENGTH / 16 items for each of ROWS rows. Global size: LENGTH / 16, pairs rounded up to ROWS, SLICES.
 * `spectrum` carries 1 / LENGTH; `turns` see transform_row.cl. The batch starts at value `first` of `rows`; slices from
 * `valid` on are 0. */
__kernel __attribute__((reqd_work_group_size(ROW_ITEMS, ROWS, 1)))
void filter_spectra(__global const float *restrict rows, __global float2 *restrict spectra,
                    __global const float *restrict spectrum, __global const float *restrict weights,
                    __global const float2 *restrict shifts, __global const float2 *restrict turns, ulong first, int bins,
                    int projections, int valid)
{
    __local exchanged_t rooms[ROWS * ROW_ROOM];
    const int item = get_local_id(0), pair = get_global_id(1), slice = get_global_id(2);
    __local exchanged_t *room = rooms + get_local_id(1) * ROW_ROOM;
    const bool exists = 2 * pair < projections && slice < valid;
    const bool both = exists && 2 * pair + 1 < projections;
    __global const float *row = rows + first + ((ulong)slice * projections + 2 * pair) * bins;
    float2 v[POINTS], opposite[POINTS / 2 + 1];
    UNROLL_ALL
    for (int n = 0; n < POINTS; n++) {
        const int x = item + n * ROW_ITEMS;
        v[n].x = exists ? padded(row, x, bins, LENGTH) : 0.0f;
        v[n].y = both ? padded(row + bins, x, bins, LENGTH) : 0.0f;
    }
    transform_row(v, room, turns, item, -1.0f);
    opposites(v, opposite, room, item);
    for (int p = 2 * pair; p < min(2 * pair + 2, projections); p++) {
        /* frequencies are ROW_ITEMS apart, so their phases are the first's times powers of that of ROW_ITEMS */
        float2 phases[POINTS / 2 + 1];
        phases[1] = phase_of(ROW_ITEMS, shifts[p], LENGTH);
        fill_powers(phases, POINTS / 2 + 1);
        const float2 phase = phase_of(item, shifts[p], LENGTH);
        __global float2 *to = spectra + ((ulong)slice * projections + p) * STRIDE;
        UNROLL_ALL
        for (int n = 0; n <= POINTS / 2; n++) {
            const int k = item + n * ROW_ITEMS;
            const float2 value = of_row(v[n], opposite[n], p & 1) * factor_of(spectrum, weights[p], k, LENGTH);
            if (n < POINTS / 2 || item == 0)
                to[k] = turned(value, n > 0 ? turned(phase, phases[n]) : phase);
        }
    }
}
#else
/* Work-group: GROUP. Global size: GROUP, pairs, SLICES. `transformed` is [slice][pair][length]. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void keep_spectra(__global const float2 *restrict transformed, __global float2 *restrict spectra,
                  __global const float *restrict spectrum, __global const float *restrict weights,
                  __global const float2 *restrict shifts, int length, int projections)
{
    const int pair = get_global_id(1), slice = get_global_id(2), pairs = get_global_size(1);
    __global const float2 *from = transformed + ((ulong)slice * pairs + pair) * length;
    for (int p = 2 * pair; p < min(2 * pair + 2, projections); p++)
        for (int k = get_local_id(0); k <= length / 2; k += GROUP) {
            const float2 value = of_row(from[k], from[(length - k) & (length - 1)], p & 1);
            const float2 scaled = value * factor_of(spectrum, weights[p], k, length);
            spectra[((ulong)slice * projections + p) * STRIDE + k] = turned(scaled, phase_of(k, shifts[p], length));
        }
}
#endif
