/* backproject_alu.cl: back projection with the arithmetic units, from sinogram rows in local memory (paper, section 6).
 *
 * A work-group computes BLOCK x BLOCK pixels. For CACHED projections at a time it copies the 3/2 BLOCK bins that its
 * pixels can reach into local memory, then every item adds its pixels' values from there (Algorithm 6, Figure 11).
 *
 *   BLOCK          side of the block in pixels: 32 or 64
 *   CACHED         projections copied at a time
 *   ROW_ITEMS      items that copy one row (Table 14)
 *   OVERSAMPLE     cells per bin: 1, or 4 with the nearest taken afterwards (7.2)
 *   ADVANCED       1 a cell holds a bin and the difference to the next (6.4, Algorithm 9)
 *   ARRAYS         arrays that the slices of a cell are split over (Algorithm 8; 6.8; 7.2)
 *   WRITE_PAIRS    1 an item copies two neighbouring bins and writes them at once (Algorithm 7)
 *   HALF_CACHE     1 cells are kept as half (6.7)
 *   OFFSETS        0 every item computes where a row starts; 1 (h_m) one value a row is cached; 2 (h_x) one a row and
 *                  column of pixels is cached (6.8)
 *   ROTATION_CACHE 1 cosine and sine are cached, too (6.8)
 *   STAGE          0, or the projections whose row starts are computed at once in a third stage (6.8; slides)
 *   MAPPING        items to pixels: 0 along rows (Algorithm 6), 1 4 x 4 squares in Z-order along rows (Figure 13),
 *                  2 squares of 16 x 16 (6.8, needed for h_x)
 *   ROUNDING       see round.cl
 *   SHUFFLE        see exchange.cl: how an item gets its neighbour's first bin for ADVANCED
 */
#ifndef BLOCK
#define BLOCK 32
#endif
#ifndef CACHED
#define CACHED 16
#endif
#ifndef ROW_ITEMS
#define ROW_ITEMS 16
#endif
#ifndef OVERSAMPLE
#define OVERSAMPLE 1
#endif
#ifndef ADVANCED
#define ADVANCED 0
#endif
#ifndef ARRAYS
#define ARRAYS 1
#endif
#ifndef WRITE_PAIRS
#define WRITE_PAIRS 0
#endif
#ifndef HALF_CACHE
#define HALF_CACHE 0
#endif
#ifndef OFFSETS
#define OFFSETS 1
#endif
#ifndef ROTATION_CACHE
#define ROTATION_CACHE 0
#endif
#ifndef STAGE
#define STAGE 0
#endif
#ifndef MAPPING
#define MAPPING 1
#endif

#define ALU_ITEMS (WORK_X * WORK_Y)
#define ROW_CELLS (BLOCK * 3 / 2 * OVERSAMPLE)
/* one more, so that the last bin has a neighbour */
#define ROW_ROOM (ROW_CELLS + ADVANCED)
#define ROWS_AT_ONCE (ALU_ITEMS / ROW_ITEMS)
#define ROW_STEPS ((ROW_CELLS + ROW_ITEMS - 1) / ROW_ITEMS)
#define PIXEL_COLUMNS (MAPPING == 2 ? BLOCK / 16 : 1)
#define PIXEL_ROWS (BLOCK * BLOCK / ALU_ITEMS / PIXEL_COLUMNS)
#define PIXEL_STEP (MAPPING == 2 ? ALU_ITEMS / 16 : ALU_ITEMS / BLOCK)
#define STARTS (STAGE ? STAGE : 1)

/* A cell: one component of all (ADVANCED), or SLICES / ARRAYS of them. */
#if SLICES / ARRAYS == 1
typedef float part_t;
#define LOAD_HALF_PART vload_half
#define STORE_HALF_PART vstore_half_rte
#else
#if SLICES / ARRAYS == 2
#define PART 2
#elif SLICES / ARRAYS == 4
#define PART 4
#elif SLICES / ARRAYS == 8
#define PART 8
#else
#define PART 16
#endif
typedef JOIN(float, PART) part_t;
#define LOAD_HALF_PART JOIN(vload_half, PART)
#define STORE_HALF_PART JOIN(JOIN(vstore_half, PART), _rte)
#endif

