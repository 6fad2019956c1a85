/* fits.cl: polynomials that were fitted to the columns of a sinogram are made smooth across bins.
 *
 * Defines
 *   DEGREES  polynomials of a block
 *   GROUP    work-group of both kernels, along a row
 *   RUN      bins of an item of `rough_fits`, side by side
 *   SPAN     bins of an item of `smooth_fits`; odd numbers, so that items are in different banks of local memory
 *   TILE     values of the Gaussian at a time
 *   UNROLL   of these, those for which the loop is unrolled
 *   SIZE     bins of the running median; it and SORTED are those of median.cl, with TRANSPOSED 0
 *
 * Layouts
 *   sinograms  [slice][projection][bin]         the first at value `first`
 *   products   [slice][block][degree][bin]      see polynomials.cl
 *   factors    [projection][degree]
 *   block_of   [projection]
 *   rough      [slice][projection][bin]
 *   weights    [2 reach + 1]                    the Gaussian; then SPAN - 1 zeros
 */
#ifndef DEGREES
#define DEGREES 3
#endif
#ifndef GROUP
#define GROUP 64
#endif
#ifndef RUN
#define RUN 11
#endif
#ifndef SPAN
#define SPAN 5
#endif
#ifndef TILE
#define TILE 256
#endif

/* What a running median leaves of the rows of the fit.
 * Global size: GROUP for every GROUP x RUN bins, projections, slices; work-group GROUP. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void rough_fits(__global const float *restrict products, __global const float *restrict factors,
                __global const int *restrict block_of, __global float *restrict rough, int bins, int blocks)
{
    __local uint keys[GROUP * RUN + SIZE - 1];
    __local float rests[GROUP * RUN];
    const int item = get_local_id(0), start = get_group_id(0) * GROUP * RUN, p = get_global_id(1);
    const int slice = get_global_id(2);
    __global const float *profiles = products + ((ulong)slice * blocks + block_of[p]) * DEGREES * bins;
    float factor[DEGREES];
    UNROLL_ALL
    for (int degree = 0; degree < DEGREES; degree++)
        factor[degree] = factors[(ulong)p * DEGREES + degree];
    for (int i = item; i < GROUP * RUN + SIZE - 1; i += GROUP) {
        const int bin = mirrored(start - SIZE / 2 + i, bins);
        float fit = 0.0f;
        UNROLL_ALL
        for (int degree = 0; degree < DEGREES; degree++)
            fit += factor[degree] * profiles[(ulong)degree * bins + bin];
        keys[i] = ascending(fit);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    window_t window;
    fill_window(&window, keys, item * RUN);
    for (int i = item * RUN; i < (item + 1) * RUN; i++) {
        rests[i] = from_ascending(keys[i + SIZE / 2]) - median_of(&window);
        if (i + 1 < (item + 1) * RUN)
            move_window(&window, keys, i);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    __global float *out = rough + ((ulong)slice * get_global_size(1) + p) * bins;
    for (int i = item; i < GROUP * RUN && start + i < bins; i += GROUP)
        out[start + i] = rests[i];
}

/* Replaces what is rough in a fit by its running mean with the weights of a Gaussian. Values of sinograms that are not
 * finite become 0, before and after.
 * Global size: GROUP for every GROUP x SPAN bins, projections, slices; work-group GROUP. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void smooth_fits(__global float *restrict sinograms, ulong first, __global const float *restrict rough,
                 __constant const float *restrict weights, int bins, int reach)
{
    __local float tile[GROUP * SPAN + TILE];
    const int item = get_local_id(0), start = get_group_id(0) * GROUP * SPAN;
    const ulong row = ((ulong)get_global_id(2) * get_global_size(1) + get_global_id(1)) * bins;
    const int values = 2 * reach + SPAN;
    /* weights of the value at hand for each of the item's bins */
    float sums[SPAN], weight[SPAN];
    UNROLL_ALL
    for (int i = 0; i < SPAN; i++)
        sums[i] = weight[i] = 0.0f;
    for (int from = 0; from < values; from += TILE) {
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = item; i < GROUP * SPAN + TILE; i += GROUP)
            tile[i] = rough[row + mirrored(start - reach + from + i, bins)];
        barrier(CLK_LOCAL_MEM_FENCE);
        float part[SPAN];
        UNROLL_ALL
        for (int i = 0; i < SPAN; i++)
            part[i] = 0.0f;
        const int count = min(TILE, values - from);
        UNROLL_LOOP
        for (int next = 0; next < count; next++) {
            const float value = tile[item * SPAN + next];
            UNROLL_ALL
            for (int i = SPAN - 1; i > 0; i--)
                weight[i] = weight[i - 1];
            weight[0] = weights[from + next];
            UNROLL_ALL
            for (int i = 0; i < SPAN; i++)
                part[i] += weight[i] * value;
        }
        UNROLL_ALL
        for (int i = 0; i < SPAN; i++)
            sums[i] += part[i];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL_ALL
    for (int i = 0; i < SPAN; i++)
        tile[item * SPAN + i] = sums[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    __global float *out = sinograms + first + row;
    for (int i = item; i < GROUP * SPAN && start + i < bins; i += GROUP)
        out[start + i] = finite_or_0(finite_or_0(out[start + i]) + (tile[i] - rough[row + start + i]));
}
