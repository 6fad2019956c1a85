/* correct_rows.cl: rows of projections from samples as they are stored to line integrals, moved to their sinograms.
 *
 * A work-group corrects a row of a projection. The steps are those of the host in its order: transmission by flat and
 * dark fields, what is not finite or too large, normalisation by air and by an image, -log. Nothing is contracted (logarithm.cl), so that
 * the same values are replaced everywhere.
 *
 * Defines, beside those of samples.cl
 *   FIELDS        0 none, 1 flat and dark fields, 2 flats before and after the scan
 *   COMPONENTS    number of components of the beam that are added to it, each with a weight
 *   AIR           0 none, 1 the line through the means of the outermost bins, 2 a level for each projection
 *   DIVISOR       1 division by an image after air
 *   MINUS_LOG     1 -log is taken, 2 a later kernel takes it and counts what has no logarithm
 *   GROUP         work-group, a power of two
 *
 * Layouts
 *   samples      [row][projection][bin] or [projection][row][bin], by strides in rows of bins
 *   fields, divisor  [row of the detector][bin]
 *   components   [component][row of the detector][bin], and their weights [projection][component]
 *   projections  {place between the flats, 0 to 1; air level; 1 if replaced bins are counted; 0}
 *   sinograms    [row][projection][bin], `sinogram_stride` values from one to the next
 *   counts       [row] {without light in the flat field, not finite or too large, without logarithm, saturated}
 *   unlit        [projection] 1 if a row has no light at all
 *   levels       [projection] mean transmissions of the counted rows, before air, added up in 4096ths; if -log is taken
 *   replaced     [row][bin] how often a bin was replaced, in the projections where that is counted
 */
#ifndef FIELDS
#define FIELDS 1
#endif
#ifndef COMPONENTS
#define COMPONENTS 0
#endif
#ifndef AIR
#define AIR 0
#endif
#ifndef DIVISOR
#define DIVISOR 0
#endif
#ifndef MINUS_LOG
#define MINUS_LOG 1
#endif
#ifndef GROUP
#define GROUP 64
#endif

/* Transmissions beyond this, either way, count as this in the level of a row. */
#define MOST_TRANSMISSION 4.0f

/* Where a value of a row is, and what a row needs. */
typedef struct {
    __global const stored_t *samples;
    __global const float *flat, *flat2, *dark, *components, *weights;
    ulong pixels;
    float progress;
    float saturation;
    float largest;
} row_t;

/* Transmission of a bin; what is replaced is counted in `replaced`, by the order of the counts. */
inline __attribute__((always_inline)) float transmission(row_t row, int bin, uint4 *replaced)
{
    const float count = sample_value(row.samples[bin]);
    float value = count;
#if FIELDS
#if FIELDS == 2
    float beam = row.flat[bin] + row.progress * (row.flat2[bin] - row.flat[bin]) - row.dark[bin];
#else
    float beam = row.flat[bin] - row.dark[bin];
#endif
    for (int k = 0; k < COMPONENTS; k++)
        beam += row.weights[k] * row.components[k * row.pixels + bin];
    const int lit = beam > 0.0f && beam <= row.largest;
    value = lit ? (count - row.dark[bin]) / beam : 1.0f;
    *replaced += (uint4)(!lit, 0, 0, count >= row.saturation);
#endif
    /* false for what is no number, too; a quotient may be infinite where the count is finite */
    const int finite = fabs(value) <= row.largest;
    value = finite ? value : (MINUS_LOG ? 1.0f : 0.0f);
    *replaced += (uint4)(0, !finite, MINUS_LOG && value <= 0.0f, 0);
    return value;
}

#if AIR == 1
/* Mean transmission of some bins, not above 0 if there is no light, or no bins. */
inline __attribute__((always_inline)) float air_level(row_t row, int first, int count, __local float *sums)
{
    const int item = get_local_id(0);
    uint4 unused = 0;
    float sum = 0.0f;
    for (int bin = first + item; bin < first + count; bin += GROUP)
        sum += transmission(row, bin, &unused);
    sums[item] = sum;
    for (int half_of = GROUP / 2; half_of > 0; half_of /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < half_of)
            sums[item] += sums[item + half_of];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const float mean = sums[0] / (float)count;
    barrier(CLK_LOCAL_MEM_FENCE);
    return isfinite(mean) ? mean : 0.0f;
}
#endif

