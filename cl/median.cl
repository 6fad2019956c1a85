/* median.cl: the median of a window that moves along a line.
 *
 * Values are compared as keys, integers with the order of the floats (see float_order.cl); no value is NaN.
 *
 * Defines
 *   SIZE        values of the window, an odd number
 *   SORTED      1 each item keeps the window in registers, in ascending order; 0 it keeps the median and its rank, and
 *               looks for the next one among all values of the window
 *   TRANSPOSED  1 a line is a row of a transposed image in global memory; 0 a line is keys in local memory
 */
#ifndef SIZE
#define SIZE 11
#endif
#ifndef SORTED
#define SORTED 1
#endif
#ifndef TRANSPOSED
#define TRANSPOSED 0
#endif

#if TRANSPOSED
/* A row of an image of floats, [column][row]; columns are mirrored at both ends. */
typedef struct {
    __global const float *first;
    int columns, rows;
} line_t;

HELPER uint key_at(line_t line, int i)
{
    return ascending(line.first[(ulong)mirrored(i, line.columns) * line.rows]);
}
#else
typedef __local const uint *line_t;

HELPER uint key_at(line_t line, int i)
{
    return line[i];
}
#endif

#if SORTED
typedef struct {
    uint keys[SIZE];
} window_t;

HELPER float median_of(const window_t *window)
{
    return from_ascending(window->keys[SIZE / 2]);
}

/* The window from value `first` of a line on. */
HELPER void fill_window(window_t *window, line_t line, int first)
{
    UNROLL_ALL
    for (int i = 0; i < SIZE; i++)
        window->keys[i] = 0xffffffffu;
    for (int next = first; next < first + SIZE; next++) {
        const uint enters = key_at(line, next);
        UNROLL_ALL
        for (int i = SIZE - 1; i > 0; i--)
            window->keys[i] = max(window->keys[i - 1], min(window->keys[i], enters));
        window->keys[0] = min(window->keys[0], enters);
    }
}

/* Moves the window from value `first` on by one value. */
HELPER void move_window(window_t *window, line_t line, int first)
{
    const uint leaves = key_at(line, first), enters = key_at(line, first + SIZE);
    /* keys from the one that leaves on move down, then those above the one that enters move up */
    uint below = 0;
    UNROLL_ALL
    for (int i = 0; i < SIZE - 1; i++) {
        const uint here = window->keys[i] < leaves ? window->keys[i] : window->keys[i + 1];
        window->keys[i] = max(below, min(here, enters));
        below = here;
    }
    window->keys[SIZE - 1] = max(below, enters);
}
#else
typedef struct {
    uint median;
    /* keys below the median, and those equal to it */
    int less, equal;
} window_t;

HELPER float median_of(const window_t *window)
{
    return from_ascending(window->median);
}

/* The window from value `first` of a line on: bit by bit the largest key that at most half of them are less than. */
HELPER void fill_window(window_t *window, line_t line, int first)
{
    uint median = 0;
    for (uint bit = 1u << 31; bit != 0; bit >>= 1) {
        int less = 0;
        for (int i = 0; i < SIZE; i++)
            less += key_at(line, first + i) < (median | bit);
        median |= less <= SIZE / 2 ? bit : 0;
    }
    window->median = median;
    window->less = window->equal = 0;
    for (int i = 0; i < SIZE; i++) {
        const uint key = key_at(line, first + i);
        window->less += key < median;
        window->equal += key == median;
    }
}

/* Moves the window from value `first` on by one value: the median stays, or is the next key above or below. */
HELPER void move_window(window_t *window, line_t line, int first)
{
    const uint median = window->median, leaves = key_at(line, first), enters = key_at(line, first + SIZE);
    const int less = window->less + (enters < median) - (leaves < median);
    const int equal = window->equal + (enters == median) - (leaves == median);
    window->less = less;
    window->equal = equal;
    if (less <= SIZE / 2 && SIZE / 2 < less + equal)
        return;
    /* the next key below; with all bits inverted it is the next above. Only a NaN has the key 0 */
    const bool down = less > SIZE / 2;
    const uint inverted = down ? 0 : 0xffffffffu, limit = median ^ inverted;
    uint next = 0;
    int count = 0;
    for (int i = 1; i <= SIZE; i++) {
        const uint key = key_at(line, first + i) ^ inverted;
        const bool nearer = key < limit && key > next;
        count = nearer ? 1 : count + (key == next);
        next = nearer ? key : next;
    }
    window->median = next ^ inverted;
    window->equal = count;
    window->less = down ? less - count : less + equal;
}
#endif
