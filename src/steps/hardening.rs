//! Correction of beam hardening: a polynomial of line integrals.

use super::errors::StepFlagError;
use super::{Band, Counts, Data, Ready, RowStep, RowSteps, Step, StepFlags};
use crate::error::{Error, Result};
use crate::operations::{HARDENING_FACTORS, HardeningPolynomial, RowCorrection};
use crate::spectrum::largest_value;
use multiversion::multiversion;
use serde_with::{DeserializeFromStr, SerializeDisplay};
use std::fmt;
use std::str::FromStr;

/// Largest magnitude of a factor.
const MOST: f64 = 1e6;

/// Factors of the square, the cube and so on, of line integrals: `p` becomes `p + a2 p^2 + a3 p^3 + ...`.
#[derive(Clone, Debug, PartialEq, SerializeDisplay, DeserializeFromStr)]
pub struct BeamHardening {
    factors: Vec<f64>,
}

/// Formats the factors as `--beam-hardening` takes them.
impl fmt::Display for BeamHardening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.factors.iter().map(f64::to_string).collect::<Vec<_>>().join(","))
    }
}

/// Reads the factors as `--beam-hardening` takes them.
impl FromStr for BeamHardening {
    type Err = Error;

    fn from_str(text: &str) -> Result<BeamHardening> {
        let legal = |factor: &f64| factor.abs() <= MOST;
        let factors: Option<Vec<f64>> = text.split(',').map(|part| part.trim().parse().ok().filter(legal)).collect();
        match factors {
            Some(factors) if (1..=HARDENING_FACTORS).contains(&factors.len()) => Ok(BeamHardening { factors }),
            _ => {
                Err(StepFlagError::MalformedHardening { text: text.into(), count: HARDENING_FACTORS, most: MOST }
                    .into())
            }
        }
    }
}

impl BeamHardening {
    /// Returns the polynomial, for results up to `largest` in magnitude.
    pub fn polynomial(&self, largest: f32) -> HardeningPolynomial {
        let mut factors = [0.0; HARDENING_FACTORS];
        factors.iter_mut().zip(&self.factors).for_each(|(factor, &given)| *factor = given as f32);
        HardeningPolynomial { factors, largest }
    }

    /// Returns the polynomial as a formula of `p`.
    pub fn formula(&self) -> String {
        let terms = self.factors.iter().zip(2..).filter(|(factor, _)| **factor != 0.0);
        let term = |(factor, power): (&f64, usize)| {
            let sign = if *factor < 0.0 { '-' } else { '+' };
            format!(" {sign} {} p^{power}", factor.abs())
        };
        format!("p{}", terms.map(term).collect::<String>())
    }
}

impl Step for Option<BeamHardening> {
    fn flag(&self) -> &'static str {
        "beam-hardening"
    }

    fn parse(args: &StepFlags) -> Result<Self> {
        let Some(text) = &args.steps.beam_hardening else { return Ok(None) };
        let input = &args.input;
        // the contents of an HDF5 file are not known yet
        if input.no_minus_log && input.flats.is_some() {
            return Err(StepFlagError::HardeningOfTransmissions.into());
        }
        Ok(Some(text.0.parse()?))
    }

    fn value(&self) -> Option<String> {
        self.as_ref().map(BeamHardening::to_string)
    }

    fn ready(&self, data: &Data, _: &RowSteps) -> Result<Option<Ready>> {
        let Some(hardening) = self else { return Ok(None) };
        if data.stacks.flats.is_some() && !data.minus_log {
            return Err(StepFlagError::HardeningOfTransmissions.into());
        }
        let largest = largest_value(data.stacks.data.width(), data.projections);
        Ok(Some(Ready::Rows(Box::new(hardening.polynomial(largest)))))
    }
}

impl RowStep for HardeningPolynomial {
    fn on_device<'a>(&'a self, correction: &mut RowCorrection<'a>) -> bool {
        correction.after.push(self);
        true
    }

    fn apply(&self, band: &mut Band, counts: &mut Counts) {
        let counted = band.counted.clone();
        for (row, line) in band.lines() {
            let replaced = harden(line, &self.factors, self.largest);
            if counted.contains(&row) {
                counts.defects.add(row, replaced);
                counts.clamped.non_finite += replaced;
            }
        }
    }
}

/// Applies a polynomial to all values; returns how many results were too large. Also compiled for newer processors with
/// wider vectors, with the same results.
#[multiversion(targets("x86_64+avx2"))]
fn harden(values: &mut [f32], factors: &[f32; HARDENING_FACTORS], largest: f32) -> u64 {
    let mut replaced = 0u32;
    for value in values {
        let p = *value;
        let mut sum = factors[HARDENING_FACTORS - 1];
        for factor in factors[..HARDENING_FACTORS - 1].iter().rev() {
            sum = sum * p + factor;
        }
        let result = p * (1.0 + p * sum);
        // false for what is no number, too
        let finite = result.abs() <= largest;
        replaced += u32::from(!finite);
        *value = if finite { result } else { 0.0 };
    }
    replaced.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(factors: &str, values: &[f32]) -> (Vec<f32>, Counts) {
        let mut values = values.to_vec();
        let mut counts = Counts::default();
        let polynomial = factors.parse::<BeamHardening>().unwrap().polynomial(1e28);
        polynomial.apply(&mut Band::new(&mut values, 1, 0..1, 0..1), &mut counts);
        (values, counts)
    }

    #[test]
    fn line_integrals_become_their_polynomial() {
        let values: Vec<f32> = (0..100).map(|i| 0.05 * i as f32 - 0.3).collect();
        for factors in [&[0.08][..], &[-0.02, 0.004], &[0.0, 0.0, 1e-3], &[0.1, 0.2, -0.3, 0.4, -0.5, 0.6, -0.7, 0.8]] {
            let text = factors.iter().map(f64::to_string).collect::<Vec<_>>().join(",");
            let (got, counts) = applied(&text, &values);
            for (&p, got) in values.iter().map(|p| f64::from(*p)).collect::<Vec<_>>().iter().zip(got) {
                let terms = || factors.iter().zip(2..).map(|(factor, power)| factor * p.powi(power));
                let (want, size) = (p + terms().sum::<f64>(), p.abs() + terms().map(f64::abs).sum::<f64>());
                assert!((f64::from(got) - want).abs() <= 1e-6 * size, "{text} of {p}: {got}, {want}");
            }
            assert_eq!(counts.clamped.total(), 0);
        }
    }

    #[test]
    fn factors_of_zero_change_nothing() {
        let values = [0.0, -0.0, 1.5e-30, 13.8155, -0.25, 1e28, -1e28];
        for factors in ["0", "0,0,0", "-0"] {
            let (got, counts) = applied(factors, &values);
            assert!(got.iter().zip(values).all(|(got, value)| got.to_bits() == value.to_bits()), "{got:?}");
            assert_eq!(counts.clamped.total(), 0);
        }
    }

    #[test]
    fn what_becomes_too_large_is_replaced() {
        let (got, counts) = applied("1,-1", &[1e20, 2.0, -1e28, 1e13]);
        assert_eq!(got, [0.0, -2.0, 0.0, 0.0]);
        assert_eq!(counts.clamped.non_finite, 3);
    }

    #[test]
    fn formulas_leave_out_what_is_zero() {
        let formula = |text: &str| text.parse::<BeamHardening>().unwrap().formula();
        assert_eq!(formula("0.1,0,-0.02"), "p + 0.1 p^2 - 0.02 p^4");
        assert_eq!(formula("0"), "p");
    }
}
