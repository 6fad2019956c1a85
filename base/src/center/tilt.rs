//! How far the axis is from upright.

/// How the axis changes from row to row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AxisTilt {
    /// Bins from one row to the next; 0 if it does not differ from that by more than chance.
    pub slope: f64,
    /// Most likely slope, even if it may be due to chance.
    pub likely: f64,
    /// Standard deviation of the slope.
    pub uncertainty: f64,
}

impl AxisTilt {
    /// Returns the tilt in another unit, of which there are `scale` in one of this.
    pub(super) fn times(self, scale: f64) -> AxisTilt {
        let AxisTilt { slope, likely, uncertainty } = self;
        AxisTilt { slope: scale * slope, likely: scale * likely, uncertainty: scale * uncertainty }
    }
}