#if ADVANCED
typedef float2 cell_t;
#elif HALF_CACHE
typedef struct {
    ushort values[SLICES / ARRAYS];
} cell_t;
#else
typedef part_t cell_t;
#endif

#if ARRAYS == 1
#define GATHER(M) M(0)
#define SCATTER(M, value) M(0, value)
#elif ARRAYS == 2
#define GATHER(M) (values_t)(M(0), M(1))
#define SCATTER(M, value) M(0, (value).lo) M(1, (value).hi)
#else
#define GATHER(M) (values_t)(M(0), M(1), M(2), M(3))
#define SCATTER(M, value) M(0, (value).s0) M(1, (value).s1) M(2, (value).s2) M(3, (value).s3)
#endif

/* Everything that a work-group keeps in local memory. */
typedef struct {
    __local cell_t *cells;   /* [array][row][ROW_ROOM] */
    __local float *starts;   /* [STARTS] first bin of a row, with STAGE */
    __local float *staged;   /* [STARTS] position of the block's first pixel from there, with STAGE */
    __local float *offsets;  /* [CACHED] the same, or [CACHED][16][BLOCK / 16] with OFFSETS 2 */
    __local float2 *rotations; /* [CACHED] */
} cache_t;

#define ARRAY_ROOM (CACHED * ROW_ROOM)
#define OFFSET_ROOM (OFFSETS == 2 ? CACHED * BLOCK : CACHED)
#define CACHE_MEMORY \
    __local cell_t cache_cells[ARRAYS * ARRAY_ROOM] __attribute__((aligned(16))); \
    __local float cache_starts[STARTS]; \
    __local float cache_staged[STARTS]; \
    __local float cache_offsets[OFFSET_ROOM]; \
    __local float2 cache_rotations[ROTATION_CACHE ? CACHED : 1]; \
    const cache_t cache = {cache_cells, cache_starts, cache_staged, cache_offsets, cache_rotations};

/* First bin that a block needs of a row, and the position of the block's first pixel relative to it (6.1: h_m), in a
 * function with `from_axis`, the block's first pixel from the one on the axis. `lowest` keeps positions above 0 whatever
 * the rounding; above 1/2 where 1/2 is taken off and 2^23 added, because just below 2^23 a float has halves. */
#if ABSOLUTE
#define ROW_START(p, offset) \
    row_start_from_bin_0(AXIS(constants, p, projections), ROTATION(constants, p, projections), \
                         LOWEST(constants, p, projections), from_axis, offset)
#else
#define ROW_START(p, offset) row_start(columns[p], rows[p], LOWEST(constants, p, projections), offset)
#endif

HELPER float row_start(float2 column, float2 row, float lowest, float *offset)
{
    const float rest = column.y + row.y;
    const float below = floor(rest + lowest);
    *offset = rest - below;
    return column.x + row.x + below;
}

HELPER float row_start_from_bin_0(float axis, float2 rotation, float lowest, float2 from_axis, float *offset)
{
    const float position = position_from_bin_0(axis, rotation, from_axis);
    const float below = floor(position + lowest);
    *offset = position - below;
    return below;
}

HELPER void store_cell(__local cell_t *cell, part_t value)
{
#if HALF_CACHE
    STORE_HALF_PART(value, 0, (__local half *)cell);
#elif !ADVANCED
    *cell = value;
#endif
}

/* Value of one array's cell, for interpolation at `rest` after it. */
HELPER part_t cell_value(__local const cell_t *cell, float rest)
{
#if ADVANCED
    return mad(rest, cell->y, cell->x);
#elif HALF_CACHE && ROUND_DOWN
    const part_t a = LOAD_HALF_PART(0, (__local const half *)cell), b = LOAD_HALF_PART(0, (__local const half *)(cell + 1));
    return mad((part_t)(rest), b - a, a);
#elif HALF_CACHE
    return LOAD_HALF_PART(0, (__local const half *)cell);
#elif ROUND_DOWN
    const part_t a = cell[0], b = cell[1];
    return mad((part_t)(rest), b - a, a);
#else
    return *cell;
#endif
}

/* Bin of a row, or the value at cell `i` of an oversampled one; projections past the last are 0. */
#if OVERSAMPLE > 1
#define SOURCE(p, start, i) fetch_between(sinogram, bins, p, start, (float)(i) / OVERSAMPLE)
#else
#define SOURCE(p, start, i) fetch_bin(sinogram, bins, p, (start) + (float)(i))
#endif

