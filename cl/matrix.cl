/* matrix.cl: what a warp of LANES items does together: copies ahead of their use, and products of matrices.
 *
 *   LANES            16, 32 or 64
 *   MATRIX           the matrix unit, where an item holds fixed entries of the factors and all items of a warp multiply
 *                    together: 1 by assembly (32 lanes), 2 and 3 by a built-in function of the compiler (64 lanes, 16
 *                    lanes); 0 plain arithmetic: an item computes its entries of the product alone
 *   MATRIX_FUNCTION  the name of that function
 *   BULK_COPIES      1 windows are copied by the copy engine, by assembly (32 lanes); 0 by the items
 *
 * An item's share of a product of 16 pixels and SLICES slices (its `sums_t`), as the units want it:
 *   16 lanes  all pixels, and every 16th slice from that of its lane on
 *   32 lanes  pixels g and g + 8, and for both the slices 2t and 2t + 1 of every eight slices; g = lane / 4, t = lane % 4
 *   64 lanes  pixel lane % 16, and a quarter of the slices: those of the rows 4t to 4t + 3, where t = lane / 16 and row r
 *             has the slices from r * SLICES / 16 on
 */
#ifndef LANES
#define LANES 32
#endif
#ifndef MATRIX
#define MATRIX 0
#endif
#ifndef BULK_COPIES
#define BULK_COPIES 0
#endif
#ifndef STAGE
#define STAGE 2
#endif
#ifndef BUFFERS
#define BUFFERS 2
#endif
#ifndef LEAD
#define LEAD 1
#endif

#define SUMS (16 * SLICES / LANES)

typedef struct {
    float value[SUMS]; /* 16 lanes: [slice][pixel]; 32: [eight slices][pixel g, pixel g + 8][slice 2t, 2t + 1]; 64: [slice of a row][row] */
} sums_t;

#if LANES == 16

HELPER int pixel_of_sum(int n, int lane)
{
    return n % 16;
}

HELPER int slice_of_sum(int n, int lane)
{
    return n / 16 * 16 + lane;
}

#elif LANES == 64

#define SECOND_PIXEL(n) 0

HELPER int pixel_of_sum(int n, int lane)
{
    return lane % 16;
}

HELPER int slice_of_sum(int n, int lane)
{
    return (lane / 16 * 4 + n % 4) * (SLICES / 16) + n / 4;
}

#else

#define SECOND_PIXEL(n) ((n) % 4 / 2)

HELPER int pixel_of_sum(int n, int lane)
{
    return lane / 4 + SECOND_PIXEL(n) * 8;
}

HELPER int slice_of_sum(int n, int lane)
{
    return n / 4 * 8 + lane % 4 * 2 + n % 2;
}

#endif

/* Loops over what lies in registers; plain arithmetic leaves them to the compiler. */
#if MATRIX
#define UNROLL_UNIT UNROLL_ALL
#else
#define UNROLL_UNIT
#endif

HELPER void clear_sums(sums_t *sums)
{
    UNROLL_UNIT
    for (int n = 0; n < SUMS; n++)
        sums->value[n] = 0.0f;
}

HELPER void add_sums(sums_t *to, const sums_t *sums)
{
    UNROLL_UNIT
    for (int n = 0; n < SUMS; n++)
        to->value[n] += sums->value[n];
}

/* The weight of a bin is a function of d, how far the pixel's position is from it: linear max(0, 1 - |d|); nearest 1 for
 * 0 <= d < 1, when positions are half a bin further. */
#define HALF_BIN (LINEAR ? 0.0f : 0.5f)

/* What the unit gets as a weight of 1, and by which its sums are too large. With 64 lanes it may take halves that are
 * not normal, below 2^-14, for 0; this keeps them from what is left of a weight. */
#define WEIGHT_OF_ONE (LANES == 64 && SPLIT ? 4096.0f : 1.0f)

#if LANES == 16

/* What an item needs to find d of all pixels: cosine and sine of two projections. */
typedef float4 pixels_t;

