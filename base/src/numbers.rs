//! Numerical functions without calls and branches, so that loops over them vectorise, and formatting of numbers.

/// Returns the largest integer not above `x`, which must fit an `i32`.
#[inline(always)]
pub fn floor(x: f64) -> i32 {
    let towards_zero = x as i32;
    towards_zero - i32::from(f64::from(towards_zero) > x)
}

/// Returns the natural logarithm of a positive, normal number, to about one unit in the last place.
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

/// Returns the natural logarithm of a positive, normal number in double precision, to about one unit in the last place, as
/// [`ln`] does.
#[inline(always)]
pub fn ln_double(x: f64) -> f64 {
    const SQRT_HALF: i64 = 0x3fe6_a09e_667f_3bcd;
    // with so few bits that the product with e is exact
    const LN_2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let bits = x.to_bits() as i64;
    let e = (bits - SQRT_HALF) >> 52;
    let m = f64::from_bits((bits - (e << 52)) as u64);
    let e = f64::from(e as i32);
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let end = 2.0 / 15.0 + z * (2.0 / 17.0 + z * (2.0 / 19.0 + z * (2.0 / 21.0)));
    let middle = 2.0 / 9.0 + z * (2.0 / 11.0 + z * (2.0 / 13.0 + z * end));
    let series = z * (2.0 / 3.0 + z * (2.0 / 5.0 + z * (2.0 / 7.0 + z * middle)));
    e * LN_2_HIGH + (2.0 * s + (s * series + e * LN_2_LOW))
}

/// Formats a coordinate or an angle: unchanged where four decimals are enough, otherwise with two.
pub fn brief(value: f64) -> String {
    let exact = value.to_string();
    let decimals = exact.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    if decimals <= 4 { exact } else { format!("{value:.2}") }
}

/// Formats a measured value with six digits, whole numbers with all of theirs.
pub fn significant(value: impl Into<f64>) -> String {
    const DIGITS: i32 = 6;
    let value: f64 = value.into();
    let size = value.abs();
    if !value.is_finite() || (value.fract() == 0.0 && size < 1e15) {
        return value.to_string();
    }
    if !(1e-4..1e9).contains(&size) {
        return format!("{value:.*e}", DIGITS as usize - 1);
    }
    let decimals = (DIGITS - 1 - size.log10().floor() as i32).max(0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Returns the position within `0..length` of one beyond either end, mirrored with the outermost value repeated.
pub fn mirrored(place: isize, length: usize) -> usize {
    let length = length as isize;
    let folded = place.rem_euclid(2 * length);
    folded.min(2 * length - 1 - folded) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people_have_few_digits() {
        for (value, text) in [
            (295.8430437573315, "295.84"),
            (319.5, "319.5"),
            (-12.0, "-12"),
            (179.4375, "179.4375"),
            (179.66666666666666, "179.67"),
        ] {
            assert_eq!(brief(value), text);
        }
        for (value, text) in [
            (0.0, "0"),
            (65535.0, "65535"),
            (1.0635132789611816, "1.06351"),
            (-0.13216783106327057, "-0.132168"),
            (0.1, "0.1"),
            (1.23456789e-7, "1.23457e-7"),
            (1234567.891, "1234568"),
            (f64::from(f32::MAX), "3.40282e38"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(significant(value), text);
        }
    }

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
        let (mut x, mut most) = (1e-300f64, 0f64);
        while x < 1e300 {
            for x in [x, 1.0 + 1e-9 / x.max(1e-6), 1.0 - 0.3 * x.fract()] {
                let exact = x.ln();
                most = most.max((ln_double(x) - exact).abs() / (exact.abs().max(1e-300) * 2f64.powi(-52)));
            }
            x *= 1.0173;
        }
        assert!(most < 1.5, "{most}");
        assert_eq!(ln_double(1.0), 0.0);
    }
}
