//! Removal of stripes in sinograms, which cause rings in slices.
//!
//! Every method works on one sinogram of line integrals, `[projection][bin]`, in place and on one thread; the caller
//! processes sinograms in parallel. The result depends only on the sinogram.

mod on_device;
mod profile;
mod vo_on_device;
mod wavelet;

#[cfg(test)]
mod tests;

use super::{Counts, Data, DeviceSinogramStep, Ready, RowSteps, SinogramStep, Step, StepFlags};
use crate::device::Session;
use crate::error::{Error, Result, messages};
use crate::operations::{SinogramBatch, SinogramShape};
use crate::stripes::{columns::PAD, vo};
use profile::Smooth;
use serde_with::{DeserializeFromStr, SerializeDisplay};
use std::fmt;
use std::str::FromStr;

messages! {
    /// Errors of `--stripes`.
    enum StripesError: Usage {
        UnknownMethod { method: String, methods: String } => "--stripes: `{method}` is not one of {methods}",
        NotAParameter { method: String, text: String } =>
            "--stripes {method}: `{text}` is not key=value"; "write parameters like wavelet:level=5,sigma=2",
        GivenTwice { method: String, key: String } => "--stripes {method}: {key} is given twice"; "give it once",
        UnknownParameter { method: String, key: String, known: String } =>
            "--stripes {method}: unknown parameter `{key}`"; "use {known}",
        BadValue { method: String, key: &'static str, text: String, expected: String } =>
            "--stripes {method}: {key}={text}: expected {expected}",
    }
}

/// A method with its parameters. Sizes are odd numbers of bins.
#[derive(Clone, Copy, Debug, PartialEq, SerializeDisplay, DeserializeFromStr)]
pub enum Stripes {
    /// Narrow stripes through all projections: Vo et al. 2018, algorithm 3.
    Sorting { size: usize },
    /// Narrow stripes at low frequencies along the columns: Vo et al. 2018, algorithm 2.
    Filtering { sigma: f64, size: usize },
    /// Slowly varying stripes: polynomials along the columns, smoothed across bins; after Vo et al. 2018,
    /// algorithm 1.
    Fitting { order: usize, sigma: f64, blocks: usize },
    /// Wide stripes: Vo et al. 2018, algorithm 5.
    Large { snr: f64, size: usize, drop: f64 },
    /// Unresponsive or fluctuating bins: Vo et al. 2018, algorithm 6, without its use of algorithm 5.
    Dead { snr: f64, size: usize },
    /// [`Dead`](Self::Dead), [`Large`](Self::Large) and [`Sorting`](Self::Sorting), one after the other.
    All { snr: f64, large: usize, small: usize, drop: f64 },
    /// Muench et al. 2009, with the Daubechies wavelet with this number of vanishing moments.
    Wavelet { moments: usize, level: Option<usize>, sigma: f64 },
    /// Titarenko et al. 2010.
    Titarenko { alpha: f64, blocks: usize },
    /// The columns' mean minus its smooth part.
    Mean { sigma: f64, blocks: usize },
}

/// Formats the method as `--stripes` takes it, with all parameters.
impl fmt::Display for Stripes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stripes::Sorting { size } => write!(f, "sorting:size={size}"),
            Stripes::Filtering { sigma, size } => write!(f, "filtering:sigma={sigma},size={size}"),
            Stripes::Fitting { order, sigma, blocks } => {
                write!(f, "fitting:order={order},sigma={sigma},blocks={blocks}")
            }
            Stripes::Large { snr, size, drop } => write!(f, "large:snr={snr},size={size},drop={drop}"),
            Stripes::Dead { snr, size } => write!(f, "dead:snr={snr},size={size}"),
            Stripes::All { snr, large, small, drop } => {
                write!(f, "all:snr={snr},large={large},small={small},drop={drop}")
            }
            Stripes::Wavelet { moments, level, sigma } => {
                let level = level.map(|level| format!("level={level},")).unwrap_or_default();
                write!(f, "wavelet:wavelet=db{moments},{level}sigma={sigma}")
            }
            Stripes::Titarenko { alpha, blocks } => write!(f, "titarenko:alpha={alpha},blocks={blocks}"),
            Stripes::Mean { sigma, blocks } => write!(f, "mean:sigma={sigma},blocks={blocks}"),
        }
    }
}

/// Names of the methods.
const NAMES: [&str; 9] = ["sorting", "filtering", "fitting", "large", "dead", "all", "wavelet", "titarenko", "mean"];

impl Stripes {
    /// Reads methods with their parameters, in order, such as `dead,wavelet:level=4,sigma=2`.
    ///
    /// # Errors
    /// [`Error::Usage`] for unknown methods or parameters, and invalid values.
    pub fn parse_list(text: &str) -> Result<Vec<Stripes>> {
        let mut methods: Vec<String> = Vec::new();
        for part in text.split(',') {
            match methods.last_mut() {
                // `key=value` belongs to the preceding method
                Some(last) if part.contains('=') && !part.contains(':') => {
                    *last += if last.contains(':') { "," } else { ":" };
                    *last += part;
                }
                _ => methods.push(part.to_owned()),
            }
        }
        methods.iter().map(|text| text.parse()).collect()
    }