/* Global size: GROUP, projections, rows; work-group GROUP. Row r of the detector is rows[r]; the rows go to sinograms from
 * value `first` on, and those in `counted`, first and first after them, to counts from row `first_row` on. The projections
 * are those from `first_projection` on. Values beyond `largest`
 * are not carried by what follows. `air` are the numbers of bins at both ends, `pixels` that of pixels of the detector. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void correct_rows(__global const stored_t *restrict samples, __global const float *restrict flat,
                  __global const float *restrict flat2, __global const float *restrict dark,
                  __global const float *restrict divisor, __global const float *restrict components,
                  __global const float *restrict weights,
                  __global const int *restrict rows, __global const float4 *restrict projections,
                  __global float *restrict sinograms, __global uint *restrict counts, __global uint *restrict unlit,
                  __global int *restrict levels, __global uint *restrict replaced, ulong first, ulong sinogram_stride, int row_stride,
                  int projection_stride, int bins, int first_row, int2 counted, int first_projection,
                  float saturation, float largest, int2 air, ulong pixels)
{
    __local uint all[4];
#if MINUS_LOG
    __local int light;
    float sum_of_item = 0.0f;
    if (get_local_id(0) == 0)
        light = 0;
#endif
    const int item = get_local_id(0), p = get_global_id(1), r = get_global_id(2);
    const ulong fields = (ulong)rows[r] * bins;
    const float4 projection = projections[first_projection + p];
    const bool counts_here = r >= counted.x && r < counted.y;
    const row_t row = {samples + ((ulong)r * row_stride + (ulong)p * projection_stride) * bins,
                       flat + fields, flat2 + fields, dark + fields, components + fields,
                       weights + (first_projection + p) * COMPONENTS, pixels, projection.x, saturation, largest};
    __global float *out = sinograms + first + r * sinogram_stride + (ulong)p * bins;
    const int place = first_row + r - counted.x;
    __global uint *failing = replaced + (counts_here ? (ulong)place * bins : 0);
    if (item < 4)
        all[item] = 0;
#if AIR == 1
    __local float sums[GROUP];
    float left = 0.0f, right = 0.0f;
    if (air.x > 0)
        left = air_level(row, 0, air.x, sums);
    if (air.y > 0)
        right = air_level(row, bins - air.y, air.y, sums);
    if (air.x == 0)
        left = right;
    if (air.y == 0)
        right = left;
    const int lit = left > 0.0f && right > 0.0f;
    /* between the middles of the bins on both sides; one level if one side has no bins */
    const float from = 0.5f * (float)(air.x - 1);
    const float span = fmax((float)(bins - 1) - 0.5f * (float)(air.y - 1) - from, 1.0f);
    const float change = right - left;
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    uint4 found = 0;
    for (int bin = item; bin < bins; bin += GROUP) {
        uint4 now = 0;
        float value = transmission(row, bin, &now);
        if (counts_here && projection.z > 0.0f && (now.x | now.y | (MINUS_LOG == 1 ? now.z : 0)))
            atomic_inc(failing + bin);
#if MINUS_LOG
        sum_of_item += clamp(value, -MOST_TRANSMISSION, MOST_TRANSMISSION);
#endif
#if AIR == 1
        if (lit)
            value /= left + clamp(((float)bin - from) / span, 0.0f, 1.0f) * change;
#elif AIR == 2
        value /= projection.y;
#endif
#if DIVISOR
        value /= divisor[fields + bin];
        const int carried = fabs(value) <= largest;
        /* what is replaced has a logarithm */
        now = carried ? now : (uint4)(now.x, now.y + 1, 0, now.w);
        value = carried ? value : (MINUS_LOG ? 1.0f : 0.0f);
#endif
        found += now;
#if MINUS_LOG == 1
        value = line_integral(value);
#endif
        out[bin] = value;
    }
#if MINUS_LOG
    /* in 65536ths, so that it does not matter which work-items a row is shared by */
    if (counts_here)
        atomic_add(&light, convert_int_rte(sum_of_item * (65536.0f / (float)bins)));
#endif
    if (found.x)
        atomic_add(all, found.x);
    if (found.y)
        atomic_add(all + 1, found.y);
    if (found.z)
        atomic_add(all + 2, found.z);
    if (found.w)
        atomic_add(all + 3, found.w);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (!counts_here)
        return;
    if (item < 4 && ((MINUS_LOG != 2) | (item != 2)) && all[item] > 0)
        atomic_add(counts + 4 * place + item, all[item]);
#if MINUS_LOG
    if (item == 0)
        atomic_add(levels + first_projection + p, (light + 8) >> 4);
#endif
    if (item == 0 && all[2] == (uint)bins)
        unlit[first_projection + p] = 1;
}
