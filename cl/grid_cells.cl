/* grid_cells.cl: frequencies of filtered rows onto a grid (docs/geometry.md), a work-item for a few cells of a tile.
 *
 * Slices are real, so half of the grid is enough: rows of frequencies along y from 0 on. A work-group computes a tile of
 * TILE x TILE cells for all slices. It takes SEGMENTS segments of the tile's list
 * at a time: samples of one projection on a line through the tile. The kernel's values in every column and row of the tile
 * are computed once for a sample, so that a cell costs one product for their weight and a complex multiply-add a slice; what
 * comes next is read in the meantime. The order of the sums is that of the list. A tile with many segments is computed in
 * parts by several groups, whose sums `add_parts` adds in their order.
 *
 * Defines
 *   SLICES   1 to 16
 *   TILE     8 or 16
 *   ROWS     cells of a column that an item computes, TILE / ROWS from one to the next
 *   SAMPLES  most samples of a segment, of which a work-group takes one for each of its items at a time
 *   WIDTH    cells of a side of the kernel
 *   DEGREE   of the polynomials that give the kernel's values
 *
 * Layouts
 *   spectra       [slice][projection][frequency] float2, frequencies from 0 on; that of -k is the conjugate of k's
 *   tiles         {first cell along x + 65536 along y, first segment, end of its segments, number of the part or WHOLE}
 *   segments      {frequency of the first sample, projection * 256 + samples, bits of the floats x and y: of the first sample, in cells from
 *                 the tile's first}
 *   steps         [projection] cells along x and y from one sample to the next
 *   coefficients  [x, y][cell of the kernel][power, highest first]
 *   grid          [slice][y][x] float2, and from value `parts` on [part][slice][cell of the tile]
 */
#ifndef TILE
#define TILE 8
#endif
#ifndef ROWS
#define ROWS 2
#endif
#ifndef SAMPLES
#define SAMPLES 16
#endif
#ifndef WIDTH
#define WIDTH 4
#endif
#ifndef DEGREE
#define DEGREE (WIDTH + 4)
#endif

#define APART (TILE / ROWS)
#define ITEMS (TILE * APART)
#define CELLS (TILE * TILE)
#define SEGMENTS (ITEMS / SAMPLES)
/* a tile and what samples outside of it would reach; odd, so that rows begin in different banks */
#define REACHED (TILE + 2 * WIDTH)
#define ROOM (REACHED | 1)

#define WHOLE 0xffffffffu

/* The cell (x, y) of a tile. */
HELPER ulong cell_of(uint place, int x, int y, int width)
{
    return ((ulong)(place >> 16) + y) * width + (place & 65535) + x;
}

/* The kernel's values in the cells of a tile along one axis for a sample at this place. */
HELPER void kernel_values(__local float *restrict to, float at, __constant float *restrict c)
{
    const float first = ceil(at - 0.5f * WIDTH), f = at - first - (0.5f * WIDTH - 0.5f);
    UNROLL_ALL
    for (int i = 0; i < REACHED; i++)
        to[i] = 0.0f;
    to += (int)first + WIDTH;
    for (int cell = 0; cell < WIDTH; cell++) {
        float value = c[cell * (DEGREE + 1)];
        UNROLL_ALL
        for (int i = 1; i <= DEGREE; i++)
            value = fma(value, f, c[cell * (DEGREE + 1) + i]);
        to[cell] = value;
    }
}