/* Copies one row into local memory; `item` of ROW_ITEMS. */
HELPER void cache_row(cache_t cache, SINOGRAM sinogram, int bins, int p, bool exists, float start, int row, int item)
{
    __local cell_t *cells = cache.cells + row * ROW_ROOM;
    const values_t nothing = (values_t)(0.0f);
#if ADVANCED
    /* neighbouring bins, so that only the last needs the next item's first */
    const int from = item * ROW_STEPS;
    values_t value = exists ? SOURCE(p, start, from) : nothing;
#if SHUFFLE
    const values_t own = value;
#endif
    for (int i = 0; i + 1 < ROW_STEPS; i++) {
        const values_t next = exists ? SOURCE(p, start, from + i + 1) : nothing;
#define STORE_BOTH(s, member) cells[s * ARRAY_ROOM + from + i] = (float2)(value member, next member - value member);
        EACH_SLICE(STORE_BOTH)
#undef STORE_BOTH
        value = next;
    }
    const int last = from + ROW_STEPS - 1;
#if SHUFFLE
    const values_t next = shuffle_down(own, 1);
#define STORE_LAST(s, member) cells[s * ARRAY_ROOM + last] = (float2)(value member, next member - value member);
#else
    /* the difference is filled in when the neighbour's first bin is there, see finish_rows */
#define STORE_LAST(s, member) cells[s * ARRAY_ROOM + last] = (float2)(value member, 0.0f);
#endif
    EACH_SLICE(STORE_LAST)
#undef STORE_LAST
#elif WRITE_PAIRS
    for (int i = 0; i < ROW_STEPS / 2; i++) {
        const int cell = 2 * (i * ROW_ITEMS + item);
        const values_t a = exists ? SOURCE(p, start, cell) : nothing, b = exists ? SOURCE(p, start, cell + 1) : nothing;
        *(__local float2 *)(cells + cell) = (float2)(a, b);
    }
#else
    for (int cell = item; cell < ROW_CELLS; cell += ROW_ITEMS) {
        const values_t value = exists ? SOURCE(p, start, cell) : nothing;
#define STORE_PART(array, part) store_cell(cells + array * ARRAY_ROOM + cell, part);
        SCATTER(STORE_PART, value)
#undef STORE_PART
    }
#endif
}

#if ADVANCED && !SHUFFLE
/* The differences that reach into the next item's bins. */
HELPER void finish_rows(cache_t cache, int item)
{
    for (int row = item / ROW_ITEMS; row < CACHED; row += ROWS_AT_ONCE) {
        const int last = (item % ROW_ITEMS + 1) * ROW_STEPS - 1;
        /* the last bin of a row is never the lower one of a pair */
        if (last + 1 < ROW_CELLS) {
            __local cell_t *cell = cache.cells + row * ROW_ROOM + last;
#define FINISH(s, member) cell[s * ARRAY_ROOM].y = cell[s * ARRAY_ROOM + 1].x - cell[s * ARRAY_ROOM].x;
            EACH_SLICE(FINISH)
#undef FINISH
        }
    }
}
#endif

/* Item -> its first pixel in the block; the others are 16 columns and PIXEL_STEP rows on. */
HELPER int2 first_pixel(int item)
{
#if MAPPING == 0
    return (int2)(item % BLOCK, item / BLOCK);
#elif MAPPING == 1
    const int square = item / 16;
    return z_order(item % 16) + 4 * (int2)(square % (BLOCK / 4), square / (BLOCK / 4));
#else
    const int square = item / 16;
    return z_order(item % 16) + 4 * (int2)(square % 4, square / 4);
#endif
}

/* One block of BLOCK x BLOCK pixels. `columns` and `rows` are those of the block, `from_axis` is its first pixel from the one
 * on the axis. */
