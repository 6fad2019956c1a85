/* minus_log.cl: -log of transmissions in place, and how many have none.
 *
 * Defines
 *   GROUP   work-group
 *
 * Layouts
 *   values  [row][projection][bin], from value `first` on, `row_stride` values from one row to the next
 *   counts  [counted row] {, , without logarithm, }
 */
#ifndef GROUP
#define GROUP 64
#endif

/* Global size: GROUP, projections, rows; work-group GROUP. Rows in `counted`, first and first after them, are counted. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void minus_log(__global float *restrict values, __global uint *restrict counts, ulong first, ulong row_stride, int bins,
               int2 counted)
{
    __local uint all;
    const int item = get_local_id(0), r = get_global_id(2);
    __global float *line = values + first + r * row_stride + (ulong)get_global_id(1) * bins;
    if (item == 0)
        all = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint found = 0;
    for (int bin = item; bin < bins; bin += GROUP) {
        const float value = line[bin];
        found += value <= 0.0f;
        line[bin] = line_integral(value);
    }
    if (found > 0)
        atomic_add(&all, found);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0 && all > 0 && r >= counted.x && r < counted.y)
        atomic_add(counts + 4 * (r - counted.x) + 2, all);
}
