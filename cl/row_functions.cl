/* row_functions.cl: a function of every value of rows, in place, and how many values it has no good result for.
 *
 * Nothing is contracted, so that values are those of the host.
 *
 * Defines
 *   FUNCTION  0 -log of transmissions, 1 a polynomial of line integrals
 *   GROUP     work-group
 *
 * Layouts
 *   values  [row][projection][bin], from value `first` on, `row_stride` values from one row to the next
 *   counts  [counted row] {, not finite or too large, without logarithm, }
 */
#ifndef FUNCTION
#define FUNCTION 0
#endif
#ifndef GROUP
#define GROUP 64
#endif

#pragma OPENCL FP_CONTRACT OFF

#if FUNCTION == 0

/* Where values without logarithm are counted. */
#define COUNTED_AS 2

/* -log of a transmission. */
inline __attribute__((always_inline)) float row_function(float value, float largest, float8 factors, uint *found)
{
    *found += value <= 0.0f;
    return line_integral(value);
}

#else

/* Where values that are not finite or too large are counted. */
#define COUNTED_AS 1

/* A line integral plus multiples of its square, its cube and so on; 0 if that is beyond `largest`. */
inline __attribute__((always_inline)) float row_function(float p, float largest, float8 factors, uint *found)
{
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
    *found += !finite;
    return finite ? value : 0.0f;
}

#endif

/* Global size: GROUP, projections, rows; work-group GROUP. Rows in `counted`, first and first after them, are counted from
 * row `place` of the counts on. `largest` and the factors of the square, the cube and so on, of the powers up to the
 * ninth, are those of a polynomial. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void apply_to_rows(__global float *restrict values, __global uint *restrict counts, ulong first, ulong row_stride,
                   int bins, int2 counted, int place, float largest, float8 factors)
{
    __local uint all;
    const int item = get_local_id(0), r = get_global_id(2);
    __global float *line = values + first + r * row_stride + (ulong)get_global_id(1) * bins;
    if (item == 0)
        all = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint found = 0;
    for (int bin = item; bin < bins; bin += GROUP)
        line[bin] = row_function(line[bin], largest, factors, &found);
    if (found > 0)
        atomic_add(&all, found);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0 && all > 0 && r >= counted.x && r < counted.y)
        atomic_add(counts + 4 * (place + r - counted.x) + COUNTED_AS, all);
}
