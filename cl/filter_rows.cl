/* filter_rows.cl: pads, transforms, filters and transforms back a pair of rows in one kernel, without a trip through
 * global memory in between. Two real rows are one complex row, as in filter.cl.
 *
 * Defines, beside those of filter.cl and transform_row.cl
 *   ROWS    complex rows of a work-group
 *
 * Layouts
 *   rows      [slice][projection][bin] float
 *   filtered  [slice][projection][bin] float   may be in the place of rows: a pair is read before it is written
 */
#ifndef ROWS
#define ROWS 1
#endif

/* Work-group: LENGTH / 16 items for each of ROWS rows. Global size: LENGTH / 16, pairs rounded up to ROWS, slices.
 * `spectrum` carries the 1 / LENGTH of the way back; turns[k] is (cos, sin) of 2 pi k / LENGTH. The batch starts at value
 * `first` of `rows`, and at value `to` of `filtered`. */
__kernel __attribute__((reqd_work_group_size(ROW_ITEMS, ROWS, 1)))
void filter_rows(__global const float *rows, __global float *filtered, __global const float *restrict spectrum,
                 __global const float2 *restrict turns, ulong first, ulong to, int bins, int projections)
{
    __local exchanged_t rooms[ROWS * ROW_ROOM];
    const int item = get_local_id(0), pair = get_global_id(1), slice = get_global_id(2);
    const ulong place = ((ulong)slice * projections + 2 * pair) * bins;
    __local exchanged_t *room = rooms + get_local_id(1) * ROW_ROOM;
    const bool exists = 2 * pair < projections, both = 2 * pair + 1 < projections;
    __global const float *row = rows + first + place;

    float2 v[POINTS];
    UNROLL_ALL
    for (int n = 0; n < POINTS; n++) {
        const int x = item + n * ROW_ITEMS;
        v[n].x = exists ? padded(row, x, bins, LENGTH) : 0.0f;
        v[n].y = both ? padded(row + bins, x, bins, LENGTH) : 0.0f;
    }
    transform_row(v, room, turns, item, -1.0f);
    UNROLL_ALL
    for (int n = 0; n < POINTS; n++)
        v[n] *= spectrum[item + n * ROW_ITEMS];
    transform_row(v, room, turns, item, 1.0f);
    /* rows may be overwritten: all items have read */
    barrier(CLK_GLOBAL_MEM_FENCE);
    UNROLL_ALL
    for (int n = 0; n < POINTS; n++) {
        const int x = item + n * ROW_ITEMS;
        if (exists && x < bins)
            filtered[to + place + x] = v[n].x;
        if (both && x < bins)
            filtered[to + place + bins + x] = v[n].y;
    }
}