    /// Returns every method with its default parameters.
    pub fn all_methods() -> Vec<Stripes> {
        NAMES.iter().filter_map(|name| name.parse().ok()).collect()
    }

    /// Removes stripes from a sinogram of line integrals in place. The result is finite: values that are not become 0,
    /// before and after.
    pub fn remove(&self, sinogram: &mut [f32], projections: usize, bins: usize) {
        debug_assert_eq!(sinogram.len(), projections * bins);
        if sinogram.is_empty() {
            return;
        }
        finite(sinogram);
        match *self {
            Stripes::Sorting { size } => vo::sorting(sinogram, bins, size),
            Stripes::Filtering { sigma, size } => vo::filtering(sinogram, bins, sigma, size),
            Stripes::Fitting { order, sigma, blocks } => {
                profile::remove(sinogram, bins, order, blocks, Smooth::Gaussian(sigma));
            }
            Stripes::Large { snr, size, drop } => vo::large(sinogram, bins, snr, size, drop),
            Stripes::Dead { snr, size } => vo::dead(sinogram, bins, snr, size),
            Stripes::All { snr, large, small, drop } => vo::all(sinogram, bins, snr, [large, small], drop),
            Stripes::Wavelet { moments, level, sigma } => wavelet::remove(sinogram, bins, moments, level, sigma),
            Stripes::Titarenko { alpha, blocks } => {
                profile::remove(sinogram, bins, 0, blocks, Smooth::Regularised(alpha));
            }
            Stripes::Mean { sigma, blocks } => profile::remove(sinogram, bins, 0, blocks, Smooth::Gaussian(sigma)),
        }
        finite(sinogram);
    }

    /// Returns the approximate memory in bytes that [`remove`](Self::remove) needs besides the sinogram.
    pub fn memory(&self, projections: usize, bins: usize) -> usize {
        let pad = 2 * PAD.min(projections.min(bins) / 10);
        match self {
            Stripes::Sorting { .. } => 8 * projections * bins,
            Stripes::Filtering { .. } | Stripes::Large { .. } | Stripes::All { .. } => 12 * projections * bins,
            Stripes::Wavelet { .. } => 12 * (projections + pad) * (bins + pad),
            Stripes::Fitting { order, .. } => 8 * (order + 1) * (projections + bins),
            Stripes::Dead { .. } | Stripes::Titarenko { .. } | Stripes::Mean { .. } => 64 * (projections + bins),
        }
    }
}

/// The step that applies several methods in order.
impl Step for Vec<Stripes> {
    fn flag(&self) -> &'static str {
        "stripes"
    }

    fn parse(args: &StepFlags) -> Result<Self> {
        let lists = args.steps.stripes.iter().map(|text| Stripes::parse_list(&text.0)).collect::<Result<Vec<_>>>()?;
        Ok(lists.concat())
    }

    fn value(&self) -> Option<String> {
        let methods: Vec<String> = self.iter().map(Stripes::to_string).collect();
        (!methods.is_empty()).then(|| methods.join(","))
    }

    fn ready(&self, _: &Data, _: &RowSteps) -> Result<Option<Ready>> {
        Ok((!self.is_empty()).then(|| Ready::Sinogram(Box::new(self.clone()))))
    }
}

impl SinogramStep for Vec<Stripes> {
    fn apply(&self, sinogram: &mut [f32], bins: usize, _: &mut Counts) {
        self.iter().for_each(|method| method.remove(sinogram, sinogram.len() / bins, bins));
    }

    fn memory(&self, projections: usize, bins: usize) -> usize {
        self.iter().map(|method| method.memory(projections, bins)).max().unwrap_or(0)
    }

    fn on_device(&self, session: &Session, shape: SinogramShape) -> Result<Box<dyn DeviceSinogramStep>> {
        let methods = self.iter().map(|method| method.on_device(session, shape));
        Ok(Box::new(InOrder(methods.collect::<Result<_>>()?)))
    }
}

/// Methods on a device that are applied in order.
struct InOrder(Vec<Box<dyn DeviceSinogramStep>>);

impl DeviceSinogramStep for InOrder {
    fn apply(&mut self, session: &Session, sinograms: &SinogramBatch) -> Result<()> {
        self.0.iter_mut().try_for_each(|method| method.apply(session, sinograms))
    }

    fn apply_in_parts(&mut self, session: &Session, sinograms: &SinogramBatch, most: usize) -> Result<()> {
        self.0.iter_mut().try_for_each(|method| method.apply_in_parts(session, sinograms, most))
    }
}

fn finite(values: &mut [f32]) {
    values.iter_mut().filter(|value| !value.is_finite()).for_each(|value| *value = 0.0);
}

/// Parameters of a method as given; each is removed from the list when it is read.
struct MethodParameters<'a> {
    method: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
    known: Vec<&'static str>,
}