HELPER pixels_t pixels_of_lane(float4 rotation, int lane)
{
    return rotation;
}

/* d of one pixel, from that of the square's first. */
HELPER float d_of_pixel(float first, float2 rotation, int pixel)
{
    return mad((float)(pixel % 4), rotation.x, mad(-(float)(pixel / 4), rotation.y, first));
}

#else

/* The first bin whose weight an item makes. */
#define FIRST_BIN(lane) (LANES == 64 ? 4 * ((lane) / 16 % 2) : 2 * ((lane) % 4))

/* d of an item's pixels for its bins, less the position of the square's first pixel: for two projections, the first
 * pixel in .x, the second of 32 lanes in .y. Linear weights of MATRIX count from the item's first bin, others from bin 0:
 * the nearest bin must be the same for all items of a pixel, to the last bit of d, or none or two of them take it. */
typedef struct {
    float2 a, b;
} pixels_t;

HELPER pixels_t pixels_of_lane(float4 rotation, int lane)
{
#if LANES == 64
    const float x = lane % 4, y = lane / 4 % 4;
#else
    const float x = lane / 4 % 4, y = lane / 16;
#endif
    const float bin = MATRIX && LINEAR ? FIRST_BIN(lane) : 0;
    pixels_t pixels;
    pixels.a.x = mad(x, rotation.x, -mad(y, rotation.y, bin));
    pixels.a.y = mad(-2.0f, rotation.y, pixels.a.x);
    pixels.b.x = mad(x, rotation.z, -mad(y, rotation.w, bin));
    pixels.b.y = mad(-2.0f, rotation.w, pixels.b.x);
    return pixels;
}

#endif

#if MATRIX == 1

#define LOCAL_ADDRESS(pointer) ((uint)(size_t)(pointer))
#define CELLS_AT(cells) LOCAL_ADDRESS(cells)

/* Weights of an item's two bins as two halves; with SPLIT what is left of them as two more. */
HELPER uint2 pair_of_weights(float d, int lane)
{
    uint high, low = 0;
#if !LINEAR
    /* floor(d) in the low bits of a float: a 1 of half, shifted to the bin; shifts by 32 and more leave nothing */
    __asm__("{ .reg .f32 f; .reg .b32 n;\n"
            "  add.rm.f32 f, %1, 0f4B400000; mov.b32 n, f; shl.b32 n, n, 4; add.s32 n, n, %3;\n"
            "  shl.b32 %0, %2, n; }" : "=r"(high) : "f"(d), "r"(0x3c00u), "r"(0x4C000000 - 16 * FIRST_BIN(lane)));
#elif SPLIT
    __asm__("{ .reg .f32 p, q, h; .reg .b16 x, y;\n"
            "  abs.f32 p, %2; sub.sat.f32 p, 0f3F800000, p; abs.f32 q, %3; sub.sat.f32 q, 0f3F800000, q;\n"
            "  cvt.rn.f16x2.f32 %0, q, p; mov.b32 {x, y}, %0;\n"
            "  cvt.f32.f16 h, x; sub.f32 p, p, h; cvt.f32.f16 h, y; sub.f32 q, q, h;\n"
            "  cvt.rn.f16x2.f32 %1, q, p; }" : "=r"(high), "=r"(low) : "f"(d), "f"(d - 1.0f));
#else
    __asm__("{ .reg .b32 n;\n"
            "  cvt.rn.f16x2.f32 n, %2, %1; abs.f16x2 n, n; sub.rn.sat.f16x2 %0, %3, n; }"
            : "=r"(high) : "f"(d), "f"(d - 1.0f), "r"(0x3c003c00u));
#endif
    return (uint2)(high, low);
}

/* sum += weights * values for eight slices. */
#define MULTIPLY(sum, weights, part, x, y) \
    __asm__("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, " \
            "{%0, %1, %2, %3};" : "+f"((sum)[0]), "+f"((sum)[1]), "+f"((sum)[2]), "+f"((sum)[3]) \
            : "r"(weights[0].part), "r"(weights[1].part), "r"(weights[2].part), "r"(weights[3].part), "r"(x), "r"(y))

