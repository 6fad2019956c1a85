/* rotate_rows.cl: rows of projections that are rotated, or whose pixels are looked up elsewhere, by cubic convolution
 * (R. Keys, 1981, a = -1/2) between pixels; beyond the projection its outermost pixels are repeated.
 *
 * A position in the projection is one of the bin plus one of the row, each a whole number and the rest, so it is as good
 * far from the middle as near it; or it is read from a table of all pixels.
 *
 * Defines
 *   GROUP      work-group
 *   MAPPED     1 if positions are read from a table, 0 for a rotation
 *
 * Layouts
 *   rows       [row that was read][projection][bin]
 *   rotated    [wanted row][projection][bin], from value `first` on, `row_stride` values from one row to the next
 *   of_bins, of_rows  {whole bins, whole rows, bits of the rest of a bin, of a row} of every bin, of every row of the
 *              detector, for a rotation
 *   of_pixels  [row of the detector][bin], the same of each pixel, for a table
 */
#ifndef GROUP
#define GROUP 64
#endif
#ifndef MAPPED
#define MAPPED 0
#endif

/* Weights of the pixels at -1, 0, 1 and 2 for a position at `t`, from 0 to 1. */
HELPER float4 cubic(float t)
{
    const float t2 = t * t, t3 = t2 * t;
    return (float4)(-0.5f * t3 + t2 - 0.5f * t, 1.5f * t3 - 2.5f * t2 + 1.0f, -1.5f * t3 + 2.0f * t2 + 0.5f * t,
                    0.5f * t3 - 0.5f * t2);
}

/* Global size: bins rounded up to GROUP, projections, wanted rows; work-group GROUP. `read` are rows of the detector, first
 * and last, of its `height`; the wanted ones begin at `wanted`. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void rotate_rows(__global const float *restrict rows, __global float *restrict rotated,
#if MAPPED
                 __global const int4 *restrict of_pixels,
#else
                 __global const int4 *restrict of_bins, __global const int4 *restrict of_rows,
#endif
                 ulong first, ulong row_stride, int bins, int height, int2 read, int wanted)
{
    const int bin = get_global_id(0), p = get_global_id(1), row = get_global_id(2);
    if (bin >= bins)
        return;
#if MAPPED
    const int4 place = of_pixels[(ulong)(wanted + row) * bins + bin];
    const int x = place.x, z = place.y;
    const float4 across = cubic(as_float(place.z)), down = cubic(as_float(place.w));
#else
    const int4 a = of_bins[bin], b = of_rows[wanted + row];
    const float across_rest = as_float(a.z) + as_float(b.z), down_rest = as_float(a.w) + as_float(b.w);
    const int across_carry = across_rest >= 1.0f, down_carry = down_rest >= 1.0f;
    const int x = a.x + b.x + across_carry, z = a.y + b.y + down_carry;
    const float4 across = cubic(across_rest - (float)across_carry), down = cubic(down_rest - (float)down_carry);
#endif
    const int4 columns = {clamp(x - 1, 0, bins - 1), clamp(x, 0, bins - 1), clamp(x + 1, 0, bins - 1),
                          clamp(x + 2, 0, bins - 1)};
    const ulong stride = (ulong)get_global_size(1) * bins;
    __global const float *from = rows + (ulong)p * bins;
    float lines[4];
    UNROLL_ALL
    for (int k = 0; k < 4; k++) {
        const int there = clamp(clamp(z + k - 1, 0, height - 1), read.x, read.y) - read.x;
        __global const float *line = from + there * stride;
        lines[k] = across.x * line[columns.x] + across.y * line[columns.y] + across.z * line[columns.z]
            + across.w * line[columns.w];
    }
    rotated[first + row * row_stride + (ulong)p * bins + bin] =
        down.x * lines[0] + down.y * lines[1] + down.z * lines[2] + down.w * lines[3];
}
