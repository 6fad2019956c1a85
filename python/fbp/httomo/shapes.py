"""The shapes of results of fbp, for HTTomo. ``python -m fbp.httomo`` copies this file, which needs nothing."""


def _calc_output_dim_reconstruct(non_slice_dims_shape, roi=None, recon_size=None, **_):
    """Height and width of a slice by the numbers of projections and bins."""
    if roi is not None:
        return int(roi[3]), int(roi[2])
    side = int(recon_size or non_slice_dims_shape[1])
    return side, side