/* Adds what two projections give a square. `place`: d of its first pixel (bits) and where its first bin's row starts in
 * `cells`, in bytes from CELLS_AT, for both. */
HELPER void add_products(sums_t *sums, __local const uchar *cells, uint4 place, pixels_t pixels, int lane)
{
    uint2 weights[4];
    weights[0] = pair_of_weights(as_float(place.x) + pixels.a.x, lane);
    weights[1] = pair_of_weights(as_float(place.x) + pixels.a.y, lane);
    weights[2] = pair_of_weights(as_float(place.z) + pixels.b.x, lane);
    weights[3] = pair_of_weights(as_float(place.z) + pixels.b.y, lane);
    /* an item names one row of 8 values: of eight bins, two projections and two times eight slices */
    const uint row = (lane / 8 % 2 ? place.w : place.y) + lane % 8 * ROW_BYTES + lane / 16 * 16;
    uint values[ROW_VALUES / 4];
    UNROLL_ALL
    for (int n = 0; n < ROW_VALUES / 16; n++)
        __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(values[4 * n]), "=r"(values[4 * n + 1]), "=r"(values[4 * n + 2]),
                           "=r"(values[4 * n + 3]) : "r"(row + n * 32));
    UNROLL_ALL
    for (int n = 0; n < SLICES / 8; n++) {
        MULTIPLY(&sums->value[4 * n], weights, x, values[2 * n], values[2 * n + 1]);
#if SPLIT
        const int low = n + SLICES / 8;
        MULTIPLY(&sums->value[4 * n], weights, x, values[2 * low], values[2 * low + 1]);
#if LINEAR
        MULTIPLY(&sums->value[4 * n], weights, y, values[2 * n], values[2 * n + 1]);
#endif
#endif
    }
}

#else

#define CELLS_AT(cells) 0

#if MATRIX == 3

/* sums += weights * values for 8 pixels and 16 slices: an item has the weights of all pixels for the bin of its lane, and
 * the values of all bins, in pairs, for the slice of its lane. */
float8 __attribute__((overloadable)) MATRIX_FUNCTION(short8 weights, int8 values, float8 sums);

HELPER short half_bits(float value)
{
    short bits = 0;
    vstore_half_rte(value, 0, (half *)&bits);
    return bits;
}

/* Slices from `first` on; the halves of 16 bins of two projections. */
HELPER void multiply(sums_t *sums, __local const uchar *cells, uint4 place, int first, const short *weights, int lane)
{
    UNROLL_ALL
    for (int n = 0; n < SLICES / 16; n++) {
        int values[8];
        UNROLL_ALL
        for (int pair = 0; pair < 8; pair++) {
            __local const ushort *bin = (__local const ushort *)(cells + (pair < 4 ? place.y : place.w) +
                                                                 pair % 4 * 2 * ROW_BYTES) + first + 16 * n + lane;
            values[pair] = bin[0] | bin[ROW_BYTES / 2] << 16;
        }
        UNROLL_ALL
        for (int part = 0; part < 2; part++)
            vstore8(MATRIX_FUNCTION(vload8(part, weights), vload8(0, values), vload8(2 * n + part, sums->value)),
                    2 * n + part, sums->value);
    }
}

HELPER void add_products(sums_t *sums, __local const uchar *cells, uint4 place, pixels_t pixels, int lane)
{
    const int bin = lane % 8;
    const float first = as_float(lane < 8 ? place.x : place.z);
    const float2 rotation = lane < 8 ? pixels.xy : pixels.zw;
    short high[16];
#if SPLIT && LINEAR
    short low[16];
#endif
    UNROLL_ALL
    for (int pixel = 0; pixel < 16; pixel++) {
        const float d = d_of_pixel(first, rotation, pixel);
#if LINEAR
        const float weight = max(0.0f, 1.0f - fabs(d - bin));
        high[pixel] = half_bits(weight);
#if SPLIT
        low[pixel] = half_bits(weight - rounded_to_half(weight));
#endif
#else
        high[pixel] = convert_int_rtn(d) == bin ? half_bits(1.0f) : 0;
#endif
    }
    multiply(sums, cells, place, 0, high, lane);
#if SPLIT
    multiply(sums, cells, place, SLICES, high, lane);
#if LINEAR
    multiply(sums, cells, place, 0, low, lane);
#endif
#endif
}

