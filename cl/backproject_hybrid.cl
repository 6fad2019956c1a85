/* backproject_hybrid.cl: some blocks by the texture unit, the others by the arithmetic units (paper, 7.1).
 *
 *   TEXTURE_BLOCKS, ALU_BLOCKS  of so many blocks in turn
 *   BALANCE   0 by the block's place in the full slice, along diagonals: which block goes where never changes, so a region
 *             is a crop of the full slice; 1 by the multiprocessor that runs it, which keeps the ratio there, but the
 *             result then depends on scheduling in the last bits
 *
 * The texture part walks over its block in squares of 16 x 16 pixels, items in Z-order (5.5).
 */
#ifndef BALANCE
#define BALANCE 0
#endif

HELPER void texture_block(output_t out, SINOGRAM sinogram, __global const float2 *columns, __global const float2 *rows,
                          CONSTANTS constant_t *constants, int projections, int bins, int2 block, float2 from_axis,
                          int item)
{
    const int square = item / 16;
    const int2 pixel = z_order(item % 16) + 4 * (int2)(square % 4, square / 4);
    const float2 f = convert_float2(pixel);
    values_t sums[BLOCK * BLOCK / ALU_ITEMS];
    UNROLL_ALL
    for (int q = 0; q < BLOCK * BLOCK / ALU_ITEMS; q++)
        sums[q] = (values_t)(0.0f);
    UNROLL_LOOP
    for (int p = 0; p < projections; p++) {
        const float2 rotation = ROTATION(constants, p, projections);
        const position_t first = POSITION(p, from_axis, f);
#if ABSOLUTE
        const float at = first.rest + FROM_EDGE, row = p + 0.5f;
#endif
        UNROLL_ALL
        for (int q = 0; q < BLOCK * BLOCK / ALU_ITEMS; q++) {
            const int x = 16 * (q % (BLOCK / 16)), y = ALU_ITEMS / 16 * (q / (BLOCK / 16));
#if ABSOLUTE
            sums[q] += fetch_at(sinogram, bins, row, moved(at, rotation, x, y));
#else
            const position_t h = {first.whole, moved(first.rest, rotation, x, y)};
            sums[q] += sample(sinogram, bins, p, h);
#endif
        }
    }
    UNROLL_ALL
    for (int q = 0; q < BLOCK * BLOCK / ALU_ITEMS; q++)
        store_pixel(out, sums[q], block.x + pixel.x + 16 * (q % (BLOCK / 16)),
                    block.y + pixel.y + ALU_ITEMS / 16 * (q / (BLOCK / 16)));
}

KERNEL
void backproject(KERNEL_ARGUMENTS)
{
    const output_t out = OUTPUT;
    CACHE_MEMORY
    const int2 group = (int2)(get_group_id(0), get_group_id(1));
    const int2 block = origin + BLOCK * group;
    const float2 from_axis = convert_float2(block) - centre;
    const int item = get_local_id(1) * WORK_X + get_local_id(0);
#if BALANCE == 1
    __local uint shared_number;
    if (item == 0) {
        uint multiprocessor;
        __asm__ volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
        shared_number = atomic_inc(&counters[multiprocessor]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint number = shared_number;
#else
    const uint number = (uint)(block.x / BLOCK + block.y / BLOCK);
#endif
    columns += (ulong)group.x * projections;
    rows += (ulong)group.y * projections;
    if (number % (TEXTURE_BLOCKS + ALU_BLOCKS) < TEXTURE_BLOCKS)
        texture_block(out, sinogram, columns, rows, constants, projections, bins, block, from_axis, item);
    else
        backproject_block(cache, out, sinogram, columns, rows, constants, projections, bins, block, from_axis, item);
}
