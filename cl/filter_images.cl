/* filter_images.cl: projections filtered in two dimensions.
 *
 * Two projections are the real and the imaginary part of one complex image: the response of the filter is real and the same
 * for opposite frequencies, so it keeps them apart. Rows are transformed, then columns, filtered and transformed back
 * without a trip through global memory, then rows back. image_places.cl says which pixel is where.
 *
 * Defines, beside those of transform_row.cl: LENGTH is that of a row or a column
 *   LINES     rows of a work-group, or columns, which are its first dimension
 *   COLUMNS   1 the kernel for columns, 0 those for rows
 *
 * Layouts
 *   rows      [row that was read][projection][bin]
 *   spectra   [pair][row of the image][frequency] float2
 *   filtered  [wanted row][projection][bin], from value `first` on, `row_stride` values from one row to the next
 *   turns     see transform_row.cl
 */
#ifndef LINES
#define LINES 1
#endif
#ifndef COLUMNS
#define COLUMNS 0
#endif

#if COLUMNS
/* Work-group: LINES, LENGTH / 16. Global size: frequencies along bins, LENGTH / 16, pairs. `of_bins` and `of_rows` are, for
 * every frequency along bins and along rows, what `response` takes, whose result is multiplied by `scale`. Only the first
 * `wanted` rows are stored. */
__kernel __attribute__((reqd_work_group_size(LINES, ROW_ITEMS, 1)))
void filter_image_columns(__global float2 *restrict spectra, __global const float2 *restrict of_bins,
                          __global const float2 *restrict of_rows, __global const float2 *restrict turns, int wanted,
                          float sharpening, float scale)
{
    __local exchanged_t rooms[ROW_ROOM * LINES];
    __local exchanged_t *room = rooms + get_local_id(0);
    const int item = get_local_id(1), x = get_global_id(0), width = get_global_size(0);
    __global float2 *column = spectra + (ulong)get_global_id(2) * LENGTH * width + x;
    float2 v[POINTS];
    UNROLL_ALL
    for (int n = 0; n < POINTS; n++)
        v[n] = column[(ulong)(item + n * ROW_ITEMS) * width];
    transform_row(v, room, turns, item, -1.0f);
    const float2 along_bins = of_bins[x];
    UNROLL_ALL
    for (int n = 0; n < POINTS; n++)
        v[n] *= scale * response(along_bins, of_rows[item + n * ROW_ITEMS], sharpening);
    transform_row(v, room, turns, item, 1.0f);
    UNROLL_ALL
    for (int n = 0; n < POINTS; n++) {
        const int y = item + n * ROW_ITEMS;
        if (y < wanted)
            column[(ulong)y * width] = v[n];
    }
}
#else
/* Work-group: LENGTH / 16, LINES. Global size: LENGTH / 16, rows of the image, pairs. There are `projections`. */
__kernel __attribute__((reqd_work_group_size(ROW_ITEMS, LINES, 1)))
void transform_image_rows(__global const float *restrict rows, __global float2 *restrict spectra,
                          __global const float2 *restrict turns, int bins, int projections, int first_pair, int first_row,
                          int wanted, int last)
{
    __local exchanged_t rooms[LINES * ROW_ROOM];
    __local exchanged_t *room = rooms + get_local_id(1) * ROW_ROOM;
    const int item = get_local_id(0), y = get_global_id(1), height = get_global_size(1);
    const int p = 2 * (first_pair + (int)get_global_id(2));
    const bool both = p + 1 < projections;
    const int from = row_of_image(y, height, first_row, wanted, last);
    __global const float *row = rows + ((ulong)from * projections + p) * bins;
    float2 v[POINTS];
    UNROLL_ALL
    for (int n = 0; n < POINTS; n++) {
        const int bin = bin_of_image(item + n * ROW_ITEMS, bins, LENGTH);
        v[n].x = row[bin];
        v[n].y = both ? row[bins + bin] : 0.0f;
    }
    transform_row(v, room, turns, item, -1.0f);
    __global float2 *to = spectra + ((ulong)get_global_id(2) * height + y) * LENGTH;
    UNROLL_ALL
    for (int n = 0; n < POINTS; n++)
        to[item + n * ROW_ITEMS] = v[n];
}

/* Work-group as above. Global size: LENGTH / 16, `wanted` rows rounded up to LINES, pairs. Images have `height` rows. */
__kernel __attribute__((reqd_work_group_size(ROW_ITEMS, LINES, 1)))
void restore_image_rows(__global const float2 *restrict spectra, __global float *restrict filtered,
                        __global const float2 *restrict turns, ulong first, ulong row_stride, int bins, int projections,
                        int first_pair, int wanted, int height)
{
    __local exchanged_t rooms[LINES * ROW_ROOM];
    __local exchanged_t *room = rooms + get_local_id(1) * ROW_ROOM;
    const int item = get_local_id(0), y = get_global_id(1), p = 2 * (first_pair + (int)get_global_id(2));
    const bool exists = y < wanted, both = p + 1 < projections;
    __global const float2 *from = spectra + ((ulong)get_global_id(2) * height + y) * LENGTH;
    float2 v[POINTS];
    UNROLL_ALL
    for (int n = 0; n < POINTS; n++)
        v[n] = exists ? from[item + n * ROW_ITEMS] : (float2)(0.0f, 0.0f);
    transform_row(v, room, turns, item, 1.0f);
    if (!exists)
        return;
    __global float *to = filtered + first + y * row_stride + (ulong)p * bins;
    UNROLL_ALL
    for (int n = 0; n < POINTS; n++) {
        const int bin = item + n * ROW_ITEMS;
        if (bin < bins) {
            to[bin] = v[n].x;
            if (both)
                to[bins + bin] = v[n].y;
        }
    }
}
#endif
