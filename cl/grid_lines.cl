/* grid_lines.cl: rows, then columns of the grids that grid_cells.cl fills become slices.
 *
 * Defines, beside those of common.cl and transform_row.cl: LENGTH is that of a row or a column
 *   LINES     rows of a work-group, or pairs of columns, which are its first dimension
 *   COLUMNS   1 the kernel for columns, 0 that for rows
 *   CELLS     side of the tiles that were filled
 *
 * Layouts
 *   grid         [slice][y][x] float2, frequencies along y from 0 to LENGTH / 2; after the rows' transform a row begins with the pixels of the region
 *   empty        [y / CELLS] cells of a row that were not filled: from the first on, before the second
 *   slices       [slice][y][x] float, from value `first` on
 *   turns        see transform_row.cl
 */
#ifndef LINES
#define LINES 1
#endif
#ifndef COLUMNS
#define COLUMNS 0
#endif
#ifndef CELLS
#define CELLS 8
#endif

/* The pixel, of `pixels` whose middle one is the transform's place 0, at a place; beyond them for others. */
HELPER int pixel_at(int place, int pixels)
{
    return (place < LENGTH / 2 ? place : place - LENGTH) + pixels / 2;
}

#if COLUMNS
/* The values of two columns of pixels as one complex column, at a place: what is stored is half of each, up to frequency
 * LENGTH / 2; the rest is conjugate to it. */
HELPER float2 of_columns(__global const float2 *column, int place, int stride, bool both)
{
    const bool opposite = place > LENGTH / 2;
    __global const float2 *at = column + (ulong)(opposite ? LENGTH - place : place) * stride;
    const float2 a = at[0], b = both ? at[1] : (float2)(0.0f, 0.0f);
    return opposite ? (float2)(a.x + b.y, b.x - a.y) : (float2)(a.x - b.y, a.y + b.x);
}

/* Work-group: LINES, LENGTH / 16. Global size: half of the `width` pixels rounded up to LINES, LENGTH / 16, slices. An item
 * computes pixels of columns 2x and 2x + 1, and multiplies them by their corrections along x and y and by `unit`. Slices
 * from `valid` on are not stored; a grid has `rows` rows of `stride` cells. */
__kernel __attribute__((reqd_work_group_size(LINES, ROW_ITEMS, 1)))
void transform_grid_columns(__global const float2 *restrict grid, __global const float *restrict along_x,
                            __global const float *restrict along_y, __global const float2 *restrict turns,
                            __global float *restrict slices, ulong first, int stride, int rows, int width, int height,
                            int valid, float unit)
{
    __local exchanged_t rooms[ROW_ROOM * ROOM_STRIDE];
    __local exchanged_t *room = rooms + get_local_id(0) % ROOM_STRIDE;
    const int item = get_local_id(1), x = 2 * get_global_id(0), slice = get_global_id(2);
    const bool exists = x < width && slice < valid, both = x + 1 < width;
    __global const float2 *column = grid + (ulong)slice * rows * stride + x;
    float2 v[POINTS];
    UNROLL_ALL
    for (int n = 0; n < POINTS; n++)
        v[n] = exists ? of_columns(column, item + n * ROW_ITEMS, stride, both) : (float2)(0.0f, 0.0f);
    transform_row(v, room, turns, item, 1.0f);
    if (!exists)
        return;
    const float left = unit * along_x[x], right = both ? unit * along_x[x + 1] : 0.0f;
    __global float *to = slices + first + (ulong)slice * width * height + x;
    UNROLL_ALL
    for (int n = 0; n < POINTS; n++) {
        const int y = pixel_at(item + n * ROW_ITEMS, height);
        if (y < 0 || y >= height)
            continue;
        __global float *pixel = to + (ulong)y * width;
        STORE(pixel[0], v[n].x * (left * along_y[y]));
        if (both)
            STORE(pixel[1], v[n].y * (right * along_y[y]));
    }
}
#else
/* Work-group: LENGTH / 16, LINES. Global size: LENGTH / 16, the `used` rows of a grid of `rows` rounded up to LINES, slices.
 * The pixels of the region are stored. */
__kernel __attribute__((reqd_work_group_size(ROW_ITEMS, LINES, 1)))
void transform_grid_rows(__global float2 *restrict grid, __global const int2 *restrict empty,
                         __global const float2 *restrict turns, int rows, int used, int width)
{
    __local exchanged_t rooms[LINES * ROW_ROOM];
    __local exchanged_t *room = rooms + get_local_id(1) * ROW_ROOM;
    const int item = get_local_id(0), y = get_global_id(1);
    const bool exists = y < used;
    const int2 without = exists ? empty[y / CELLS] : (int2)(0, LENGTH);
    __global float2 *row = grid + ((ulong)get_global_id(2) * rows + y) * LENGTH;
    float2 v[POINTS];
    UNROLL_ALL
    for (int n = 0; n < POINTS; n++) {
        const int x = item + n * ROW_ITEMS;
        v[n] = x < without.x || x >= without.y ? row[x] : (float2)(0.0f, 0.0f);
    }
    barrier(CLK_GLOBAL_MEM_FENCE); /* other items store where this one has read */
    transform_row(v, room, turns, item, 1.0f);
    if (!exists)
        return;
    UNROLL_ALL
    for (int n = 0; n < POINTS; n++) {
        const int x = pixel_at(item + n * ROW_ITEMS, width);
        if (x >= 0 && x < width)
            row[x] = v[n];
    }
}
#endif
