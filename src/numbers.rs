//! Numerical functions without calls and branches, so that loops over them vectorise.

/// The largest integer not above `x`, which must fit an `i32`.
#[inline(always)]
pub fn floor(x: f64) -> i32 {
    let towards_zero = x as i32;
    towards_zero - i32::from(f64::from(towards_zero) > x)
}

/// The natural logarithm of a positive, normal number, to about one unit in the last place.
///
/// `x = 2^e m` with `m` from `sqrt(1/2)` to `sqrt(2)`, and `ln(m) = 2 atanh(s)`, `s = (m - 1) / (m + 1)`, as a power series.
#[inline(always)]
pub fn ln(x: f32) -> f32 {
    const SQRT_HALF: i32 = 0x3f35_04f3;
    // with so few bits that the product with e is exact
    const LN_2_HIGH: f32 = 355.0 / 512.0;
    const LN_2_LOW: f32 = (std::f64::consts::LN_2 - 355.0 / 512.0) as f32;
    let bits = x.to_bits() as i32;
    let e = (bits - SQRT_HALF) >> 23;
    let m = f32::from_bits((bits - (e << 23)) as u32);
    let e = e as f32;
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let series = z * (2.0 / 3.0 + z * (2.0 / 5.0 + z * (2.0 / 7.0 + z * (2.0 / 9.0 + z * (2.0 / 11.0)))));
    e * LN_2_HIGH + (2.0 * s + (s * series + e * LN_2_LOW))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_below() {
        for x in [-3.0, -2.5, -1e-9, -0.0, 0.0, 0.999, 1.0, 7.25, 1e9] {
            assert_eq!(f64::from(floor(x)), x.floor(), "{x}");
        }
    }

    #[test]
    fn logarithms_are_right_to_the_last_place() {
        let mut x = 1e-6f32;
        let mut most = 0f64;
        while x < 1e6 {
            let exact = f64::from(x).ln();
            // near 1 the logarithm is as small as the number's own last place
            let unit = exact.abs().max(1e-30) * 2f64.powi(-23);
            most = most.max((f64::from(ln(x)) - exact).abs() / unit);
            x = f32::from_bits(x.to_bits() + 997);
        }
        assert!(most < 1.5, "{most}");
        assert_eq!(ln(1.0), 0.0);
        assert!(ln(f32::MAX) > 88.7 && ln(f32::INFINITY).is_finite());
    }
}
