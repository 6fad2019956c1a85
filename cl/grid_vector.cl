/* grid_vector.cl: frequencies of filtered rows onto a grid, as grid_cells.cl does it, with slices as the vector: for
 * processors, and wherever the lines of a grid do not fit local memory.
 *
 * A work-item computes a tile of TILE x TILE cells. The kernel's values are computed for sixteen samples at once; then a
 * sample is added to the WIDTH x WIDTH cells around it, all slices in one vector.
 *
 * Defines
 *   SLICES                1 to 8
 *   TILE, WIDTH, DEGREE   see grid_cells.cl; TILE may be 32, too
 *
 * Layouts
 *   spectra  [projection][frequency][slice] float2
 *   grid     [y][x][slice] float2
 *   the others as in grid_cells.cl
 */
#ifndef TILE
#define TILE 8
#endif
#ifndef WIDTH
#define WIDTH 4
#endif
#ifndef DEGREE
#define DEGREE (WIDTH + 4)
#endif

/* Segments between one whose samples are asked for and the one that is spread. */
#define AHEAD 1

/* a tile and what samples outside of it would reach */
#define REACHED (TILE + 2 * WIDTH)

/* The kernel's values at cells along one axis for samples at sixteen places, and the first of these cells. */
HELPER int16 kernel_values(float16 at, __constant float *c, float values[WIDTH][16])
{
    const float16 first = ceil(at - 0.5f * WIDTH), f = at - first - (0.5f * WIDTH - 0.5f);
    UNROLL_ALL
    for (int cell = 0; cell < WIDTH; cell++) {
        float16 value = (float16)(c[cell * (DEGREE + 1)]);
        UNROLL_ALL
        for (int i = 1; i <= DEGREE; i++)
            value = fma(value, f, (float16)(c[cell * (DEGREE + 1) + i]));
        vstore16(value, 0, values[cell]);
    }
    return convert_int16(first) + WIDTH;
}

KERNEL
void backproject(__global const complex_t *restrict spectra, __global const uint4 *restrict tiles,
                 __global const uint4 *restrict segments, __global const float2 *restrict steps,
                 __constant float *restrict coefficients, __global complex_t *restrict grid, ulong plane, int stride, ulong parts, int width, int height)
{
    complex_t sums[REACHED * REACHED];
    float along_x[WIDTH][16], along_y[WIDTH][16];
    int places[16];
    const float16 number = (float16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const uint4 tile = tiles[get_group_id(0)];
    for (int i = 0; i < REACHED * REACHED; i++)
        sums[i] = (complex_t)(0.0f);
    for (uint s = tile.y; s < tile.z; s++) {
        const uint4 segment = segments[s], next = segments[min(s + AHEAD, tile.z - 1)];
        const int count = segment.y & 255;
        /* the next samples are far away */
        for (int i = 0; i < (int)(next.y & 255); i++)
            PREFETCH(spectra + (ulong)(next.y >> 8) * stride + abs(as_int(next.x) + i));
        __global const complex_t *row = spectra + (ulong)(segment.y >> 8) * stride;
        const float2 step = steps[segment.y >> 8];
        for (int first = 0; first < count; first += 16) {
            const int together = min(16, count - first);
            /* samples beyond the last are not spread, so they need not be near the tile */
            const float16 n = min(number + (float)first, (float)(count - 1));
            const int16 x = kernel_values(fma(n, (float16)(step.x), (float16)(as_float(segment.z))), coefficients, along_x);
            const int16 y = kernel_values(fma(n, (float16)(step.y), (float16)(as_float(segment.w))),
                                          coefficients + WIDTH * (DEGREE + 1), along_y);
            vstore16(y * REACHED + x, 0, places);
            for (int i = 0; i < together; i++) {
                const int k = as_int(segment.x) + first + i;
                const complex_t value = row[abs(k)] * fma((complex_t)(k < 0), CONJUGATE - 1.0f, (complex_t)(1.0f));
                complex_t *to = sums + places[i];
                UNROLL_ALL
                for (int b = 0; b < WIDTH; b++) {
                    const complex_t weighted = value * along_y[b][i];
                    UNROLL_ALL
                    for (int a = 0; a < WIDTH; a++)
                        to[b * REACHED + a] = fma(weighted, (complex_t)(along_x[a][i]), to[b * REACHED + a]);
                }
            }
        }
    }
    for (int y = 0; y < TILE; y++)
        for (int x = 0; x < TILE; x++)
            grid[((ulong)(tile.x >> 16) + y) * width + (tile.x & 65535) + x] = sums[(y + WIDTH) * REACHED + x + WIDTH];
}
