/* wavelet.cl: levels of the discrete wavelet transform of images and back, with values mirrored at both ends.
 *
 * Coefficient `place` of a line of values is the sum of filters[tap] * value[2 place + 2 - TAPS + tap]; there are
 * (values + TAPS - 1) / 2. Going back, value x is the sum of filters[tap] * coefficient[place] over all taps and places
 * with 2 place + tap = x + TAPS - 2; all these places exist.
 *
 * Defines
 *   TAPS   taps of a filter, an even number
 *   GROUP  work-group of all kernels, along a row
 *
 * Layouts
 *   filters   [low-pass, high-pass][tap]          filters of the inverse transform
 *   image     [slice][row][column]                the first at value `first`
 *   means     [slice][column]
 *   coarse    [slice][coefficient][column]        low-pass coefficients of columns
 *   low, high [slice][row][coefficient]           coefficients of rows of `coarse`
 */
#ifndef TAPS
#define TAPS 10
#endif
#ifndef GROUP
#define GROUP 64
#endif
#define HALF (TAPS / 2)

/* An image that is padded by `pad` values on each side when it is read: rows by their outermost values, columns by their
 * means. Without padding it has no means. */
typedef struct {
    __global const float *values;
    __global const float *means;
    int rows, columns, pad;
} padded_image_t;

/* Value of a column, which exists, at row `row` of the padded image, which is mirrored at its ends. Values that are not
 * finite are 0. */
HELPER float padded_value(padded_image_t image, int row, int column)
{
    const int y = mirrored(row, image.rows + 2 * image.pad) - image.pad;
    const bool inside = y >= 0 && y < image.rows;
    return finite_or_0(inside ? image.values[(ulong)y * image.columns + column] : image.means[column]);
}

/* Low-pass coefficients of the columns of padded images; an item computes `places` of them.
 * Global size: columns with padding rounded up to GROUP, coefficients / `places` rounded up, slices. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void down_columns(__global const float *restrict images, ulong first, __global const float *restrict means,
                  __global float *restrict coarse, __constant const float *restrict filters, int rows, int columns,
                  int pad, int places)
{
    const int column = get_global_id(0), slice = get_global_id(2), width = columns + 2 * pad;
    const int count = (rows + 2 * pad + TAPS - 1) / 2;
    const int start = get_global_id(1) * places, end = min(start + places, count);
    if (column >= width)
        return;
    const padded_image_t image = {images + first + (ulong)slice * rows * columns, means + (ulong)slice * columns,
                                  rows, columns, pad};
    const int from = clamp(column - pad, 0, columns - 1);
    __global float *out = coarse + (ulong)slice * count * width + column;
    /* the values of a coefficient; the last two are read when its turn comes */
    float window[TAPS];
    UNROLL_ALL
    for (int tap = 2; tap < TAPS; tap++)
        window[tap] = padded_value(image, 2 * start - TAPS + tap, from);
    for (int place = start; place < end; place++) {
        UNROLL_ALL
        for (int tap = 0; tap < TAPS - 2; tap++)
            window[tap] = window[tap + 2];
        window[TAPS - 2] = padded_value(image, 2 * place, from);
        window[TAPS - 1] = padded_value(image, 2 * place + 1, from);
        float sum = 0.0f;
        UNROLL_ALL
        for (int tap = 0; tap < TAPS; tap++)
            sum += filters[tap] * window[tap];
        out[(ulong)place * width] = sum;
    }
}

/* Coefficients of rows of `columns` values, low-pass and high-pass.
 * Global size: coefficients rounded up to GROUP, rows, slices. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void down_rows(__global const float *restrict coarse, __global float *restrict low, __global float *restrict high,
               __constant const float *restrict filters, int columns)
{
    /* even and odd positions apart, so that neighbours read neighbours */
    __local float values[2][GROUP + HALF];
    const int item = get_local_id(0), place = get_global_id(0), width = (columns + TAPS - 1) / 2;
    const ulong line = (ulong)get_global_id(2) * get_global_size(1) + get_global_id(1);
    __global const float *row = coarse + line * columns;
    const int start = 2 * (place - item) + 2 - TAPS;
    for (int i = item; i < 2 * (GROUP + HALF); i += GROUP)
        values[i & 1][i / 2] = row[mirrored(start + i, columns)];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (place >= width)
        return;
    float sum_low = 0.0f, sum_high = 0.0f;
    UNROLL_ALL
    for (int tap = 0; tap < TAPS; tap++) {
        const float value = values[tap & 1][item + tap / 2];
        sum_low += filters[tap] * value;
        sum_high += filters[TAPS + tap] * value;
    }
    low[line * width + place] = sum_low;
    high[line * width + place] = sum_high;
}

