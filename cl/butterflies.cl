/* butterflies.cl: transforms of 2, 3, 4, 8 and 16 complex values in registers. Longer transforms have steps of radix 16, and a
 * last one of radix LAST.
 *
 * Defines
 *   LENGTH  of a longer transform: a power of 2 from 64 on, or 3 times one from 32 on
 *   VECTOR  1 a value is a vector of SLICES complex numbers, SLICES at most 8; 0 one complex number
 */
#ifndef LENGTH
#define LENGTH 256
#endif
#ifndef VECTOR
#define VECTOR 0
#endif

/* The odd factor, what steps of radix 16 leave of the power of 2, and both. */
#if LENGTH % 3 == 0
#define ODD 3
#else
#define ODD 1
#endif
#if LENGTH / ODD & 0x22222220
#define EVEN 2
#elif LENGTH / ODD & 0x44444440
#define EVEN 4
#elif LENGTH / ODD & 0x88888880
#define EVEN 8
#else
#define EVEN 1
#endif
#define LAST (ODD * EVEN > 1 ? ODD * EVEN : 16)

/* `product` is that of every complex number of a value with one; `quarter_turn` is that with i, or -i for sign -1. */
#if VECTOR
#if SLICES == 1
typedef float2 complex_t;
#define SWAPPED s10
#define PER_SLICE(a, b) ((complex_t)(a, b))
#elif SLICES == 2
typedef float4 complex_t;
#define SWAPPED s1032
#define PER_SLICE(a, b) ((complex_t)(a, b, a, b))
#elif SLICES == 4
typedef float8 complex_t;
#define SWAPPED s10325476
#define PER_SLICE(a, b) ((complex_t)(a, b, a, b, a, b, a, b))
#elif SLICES == 8
typedef float16 complex_t;
#define SWAPPED s1032547698badcfe
#define PER_SLICE(a, b) ((complex_t)(a, b, a, b, a, b, a, b, a, b, a, b, a, b, a, b))
#else
#error "a vector has 1, 2, 4 or 8 slices"
#endif
#define CONJUGATE PER_SLICE(1.0f, -1.0f)

HELPER complex_t product(complex_t a, float2 b)
{
    return fma(a, (complex_t)(b.x), a.SWAPPED * PER_SLICE(-b.y, b.y));
}

HELPER complex_t quarter_turn(complex_t a, float sign)
{
    return a.SWAPPED * PER_SLICE(-sign, sign);
}
#else
typedef float2 complex_t;

HELPER float2 product(float2 a, float2 b)
{
    return (float2)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

HELPER float2 quarter_turn(float2 a, float sign)
{
    return sign * (float2)(-a.y, a.x);
}
#endif

/* Transforms of 2, 3, 4, 8 and 16 values that lie `step` apart. `sign` is -1 to frequencies, 1 back. */
HELPER void transform_2(complex_t *v, int step)
{
    const complex_t a = v[0], b = v[step];
    v[0] = a + b;
    v[step] = a - b;
}

HELPER void transform_3(complex_t *v, int step, float sign)
{
    const complex_t sum = v[step] + v[2 * step], rest = v[0] - 0.5f * sum;
    const complex_t turned = 0.86602540378443865f * quarter_turn(v[step] - v[2 * step], sign);
    v[0] += sum;
    v[step] = rest + turned;
    v[2 * step] = rest - turned;
}

HELPER void transform_4(complex_t *v, int step, float sign)
{
    const complex_t a = v[0] + v[2 * step], b = v[0] - v[2 * step], c = v[step] + v[3 * step], d = v[step] - v[3 * step];
    const complex_t turned = quarter_turn(d, sign);
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
HELPER void transform_16(complex_t *v, float sign)
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
            const complex_t value = v[4 * k + i];
            v[4 * k + i] = v[4 * i + k];
            v[4 * i + k] = value;
        }
}

HELPER void transform_8(complex_t *v, int step, float sign)
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
    const complex_t a = v[step], b = v[2 * step], c = v[3 * step];
    v[step] = v[4 * step];
    v[2 * step] = a;
    v[3 * step] = v[5 * step];
    v[4 * step] = b;
    v[5 * step] = v[6 * step];
    v[6 * step] = c;
}
