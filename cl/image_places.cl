/* image_places.cl: which pixel of a projection is where in an image, and the response of the filter.
 *
 * An image is that of some rows of the projection, with those around them that the filter reaches; beyond the projection its
 * outermost pixels are repeated.
 */

/* The row of the projection, from 0 for the first that was read to `last`, at row y of an image of `height` rows, whose
 * first is row `first` of these: the `wanted` ones, then half of those around them after, and half before. */
HELPER int row_of_image(int y, int height, int first, int wanted, int last)
{
    const bool before = y >= wanted + (height - wanted) / 2;
    return clamp(first + y - (before ? height : 0), 0, last);
}

/* The bin at place x of a row of `width`. */
HELPER int bin_of_image(int x, int bins, int width)
{
    return x < bins ? x : x < bins + (width - bins) / 2 ? bins - 1 : 0;
}

/* The response at a frequency along bins and one along rows, each {the squared frequency times the squared length of the
 * filter, a Gaussian}. */
HELPER float response(float2 along_bins, float2 along_rows, float sharpening)
{
    return (1.0f + sharpening * (1.0f - along_bins.y * along_rows.y)) / (1.0f + (along_bins.x + along_rows.x));
}
