/* pad_rows.cl: two rows of a slice as one complex row, continued beyond the detector.
 *
 * Defines, beside those of padding.cl
 *   GROUP  work-group: one for every row
 *
 * Layouts
 *   rows     [slice][projection][bin] float
 *   spectra  [slice][pair][length] float2, pair k of projections 2k and 2k + 1
 */
#ifndef GROUP
#define GROUP 64
#endif

/* Global size: GROUP, pairs, SLICES; work-group GROUP. The batch starts at value `first` of `rows`; slices from `valid` on
 * are 0. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void pad_rows(__global const float *restrict rows, __global float2 *restrict spectra, ulong first, int bins, int length,
              int projections, int valid)
{
    const int pair = get_global_id(1), slice = get_global_id(2), pairs = get_global_size(1);
    __global const float *row = rows + first + ((ulong)slice * projections + 2 * pair) * bins;
    __global float2 *out = spectra + ((ulong)slice * pairs + pair) * length;
    for (int x = get_local_id(0); x < length; x += GROUP) {
        float2 value = (float2)(0.0f, 0.0f);
        if (slice < valid) {
            value.x = padded(row, x, bins, length);
            if (2 * pair + 1 < projections)
                value.y = padded(row + bins, x, bins, length);
        }
        out[x] = value;
    }
}
