/* backproject_lamino.cl: slices of a scan whose rotation axis is inclined to the beam.
 *
 * A work-item sums DEPTH slices of one pixel: they have the bin and its weights in common, and neighbouring slices share
 * rows, so each row is read and interpolated between bins once, and then between rows for every slice. Sums continue
 * those in the slices, so parts of the projections give the bits of all at once.
 *
 * Defines, beside those of common.cl
 *   DEPTH  slices of a work-item
 *   GUARD  zero bins before and after each row
 *
 * Layouts
 *   rows     [row][projection][guard, bin, guard]   filtered, with the weights of the projections
 *   columns  [block column][projection] {whole bins, rest, whole rows, rest} of the first pixel of a block
 *   lines    [block row][projection]    the same: both add up
 *   steps    [projection] {bins per pixel in x, in y, rows per pixel in x, in y}
 *   heights  [slice] {whole rows, rest}
 *   slices   [slice][y][x]
 */
#ifndef DEPTH
#define DEPTH 8
#endif
#ifndef GUARD
#define GUARD 2
#endif

/* The value between two bins of a row, `from` values after the bin in row 0; rows outside the `count` that there are count
 * as 0. */
HELPER float between_bins(__global const float *from, ulong stride, int row, int count, float across)
{
    if (row < 0 || row >= count)
        return 0.0f;
    __global const float *at = from + row * stride;
    return mad(across, at[1] - at[0], at[0]);
}

/* Global size: blocks x WORK_X, blocks x WORK_Y, slices / DEPTH rounded up. `all` projections have tables, of which the
 * rows have `projections` from `first` on; `band` is {first row, number of rows}; `roi` and `origin` as in common.cl;
 * `count` slices; sums continue those in the slices if `continued`. */
KERNEL
void backproject_lamino(__global const float *restrict rows, __global const float4 *restrict columns,
                        __global const float4 *restrict lines, __global const float4 *restrict steps,
                        __global const float2 *restrict heights, __global float *restrict slices, int all, int first,
                        int projections, int bins, int2 band, int4 roi, int2 origin, int count, int continued)
{
    const int x = origin.x + (int)get_global_id(0) - roi.x, y = origin.y + (int)get_global_id(1) - roi.y;
    const int deep = get_global_id(2) * DEPTH, width = bins + 2 * GUARD;
    if (x < 0 || x >= roi.z || y < 0 || y >= roi.w)
        return;
    const float fx = get_local_id(0), fy = get_local_id(1);
    const ulong stride = (ulong)projections * width, plane = (ulong)roi.z * roi.w;
    __global float *out = slices + deep * plane + (ulong)y * roi.z + x;
    columns += (ulong)get_group_id(0) * all + first;
    lines += (ulong)get_group_id(1) * all + first;
    float sums[DEPTH];
    float2 height[DEPTH];
    UNROLL_ALL
    for (int k = 0; k < DEPTH; k++) {
        sums[k] = continued && deep + k < count ? out[k * plane] : 0.0f;
        height[k] = heights[min(deep + k, count - 1)];
    }
    for (int p = 0; p < projections; p++) {
        const float4 column = columns[p], line = lines[p], step = steps[first + p];
        const float u = mad(fx, step.x, mad(fy, step.y, column.y + line.y)), left = floor(u), across = u - left;
        const float v = mad(fx, step.z, mad(fy, step.w, column.w + line.w));
        const int bin = clamp((int)(column.x + line.x) + (int)left, -GUARD, bins) + GUARD;
        const int whole = (int)(column.z + line.z) - band.x;
        __global const float *from = rows + (ulong)p * width + bin;
        /* no row is one below */
        int known = -0x40000000;
        float upper = 0.0f, lower = 0.0f;
        UNROLL_ALL
        for (int k = 0; k < DEPTH; k++) {
            const float h = v + height[k].y, above = floor(h);
            const int row = whole + (int)height[k].x + (int)above;
            if (row != known) {
                upper = row == known + 1 ? lower : between_bins(from, stride, row, band.y, across);
                lower = between_bins(from, stride, row + 1, band.y, across);
                known = row;
            }
            sums[k] += mad(h - above, lower - upper, upper);
        }
    }
    UNROLL_ALL
    for (int k = 0; k < DEPTH; k++)
        if (deep + k < count)
            out[k * plane] = sums[k];
}
