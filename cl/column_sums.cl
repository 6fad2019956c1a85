/* column_sums.cl: sums over the columns of sinograms, and corrections of single values.
 *
 * A sum is a pair of floats, the sum and what rounding took from it, so that it is about as accurate as one in double
 * precision.
 *
 * Defines
 *   GROUP        work-group of kernels with one row of items
 *   COLUMNS      bins of a work-group of `sum_changes`, and PARTS items for each
 *   ALIVE        projections over which `sum_changes` smooths
 *
 * Layouts
 *   sinograms    [slice][projection][bin]
 *   ranked       [slice][bin][rank]
 *   sums         [slice][bin]
 */
#ifndef GROUP
#define GROUP 64
#endif
#ifndef COLUMNS
#define COLUMNS 32
#endif
#ifndef PARTS
#define PARTS 8
#endif
#ifndef ALIVE
#define ALIVE 10
#endif

/* A pair plus a value (Knuth, The Art of Computer Programming 2, 4.2.2, theorem B). */
HELPER float2 plus(float2 sum, float value)
{
    const float total = sum.x + value, added = total - sum.x;
    return (float2)(total, sum.y + ((sum.x - (total - added)) + (value - added)));
}

HELPER float2 plus_pair(float2 sum, float2 other)
{
    sum = plus(sum, other.x);
    sum.y += other.y;
    return sum;
}

/* Sums of the values from rank `from` to before `to`.
 * Work-group: GROUP. Global size: GROUP for each bin, 1, slices. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void sum_columns(__global const float *restrict ranked, __global float2 *restrict sums, ulong first, int bins,
                 int length, int from, int to)
{
    __local float2 shared[GROUP];
    const int item = get_local_id(0);
    const ulong column = (ulong)get_global_id(2) * bins + get_group_id(0);
    __global const float *values = ranked + first + column * length;
    float2 sum = (float2)(0.0f, 0.0f);
    for (int i = from + item; i < to; i += GROUP)
        sum = plus(sum, values[i]);
    shared[item] = sum;
    for (int distance = GROUP / 2; distance > 0; distance /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < distance)
            shared[item] = plus_pair(shared[item], shared[item + distance]);
    }
    if (item == 0)
        sums[column] = shared[0];
}

/* Sums of the absolute differences of a column's values to its mean over ALIVE projections around each, mirrored.
 * Values that are not finite count as 0.
 * Work-group: COLUMNS, PARTS. Global size: bins rounded up, PARTS, slices. */
__kernel __attribute__((reqd_work_group_size(COLUMNS, PARTS, 1)))
void sum_changes(__global const float *restrict sinograms, __global float2 *restrict sums, ulong first, int bins,
                 int projections)
{
    __local float2 shared[PARTS][COLUMNS];
    const int x = get_local_id(0), part = get_local_id(1), bin = get_global_id(0), slice = get_global_id(2);
    const int share = (projections + PARTS - 1) / PARTS, start = part * share, end = min(start + share, projections);
    __global const float *column = sinograms + first + (ulong)slice * projections * bins + min(bin, bins - 1);
    float2 sum = (float2)(0.0f, 0.0f);
    float nearby[ALIVE];
    UNROLL_ALL
    for (int i = 0; i < ALIVE; i++)
        nearby[i] = finite_or_0(column[(ulong)mirrored(start - ALIVE / 2 + i, projections) * bins]);
    for (int p = start; p < end; p++) {
        const float come = finite_or_0(column[(ulong)mirrored(p + ALIVE - ALIVE / 2, projections) * bins]);
        /* differences are exact where the values hardly differ */
        float change = 0.0f;
        UNROLL_ALL
        for (int i = 0; i < ALIVE; i++)
            change += nearby[i] - nearby[ALIVE / 2];
        sum = plus(sum, fabs(change) / ALIVE);
        UNROLL_ALL
        for (int i = 0; i < ALIVE - 1; i++)
            nearby[i] = nearby[i + 1];
        nearby[ALIVE - 1] = come;
    }
    shared[part][x] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (part == 0 && bin < bins) {
        for (int other = 1; other < PARTS; other++)
            sum = plus_pair(sum, shared[other][x]);
        sums[(ulong)slice * bins + bin] = sum;
    }
}

/* A bin of a slice, those on its left and right, and how much of its value comes from the right. */
typedef struct {
    int slice, bin, left, right;
    float share;
} gap_t;

/* Interpolates columns linearly from those on both sides.
 * Work-group: GROUP. Global size: gaps rounded up, any number for the projections. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void interpolate(__global float *restrict sinograms, __global const gap_t *restrict gaps, ulong first, int bins,
                 int projections, int count)
{
    /* as on the host: values that differ would be in another place when they are sorted */
#pragma OPENCL FP_CONTRACT OFF
    if ((int)get_global_id(0) >= count)
        return;
    const gap_t gap = gaps[get_global_id(0)];
    for (int p = get_global_id(1); p < projections; p += get_global_size(1)) {
        __global float *row = sinograms + first + ((ulong)gap.slice * projections + p) * bins;
        const float left = finite_or_0(row[gap.left]), right = finite_or_0(row[gap.right]);
        row[gap.bin] = left + gap.share * (right - left);
    }
}

/* Subtracts values from others. Work-group: GROUP. Global size: any multiple of it. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void subtract(__global float *restrict values, __global const float *restrict others, ulong first, ulong count)
{
    for (ulong i = get_global_id(0); i < count; i += get_global_size(0))
        values[first + i] -= others[i];
}