#elif MATRIX == 2

#pragma OPENCL EXTENSION cl_khr_fp16 : enable

/* What an item reads of a bin: a row's values, one of each product. */
typedef half row_t __attribute__((ext_vector_type(SLICES / 16)));

/* sums += values * weights; an item has four of the 16 bins of two projections, of a row's values and of its pixel. */
HELPER void multiply(sums_t *sums, __local const uchar *cells, half4 weights)
{
    row_t bins[4];
    UNROLL_ALL
    for (int bin = 0; bin < 4; bin++)
        bins[bin] = *(__local const row_t *)(cells + bin * ROW_BYTES);
    UNROLL_ALL
    for (int n = 0; n < SLICES / 16; n++) {
        const half4 values = (half4)(bins[0][n], bins[1][n], bins[2][n], bins[3][n]);
        vstore4(MATRIX_FUNCTION(values, weights, vload4(n, sums->value), 0, 0, 0), n, sums->value);
    }
}

HELPER void add_products(sums_t *sums, __local const uchar *cells, uint4 place, pixels_t pixels, int lane)
{
    const bool second = lane >= 32; /* of the projections */
    const float d = second ? as_float(place.z) + pixels.b.x : as_float(place.x) + pixels.a.x;
    cells += (second ? place.w : place.y) + lane / 16 % 2 * 4 * ROW_BYTES + lane % 16 * (SLICES / 16) * 2;
#if LINEAR
    const float4 distance = fabs(d - (float4)(0, 1, 2, 3));
    const float4 weights = max(WEIGHT_OF_ONE - WEIGHT_OF_ONE * distance, 0.0f);
    const half4 high = convert_half4_rte(weights);
#else
    /* a 1 shifted to the bin */
    const uint bin = convert_int_rtn(d) - FIRST_BIN(lane);
    const half4 high = as_half4(bin < 4 ? (ulong)as_ushort((half)WEIGHT_OF_ONE) << (16 * bin) : 0);
#endif
    multiply(sums, cells, high);
#if SPLIT
    multiply(sums, cells + SLICES * 2, high);
#if LINEAR
    multiply(sums, cells, convert_half4_rte(weights - convert_float4(high)));
#endif
#endif
}

#else

/* The weight of the bin at d as a sum of two halves; the second is 0 without SPLIT. */
HELPER float2 weight_of(float d)
{
    const float weight = WEIGHT_OF_ONE * (LINEAR ? max(0.0f, 1.0f - fabs(d)) : (d >= 0.0f && d < 1.0f ? 1.0f : 0.0f));
    const float high = rounded_to_half(weight);
    return (float2)(high, SPLIT ? rounded_to_half(weight - high) : 0.0f);
}

HELPER float cell_value(__local const uchar *cells, uint row, int column)
{
    return vload_half(row / 2 + column, (__local const half *)cells);
}

