/* backproject_vector.cl: slices as the vector, for processors (paper, 6.10: direct loads, no local memory).
 *
 * One work-item computes a tile of TILE x TILE pixels in SLICES slices: a bin of 16 slices is one vector, so a pixel costs
 * two fused multiply-adds a vector with the values in memory, and where and how to read is found once for all slices.
 * PROJECTIONS_AT_ONCE projections are added to one strip of COLUMNS columns of pixels after the other, from top to
 * bottom: their bins under a few pixels stay in the nearest cache, and the sums in registers.
 *
 * Defines
 *   SLICES               16, 32 or 64
 *   TILE                 a multiple of 16
 *   COLUMNS              4 or 8: so many pixels' sums are in registers together
 *   PROJECTIONS_AT_ONCE  projections that are added to these pixels
 *   WINDOW               bins that a tile can meet
 *
 * Layouts
 *   sinogram  [projection][GUARD + bin + GUARD][slice] float, GUARD = WINDOW
 *   sums      [strip][row][column][vector]
 */
#ifndef TILE
#define TILE 16
#endif
#ifndef COLUMNS
#define COLUMNS 4
#endif
#ifndef PROJECTIONS_AT_ONCE
#define PROJECTIONS_AT_ONCE 8
#endif
#ifndef WINDOW
#define WINDOW 25
#endif
#ifndef GUARD
#define GUARD WINDOW
#endif

typedef float16 vector_t;

#define SINOGRAM __global const vector_t *restrict
#define VECTORS (SLICES / 16)
#define STRIP (COLUMNS * TILE)

KERNEL
void backproject(KERNEL_ARGUMENTS)
{
    vector_t sums[TILE * TILE * VECTORS];
    /* for the pixels of a strip: the first vector to read, from the window's start, and the weight of the next bin's */
    int places[PROJECTIONS_AT_ONCE * STRIP];
#if LINEAR
    float weights[PROJECTIONS_AT_ONCE * STRIP];
#endif
    __global const vector_t *windows[PROJECTIONS_AT_ONCE];
    float rests[PROJECTIONS_AT_ONCE];

    const output_t out = OUTPUT;
    /* sixteen pixels of a strip, row by row */
    const float16 number = (float16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const float16 dy = floor(number / COLUMNS), dx = number - dy * COLUMNS;
    const size_t stride = (size_t)(bins + 2 * GUARD) * VECTORS;
    columns += (ulong)get_group_id(0) * projections;
    rows += (ulong)get_group_id(1) * projections;

    for (int i = 0; i < TILE * TILE * VECTORS; i++)
        sums[i] = (vector_t)(0.0f);
    for (int first_p = 0; first_p < projections; first_p += PROJECTIONS_AT_ONCE) {
        const int count = min(PROJECTIONS_AT_ONCE, projections - first_p);
        for (int p = 0; p < count; p++) {
            const int q = first_p + p;
            const float start = floor(columns[q].y + rows[q].y + LOWEST(constants, q, projections));
            const int bin = clamp((int)(columns[q].x + rows[q].x + start), -GUARD, bins);
            windows[p] = sinogram + q * stride + (size_t)(bin + GUARD) * VECTORS;
            rests[p] = columns[q].y + rows[q].y - start;
        }
        for (int strip = 0; strip < TILE / COLUMNS; strip++) {
            for (int p = 0; p < count; p++) {
                const float2 rotation = ROTATION(constants, first_p + p, projections);
                const float16 h0 = fma(dx + (float)(strip * COLUMNS), (float16)(rotation.x),
                                       fma(-dy, (float16)(rotation.y), (float16)(rests[p])));
                for (int i = 0; i < STRIP / 16; i++) {
                    const float16 h = max(h0 - (float)(i * (16 / COLUMNS)) * rotation.y, 0.0f);
#if LINEAR
                    const int16 bin = convert_int16(h);
                    vstore16(h - convert_float16(bin), i, weights + p * STRIP);
#else
                    const int16 bin = convert_int16(h + 0.5f);
#endif
                    vstore16(bin * VECTORS, i, places + p * STRIP);
                }
            }
            for (int pixel = 0; pixel < STRIP; pixel += COLUMNS) {
                vector_t *at = sums + (strip * STRIP + pixel) * VECTORS;
                vector_t sum[COLUMNS * VECTORS];
                UNROLL_ALL
                for (int i = 0; i < COLUMNS * VECTORS; i++)
                    sum[i] = at[i];
                for (int p = 0; p < count; p++) {
                    UNROLL_ALL
                    for (int c = 0; c < COLUMNS; c++) {
                        __global const vector_t *values = windows[p] + places[p * STRIP + pixel + c];
#if LINEAR
                        const vector_t next = (vector_t)(weights[p * STRIP + pixel + c]), here = 1.0f - next;
#endif
                        UNROLL_ALL
                        for (int v = 0; v < VECTORS; v++) {
#if LINEAR
                            /* fma, because compilers tear mad apart */
                            sum[c * VECTORS + v] = fma(here, values[v], sum[c * VECTORS + v]);
                            sum[c * VECTORS + v] = fma(next, values[VECTORS + v], sum[c * VECTORS + v]);
#else
                            sum[c * VECTORS + v] += values[v];
#endif
                        }
                    }
                }
                UNROLL_ALL
                for (int i = 0; i < COLUMNS * VECTORS; i++)
                    at[i] = sum[i];
            }
        }
    }

    const int x0 = origin.x + (int)get_group_id(0) * TILE - out.roi.x;
    const int y0 = origin.y + (int)get_group_id(1) * TILE - out.roi.y;
    const int left = max(-x0, 0), right = min(TILE, out.roi.z - x0);
    const int top = max(-y0, 0), bottom = min(TILE, out.roi.w - y0);
    const float *values = (const float *)sums;
    for (int slice = 0; slice < out.valid; slice++) {
        const float factor = out.unit / half_range_factor(out.peaks[slice]);
        __global float *to = out.slices + slice * (ulong)out.roi.z * out.roi.w;
        for (int y = top; y < bottom; y++)
            for (int x = left; x < right; x++) {
                const int pixel = x / COLUMNS * STRIP + y * COLUMNS + x % COLUMNS;
                STORE(to[(ulong)(y0 + y) * out.roi.z + x0 + x], values[pixel * SLICES + slice] * factor);
            }
    }
}
