/* transform_row.cl: the transform of a row whose values are in the registers of a work-group.
 *
 * An item keeps POINTS = 16 of LENGTH values in registers, those at item + n LENGTH / 16. A step of radix r does 16 / r
 * transforms of r values there (Stockham's order: values come and go in natural order, twiddled by where they are), then
 * values change places through local memory. The steps are of radix 16, and a last one of what is left of LENGTH. After the
 * last step an item has the frequencies of the same places, so filtering needs no exchange; the way back is the same with
 * conjugate factors.
 *
 * Defines
 *   LENGTH       of a row: a power of 2 from 64 to 16384
 *   PARTS        1 complex values change places; 2 real parts do, then imaginary ones, in half of the local memory
 *   ROOM_STRIDE  values of local memory from one of a row to the next; others' are in between
 */
#ifndef LENGTH
#define LENGTH 256
#endif
#ifndef PARTS
#define PARTS 1
#endif
#ifndef ROOM_STRIDE
#define ROOM_STRIDE 1
#endif

#define POINTS 16
#define ROW_ITEMS (LENGTH / POINTS)

/* The radix of the last step. */
#if LENGTH == 16384 || LENGTH == 1024 || LENGTH == 64
#define LAST 4
#elif LENGTH == 8192 || LENGTH == 512
#define LAST 2
#elif LENGTH == 2048 || LENGTH == 128
#define LAST 8
#else
#define LAST 16
#endif

/* A gap after sixteen values keeps strides of powers of 2 out of one bank. */
#define PLACE(i) (((i) + (i) / 16) * ROOM_STRIDE)
#define ROW_ROOM (LENGTH + LENGTH / 16)
#if PARTS == 1
typedef float2 exchanged_t;
#else
typedef float exchanged_t;
#endif

HELPER float2 product(float2 a, float2 b)
{
    return (float2)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

/* Transforms of 2, 4, 8 and 16 values that lie `step` apart. `sign` is -1 to frequencies, 1 back. */
HELPER void transform_2(float2 *v, int step)
{
    const float2 a = v[0], b = v[step];
    v[0] = a + b;
    v[step] = a - b;
}

HELPER void transform_4(float2 *v, int step, float sign)
{
    const float2 a = v[0] + v[2 * step], b = v[0] - v[2 * step], c = v[step] + v[3 * step], d = v[step] - v[3 * step];
    const float2 turned = sign * (float2)(-d.y, d.x);
    v[0] = a + c;
    v[step] = b + turned;
    v[2 * step] = a - c;
    v[3 * step] = b - turned;
}

/* e^(sign 2 pi i n / 16) for n that is known to the compiler. */
HELPER float2 sixteenth(int n, float sign)
{
    const float c = 0.92387953251128676f, s = 0.38268343236508977f, h = 0.70710678118654752f;
    switch (n) {
    case 0: return (float2)(1.0f, 0.0f);
    case 1: return (float2)(c, sign * s);
    case 2: return (float2)(h, sign * h);
    case 3: return (float2)(s, sign * c);
    case 4: return (float2)(0.0f, sign);
    case 6: return (float2)(-h, sign * h);
    default: return (float2)(-c, sign * -s); /* 9 */
    }
}

/* In order, as the four columns of a square, twiddled, then its rows; the square is turned at the end. */
HELPER void transform_16(float2 *v, float sign)
{
    UNROLL_ALL
    for (int i = 0; i < 4; i++)
        transform_4(v + i, 4, sign);
    UNROLL_ALL
    for (int k = 1; k < 4; k++)
        UNROLL_ALL
        for (int i = 1; i < 4; i++)
            v[4 * k + i] = product(v[4 * k + i], sixteenth(k * i, sign));
    UNROLL_ALL
    for (int k = 0; k < 4; k++)
        transform_4(v + 4 * k, 1, sign);
    UNROLL_ALL
    for (int k = 0; k < 4; k++)
        UNROLL_ALL
        for (int i = 0; i < k; i++) {
            const float2 value = v[4 * k + i];
            v[4 * k + i] = v[4 * i + k];
            v[4 * i + k] = value;
        }
}

HELPER void transform_8(float2 *v, int step, float sign)
{
    UNROLL_ALL
    for (int i = 0; i < 4; i++)
        transform_2(v + i * step, 4 * step);
    UNROLL_ALL
    for (int i = 1; i < 4; i++)
        v[(4 + i) * step] = product(v[(4 + i) * step], sixteenth(2 * i, sign));
    transform_4(v, step, sign);
    transform_4(v + 4 * step, step, sign);
    /* even frequencies are in the first half, odd ones in the second */
    const float2 a = v[step], b = v[2 * step], c = v[3 * step];
    v[step] = v[4 * step];
    v[2 * step] = a;
    v[3 * step] = v[5 * step];
    v[4 * step] = b;
    v[5 * step] = v[6 * step];
    v[6 * step] = c;
}

/* Values times w, w^2 ... w^(radix - 1), for w that turns the values of a step of radix `radix` after `done` values were
 * transformed together; the powers are products of two smaller ones, so they are as good as float allows. */
HELPER void twiddle(float2 *v, int step, int radix, __global const float2 *restrict turns, int place, float sign)
{
    float2 powers[POINTS];
    powers[1] = turns[place];
    powers[1].y *= sign;
    UNROLL_ALL
    for (int m = 2; m < radix; m++)
        powers[m] = product(powers[m / 2], powers[m - m / 2]);
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
#if PARTS == 1
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL_ALL
    for (int m = 0; m < POINTS; m++)
        room[PLACE(to + m * done)] = v[m];
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL_ALL
    for (int n = 0; n < POINTS; n++)
        v[n] = room[PLACE(item + n * ROW_ITEMS)];
#else
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL_ALL
    for (int m = 0; m < POINTS; m++)
        room[PLACE(to + m * done)] = v[m].x;
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL_ALL
    for (int n = 0; n < POINTS; n++)
        v[n].x = room[PLACE(item + n * ROW_ITEMS)];
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL_ALL
    for (int m = 0; m < POINTS; m++)
        room[PLACE(to + m * done)] = v[m].y;
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL_ALL
    for (int n = 0; n < POINTS; n++)
        v[n].y = room[PLACE(item + n * ROW_ITEMS)];
#endif
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
