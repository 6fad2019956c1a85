/* sample.cl: a value of the sinogram by the chosen interpolation. */

/* The value of projection `p` at position `h`. */
#if LINEAR
#define sample(sinogram, bins, p, h) fetch_between(sinogram, bins, p, (h).whole, (h).rest)
#else
#define sample(sinogram, bins, p, h) fetch_bin(sinogram, bins, p, (h).whole + floor((h).rest + 0.5f))
#endif
