/* backproject_tensor.cl: back projection as a product of matrices.
 *
 * A square of 4 x 4 pixels meets at most 7 neighbouring bins of a projection, however that is turned: its diagonal is
 * 4.3 bins, one more is needed to interpolate and one because it starts between two. What a projection adds to the
 * square is therefore a product: the weights of 16 pixels for 8 bins, times the values of these bins in all slices. Two
 * projections make the 16 columns of weights that a matrix unit takes. Positions are found once for all slices.
 *
 * A work-group is WARPS_X x WARPS_Y warps of LANES items, a warp computes SQUARES_X x SQUARES_Y squares. Bins that a
 * block can meet are copied to local memory, STAGE projections at a time into one of BUFFERS buffers, LEAD stages ahead.
 *
 * Defines
 *   WINDOW       the most that window_bins gives
 *   STAGE        even
 *   BAND         blocks that follow each other lie in bands of so many rows of blocks, column by column: work-groups at
 *                work at a time then make a square and share the bins that they meet
 *   FLUSH        projections after which the unit's sums are added to others in f32: matrix units cut off what they
 *                add, always towards 0, which must not pile up; 0 never. A multiple of STAGE
 *   SLICES       16, 32 or 64; 16 or 32 with SPLIT (weights are split, too)
 *
 * Layout of the compound sinogram
 *   [projection][GUARD + bin + GUARD][value] half, see halves.cl
 */
#ifndef WARPS_X
#define WARPS_X 4
#endif
#ifndef WARPS_Y
#define WARPS_Y 2
#endif
#ifndef SQUARES_X
#define SQUARES_X 2
#endif
#ifndef SQUARES_Y
#define SQUARES_Y 2
#endif
#ifndef WINDOW
#define WINDOW 40
#endif
#ifndef GUARD
#define GUARD WINDOW
#endif
#ifndef FLUSH
#define FLUSH 0
#endif
#ifndef BAND
#define BAND 1
#endif

#define SINOGRAM __global const uchar *restrict

#define WARPS (WARPS_X * WARPS_Y)
#define SQUARES (SQUARES_X * SQUARES_Y)
#define SIDE 4                               /* of a square, pixels */
#define BLOCK_X (WARPS_X * SQUARES_X * SIDE) /* pixels of a work-group */
#define BLOCK_Y (WARPS_Y * SQUARES_Y * SIDE)
#define WINDOW_BYTES (WINDOW * ROW_BYTES)
/* Positions of a warp's squares for a stage, as many as fit a warp at a time. */
#define ENTRIES (SQUARES * STAGE)
#define ROUNDS ((ENTRIES + LANES - 1) / LANES)

HELPER int2 block_of_group(void)
{
    const int width = get_num_groups(0), number = (int)get_group_id(1) * width + (int)get_group_id(0);
    const int top = number / (width * BAND) * BAND, inside = number - top * width;
    const int height = min(BAND, (int)get_num_groups(1) - top);
    return (int2)(inside / height, top + inside % height);
}

/* What says where a block meets a projection. */
typedef struct {
    float2 column, row; /* whole bins and rest of the block's first pixel */
    float2 rotation;
    float lowest;
} ray_t;

#define RAY(p) {columns[p], rows[p], ROTATION(constants, p, projections), LOWEST(constants, p, projections)}

/* The first bin of a block's window. `rest` becomes the position of the block's first pixel from there. */
HELPER int window_start(ray_t ray, float *rest)
{
    const float start = floor(ray.column.y + ray.row.y + ray.lowest);
    *rest = ray.column.y + ray.row.y - start;
    return (int)(ray.column.x + ray.row.x + start);
}

/* Bins that the block's squares read: 8 each, and the last square starts as far behind the first as their first pixels
 * are apart; one for the bin that the block starts in, one for rounding. */
HELPER int window_bins(float2 rotation)
{
    return (int)((BLOCK_X - SIDE) * fabs(rotation.x) + (BLOCK_Y - SIDE) * fabs(rotation.y)) + 10;
}

/* A window's start as a row of the sinogram: a window beyond the detector holds only guard bins. */
HELPER int window_row(int start, int bins)
{
    return clamp(start, -GUARD, bins) + GUARD;
}

