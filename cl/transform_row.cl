/* transform_row.cl: the transform of a row whose values are in the registers of a work-group.
 *
 * An item keeps POINTS = 16 of LENGTH values in registers, those at item + n LENGTH / 16. A step of radix r does 16 / r
 * transforms of r values there (Stockham's order: values come and go in natural order, twiddled by where they are), then
 * values change places through local memory. The steps are of radix 16, and a last one of what is left of LENGTH. After the
 * last step an item has the frequencies of the same places, so filtering needs no exchange; the way back is the same with
 * conjugate factors.
 *
 * Defines, beside those of butterflies.cl, whose LENGTH is that of a row: at most 16384
 *   PARTS        1 complex values change places; 2 real parts do, then imaginary ones, in half of the local memory
 *   ROOM_STRIDE  values of local memory from one of a row to the next; others' are in between
 *   TAKE_TURNS   so many sets of ROOM_STRIDE rows use that memory one after the other; rows are then the first dimension of
 *                a work-group
 */
#ifndef PARTS
#define PARTS 1
#endif
#ifndef ROOM_STRIDE
#define ROOM_STRIDE 1
#endif
#ifndef TAKE_TURNS
#define TAKE_TURNS 1
#endif

#define POINTS 16
#define ROW_ITEMS (LENGTH / POINTS)

/* A gap after sixteen values keeps strides of powers of 2 out of one bank. */
#define PLACE(i) (((i) + (i) / 16) * ROOM_STRIDE)
#define ROW_ROOM (LENGTH + LENGTH / 16)
#if PARTS == 1
typedef float2 exchanged_t;
#else
typedef float exchanged_t;
#endif

/* powers[m], m from 2 to count - 1, of powers[1]: products of two smaller ones, so they are as good as float allows. */
HELPER void fill_powers(float2 *powers, int count)
{
    UNROLL_ALL
    for (int m = 2; m < count; m++)
        powers[m] = product(powers[m / 2], powers[m - m / 2]);
}

/* Values times w, w^2 ... w^(radix - 1), for w that turns the values of a step of radix `radix` after `done` values were
 * transformed together. */
HELPER void twiddle(float2 *v, int step, int radix, __global const float2 *restrict turns, int place, float sign)
{
    float2 powers[POINTS];
    powers[1] = turns[place];
    powers[1].y *= sign;
    fill_powers(powers, radix);
    UNROLL_ALL
    for (int m = 1; m < radix; m++)
        v[m * step] = product(v[m * step], powers[m]);
}

/* A step of 16 after `done` values were transformed together. */
HELPER void step_16(float2 *v, __global const float2 *restrict turns, int done, int item, float sign)
{
    if (done > 1)
        twiddle(v, 1, 16, turns, item % done * (LENGTH / (16 * done)), sign);
    transform_16(v, sign);
}

/* The last step: 16 / LAST transforms. */
HELPER void step_last(float2 *v, __global const float2 *restrict turns, int item, float sign)
{
#define SIDE_BY_SIDE (POINTS / LAST)
    UNROLL_ALL
    for (int q = 0; q < SIDE_BY_SIDE; q++) {
        twiddle(v + q, SIDE_BY_SIDE, LAST, turns, item + q * ROW_ITEMS, sign);
#if LAST == 2
        transform_2(v + q, SIDE_BY_SIDE);
#elif LAST == 4
        transform_4(v + q, SIDE_BY_SIDE, sign);
#elif LAST == 8
        transform_8(v + q, SIDE_BY_SIDE, sign);
#else
        transform_16(v, sign);
#endif
    }
}

/* What a step of 16 gave goes to where the next step takes it from. */
HELPER void exchange(float2 *v, __local exchanged_t *room, int done, int item)
{
    const int to = item / done * done * 16 + item % done;
#if TAKE_TURNS > 1
    const int own = get_local_id(0) / ROOM_STRIDE;
    for (int turn = 0; turn < TAKE_TURNS; turn++) {
#define OWN_TURN if (turn == own)
#else
    {
#define OWN_TURN
#endif
#if PARTS == 1
        barrier(CLK_LOCAL_MEM_FENCE);
        OWN_TURN
        UNROLL_ALL
        for (int m = 0; m < POINTS; m++)
            room[PLACE(to + m * done)] = v[m];
        barrier(CLK_LOCAL_MEM_FENCE);
        OWN_TURN
        UNROLL_ALL
        for (int n = 0; n < POINTS; n++)
            v[n] = room[PLACE(item + n * ROW_ITEMS)];
#else
        barrier(CLK_LOCAL_MEM_FENCE);
        OWN_TURN
        UNROLL_ALL
        for (int m = 0; m < POINTS; m++)
            room[PLACE(to + m * done)] = v[m].x;
        barrier(CLK_LOCAL_MEM_FENCE);
        OWN_TURN
        UNROLL_ALL
        for (int n = 0; n < POINTS; n++)
            v[n].x = room[PLACE(item + n * ROW_ITEMS)];
        barrier(CLK_LOCAL_MEM_FENCE);
        OWN_TURN
        UNROLL_ALL
        for (int m = 0; m < POINTS; m++)
            room[PLACE(to + m * done)] = v[m].y;
        barrier(CLK_LOCAL_MEM_FENCE);
        OWN_TURN
        UNROLL_ALL
        for (int n = 0; n < POINTS; n++)
            v[n].y = room[PLACE(item + n * ROW_ITEMS)];
#endif
#undef OWN_TURN
    }
}

HELPER void transform_row(float2 *v, __local exchanged_t *room, __global const float2 *restrict turns, int item, float sign)
{
    step_16(v, turns, 1, item, sign);
    exchange(v, room, 1, item);
#if LENGTH > 256
    step_16(v, turns, 16, item, sign);
    exchange(v, room, 16, item);
#endif
#if LENGTH > 4096
    step_16(v, turns, 256, item, sign);
    exchange(v, room, 256, item);
#endif
    step_last(v, turns, item, sign);
}
