/* lines_vector.cl: rows, then columns of the grid that grid_vector.cl fills become slices.
 *
 * A work-item transforms one row, or two columns, in memory of its own, and goes on to the next.
 *
 * Defines, beside those of common.cl, memory_hints.cl and transform_line.cl
 *   COLUMNS  1 the kernel for columns, 0 that for rows
 *   CELLS    side of the tiles that were filled
 *
 * Layouts
 *   grid     [y][x][slice] float2, frequencies along y from 0 to LENGTH / 2; after the rows' transform a row begins with the pixels of the region
 *   empty    [y / CELLS] cells of a row that were not filled: from the first on, before the second
 *   scratch  behind the grid, from complex number `scratch` on, for each work-item: [2][LENGTH] values, and for columns
 *            [y][pair of columns]
 *   slices   [slice][y][x] float, from value `first` on
 *   turns    see transform_line.cl
 */
#ifndef COLUMNS
#define COLUMNS 0
#endif
#ifndef CELLS
#define CELLS 8
#endif

#define FLOATS (2 * SLICES)

/* A place before the first is one before the end. */
#define WRAPPED(place) ((place) < 0 ? (place) + LENGTH : (place))

#if COLUMNS
/* Columns whose pixels are stored together: what a line of the cache holds of a slice. */
#define STORED 16
#define STORED_PAIRS (STORED / 2)

/* Rows of pixels of all slices from `staged`. */
HELPER void store_columns(__global const complex_t *staged, __global float *slices, int count, int width, int height,
                          int valid)
{
    const ulong plane = (ulong)width * height;
    for (int y = 0; y < height; y++) {
        __global const float *from = (__global const float *)(staged + y * STORED_PAIRS);
        for (int slice = 0; slice < valid; slice++) {
            __global float *to = slices + slice * plane + (ulong)y * width;
            float values[STORED];
            UNROLL_ALL
            for (int pair = 0; pair < STORED_PAIRS; pair++) {
                values[2 * pair] = from[pair * FLOATS + 2 * slice];
                values[2 * pair + 1] = from[pair * FLOATS + 2 * slice + 1];
            }
            if (count == STORED) {
                float16 row = vload16(0, values);
#if ACCUMULATE
                row += vload16(0, to);
#endif
                store_line(row, to);
            } else
                for (int c = 0; c < count; c++)
                    STORE(to[c], values[c]);
        }
    }
}

/* Global size: as many items as have scratch. See grid_lines.cl for the arguments. */
KERNEL
void transform_grid_columns(__global complex_t *grid, __global const float *restrict along_x,
                            __global const float *restrict along_y, __global const float2 *restrict turns,
                            __global float *restrict slices, ulong scratch, ulong first, int stride, int width, int height,
                            int valid, float unit)
{
    __global complex_t *line = grid + scratch / SLICES + get_global_id(0) * (2ul * LENGTH + STORED_PAIRS * (ulong)height);
    __global complex_t *spare = line + LENGTH, *staged = spare + LENGTH;
    for (int x0 = get_global_id(0) * STORED; x0 < width; x0 += get_global_size(0) * STORED) {
        for (int pair = 0; pair < STORED_PAIRS && x0 + 2 * pair < width; pair++) {
            const int x = x0 + 2 * pair, beside = x + 1 < width;
            const int ahead = pair + 1 < STORED_PAIRS ? 2 : 2 + STORED * (get_global_size(0) - 1);
            /* two columns of pixels are one complex column; the second half is conjugate to the first; a last one is alone */
            for (int y = 0; y <= LENGTH / 2; y++) {
                __global const complex_t *at = grid + (ulong)y * stride + x;
                const complex_t a = at[0], b = at[beside] * (float)beside;
                PREFETCH(at + ahead);
                PREFETCH(at + ahead + 1);
                line[y] = a + quarter_turn(b, 1.0f);
                if (y > 0)
                    line[LENGTH - y] = a * CONJUGATE + quarter_turn(b * CONJUGATE, 1.0f);
            }
            __global const complex_t *end = transform_line(line, spare, turns);
            const complex_t factor = PER_SLICE(unit * along_x[x], unit * along_x[x + beside]);
            for (int y = 0; y < height; y++)
                staged[y * STORED_PAIRS + pair] = end[WRAPPED(y - height / 2)] * (factor * along_y[y]);
        }
        store_columns(staged, slices + first + x0, min(STORED, width - x0), width, height, valid);
    }
}
#else
/* Global size: as many items as have scratch. The first `used` rows are transformed; the pixels of the region are stored. */
KERNEL
void transform_grid_rows(__global complex_t *grid, __global const int2 *restrict empty,
                         __global const float2 *restrict turns, ulong scratch, int used, int width)
{
    __global complex_t *line = grid + scratch / SLICES + get_global_id(0) * 2ul * LENGTH, *spare = line + LENGTH;
    for (int y = get_global_id(0); y < used; y += get_global_size(0)) {
        const int2 without = empty[y / CELLS];
        __global complex_t *row = grid + (ulong)y * LENGTH;
        for (int x = 0; x < without.x; x++)
            line[x] = row[x];
        for (int x = without.x; x < without.y; x++)
            line[x] = (complex_t)(0.0f);
        for (int x = without.y; x < LENGTH; x++)
            line[x] = row[x];
        __global const complex_t *end = transform_line(line, spare, turns);
        for (int x = 0; x < width; x++)
            row[x] = end[WRAPPED(x - width / 2)];
    }
}
#endif