HELPER void add_products(sums_t *sums, __local const uchar *cells, uint4 place, pixels_t pixels, int lane)
{
    for (int column = 0; column < 16; column++) {
        const int bin = column % 8;
        const uint row = (column < 8 ? place.y : place.w) + bin * ROW_BYTES;
#if LANES == 16
        const float first = as_float(column < 8 ? place.x : place.z);
        float2 weights[16];
        for (int pixel = 0; pixel < 16; pixel++)
            weights[pixel] = weight_of(d_of_pixel(first, column < 8 ? pixels.xy : pixels.zw, pixel) - bin);
#else
        const float2 d = (column < 8 ? as_float(place.x) + pixels.a : as_float(place.z) + pixels.b) - bin;
        const float2 weights[2] = {weight_of(d.x), weight_of(d.y)};
#endif
        for (int n = 0; n < SUMS; n++) {
#if LANES == 16
            const float2 weight = weights[pixel_of_sum(n, lane)];
#else
            const float2 weight = weights[SECOND_PIXEL(n)];
#endif
            const float value = cell_value(cells, row, slice_of_sum(n, lane));
            sums->value[n] = mad(weight.x, value, sums->value[n]);
#if SPLIT
            sums->value[n] = mad(weight.x, cell_value(cells, row, slice_of_sum(n, lane) + SLICES), sums->value[n]);
            sums->value[n] = mad(weight.y, value, sums->value[n]);
#endif
        }
    }
}

#endif
#endif

#if BULK_COPIES

/* A buffer has two signals: all its windows have arrived, and all warps are done with it. Warps take turns to copy. */
#define WARP_BARRIER __asm__ volatile("bar.warp.sync 0xffffffff;" ::: "memory");
#define FULL(signals, stage) LOCAL_ADDRESS(&signals[(stage) % BUFFERS])
#define FREE(signals, stage) LOCAL_ADDRESS(&signals[BUFFERS + (stage) % BUFFERS])
/* Waits for the end of a signal's phase; phases are numbered by parity. */
#define AWAIT(signal, phase) \
    __asm__ volatile("{ .reg .pred done;\n" \
                     "AGAIN: mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n" \
                     "  @!done bra AGAIN; }" :: "r"(signal), "r"((phase) & 1) : "memory");

#define COPY_STATE(signals) __local ulong signals[2 * BUFFERS]
#define COPY_PREPARE(signals) \
    if (lane == 0 && warp == 0) \
        for (int buffer = 0; buffer < BUFFERS; buffer++) { \
            __asm__ volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(FULL(signals, buffer)) : "memory"); \
            __asm__ volatile("mbarrier.init.shared.b64 [%0], %1;" \
                             :: "r"(FREE(signals, buffer)), "r"(WARPS) : "memory"); \
        } \
    __asm__ volatile("fence.proxy.async.shared::cta;" ::: "memory"); \
    barrier(CLK_LOCAL_MEM_FENCE);
#define COPY_BEGIN(signals, stage) \
    if (warp == (stage) % WARPS) { \
        if ((stage) >= BUFFERS) \
            AWAIT(FREE(signals, stage), (stage) / BUFFERS - 1)
#define COPY_FIRST lane
#define COPY_STEP LANES
#define COPY_WINDOW(signals, stage, to, from, bytes) \
    __asm__ volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%3], %2;\n" \
                     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" \
                     :: "r"(LOCAL_ADDRESS(to)), "l"(from), "r"(bytes), "r"(FULL(signals, stage)) : "memory");
#define COPY_END(signals, stage) \
        WARP_BARRIER \
        if (lane == 0) \
            __asm__ volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(FULL(signals, stage)) : "memory"); \
    }
#define COPY_WAIT(signals, stage) \
    WARP_BARRIER \
    AWAIT(FULL(signals, stage), (stage) / BUFFERS)
#define COPY_RELEASE(signals, stage) \
    WARP_BARRIER \
    if (lane == 0) \
        __asm__ volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(FREE(signals, stage)) : "memory");

#else

#define COPY_STATE(signals)
#define COPY_PREPARE(signals)
#define COPY_BEGIN(signals, stage)
#define COPY_FIRST warp
#define COPY_STEP WARPS
#define COPY_WINDOW(signals, stage, to, from, bytes) \
    for (int piece = lane; piece < (bytes) / 16; piece += LANES) \
        vstore4(vload4(piece, (__global const uint *)(from)), piece, (__local uint *)(to));
#define COPY_END(signals, stage)
#define COPY_WAIT(signals, stage) barrier(CLK_LOCAL_MEM_FENCE);
#define COPY_RELEASE(signals, stage) barrier(CLK_LOCAL_MEM_FENCE);

#endif
