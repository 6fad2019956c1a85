/* median.cl: the median of a window that moves along a line in local memory.
 *
 * Defines
 *   SIZE    values of the window, an odd number
 *   SORTED  1 each item keeps the window in registers, in ascending order; 0 it keeps the median and its rank, and looks
 *           for the next one among all values of the window
 */
#ifndef SIZE
#define SIZE 11
#endif
#ifndef SORTED
#define SORTED 1
#endif

#if SORTED
typedef struct {
    float values[SIZE];
} window_t;

HELPER float median_of(const window_t *window)
{
    return window->values[SIZE / 2];
}

/* The window of SIZE values from `line` on. */
HELPER void fill_window(window_t *window, __local const float *line)
{
    UNROLL_ALL
    for (int i = 0; i < SIZE; i++)
        window->values[i] = INFINITY;
    for (int next = 0; next < SIZE; next++) {
        const float value = line[next];
        UNROLL_ALL
        for (int i = SIZE - 1; i > 0; i--)
            window->values[i] = fmin(fmax(value, window->values[i - 1]), window->values[i]);
        window->values[0] = fmin(value, window->values[0]);
    }
}

/* Moves the window from `line` on by one value. */
HELPER void move_window(window_t *window, __local const float *line)
{
    const float leaves = line[0], enters = line[SIZE];
    float below = -INFINITY;
    UNROLL_ALL
    for (int i = 0; i < SIZE; i++) {
        /* value i without the one that leaves */
        const float above = i + 1 < SIZE ? window->values[min(i + 1, SIZE - 1)] : INFINITY;
        const float here = window->values[i] < leaves ? window->values[i] : above;
        window->values[i] = fmin(fmax(enters, below), here);
        below = here;
    }
}
#else
typedef struct {
    float median;
    /* values below the median, and those equal to it */
    int less, equal;
} window_t;

HELPER float median_of(const window_t *window)
{
    return window->median;
}

/* The window of SIZE values from `line` on: bit by bit the largest number that at most half of them are less than. */
HELPER void fill_window(window_t *window, __local const float *line)
{
    uint key = 0;
    for (uint bit = 1u << 31; bit != 0; bit >>= 1) {
        int less = 0;
        for (int i = 0; i < SIZE; i++)
            less += ascending(line[i]) < (key | bit);
        key |= less <= SIZE / 2 ? bit : 0;
    }
    const float median = from_ascending(key);
    window->median = median;
    window->less = window->equal = 0;
    for (int i = 0; i < SIZE; i++) {
        window->less += line[i] < median;
        window->equal += line[i] == median;
    }
}

/* Moves the window from `line` on by one value: the median stays, or is the next value above or below. */
HELPER void move_window(window_t *window, __local const float *line)
{
    const float median = window->median, leaves = line[0], enters = line[SIZE];
    const int less = window->less + (enters < median) - (leaves < median);
    const int equal = window->equal + (enters == median) - (leaves == median);
    window->less = less;
    window->equal = equal;
    if (less <= SIZE / 2 && SIZE / 2 < less + equal)
        return;
    /* with the sign changed, the next value below is the next above */
    const float sign = less > SIZE / 2 ? -1.0f : 1.0f;
    float next = INFINITY;
    int count = 0;
    for (int i = 1; i <= SIZE; i++) {
        const float value = sign * line[i];
        const bool nearer = value > sign * median && value < next;
        count = nearer ? 1 : count + (value == next);
        next = nearer ? value : next;
    }
    window->median = sign * next;
    window->equal = count;
    window->less = sign < 0.0f ? less - count : less + equal;
}
#endif