KERNEL
void backproject(__global const float2 *restrict spectra, __global const uint4 *restrict tiles,
                 __global const uint4 *restrict segments, __global const float2 *restrict steps,
                 __constant float *restrict coefficients, __global float2 *grid, ulong plane, int stride, ulong parts, int width, int height)
{
    __local float along_x[ITEMS * ROOM], along_y[ITEMS * ROOM];
    __local float2 values[ITEMS * SLICES];
    __local int counts[SEGMENTS];
    const int x = get_local_id(0), y = get_local_id(1), item = y * TILE + x;
    const int own = item / SAMPLES, sample = item % SAMPLES;
    const uint4 tile = tiles[get_group_id(0)];
    float2 sums[ROWS][SLICES], next[SLICES];
    UNROLL_ALL
    for (int row = 0; row < ROWS; row++)
        UNROLL_ALL
        for (int slice = 0; slice < SLICES; slice++)
            sums[row][slice] = (float2)(0.0f, 0.0f);

    /* an item brings one sample of one of the segments */
    int count = 0;
    float2 at = (float2)(0.0f, 0.0f);
#define READ_NEXT(from) \
    if ((from) + own < tile.z) { \
        const uint4 segment = segments[(from) + own]; \
        const float2 step = steps[segment.y >> 8]; \
        count = segment.y & 255; \
        at = (float2)(as_float(segment.z), as_float(segment.w)) + (float)sample * step; \
        if (sample < count) { \
            const int k = as_int(segment.x) + sample; \
            __global const float2 *place = spectra + (ulong)(segment.y >> 8) * stride + abs(k); \
            UNROLL_ALL \
            for (int slice = 0; slice < SLICES; slice++) { \
                next[slice] = place[slice * plane]; \
                next[slice].y = k < 0 ? -next[slice].y : next[slice].y; \
            } \
        } \
    } else \
        count = 0;
    READ_NEXT(tile.y)
    for (uint s = tile.y; s < tile.z; s += SEGMENTS) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (sample < count) {
            kernel_values(along_x + item * ROOM, at.x, coefficients);
            kernel_values(along_y + item * ROOM, at.y, coefficients + WIDTH * (DEGREE + 1));
            UNROLL_ALL
            for (int slice = 0; slice < SLICES; slice++)
                values[item * SLICES + slice] = next[slice];
        }
        if (sample == 0)
            counts[own] = count;
        barrier(CLK_LOCAL_MEM_FENCE);
        READ_NEXT(s + SEGMENTS)
        for (int segment = 0; segment < SEGMENTS; segment++) {
            const int first = segment * SAMPLES, end = first + counts[segment];
            for (int i = first; i < end; i++) {
                const float of_x = along_x[i * ROOM + WIDTH + x];
                float weights[ROWS];
                UNROLL_ALL
                for (int row = 0; row < ROWS; row++)
                    weights[row] = of_x * along_y[i * ROOM + WIDTH + y + row * APART];
                UNROLL_ALL
                for (int slice = 0; slice < SLICES; slice++) {
                    const float2 value = values[i * SLICES + slice];
                    UNROLL_ALL
                    for (int row = 0; row < ROWS; row++)
                        sums[row][slice] = fma(weights[row], value, sums[row][slice]);
                }
            }
        }
    }
#undef READ_NEXT
    const bool whole = tile.w == WHOLE;
    __global float2 *to = whole ? grid + cell_of(tile.x, x, y, width) : grid + parts + (ulong)tile.w * SLICES * CELLS + item;
    const ulong plane_apart = whole ? (ulong)width * height : CELLS, row_apart = whole ? APART * width : ITEMS;
    UNROLL_ALL
    for (int row = 0; row < ROWS; row++)
        UNROLL_ALL
        for (int slice = 0; slice < SLICES; slice++)
            to[slice * plane_apart + row * row_apart] = sums[row][slice];
}

/* Work-group as above, one for every tile of `split`: {first cell as in `tiles`, first part, parts, unused}. */
KERNEL
void add_parts(__global const uint4 *restrict split, __global float2 *grid, ulong parts, int width, int height)
{
    const int x = get_local_id(0), y = get_local_id(1), item = y * TILE + x;
    const uint4 tile = split[get_group_id(0)];
    for (int row = 0; row < ROWS; row++)
        for (int slice = 0; slice < SLICES; slice++) {
            __global const float2 *from = grid + parts + ((ulong)tile.y * SLICES + slice) * CELLS + row * ITEMS + item;
            float2 sum = from[0];
            for (uint part = 1; part < tile.z; part++)
                sum += from[(ulong)part * SLICES * CELLS];
            grid[cell_of(tile.x, x, y + row * APART, width) + (ulong)slice * width * height] = sum;
        }
}
