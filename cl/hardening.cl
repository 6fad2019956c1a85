/* hardening.cl: a polynomial of line integrals in place, and how many become too large.
 *
 * Nothing is contracted, so that values are those of the host.
 *
 * Defines
 *   GROUP   work-group
 *
 * Layouts
 *   values  [row][projection][bin], from value `first` on, `row_stride` values from one row to the next
 *   counts  [counted row] {, not finite or too large, , }
 */
#ifndef GROUP
#define GROUP 64
#endif

#pragma OPENCL FP_CONTRACT OFF

/* Global size: GROUP, projections, rows; work-group GROUP. Rows in `counted`, first and first after them, are counted from
 * row `place` of the counts on. `factors` are those of the square, the cube and so on, of the powers up to the ninth. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void harden(__global float *restrict values, __global uint *restrict counts, ulong first, ulong row_stride, int bins,
            int2 counted, int place, float largest, float8 factors)
{
    __local uint all;
    const int item = get_local_id(0), r = get_global_id(2);
    __global float *line = values + first + r * row_stride + (ulong)get_global_id(1) * bins;
    if (item == 0)
        all = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint found = 0;
    for (int bin = item; bin < bins; bin += GROUP) {
        const float p = line[bin];
        float sum = factors.s7;
        sum = sum * p + factors.s6;
        sum = sum * p + factors.s5;
        sum = sum * p + factors.s4;
        sum = sum * p + factors.s3;
        sum = sum * p + factors.s2;
        sum = sum * p + factors.s1;
        sum = sum * p + factors.s0;
        const float value = p * (1.0f + p * sum);
        /* false for what is no number, too */
        const int finite = fabs(value) <= largest;
        found += !finite;
        line[bin] = finite ? value : 0.0f;
    }
    if (found > 0)
        atomic_add(&all, found);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0 && all > 0 && r >= counted.x && r < counted.y)
        atomic_add(counts + 4 * (place + r - counted.x) + 1, all);
}
