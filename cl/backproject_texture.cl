/* backproject_texture.cl: the cache-aware texture kernel (paper, 5.6, Algorithms 3 to 5; its LaTeX draft).
 *
 * A work-group computes 16 x 16 pixels. GROUPS projections are processed side by side; every item adds
 * its share of the projections to several pixels, which cuts the load on constant memory, and at the end the partial
 * sums of the GROUPS items of a pixel are added up.
 *
 *   GROUPS          projections side by side
 *                   2, 4, 8: 64 items of a projection cover 16 x 4 pixels, in four steps down (paper, Figure 10, with 4);
 *                   128, 256 or 512 items in all
 *                   16: 16 items cover 4 x 4 pixels, in 4 x 4 steps (draft); 256 items
 *   CACHED          constants of so many projections are kept in local memory (Algorithm 5); 0: constant memory
 *   REGROUP         1 the cached axes lie together by GROUPS, padded, so that neighbours are read at once (draft)
 *   SAME_CENTRE     1 all projections have the axis of the first, none is loaded (draft)
 *   FLOAT_INDEX     1 the projection loop counts centres of texel rows in float (draft); 0 rows, each of which is converted
 *   SHARED_BUFFER   1 constants and partial sums take turns in one local buffer (draft)
 *   DIRECT_WRITES   1 sums go to global memory as they are ready, 0 through local memory in rows
 *   SHUFFLE         see exchange.cl: how partial sums are added
 */
#ifndef GROUPS
#define GROUPS 4
#endif
#ifndef CACHED
#define CACHED 0
#endif
#ifndef REGROUP
#define REGROUP 0
#endif
#ifndef SAME_CENTRE
#define SAME_CENTRE 0
#endif
#ifndef FLOAT_INDEX
#define FLOAT_INDEX 0
#endif
#ifndef SHARED_BUFFER
#define SHARED_BUFFER 0
#endif
#ifndef DIRECT_WRITES
#define DIRECT_WRITES 0
#endif

/* pixels of one step, and steps in x and y */
#if GROUPS < 16
#define STEP_PIXELS 64
#define STEPS_X 1
#else
#define STEP_PIXELS 16
#define STEPS_X 4
#endif
#define STEPS_Y 4
#define ITEMS (STEP_PIXELS * GROUPS)

/* Axes of the cached projections: in order, or the ones of each item together with a gap against bank conflicts. */
#if REGROUP
#define AXIS_ROW (CACHED / GROUPS + 4)
#define AXIS_AT(p) (((p) % GROUPS) * AXIS_ROW + (p) / GROUPS)
#define AXIS_ROOM (GROUPS * AXIS_ROW)
#else
#define AXIS_AT(p) (p)
#define AXIS_ROOM CACHED
#endif
#define CACHE_BYTES (CACHED * 8 + AXIS_ROOM * 4)
#define PARTIAL_BYTES (ITEMS * SLICES * 4)

#if FLOAT_INDEX
typedef float index_t;
#define FIRST(p) ((p) + 0.5f)
#define ROW_CENTRE(p) (p)
#else
typedef int index_t;
#define FIRST(p) (p)
#define ROW_CENTRE(p) ((p) + 0.5f)
#endif

