/* backproject_lamino.cl: slices of a scan whose rotation axis is inclined to the beam.
 *
 * A work-item sums DEPTH slices of one pixel, which are seen in the same bins and in rows at even distances. For each
 * projection, a work-group copies the part of the detector that sees its pixels to local memory. A work-item then
 * interpolates between bins once for each row, and between rows for each slice. Slices belong to groups by their number in
 * the run, so their bits do not depend on which others are computed. Sums continue those in the slices, so parts of the
 * projections give the bits of all at once.
 *
 * Defines, beside those of common.cl
 *   DEPTH       slices of a work-item
 *   GUARD       zero bins before and after each row
 *   ITEM_ROWS   rows of the detector that see the slices of a work-item: WHOLE(DEPTH - 1) + 3
 *   PATCH_BINS  bins of the part of the detector that sees the pixels of a work-group
 *   PATCH_ROWS  and its rows
 *   SPACING     distance between the rows that see neighbouring slices, in 2^-24 of a row; DEPTH times this is below 2^32
 *
 * Layouts
 *   rows     [row][projection][guard, bin, guard]   filtered, with the weights of the projections
 *   columns  [block column][projection] {whole bins, rest, whole rows, rest} of the first pixel of a block
 *   lines    [block row][projection]    the same: both add up
 *   steps    [projection] {bins per pixel in x, in y, rows per pixel in x, in y}
 *   heights  [group of slices] {whole rows, rest} of its first slice
 *   places   [group of slices][DEPTH]   number of the slice in `slices`, or -1 if it is not computed
 *   slices   [slice][y][x]
 */
#ifndef DEPTH
#define DEPTH 16
#endif
#ifndef GUARD
#define GUARD 2
#endif
#ifndef SPACING
#define SPACING 14529495
#endif
#ifndef ITEM_ROWS
#define ITEM_ROWS 15
#endif
#ifndef PATCH_BINS
#define PATCH_BINS 25
#endif
#ifndef PATCH_ROWS
#define PATCH_ROWS 27
#endif

#define ITEMS (WORK_X * WORK_Y)
/* values of the patch that an item copies */
#define COPIED ((PATCH_ROWS * PATCH_BINS + ITEMS - 1) / ITEMS)

/* Where slice `k` of a group is seen below its first slice: whole rows, and the rest. */
#define WHOLE(k) ((int)((uint)(k) * SPACING >> 24))
#define REST(k) ((float)((uint)(k) * SPACING & 0xffffff) / 16777216.0f)

/* The value between two bins. */
HELPER float between_bins(__local const float *at, float across)
{
    return mad(across, at[1] - at[0], at[0]);
}

/* Global size: blocks x WORK_X, blocks x WORK_Y, groups of slices. `all` projections have tables, of which the rows have
 * `projections` from `first` on; `band` is {first row, number of rows}; bins and rows outside count as 0; `roi` and
 * `origin` as in common.cl; sums continue those in the slices if `continued`; groups of slices are those from `from` on. */
KERNEL
void backproject_lamino(__global const float *restrict rows, __global const float4 *restrict columns,
                        __global const float4 *restrict lines, __global const float4 *restrict steps,
                        __global const float2 *restrict heights, __global const int *restrict places,
                        __global float *restrict slices, int all, int first, int projections, int bins, int2 band, int4 roi,
                        int2 origin, int continued, int from)
{
    __local float patch[COPIED * ITEMS];
    const int group = from + (int)get_group_id(2), item = get_local_id(1) * WORK_X + get_local_id(0), width = bins + 2 * GUARD;
#if WORK_X % 8 == 0 && WORK_Y % 4 == 0
    /* 32 items in a row compute 8 x 4 pixels, which few rows of the detector see */
    const int of_tile = item / 32, ix = of_tile % (WORK_X / 8) * 8 + item % 8, iy = of_tile / (WORK_X / 8) * 4 + item / 8 % 4;
#else
    const int ix = get_local_id(0), iy = get_local_id(1);
#endif
    const int x = origin.x + (int)get_group_id(0) * WORK_X + ix - roi.x;
    const int y = origin.y + (int)get_group_id(1) * WORK_Y + iy - roi.y;
    const bool inside = x >= 0 && x < roi.z && y >= 0 && y < roi.w;
    const float fx = ix, fy = iy;
    const ulong stride = (ulong)projections * width, plane = (ulong)roi.z * roi.w;
    const float2 height = heights[group];
    columns += (ulong)get_group_id(0) * all + first;
    lines += (ulong)get_group_id(1) * all + first;
    steps += first;
    places += group * DEPTH;
    slices += (ulong)max(y, 0) * roi.z + max(x, 0);
    /* the same for every projection, so that no product of 64 bits is in the loop */
    int2 in_patch[COPIED];
    ulong offset[COPIED];
    UNROLL_ALL
    for (int i = 0; i < COPIED; i++) {
        const int value = i * ITEMS + item;
        in_patch[i] = (int2)(value % PATCH_BINS, value / PATCH_BINS);
        offset[i] = in_patch[i].y * stride + in_patch[i].x;
    }
    float sums[DEPTH];
    UNROLL_ALL
    for (int k = 0; k < DEPTH; k++)
        sums[k] = continued && inside && places[k] >= 0 ? slices[places[k] * plane] : 0.0f;
    for (int p = 0; p < projections; p++) {
        const float4 column = columns[p], line = lines[p], step = steps[p];
        const float u_first = column.y + line.y, v_first = column.w + line.w + height.y;
        /* the least of the work-group */
        const float u_low = floor(u_first + min(0.0f, (WORK_X - 1) * step.x) + min(0.0f, (WORK_Y - 1) * step.y));
        const float v_low = floor(v_first + min(0.0f, (WORK_X - 1) * step.z) + min(0.0f, (WORK_Y - 1) * step.w));
        const int bin = (int)(column.x + line.x + u_low) + GUARD;
        const int row = (int)(column.z + line.z + height.x + v_low) - band.x;
        __global const float *from = rows + (ulong)p * width + ((long)row * (long)stride + bin);
        UNROLL_ALL
        for (int i = 0; i < COPIED; i++) {
            const bool there = (uint)(row + in_patch[i].y) < (uint)band.y && (uint)(bin + in_patch[i].x) < (uint)width;
            patch[i * ITEMS + item] = there ? from[offset[i]] : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const float u = mad(fx, step.x, mad(fy, step.y, u_first - u_low));
        const float v = mad(fx, step.z, mad(fy, step.w, v_first - v_low));
        const int left = (int)u, above = (int)v;
        __local const float *at = patch + above * PATCH_BINS + left;
        float values[ITEM_ROWS];
        UNROLL_ALL
        for (int r = 0; r < ITEM_ROWS; r++)
            values[r] = between_bins(at + r * PATCH_BINS, u - left);
        UNROLL_ALL
        for (int k = 0; k < DEPTH; k++) {
            /* at least 0 and below 2: between the first two rows, or between the next two */
            const int r = WHOLE(k);
            const float below = v - above + REST(k);
            sums[k] += mad(clamp(below - 1.0f, 0.0f, 1.0f), values[r + 2] - values[r + 1],
                           mad(clamp(below, 0.0f, 1.0f), values[r + 1] - values[r], values[r]));
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    UNROLL_ALL
    for (int k = 0; k < DEPTH; k++)
        if (inside && places[k] >= 0)
            slices[places[k] * plane] = sums[k];
}