HELPER void backproject_block(cache_t cache, output_t out, SINOGRAM sinogram, __global const float2 *columns,
                              __global const float2 *rows, CONSTANTS constant_t *constants, int projections, int bins,
                              int2 block, float2 from_axis, int item)
{
    const int2 pixel = first_pixel(item);
    const float2 f = convert_float2(pixel);
    values_t sums[PIXEL_ROWS * PIXEL_COLUMNS];
    UNROLL_ALL
    for (int q = 0; q < PIXEL_ROWS * PIXEL_COLUMNS; q++)
        sums[q] = (values_t)(0.0f);

    for (int base = 0; base < projections; base += CACHED) {
#if STAGE
        if (base % STAGE == 0) {
            /* third stage: where the rows of the next STAGE projections start */
            for (int i = item; i < STAGE; i += ALU_ITEMS) {
                const int p = min(base + i, projections - 1);
                float offset;
                cache.starts[i] = ROW_START(p, &offset);
                cache.staged[i] = offset;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
#endif
        /* copy */
        for (int row = item / ROW_ITEMS; row < CACHED; row += ROWS_AT_ONCE) {
            const int place = item % ROW_ITEMS;
            const int p = min(base + row, projections - 1);
#if STAGE
            const float start = cache.starts[base % STAGE + row], offset = cache.staged[base % STAGE + row];
#else
            float offset;
            const float start = ROW_START(p, &offset);
#endif
#if OFFSETS == 1
            if (place == 0)
                cache.offsets[row] = offset;
#elif OFFSETS == 2
            const float cosine = ROTATION(constants, p, projections).x;
            for (int x = place; x < BLOCK; x += ROW_ITEMS)
                cache.offsets[row * BLOCK + x % 16 * (BLOCK / 16) + x / 16] = mad((float)x, cosine, offset);
#endif
#if ROTATION_CACHE
            if (place == 0)
                cache.rotations[row] = ROTATION(constants, p, projections);
#endif
            cache_row(cache, sinogram, bins, p, base + row < projections, start, row, place);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
#if ADVANCED && !SHUFFLE
        finish_rows(cache, item);
        barrier(CLK_LOCAL_MEM_FENCE);
#endif

        /* add */
        UNROLL_LOOP
        for (int i = 0; i < CACHED; i++) {
#if !ROTATION_CACHE || OFFSETS == 0
            const int p = min(base + i, projections - 1);
#endif
#if ROTATION_CACHE
            const float2 rotation = cache.rotations[i];
#else
            const float2 rotation = ROTATION(constants, p, projections);
#endif
            __local const cell_t *cells = cache.cells + i * ROW_ROOM;
            UNROLL_ALL
            for (int c = 0; c < PIXEL_COLUMNS; c++) {
#if OFFSETS == 2
                const float at = cache.offsets[i * BLOCK + pixel.x % 16 * (BLOCK / 16) + pixel.x / 16 + c];
#else
#if OFFSETS == 1
                const float offset = cache.offsets[i];
#else
                float offset;
                ROW_START(p, &offset);
#endif
                const float at = mad(f.x + 16 * c, rotation.x, offset);
#endif
                UNROLL_ALL
                for (int q = 0; q < PIXEL_ROWS; q++) {
                    const float h = mad(-(f.y + PIXEL_STEP * q), rotation.y, at) * OVERSAMPLE;
                    float rest;
                    __local const cell_t *cell = CELL_AT(cells, h, rest);
#define VALUE(array) cell_value(cell + array * ARRAY_ROOM, rest)
                    sums[c * PIXEL_ROWS + q] += GATHER(VALUE);
#undef VALUE
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    UNROLL_ALL
    for (int c = 0; c < PIXEL_COLUMNS; c++)
        UNROLL_ALL
        for (int q = 0; q < PIXEL_ROWS; q++)
            store_pixel(out, sums[c * PIXEL_ROWS + q], block.x + pixel.x + 16 * c, block.y + pixel.y + PIXEL_STEP * q);
}

#ifndef TEXTURE_BLOCKS
KERNEL
void backproject(KERNEL_ARGUMENTS)
{
    const output_t out = OUTPUT;
    CACHE_MEMORY
    const int2 group = (int2)(get_group_id(0), get_group_id(1));
    const int item = get_local_id(1) * WORK_X + get_local_id(0);
    const int2 block = origin + BLOCK * group;
    backproject_block(cache, out, sinogram, columns + (ulong)group.x * projections, rows + (ulong)group.y * projections,
                      constants, projections, bins, block, convert_float2(block) - centre, item);
}
#endif
