/* transform_line.cl: the transform of a line in the memory of a work-item, slices as the vector, back from frequencies.
 *
 * A step goes from one place to another and the next one back (Stockham's order: values come and go in natural order). Steps
 * of radix 16 are one loop and not written out, because compilers take minutes for several of them in one kernel.
 *
 * Defines: those of butterflies.cl, whose VECTOR is 1; LENGTH may be 3 times a power of 2
 *
 * Layouts
 *   line   [LENGTH] values
 *   turns  [k] cosine and sine of 2 pi k / LENGTH
 */

/* A step of radix 16 from `from` to `to`, after `done` values were transformed together. */
HELPER void step_16(__global const complex_t *from, __global complex_t *to, __global const float2 *turns, int done)
{
    for (int group = 0; group < LENGTH / 16 / done; group++)
        for (int place = 0; place < done; place++) {
            complex_t v[16];
            UNROLL_ALL
            for (int n = 0; n < 16; n++)
                v[n] = from[group * done + place + n * (LENGTH / 16)];
            if (place > 0)
                UNROLL_ALL
                for (int n = 1; n < 16; n++)
                    v[n] = product(v[n], turns[n * place * (LENGTH / 16 / done)]);
            transform_16(v, 1.0f);
            UNROLL_ALL
            for (int n = 0; n < 16; n++)
                to[group * done * 16 + place + n * done] = v[n];
        }
}

#if LAST != 16
/* The transform of the values of the last step. */
HELPER void transform_last(complex_t *v, __global const float2 *turns)
{
#if ODD == 3
    /* in order, as EVEN columns of 3, twiddled, then the rows; the rectangle is turned at the end */
    UNROLL_ALL
    for (int i = 0; i < EVEN; i++)
        transform_3(v + i, EVEN, 1.0f);
    UNROLL_ALL
    for (int k = 1; k < ODD; k++)
        UNROLL_ALL
        for (int i = 1; i < EVEN; i++)
            v[k * EVEN + i] = product(v[k * EVEN + i], turns[k * i * (LENGTH / LAST)]);
#endif
    UNROLL_ALL
    for (int k = 0; k < ODD; k++) {
#if EVEN == 2
        transform_2(v + k * EVEN, 1);
#elif EVEN == 4
        transform_4(v + k * EVEN, 1, 1.0f);
#elif EVEN == 8
        transform_8(v + k * EVEN, 1, 1.0f);
#endif
    }
}

/* The last step. */
HELPER void step_last(__global const complex_t *from, __global complex_t *to, __global const float2 *turns)
{
    for (int place = 0; place < LENGTH / LAST; place++) {
        complex_t v[LAST];
        UNROLL_ALL
        for (int n = 0; n < LAST; n++)
            v[n] = from[place + n * (LENGTH / LAST)];
        UNROLL_ALL
        for (int n = 1; n < LAST; n++)
            v[n] = product(v[n], turns[n * place]);
        transform_last(v, turns);
        UNROLL_ALL
        for (int n = 0; n < LAST; n++)
            to[place + n * (LENGTH / LAST)] = v[n % ODD * EVEN + n / ODD];
    }
}
#endif

/* Transforms a line in turns between two places; tells where it ends. */
HELPER __global complex_t *transform_line(__global complex_t *a, __global complex_t *b, __global const float2 *turns)
{
    __global complex_t *from = a, *to = b;
    for (int done = 1; done * 16 * ODD * EVEN <= LENGTH; done *= 16) {
        step_16(from, to, turns, done);
        __global complex_t *swap = from;
        from = to;
        to = swap;
    }
#if LAST != 16
    step_last(from, to, turns);
    return to;
#else
    return from;
#endif
}