/* Adds the GROUPS partial sums of every pixel of a step; the result is in the items with part 0. */
HELPER values_t reduce(__local values_t *partial, values_t own, int pixel, int part_of_own, int item)
{
    const int part = item % GROUPS, slot = item / GROUPS;
    partial[pixel * GROUPS + part_of_own] = own;
    barrier(CLK_LOCAL_MEM_FENCE);
    values_t sum = partial[slot * GROUPS + part];
#if SHUFFLE
    for (int i = GROUPS / 2; i >= 1; i /= 2)
        sum += shuffle_xor(sum, i);
    barrier(CLK_LOCAL_MEM_FENCE);
#else
    for (int i = GROUPS / 2; i >= 1; i /= 2) {
        if (part < i) {
            sum += partial[slot * GROUPS + part + i];
            partial[slot * GROUPS + part] = sum;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#endif
    return sum;
}

KERNEL
void backproject(KERNEL_ARGUMENTS)
{
    const output_t out = OUTPUT;
    const int item = get_local_id(1) * 16 + get_local_id(0);
    const int2 block = origin + 16 * (int2)(get_group_id(0), get_group_id(1));

    /* item -> place in the step and projection of the group (Algorithm 2, Figure 10; draft) */
#if GROUPS < 16
    const int group = item / 64;
    const int2 place = z_order(item % 16) + (int2)(4 * ((item / 16) % 4), 0);
    const int pixel = place.y * 16 + place.x;
#else
    const int group = (item % 16) / 4 + 4 * (item / 64);
    const int2 place = z_order(item % 4 + 4 * ((item / 16) % 4));
    const int pixel = place.y * 4 + place.x;
#endif
    const float2 f = convert_float2(block + place) - centre;

#if SHARED_BUFFER && CACHED > 0
    /* aligned for every vector that takes its turn in it */
    __local float16 shared[(PARTIAL_BYTES > CACHE_BYTES ? PARTIAL_BYTES : CACHE_BYTES) / 64 + 1];
    __local values_t *partial = (__local values_t *)shared;
    __local float2 *rotations = (__local float2 *)shared;
    __local float *axes = (__local float *)(rotations + CACHED);
#else
    __local values_t partial[ITEMS];
#if CACHED > 0
    __local float2 rotations[CACHED];
    __local float axes[AXIS_ROOM];
#endif
#endif
#if !DIRECT_WRITES
    __local values_t tile[256];
#endif

    values_t sums[STEPS_X * STEPS_Y];
    UNROLL_ALL
    for (int q = 0; q < STEPS_X * STEPS_Y; q++)
        sums[q] = (values_t)(0.0f);

#if CACHED > 0
    for (int base = 0; base < projections; base += CACHED) {
        const int count = min(CACHED, projections - base);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = item; i < count; i += ITEMS) {
            rotations[i] = ROTATION(constants, base + i, projections);
            axes[AXIS_AT(i)] = AXIS(constants, base + i, projections);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
#define LOCAL_ROTATION(p) rotations[p]
#define LOCAL_AXIS(p) axes[AXIS_AT(p)]
#define FROM_BASE(p) (base + (p))
#else
    {
        const int count = projections;
#define LOCAL_ROTATION(p) ROTATION(constants, p, projections)
#define LOCAL_AXIS(p) AXIS(constants, p, projections)
#define FROM_BASE(p) (p)
#endif
        UNROLL_LOOP
        for (index_t p = FIRST(group); p < count; p += GROUPS) {
            const float2 rotation = LOCAL_ROTATION((int)p);
#if SAME_CENTRE
            const float axis = AXIS(constants, 0, projections);
#else
            const float axis = LOCAL_AXIS((int)p);
#endif
            const float at = position_from_bin_0(axis, rotation, f) + FROM_EDGE, row = ROW_CENTRE(FROM_BASE(p));
            UNROLL_ALL
            for (int y = 0; y < STEPS_Y; y++) {
                UNROLL_ALL
                for (int x = 0; x < STEPS_X; x++)
                    sums[y * STEPS_X + x] += fetch_at(sinogram, bins, row, moved(at, rotation, 4 * x, 4 * y));
            }
        }
    }
#if SHARED_BUFFER && CACHED > 0
    barrier(CLK_LOCAL_MEM_FENCE);
#endif

    UNROLL_ALL
    for (int q = 0; q < STEPS_X * STEPS_Y; q++) {
        const values_t sum = reduce(partial, sums[q], pixel, group, item);
        const int slot = item / GROUPS;
        const int2 at = (int2)(4 * (q % STEPS_X), 4 * (q / STEPS_X)) +
                        (int2)(slot % (STEP_PIXELS / 4), slot / (STEP_PIXELS / 4));
        if (item % GROUPS == 0) {
#if DIRECT_WRITES
            store_pixel(out, sum, block.x + at.x, block.y + at.y);
#else
            tile[16 * at.y + at.x] = sum;
#endif
        }
    }
#if !DIRECT_WRITES
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = item; i < 256; i += ITEMS)
        store_pixel(out, tile[i], block.x + i % 16, block.y + i / 16);
#endif
}
