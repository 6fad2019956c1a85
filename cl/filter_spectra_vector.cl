/* filter_spectra_vector.cl: the filtered spectra of rows, as filter_spectra.cl makes them, with slices as the vector.
 *
 * A work-item transforms two rows of each slice as one complex row in memory of its own, and goes on to the next two.
 *
 * Defines, beside those of padding.cl and transform_line.cl
 *   STRIDE  stored frequencies of a row, and room
 *
 * Layouts
 *   rows      [slice][projection][bin] float
 *   spectra   [projection][STRIDE][slice] float2
 *   scratch   for each work-item [2][LENGTH] values
 *   shifts    [projection] see phase.cl
 */
#ifndef STRIDE
#define STRIDE 40
#endif

/* Bins of a slice that are read together: all slices of them fit a cache. */
#define BINS_AT_ONCE 64
/* Frequencies whose phases are that of the first times those of as many from 0 on. */
#define PHASES 16

/* Two rows of each of the `valid` slices as one complex line, continued beyond the detector; without `both` the second is 0.
 * `plane` is the distance of slices. */
HELPER void read_pair(__global const float *rows, __global complex_t *line, ulong plane, int bins, int valid, bool both)
{
    for (int first = 0; first < bins; first += BINS_AT_ONCE) {
        const int end = min(first + BINS_AT_ONCE, bins);
        for (int slice = 0; slice < SLICES; slice++) {
            __global const float *row = rows + slice * plane, *second = row + bins;
            __global float2 *to = (__global float2 *)line + slice;
            if (slice < valid && both)
                for (int x = first; x < end; x++)
                    to[x * SLICES] = (float2)(row[x], second[x]);
            else
                for (int x = first; x < end; x++)
                    to[x * SLICES] = (float2)(slice < valid ? row[x] : 0.0f, 0.0f);
        }
    }
    for (int x = bins; x < LENGTH; x++) {
        const int bin = padded_bin(x, bins, LENGTH);
        line[x] = (complex_t)(0.0f);
        if (bin >= 0)
            line[x] = line[bin];
    }
}

/* The phases of the first frequencies of a row. */
HELPER void first_phases(float2 *phases, float2 shift)
{
    for (int k = 0; k < PHASES; k++)
        phases[k] = phase_of(k, shift, LENGTH);
}

/* Global size: as many items as have scratch. `spectrum` carries 1 / LENGTH. The batch starts at value `first` of `rows`; slices
 * from `valid` on are 0. */
KERNEL
void filter_spectra(__global const float *restrict rows, __global complex_t *restrict spectra,
                    __global const float *restrict spectrum, __global const float *restrict weights,
                    __global const float2 *restrict shifts, __global const float2 *restrict turns, __global complex_t *scratch,
                    ulong first, int bins, int projections, int valid)
{
    __global complex_t *line = scratch + get_global_id(0) * 2ul * LENGTH, *spare = line + LENGTH;
    float2 phases[PHASES], next_phases[PHASES];
    for (int p = 2 * get_global_id(0); p < projections; p += 2 * get_global_size(0)) {
        const bool both = p + 1 < projections;
        const int next = both ? p + 1 : p;
        read_pair(rows + first + (ulong)p * bins, line, (ulong)projections * bins, bins, valid, both);
        /* back from frequencies in place of to them: k and -k are exchanged */
        __global const complex_t *values = transform_line(line, spare, turns);
        first_phases(phases, shifts[p]);
        first_phases(next_phases, shifts[next]);
        __global complex_t *to = spectra + (ulong)p * STRIDE, *to_next = spectra + (ulong)next * STRIDE;
        for (int start = 0; start <= LENGTH / 2; start += PHASES) {
            const float2 phase = phase_of(start, shifts[p], LENGTH), next_phase = phase_of(start, shifts[next], LENGTH);
            for (int k = start; k < min(start + PHASES, LENGTH / 2 + 1); k++) {
                /* half, because the sums below are twice the spectra */
                const float factor = spectrum[k] * (2 * k == LENGTH ? 0.25f : 0.5f);
                const complex_t at = values[(LENGTH - k) & (LENGTH - 1)], opposite = values[k] * CONJUGATE;
                if (both)
                    to_next[k] = product(quarter_turn(at - opposite, -1.0f),
                                         factor * weights[next] * turned(next_phase, next_phases[k - start]));
                to[k] = product(at + opposite, factor * weights[p] * turned(phase, phases[k - start]));
            }
        }
    }
}
