/* backproject_standard.cl: the standard kernel (paper, 5.1, Algorithm 1).
 *
 * One work-item is one pixel, a work-group a block of WORK_X x WORK_Y pixels; it walks over all projections and adds
 * the filtered value where the pixel's ray meets the detector.
 *
 *   sinogram       compound sinogram, already weighted per projection
 *   columns, rows  [block][projection] detector position of the block's first pixel: whole bins, rest
 *   turns          [projection] cosine and sine of the angle
 *   peaks          [slice] see half_range_factor
 *   roi            x, y, width, height of the region in the full slice
 *   origin         first pixel of block (0, 0) in the full slice
 *   first          where the output starts in `slices`
 *   valid          slices that exist; the others of SLICES are not stored
 */
KERNEL
void backproject(SINOGRAM sinogram, __global const float2 *restrict columns, __global const float2 *restrict rows,
                 CONSTANTS float2 *restrict turns, __global const uint *restrict peaks, __global float *restrict slices,
                 int projections, int bins, int4 roi, int2 origin, ulong first, int valid, float unit)
{
    const float2 f = (float2)(get_local_id(0), get_local_id(1));
    columns += (ulong)get_group_id(0) * projections;
    rows += (ulong)get_group_id(1) * projections;

    values_t sum = (values_t)(0.0f);
    UNROLL_LOOP
    for (int p = 0; p < projections; p++)
        sum += sample(sinogram, bins, p, position_in_block(columns[p], rows[p], turns[p], f));

    const int x = origin.x + (int)get_global_id(0) - roi.x;
    const int y = origin.y + (int)get_global_id(1) - roi.y;
    if (x >= 0 && x < roi.z && y >= 0 && y < roi.w)
        store_slices(slices + first, sum, (ulong)y * roi.z + x, (ulong)roi.z * roi.w, valid, unit, peaks);
}
