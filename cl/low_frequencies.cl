/* low_frequencies.cl: the low frequencies of the columns of images, by direct sums.
 *
 * The frequencies of a column are sums over its samples, and the result is sums over these frequencies: two products
 * with a matrix of waves, a tile of which is in local memory at a time. A sample and a frequency say which value of one
 * wave is theirs, so there is no table of all waves.
 *
 * Defines
 *   COLUMNS       columns of a work-group
 *   PARTS         items of a work-group for each column; they share frequencies, or samples
 *   SAMPLES       samples of a tile, a multiple of PARTS
 *   FREQUENCIES   frequencies of a tile, a multiple of PARTS
 *
 * Layouts
 *   values         [slice][row][column]
 *   lines          [sample] the row that it comes from
 *   waves          [sample] cosine and sine of one period over all samples
 *   weights        [frequency]
 *   coefficients   [slice][frequency][real, imaginary][column]
 *   out            [slice][wanted sample][column]
 */
#ifndef COLUMNS
#define COLUMNS 64
#endif
#ifndef PARTS
#define PARTS 4
#endif
#ifndef SAMPLES
#define SAMPLES 32
#endif
#ifndef FREQUENCIES
#define FREQUENCIES 8
#endif
#define UNROLL_FEW PRAGMA(unroll 8)
#define SHARE (FREQUENCIES / PARTS)

/* The waves of SAMPLES samples and FREQUENCIES frequencies; 0 for frequencies from `count` on. `samples` times the
 * highest frequency is less than 2^32. */
HELPER void load_waves(__local float2 (*tile)[FREQUENCIES], __global const float2 *waves, uint sample, uint frequency,
                       uint samples, uint count)
{
    for (uint i = get_local_id(1) * COLUMNS + get_local_id(0); i < SAMPLES * FREQUENCIES; i += COLUMNS * PARTS) {
        const uint s = (sample + i / FREQUENCIES) % samples, k = frequency + i % FREQUENCIES;
        tile[i / FREQUENCIES][i % FREQUENCIES] = k < count ? waves[s * k % samples] : (float2)(0.0f, 0.0f);
    }
}

/* Frequencies of all columns, times their weights. The images start at value `first` of `values`.
 * Work-group: COLUMNS, PARTS. Global size: columns rounded up, PARTS for every tile of frequencies, slices. */
__kernel __attribute__((reqd_work_group_size(COLUMNS, PARTS, 1)))
void find_frequencies(__global const float *restrict values, __global const uint *restrict lines,
                      __global const float2 *restrict waves, __global const float *restrict weights,
                      __global float *restrict coefficients, ulong first, int rows, int columns, int samples, int count)
{
    __local float2 tile[SAMPLES][FREQUENCIES];
    __local uint line[SAMPLES];
    const int part = get_local_id(1), column = get_global_id(0), slice = get_global_id(2);
    const int frequency = get_group_id(1) * FREQUENCIES;
    __global const float *image = values + first + (ulong)slice * rows * columns + min(column, columns - 1);
    float2 sums[SHARE];
    UNROLL_ALL
    for (int k = 0; k < SHARE; k++)
        sums[k] = (float2)(0.0f, 0.0f);

    for (int start = 0; start < samples; start += SAMPLES) {
        barrier(CLK_LOCAL_MEM_FENCE);
        load_waves(tile, waves, start, frequency, samples, count);
        for (int i = part * COLUMNS + get_local_id(0); i < SAMPLES; i += COLUMNS * PARTS)
            line[i] = lines[min(start + i, samples - 1)];
        barrier(CLK_LOCAL_MEM_FENCE);
        /* sums of sums are more accurate */
        float2 part_sums[SHARE];
        UNROLL_ALL
        for (int k = 0; k < SHARE; k++)
            part_sums[k] = (float2)(0.0f, 0.0f);
        UNROLL_FEW
        for (int sample = 0; sample < SAMPLES; sample++) {
            const float value = start + sample < samples ? image[(ulong)line[sample] * columns] : 0.0f;
            UNROLL_ALL
            for (int k = 0; k < SHARE; k++)
                part_sums[k] += tile[sample][part * SHARE + k] * value;
        }
        UNROLL_ALL
        for (int k = 0; k < SHARE; k++)
            sums[k] += part_sums[k];
    }
    UNROLL_ALL
    for (int i = 0; i < SHARE; i++) {
        const int k = frequency + part * SHARE + i;
        if (column < columns && k < count) {
            __global float *out = coefficients + ((ulong)slice * count + k) * 2 * columns + column;
            out[0] = sums[i].x * weights[k];
            out[columns] = sums[i].y * weights[k];
        }
    }
}

/* `wanted` samples from sample `first_wanted` on.
 * Work-group: COLUMNS, PARTS. Global size: columns rounded up, PARTS for every tile of samples, slices. */
__kernel __attribute__((reqd_work_group_size(COLUMNS, PARTS, 1)))
void sum_frequencies(__global const float *restrict coefficients, __global const float2 *restrict waves,
                     __global float *restrict out, int columns, int samples, int count, int first_wanted, int wanted)
{
    __local float2 tile[SAMPLES][FREQUENCIES];
    const int part = get_local_id(1), column = get_global_id(0), slice = get_global_id(2);
    const int start = get_group_id(1) * SAMPLES;
    __global const float *from = coefficients + (ulong)slice * count * 2 * columns + min(column, columns - 1);
    float sums[SAMPLES / PARTS];
    UNROLL_ALL
    for (int i = 0; i < SAMPLES / PARTS; i++)
        sums[i] = 0.0f;

    for (int frequency = 0; frequency < count; frequency += FREQUENCIES) {
        barrier(CLK_LOCAL_MEM_FENCE);
        load_waves(tile, waves, first_wanted + start, frequency, samples, count);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < FREQUENCIES; k++) {
            const ulong at = (ulong)min(frequency + k, count - 1) * 2 * columns;
            const float re = from[at], im = from[at + columns];
            UNROLL_ALL
            for (int i = 0; i < SAMPLES / PARTS; i++) {
                const float2 wave = tile[i * PARTS + part][k];
                sums[i] += wave.x * re + wave.y * im;
            }
        }
    }
    UNROLL_ALL
    for (int i = 0; i < SAMPLES / PARTS; i++) {
        const int sample = start + i * PARTS + part;
        if (column < columns && sample < wanted)
            out[((ulong)slice * wanted + sample) * columns + column] = sums[i];
    }
}