impl<'a> MethodParameters<'a> {
    fn new(text: &'a str) -> Result<Self> {
        let (method, list) = text.split_once(':').unwrap_or((text, ""));
        let mut parameters: Vec<(&str, &str)> = Vec::new();
        for part in list.split(',').filter(|_| text.contains(':')) {
            let Some((key, value)) = part.split_once('=') else {
                return Err(StripesError::NotAParameter { method: method.into(), text: part.into() }.into());
            };
            if parameters.iter().any(|(other, _)| *other == key.trim()) {
                return Err(StripesError::GivenTwice { method: method.into(), key: key.trim().into() }.into());
            }
            parameters.push((key.trim(), value.trim()));
        }
        Ok(MethodParameters { method: method.trim(), parameters, known: Vec::new() })
    }

    /// Reads a parameter if it is given; it must be `valid`, and `expected` describes valid values.
    fn take<T: FromStr>(&mut self, key: &'static str, valid: impl Fn(&T) -> bool, expected: &str) -> Result<Option<T>> {
        self.known.push(key);
        let Some(place) = self.parameters.iter().position(|(given, _)| *given == key) else {
            return Ok(None);
        };
        let (_, text) = self.parameters.remove(place);
        match text.parse().ok().filter(valid) {
            Some(value) => Ok(Some(value)),
            None => {
                let (method, text, expected) = (self.method.into(), text.into(), expected.into());
                Err(StripesError::BadValue { method, key, text, expected }.into())
            }
        }
    }

    fn size(&mut self, key: &'static str, default: usize) -> Result<usize> {
        let valid = |size: &usize| (3..=1001).contains(size) && size % 2 == 1;
        Ok(self.take(key, valid, "an odd number of bins, 3 to 1001")?.unwrap_or(default))
    }

    fn positive(&mut self, key: &'static str, most: f64, default: f64) -> Result<f64> {
        let valid = |value: &f64| *value > 0.0 && *value <= most;
        Ok(self.take(key, valid, &format!("a number above 0 and up to {most}"))?.unwrap_or(default))
    }

    fn blocks(&mut self) -> Result<usize> {
        Ok(self.take("blocks", |n| (1..=1000).contains(n), "a number of blocks, 1 to 1000")?.unwrap_or(1))
    }

    fn drop(&mut self) -> Result<f64> {
        let valid = |share: &f64| (0.0..=0.8).contains(share);
        Ok(self.take("drop", valid, "a share of projections, 0 to 0.8")?.unwrap_or(0.1))
    }

    /// Checks that no parameters remain.
    fn end(self) -> Result<()> {
        match self.parameters.first() {
            None => Ok(()),
            Some((key, _)) => {
                let (method, key, known) = (self.method.into(), (*key).into(), self.known.join(", "));
                Err(StripesError::UnknownParameter { method, key, known }.into())
            }
        }
    }
}

impl FromStr for Stripes {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut given = MethodParameters::new(text)?;
        let method = match given.method {
            "sorting" => Stripes::Sorting { size: given.size("size", 21)? },
            "filtering" => {
                Stripes::Filtering { sigma: given.positive("sigma", 1000.0, 3.0)?, size: given.size("size", 21)? }
            }
            "fitting" => Stripes::Fitting {
                order: given.take("order", |n| *n <= 10, "a degree, 0 to 10")?.unwrap_or(2),
                sigma: given.positive("sigma", 1000.0, 5.0)?,
                blocks: given.blocks()?,
            },
            "large" => Stripes::Large {
                snr: given.positive("snr", 1000.0, 3.0)?,
                size: given.size("size", 51)?,
                drop: given.drop()?,
            },
            "dead" => Stripes::Dead { snr: given.positive("snr", 1000.0, 3.0)?, size: given.size("size", 51)? },
            "all" => Stripes::All {
                snr: given.positive("snr", 1000.0, 3.0)?,
                large: given.size("large", 51)?,
                small: given.size("small", 21)?,
                drop: given.drop()?,
            },
            "wavelet" => {
                let name = given.take("wavelet", |name: &String| moments(name).is_some(), "db1 to db10")?;
                Stripes::Wavelet {
                    moments: name.as_deref().and_then(moments).unwrap_or(5),
                    level: given.take("level", |n| (1..=16).contains(n), "a number of halvings, 1 to 16")?,
                    sigma: given.positive("sigma", 1000.0, 2.0)?,
                }
            }
            "titarenko" => {
                Stripes::Titarenko { alpha: given.positive("alpha", 1000.0, 0.01)?, blocks: given.blocks()? }
            }
            "mean" => Stripes::Mean { sigma: given.positive("sigma", 1000.0, 15.0)?, blocks: given.blocks()? },
            other => {
                return Err(StripesError::UnknownMethod { method: other.into(), methods: NAMES.join(", ") }.into());
            }
        };
        given.end()?;
        Ok(method)
    }
}

/// Returns the number of vanishing moments of the wavelet `db1` to `db10`.
fn moments(name: &str) -> Option<usize> {
    name.strip_prefix("db")?.parse().ok().filter(|n| (1..=10).contains(n))
}
