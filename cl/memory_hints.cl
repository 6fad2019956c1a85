/* memory_hints.cl: what a processor is told of memory: what is read soon, and what is not read again. Without effect where it is
 * compiled into intermediate code, which has no such instructions. */
#ifdef __has_builtin
#if (defined(__x86_64__) || defined(__aarch64__)) && __has_builtin(__builtin_prefetch) && __has_builtin(__builtin_nontemporal_store)
#define MEMORY_HINTS 1
#endif
#endif

#ifdef MEMORY_HINTS
#define PREFETCH(place) __builtin_prefetch((const void *)(size_t)(place))
#else
#define PREFETCH(place) (void)(place)
#endif

/* Stores a line of the cache, past the cache where it is one. */
HELPER void store_line(float16 values, __global float *to)
{
#ifdef MEMORY_HINTS
    if (((size_t)to & 63) == 0) {
        __builtin_nontemporal_store(values, (__global float16 *)to);
        return;
    }
#endif
    vstore16(values, 0, to);
}
