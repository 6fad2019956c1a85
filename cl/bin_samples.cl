/* bin_samples.cl: means of squares of samples as files store them, for a detector with fewer and larger pixels.
 *
 * Means are those of the host. Whole numbers are added up exactly, and the mean is rounded once. Floats are added up in
 * the host's order in double precision, or on devices without it as a sum and its error.
 *
 * Defines, beside those of samples.cl
 *   BINNING   bins and rows that form one, at most 64
 *   DOUBLE    1 floats are added up in double precision
 *   GROUP     work-group
 *
 * Layouts
 *   samples   rows as they are stored, `width` samples each, by strides in rows
 *   means     [outer][inner][bin]
 */
#ifndef BINNING
#define BINNING 2
#endif
#ifndef DOUBLE
#define DOUBLE 0
#endif
#ifndef GROUP
#define GROUP 64
#endif

#define COUNT (BINNING * BINNING)

#pragma OPENCL FP_CONTRACT OFF

#if SAMPLE_KIND == 2 && DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double sum_t;
#define NO_SUM 0.0

HELPER sum_t plus(sum_t sum, float value)
{
    return sum + (double)value;
}

HELPER sum_t both(sum_t a, sum_t b)
{
    return a + b;
}

HELPER float mean_of(sum_t sum)
{
    return convert_float_rte(sum / (double)COUNT);
}
#elif SAMPLE_KIND == 2
/* {sum, what rounding took from it} */
typedef float2 sum_t;
#define NO_SUM ((float2)(0.0f, 0.0f))

HELPER sum_t plus(sum_t sum, float value)
{
    const float all = sum.x + value, added = all - sum.x;
    return (float2)(all, sum.y + ((sum.x - (all - added)) + (value - added)));
}

HELPER sum_t both(sum_t a, sum_t b)
{
    const sum_t sum = plus(a, b.x);
    return (float2)(sum.x, sum.y + b.y);
}

HELPER float mean_of(sum_t sum)
{
    return (sum.x + sum.y) / (float)COUNT;
}
#else
#if SAMPLE_BYTES < 4
/* at most 4096 numbers of 16 bits */
typedef int sum_t;
#define WHOLE convert_int
#else
typedef long sum_t;
#define WHOLE convert_long
#endif
#define NO_SUM 0

HELPER sum_t plus(sum_t sum, float value)
{
    return sum + WHOLE(value);
}

HELPER sum_t both(sum_t a, sum_t b)
{
    return a + b;
}

HELPER float mean_of(sum_t sum)
{
#if (COUNT & (COUNT - 1)) == 0
    return convert_float_rte(sum) * (1.0f / COUNT);
#else
    /* the quotient has more bits than a float; the last one tells whether there is a rest */
    const ulong size = sum < 0 ? -(long)sum : (long)sum;
    if (size == 0)
        return 0.0f;
    const int shift = clz(size);
    const ulong scaled = size << shift, quotient = scaled / COUNT;
    const float mean = convert_float_rte(quotient | (quotient * COUNT != scaled)) * as_float((127 - shift) << 23);
    return sum < 0 ? -mean : mean;
#endif
}
#endif

/* Global size: bins rounded up to GROUP, inner, outer; work-group GROUP. The rows that form one are `of_part` rows apart. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void bin_samples(__global const stored_t *restrict samples, __global float *restrict means, ulong of_outer,
                 ulong of_inner, ulong of_part, int width, int bins)
{
    const int bin = get_global_id(0);
    const ulong inner = get_global_id(1), outer = get_global_id(2);
    if (bin >= bins)
        return;
    __global const stored_t *row = samples + (outer * of_outer + inner * of_inner) * width + bin * BINNING;
    sum_t sum = NO_SUM;
    for (int part = 0; part < BINNING; part++) {
        sum_t of_row = NO_SUM;
        for (int i = 0; i < BINNING; i++)
            of_row = plus(of_row, sample_value(row[i]));
        sum = both(sum, of_row);
        row += of_part * width;
    }
    means[(outer * get_global_size(1) + inner) * bins + bin] = mean_of(sum);
}
