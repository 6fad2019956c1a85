/* whole_images.cl: what is done to images before, between and after transforms by a library, where lines of an image do not
 * fit into local memory (filter_images.cl).
 *
 * Defines
 *   GROUP     work-group
 *
 * Layouts
 *   rows      [row that was read][projection][bin]
 *   spectra   [pair][row of the image][bin or frequency] float2: two projections are the real and the imaginary part
 *   filtered  [wanted row][projection][bin], from value `first` on, `row_stride` values from one row to the next
 *
 * Work-group of all kernels: GROUP. Global size: the width of the image, its rows, pairs; for filtered rows, bins rounded up
 * to GROUP, the `wanted` rows, pairs.
 */
#ifndef GROUP
#define GROUP 64
#endif

/* Makes images of the pairs of `projections` from pair `first_pair` on. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void make_images(__global const float *restrict rows, __global float2 *restrict spectra, int bins, int projections,
                 int first_pair, int first_row, int wanted, int last)
{
    const int x = get_global_id(0), y = get_global_id(1), width = get_global_size(0), height = get_global_size(1);
    const int p = 2 * (first_pair + (int)get_global_id(2));
    const int from = row_of_image(y, height, first_row, wanted, last), bin = bin_of_image(x, bins, width);
    __global const float *row = rows + ((ulong)from * projections + p) * bins;
    float2 value = (float2)(row[bin], 0.0f);
    if (p + 1 < projections)
        value.y = row[bins + bin];
    spectra[((ulong)get_global_id(2) * height + y) * width + x] = value;
}

/* Multiplies spectra by the response and by `scale`. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void filter_spectra_of_images(__global float2 *restrict spectra, __global const float2 *restrict of_bins,
                              __global const float2 *restrict of_rows, float sharpening, float scale)
{
    const int x = get_global_id(0), y = get_global_id(1), width = get_global_size(0), height = get_global_size(1);
    spectra[((ulong)get_global_id(2) * height + y) * width + x] *= scale * response(of_bins[x], of_rows[y], sharpening);
}

/* Stores rows of filtered images of `width` x `height`. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void store_images(__global const float2 *restrict spectra, __global float *restrict filtered, ulong first, ulong row_stride,
                  int bins, int projections, int first_pair, int width, int height)
{
    const int bin = get_global_id(0), y = get_global_id(1), p = 2 * (first_pair + (int)get_global_id(2));
    if (bin >= bins)
        return;
    const float2 value = spectra[((ulong)get_global_id(2) * height + y) * width + bin];
    __global float *to = filtered + first + y * row_stride + (ulong)p * bins + bin;
    to[0] = value.x;
    if (p + 1 < projections)
        to[bins] = value.y;
}