KERNEL
#ifdef WARP_ATTRIBUTE
__attribute__((WARP_ATTRIBUTE(LANES)))
#endif
void backproject(KERNEL_ARGUMENTS)
{
    __local uchar cells[BUFFERS * STAGE * WINDOW_BYTES] __attribute__((aligned(128)));
    /* [even or odd stage][warp][pair][square][projection of the pair] position from the square's first bin (bits), and
     * where that bin's row starts in `cells`, see CELLS_AT */
    __local uint2 squares[2][WARPS][ENTRIES] __attribute__((aligned(16)));
    /* [even or odd stage][warp][projection] cosine and sine */
    __local float2 rotations[2][WARPS][STAGE] __attribute__((aligned(16)));
    COPY_STATE(signals);

    const output_t out = OUTPUT;
    const int lane = get_local_id(0), warp = get_local_id(1);
    const int stages = (projections + STAGE - 1) / STAGE;
    /* the warp's first pixel in the block */
    const float2 corner = (float2)((warp % WARPS_X) * SQUARES_X * SIDE, (warp / WARPS_X) * SQUARES_Y * SIDE);
    const int2 block = block_of_group();
    columns += (ulong)block.x * projections;
    rows += (ulong)block.y * projections;
    const size_t stride = (size_t)(bins + 2 * GUARD) * ROW_BYTES;

    sums_t sums[SQUARES];
#if FLUSH
    sums_t totals[SQUARES];
#endif
    UNROLL_UNIT
    for (int s = 0; s < SQUARES; s++) {
        clear_sums(&sums[s]);
#if FLUSH
        clear_sums(&totals[s]);
#endif
    }

/* The rays that an item turns into positions of a stage; loaded a stage before they are needed. */
#define LOAD_RAYS(stage) \
    UNROLL_ALL \
    for (int i = 0; i < ROUNDS; i++) { \
        const int p = min((stage) * STAGE + (i * LANES + lane) / SQUARES, projections - 1); \
        const ray_t ray = RAY(p); \
        rays[i] = ray; \
    }

/* Positions of a stage. Past the last projection they are so far away that every weight is 0. */
#define PLACE_SQUARES(stage) \
    UNROLL_ALL \
    for (int i = 0; i < ROUNDS; i++) { \
        const int entry = i * LANES + lane; \
        if (entry < ENTRIES) { \
            const int p = entry / SQUARES, s = entry % SQUARES; \
            float rest; \
            window_start(rays[i], &rest); \
            const float2 f = corner + (float2)(s % SQUARES_X * SIDE, s / SQUARES_X * SIDE); \
            const float2 rotation = rays[i].rotation; \
            const float h = mad(f.x, rotation.x, mad(-f.y, rotation.y, rest)); \
            const float below = min(0.0f, (SIDE - 1) * rotation.x) + min(0.0f, (1 - SIDE) * rotation.y); \
            const float first = max(floor(h + below), 0.0f); \
            const float d = (stage) * STAGE + p < projections ? h - first + HALF_BIN : -64.0f; \
            const uint place = CELLS_AT(cells) + (((stage) % BUFFERS) * STAGE + p) * WINDOW_BYTES + (int)first * ROW_BYTES; \
            squares[(stage) & 1][warp][(p / 2 * SQUARES + s) * 2 + p % 2] = (uint2)(as_uint(d), place); \
            if (s == 0) \
                rotations[(stage) & 1][warp][p] = rotation; \
        } \
    }

/* Starts to copy the windows of a stage. */
#define COPY_WINDOWS(stage) \
    if ((stage) < stages) { \
        COPY_BEGIN(signals, stage) \
        for (int p = COPY_FIRST; p < STAGE; p += COPY_STEP) { \
            const int q = min((stage) * STAGE + p, projections - 1); \
            const ray_t ray = RAY(q); \
            float rest; \
            const int from = window_row(window_start(ray, &rest), bins); \
            COPY_WINDOW(signals, stage, \
                        cells + (((stage) % BUFFERS) * STAGE + p) * WINDOW_BYTES, \
                        sinogram + q * stride + (size_t)from * ROW_BYTES, window_bins(ray.rotation) * ROW_BYTES) \
        } \
        COPY_END(signals, stage) \
    }

    ray_t rays[ROUNDS];
    COPY_PREPARE(signals)
    LOAD_RAYS(0)
    PLACE_SQUARES(0)
    LOAD_RAYS(1)
    for (int stage = 0; stage < LEAD; stage++)
        COPY_WINDOWS(stage)
    for (int stage = 0; stage < stages; stage++) {
        COPY_WINDOWS(stage + LEAD)
        PLACE_SQUARES(stage + 1)
        LOAD_RAYS(stage + 2)
        COPY_WAIT(signals, stage)
        __local const uint4 *place = (__local const uint4 *)squares[stage & 1][warp];
        __local const float4 *rotation = (__local const float4 *)rotations[stage & 1][warp];
        UNROLL_LOOP
        for (int pair = 0; pair < STAGE / 2; pair++) {
            const pixels_t pixels = pixels_of_lane(rotation[pair], lane);
            UNROLL_UNIT
            for (int s = 0; s < SQUARES; s++)
                add_products(&sums[s], cells, place[pair * SQUARES + s], pixels, lane);
        }
        COPY_RELEASE(signals, stage)
#if FLUSH
        if ((stage + 1) * STAGE % FLUSH == 0) {
            UNROLL_UNIT
            for (int s = 0; s < SQUARES; s++) {
                add_sums(&totals[s], &sums[s]);
                clear_sums(&sums[s]);
            }
        }
#endif
    }

    const int x = origin.x + block.x * BLOCK_X + (int)corner.x - out.roi.x;
    const int y = origin.y + block.y * BLOCK_Y + (int)corner.y - out.roi.y;
    const ulong plane = (ulong)out.roi.z * out.roi.w;
    UNROLL_UNIT
    for (int s = 0; s < SQUARES; s++) {
#if FLUSH
        add_sums(&sums[s], &totals[s]);
#endif
        UNROLL_UNIT
        for (int n = 0; n < SUMS; n++) {
            const int pixel = pixel_of_sum(n, lane), slice = slice_of_sum(n, lane);
            const int px = x + s % SQUARES_X * SIDE + pixel % SIDE, py = y + s / SQUARES_X * SIDE + pixel / SIDE;
            if (px >= 0 && px < out.roi.z && py >= 0 && py < out.roi.w && slice < out.valid)
                STORE(out.slices[slice * plane + (ulong)py * out.roi.z + px],
                      sums[s].value[n] * (out.unit / (WEIGHT_OF_ONE * half_range_factor(out.peaks[slice]))));
        }
    }
}