/* Rows of `columns` values from their coefficients; the low-pass ones are 0 if there are none (`has_low`).
 * Global size: half of `columns` rounded up to GROUP, rows, slices. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void up_rows(__global const float *restrict low, __global const float *restrict high, __global float *restrict coarse,
             __constant const float *restrict filters, int columns, int has_low)
{
    __local float near_low[GROUP + HALF], near_high[GROUP + HALF];
    const int item = get_local_id(0), pair = get_global_id(0), width = (columns + TAPS - 1) / 2;
    const ulong line = (ulong)get_global_id(2) * get_global_size(1) + get_global_id(1);
    for (int i = item; i < GROUP + HALF; i += GROUP) {
        /* coefficients beyond the last are read, but not used */
        const ulong from = line * width + min(pair - item + i, width - 1);
        near_low[i] = has_low ? low[from] : 0.0f;
        near_high[i] = high[from];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    float2 sum = (float2)(0.0f);
    UNROLL_ALL
    for (int i = 0; i < HALF; i++) {
        const int tap = TAPS - 2 - 2 * i;
        const float value_low = near_low[item + i], value_high = near_high[item + i];
        sum.x += filters[tap] * value_low + filters[TAPS + tap] * value_high;
        sum.y += filters[tap + 1] * value_low + filters[TAPS + tap + 1] * value_high;
    }
    __global float *out = coarse + line * columns;
    if (2 * pair < columns)
        out[2 * pair] = sum.x;
    if (2 * pair + 1 < columns)
        out[2 * pair + 1] = sum.y;
}

/* Puts a value into an image that is not padded, or subtracts it and makes the result finite. */
HELPER void put(__global float *images, ulong at, float value, int subtracted)
{
    images[at] = subtracted ? finite_or_0(finite_or_0(images[at]) - value) : value;
}

/* Columns of padded images from their low-pass coefficients, without the padding; an item computes `pairs` pairs of
 * values, the first items from pair pad / 2 on. They are put into images, or subtracted from them.
 * Global size: columns rounded up to GROUP, pairs that hold a row / `pairs` rounded up, slices. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void up_columns(__global const float *restrict coarse, __global float *restrict images, ulong first,
                __constant const float *restrict filters, int rows, int columns, int pad, int pairs, int subtracted)
{
    const int column = get_global_id(0), slice = get_global_id(2), width = columns + 2 * pad;
    const int count = (rows + 2 * pad + TAPS - 1) / 2;
    const int start = pad / 2 + get_global_id(1) * pairs, end = min(start + pairs, (pad + rows + 1) / 2);
    if (column >= columns)
        return;
    __global const float *from = coarse + (ulong)slice * count * width + pad + column;
    const ulong to = first + (ulong)slice * rows * columns + column;
    /* the coefficients of a pair; the last is read when its turn comes */
    float window[HALF];
    UNROLL_ALL
    for (int i = 1; i < HALF; i++)
        window[i] = from[(ulong)min(start + i - 1, count - 1) * width];
    for (int pair = start; pair < end; pair++) {
        UNROLL_ALL
        for (int i = 0; i < HALF - 1; i++)
            window[i] = window[i + 1];
        window[HALF - 1] = from[(ulong)(pair + HALF - 1) * width];
        float2 sum = (float2)(0.0f);
        UNROLL_ALL
        for (int i = 0; i < HALF; i++) {
            sum.x += filters[TAPS - 2 - 2 * i] * window[i];
            sum.y += filters[TAPS - 1 - 2 * i] * window[i];
        }
        const int row = 2 * pair - pad;
        if (row >= 0)
            put(images, to + (ulong)row * columns, sum.x, subtracted);
        if (row + 1 < rows)
            put(images, to + (ulong)(row + 1) * columns, sum.y, subtracted);
    }
}
