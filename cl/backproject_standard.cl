/* backproject_standard.cl: the standard kernel (paper, 5.1, Algorithm 1).
 *
 * One work-item is one pixel, a work-group a block of WORK_X x WORK_Y pixels; it walks over all projections and adds
 * the filtered value where the pixel's ray meets the detector.
 *
 *   Z_ORDER  1 the items of a 16 x 16 work-group fill 4 x 4 squares along a Z-order curve, so that neighbouring items
 *            read neighbouring bins (paper, 5.5, Algorithm 2); 0 items and pixels have the same coordinates
 *   SYNCHRONIZED  1 items of a work-group wait for each other at every projection, so that a processor, which runs one
 *            item after the other, finds the bins of all of them in its cache (paper, 6.10)
 */
#ifndef Z_ORDER
#define Z_ORDER 0
#endif
#ifndef SYNCHRONIZED
#define SYNCHRONIZED 0
#endif

KERNEL
void backproject(KERNEL_ARGUMENTS)
{
    const output_t out = OUTPUT;
#if Z_ORDER
    const int square = get_local_id(1);
    const int2 pixel = z_order(get_local_id(0)) + 4 * (int2)(square % 4, square / 4);
#else
    const int2 pixel = (int2)(get_local_id(0), get_local_id(1));
#endif
    const float2 f = convert_float2(pixel);
    const int2 block = origin + (int2)(get_group_id(0) * WORK_X, get_group_id(1) * WORK_Y);
#if ABSOLUTE
    const float2 from_axis = convert_float2(block) - centre;
#else
    columns += (ulong)get_group_id(0) * projections;
    rows += (ulong)get_group_id(1) * projections;
#endif

    values_t sum = (values_t)(0.0f);
    UNROLL_LOOP
    for (int p = 0; p < projections; p++) {
        const position_t h = POSITION(p, from_axis, f);
        sum += sample(sinogram, bins, p, h);
#if SYNCHRONIZED
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
    }
    store_pixel(out, sum, block.x + pixel.x, block.y + pixel.y);
}
