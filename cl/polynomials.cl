/* polynomials.cl: products of a sinogram's columns with polynomials of the projection, over blocks of projections; and
 * profiles that are added to the rows of a block.
 *
 * Defines
 *   DEGREES  polynomials of a block
 *   WIDTH    bins of a work-group of `column_products`
 *   PARTS    its items for a bin; each takes every PARTS-th projection of the block
 *   GROUP    work-group of `add_profiles`
 *
 * Layouts
 *   sinograms  [slice][projection][bin]         the first at value `first`
 *   factors    [projection][degree]             the polynomials of each projection's block
 *   starts     [block + 1]                      first projection of each block, and the number of projections
 *   products   [slice][block][degree][bin]
 *   profiles   [slice][block][bin]
 *   block_of   [projection]
 */
#ifndef DEGREES
#define DEGREES 1
#endif
#ifndef WIDTH
#define WIDTH 32
#endif
#ifndef PARTS
#define PARTS 8
#endif
#ifndef GROUP
#define GROUP 64
#endif
/* projections that an item reads before it adds them up */
#define LOADS 4

/* Adds a value to a sum (x) whose rounding errors are summed apart (y): D. E. Knuth, The Art of Computer Programming 2,
 * 4.2.2, theorem B. */
HELPER float2 added(float2 sum, float value)
{
    const float total = sum.x + value;
    const float taken = total - sum.x;
    return (float2)(total, sum.y + ((sum.x - (total - taken)) + (value - taken)));
}

/* Products as sums over the projections of a block; values that are not finite count as 0.
 * Global size: bins rounded up to WIDTH, PARTS x blocks, slices; work-group WIDTH, PARTS. */
__kernel __attribute__((reqd_work_group_size(WIDTH, PARTS, 1)))
void column_products(__global const float *restrict sinograms, ulong first, __global const float *restrict factors,
                     __global const int *restrict starts, __global float *restrict products, int bins, int projections)
{
    __local float2 sums[PARTS][WIDTH];
    const int x = get_local_id(0), part = get_local_id(1), bin = get_global_id(0), block = get_group_id(1);
    const int slice = get_global_id(2), blocks = get_num_groups(1), end = starts[block + 1];
    /* items beyond the last bin read it, too */
    __global const float *column = sinograms + first + (ulong)slice * projections * bins + min(bin, bins - 1);
    float2 mine[DEGREES];
    UNROLL_ALL
    for (int degree = 0; degree < DEGREES; degree++)
        mine[degree] = (float2)(0.0f);
    for (int p = starts[block] + part; p < end; p += PARTS * LOADS) {
        float values[LOADS];
        UNROLL_ALL
        for (int i = 0; i < LOADS; i++)
            values[i] = p + i * PARTS < end ? finite_or_0(column[(ulong)(p + i * PARTS) * bins]) : 0.0f;
        UNROLL_ALL
        for (int i = 0; i < LOADS; i++) {
            __global const float *row = factors + (ulong)min(p + i * PARTS, end - 1) * DEGREES;
            UNROLL_ALL
            for (int degree = 0; degree < DEGREES; degree++)
                mine[degree] = added(mine[degree], row[degree] * values[i]);
        }
    }
    __global float *out = products + ((ulong)slice * blocks + block) * DEGREES * bins + bin;
    UNROLL_ALL
    for (int degree = 0; degree < DEGREES; degree++) {
        barrier(CLK_LOCAL_MEM_FENCE);
        sums[part][x] = mine[degree];
        barrier(CLK_LOCAL_MEM_FENCE);
        if (part == 0 && bin < bins) {
            float2 sum = sums[0][x];
            for (int other = 1; other < PARTS; other++) {
                sum = added(sum, sums[other][x].x);
                sum.y += sums[other][x].y;
            }
            out[(ulong)degree * bins] = sum.x + sum.y;
        }
    }
}

/* Adds to each row the profile of its block. Values that are not finite become 0, before and after.
 * Global size: bins rounded up to GROUP, projections, slices; work-group GROUP. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void add_profiles(__global float *restrict sinograms, ulong first, __global const float *restrict profiles,
                  __global const int *restrict block_of, int bins, int blocks)
{
    const int bin = get_global_id(0), p = get_global_id(1), slice = get_global_id(2), projections = get_global_size(1);
    if (bin >= bins)
        return;
    __global float *value = sinograms + first + ((ulong)slice * projections + p) * bins + bin;
    *value = finite_or_0(finite_or_0(*value) + profiles[((ulong)slice * blocks + block_of[p]) * bins + bin]);
}
