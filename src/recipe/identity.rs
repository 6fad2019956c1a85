//! Identity of a run: the hash of everything that affects the bytes of its slices.

use super::Recipe;
use crate::digest::PartsDigest;
use crate::kernel::StepBackend;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Everything that determines the bytes of slices. All shards of a run have the same identity, as have runs on one
/// device and on several equal ones.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Identity {
    pub version: &'static str,
    /// Recipe, with the axis that was found in place of a search.
    pub recipe: Recipe,
    /// Digest of names, sizes, times and shapes of the input's files, and of the angles and shifts that were read.
    pub input: String,
    /// Digest of the numbers of the slices from which percentiles are taken.
    #[serde(rename = "sampled-slices")]
    pub sampled: Option<String>,
    /// Values that map to 0 and to the largest integer.
    pub range: Option<(f32, f32)>,
    pub devices: BTreeSet<DeviceIdentity>,
}

/// Identity of a device, and the way in which it computes slices.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct DeviceIdentity {
    pub device: String,
    pub platform: String,
    pub driver: String,
    /// Key of the source of the back-projection kernel.
    pub kernel: String,
    /// Implementation of the row filter.
    #[serde(rename = "filter-rows")]
    pub rows: String,
    /// Backend of the steps on rows before the filter.
    pub row_steps: StepBackend,
    /// Backend of the steps on sinograms before the filter.
    pub sinogram_steps: StepBackend,
    /// Number of projections whose sum is computed at a time.
    #[serde(rename = "parts")]
    pub part: usize,
}

impl Identity {
    /// Returns the key of the run: 128 bits in hexadecimal digits.
    pub fn key(&self) -> String {
        PartsDigest::of([self.to_json().to_string()]).to_string()
    }

    /// Returns this identity with the range that percentiles led to.
    pub fn with_range(&self, range: (f32, f32)) -> Identity {
        Identity { range: Some(range), ..self.clone() }
    }

    /// Returns the names of all parts, which are flags where there is one, and their values; for people.
    pub fn parts(&self) -> BTreeMap<String, String> {
        fn add(parts: &mut BTreeMap<String, String>, name: &str, value: &str) {
            let known = parts.entry(name.to_owned()).or_default();
            if known != value {
                *known += if known.is_empty() { "" } else { "," };
                *known += value;
            }
        }
        fn collect(name: &str, value: &Value, parts: &mut BTreeMap<String, String>) {
            match value {
                Value::Object(map) => map.iter().for_each(|(key, value)| collect(key, value, parts)),
                Value::Array(list) => list.iter().for_each(|value| collect(name, value, parts)),
                Value::String(text) => add(parts, name, text),
                Value::Null => {}
                value => add(parts, name, &value.to_string()),
            }
        }
        let mut parts = BTreeMap::new();
        collect("", &self.to_json(), &mut parts);
        parts
    }

    fn to_json(&self) -> Value {
        // numbers, words and lists of them, all of which JSON can represent
        serde_json::to_value(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{AngleWeights, Roi};
    use crate::kernel::{Algorithm, Interpolation, Mode};
    use crate::least_squares::{Iterations, LeastSquares, ProjectionWeights, SliceMethod};
    use crate::recipe::{
        AngleSource, Center, Distance, Input, Join, KernelChoice, Ranges, RowFilterRecipe, Scaling, ScanRecipe,
        SliceGrid, Span, Stitching, Values,
    };
    use crate::sink::{Compression, Dtype, OmeZarr};
    use crate::source::{CurrentSource, Datasets, FieldMode, InputKind};
    use crate::spectrum::{Filter, Padding};
    use crate::steps::{
        Air, BeamHardening, BeyondDetector, Distortion, DistortionForm, DoubleFlat, EigenFlats, FieldCorrection,
        Logarithm, Outliers, Paganin, Steps, Stripes, Tilt, Unsharp,
    };
    use crate::units::{Interval, Length};
    use serde_json::json;
    use strum::VariantArray;

    /// Returns a recipe in which everything is specified. Every struct is written out, so that a new field must be
    /// added here.
    fn full() -> Recipe {
        Recipe {
            input: Input {
                kind: InputKind::Hdf5,
                datasets: Datasets {
                    data: Some("data".into()),
                    flats: Some("flats".into()),
                    darks: Some("darks".into()),
                    angles: Some("angles".into()),
                    keys: Some("keys".into()),
                    currents: Some("currents0".into()),
                },
                field_mode: FieldMode::Median,
                binning: 2,
                stitching: Some(Stitching { join: Join::Bins, distance: Distance::Pixels(vec![12.0]) }),
            },
            scan: ScanRecipe {
                angles: AngleSource::Even { start: 3.0, overall: 200.0 },
                projection_range: Some(Span::parse("2..50:3", "--projection-range").unwrap()),
                exclude: Ranges::parse("4..6", "--exclude").unwrap(),
                weights: AngleWeights::Uniform,
                center: Center::At(12.5),
                search_tilt: true,
                extended_field: true,
                lamino_angle: Some(30.0),
                energy_kev: Some(20.5),
            },
            slice: SliceGrid {
                size: Some(40),
                roi: Some(Roi { x: 1, y: 2, width: 3, height: 4 }),
                pixel_size: Some(Length { value: 0.5, unit: "um".into() }),
            },
            steps: Steps {
                outliers: Some(Outliers::new(5, 300.0, true)),
                fields: FieldCorrection { dark_scale: Some(0.5), eigen: Some(EigenFlats::Exactly(3)) },
                current: Some(CurrentSource::Dataset),
                air: Some(Air::Sides(3, 4)),
                double_flat: Some(DoubleFlat::HighPass(20.5)),
                distortion: Some(Distortion { form: DistortionForm::Positions, beyond: BeyondDetector::Repeat }),
                tilt: Some(Tilt { degrees: 0.5 }),
                phase: Some(Paganin { length: 3.0, unsharp: Some(Unsharp { sigma: 1.0, amount: 2.0 }) }),
                logarithm: Logarithm::Always,
                hardening: Some("0.1,0.02".parse::<BeamHardening>().unwrap()),
                stripes: vec![Stripes::Sorting { size: 21 }],
            },
            filter: RowFilterRecipe { name: Filter::Hann, cutoff: 0.5, padding: Padding::Mirror },
            kernel: KernelChoice {
                profile: Some("default".into()),
                algorithm: Some(Algorithm::Standard),
                interpolation: Interpolation::Nearest,
                mode: Mode::Fast,
                slices_per_pass: Some(2),
                accuracy: Some(1e-4),
            },
            solver: Some(LeastSquares {
                method: SliceMethod::Huber,
                strength: 2.0,
                iterations: Iterations::Exactly(30),
                tolerance: 1e-3,
                non_negative: true,
                huber: 0.1,
                interior: true,
                weights: ProjectionWeights::Noise,
            }),
            values: Values {
                dtype: Dtype::U16,
                scaling: Some(Scaling::Fixed(Interval { low: 0.5, high: 1.5 })),
                compression: Compression::Zstd,
                ome_zarr: OmeZarr::V05,
                hdf5_parts: Some(4),
                mask: Some(0.75),
            },
        }
    }

    /// Returns recipes with other variants where there are several.
    fn others() -> [Recipe; 3] {
        let full = full();
        let with_scan = |scan| Recipe { scan, ..full.clone() };
        [
            with_scan(ScanRecipe { angles: AngleSource::File, center: Center::Middle, ..full.scan.clone() }),
            with_scan(ScanRecipe { center: Center::Search(Some(crate::center::Method::Vo)), ..full.scan.clone() }),
            Recipe {
                steps: Steps {
                    air: Some(Air::Region(Roi { x: 1, y: 2, width: 3, height: 4 })),
                    stripes: vec![Stripes::Dead { snr: 3.0, size: 51 }],
                    ..full.steps.clone()
                },
                values: Values {
                    scaling: Some(Scaling::Percentile(Interval { low: 1.0, high: 99.0 })),
                    ..full.values.clone()
                },
                ..full.clone()
            },
        ]
    }

    fn identity(recipe: Recipe) -> Identity {
        let device = DeviceIdentity {
            device: "d".into(),
            platform: "p".into(),
            driver: "1".into(),
            kernel: "k".into(),
            rows: "r".into(),
            row_steps: StepBackend::Device,
            sinogram_steps: StepBackend::Device,
            part: 7,
        };
        Identity {
            version: "1",
            recipe,
            input: "i".into(),
            sampled: Some("s".into()),
            range: Some((0.0, 1.0)),
            devices: [device].into(),
        }
    }

    /// Collects the JSON pointers of all values that are neither objects nor lists.
    fn leaves(at: &str, value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => map.iter().for_each(|(key, value)| leaves(&format!("{at}/{key}"), value, found)),
            Value::Array(list) if !list.is_empty() => {
                list.iter().enumerate().for_each(|(i, value)| leaves(&format!("{at}/{i}"), value, found));
            }
            _ => found.push(at.to_owned()),
        }
    }

    /// Returns possible replacements of a value: other numbers for a number, all words of its kind for a word.
    fn instead_of(value: &Value) -> Vec<Value> {
        fn of<T: VariantArray + Copy + Into<&'static str>>() -> Vec<&'static str> {
            T::VARIANTS.iter().map(|&word| word.into()).collect()
        }
        let words = [
            of::<Filter>(),
            of::<Padding>(),
            of::<Dtype>(),
            of::<Compression>(),
            of::<OmeZarr>(),
            of::<AngleWeights>(),
            of::<FieldMode>(),
            of::<Interpolation>(),
            of::<Mode>(),
            of::<Algorithm>(),
            of::<SliceMethod>(),
            of::<DistortionForm>(),
            of::<BeyondDetector>(),
            of::<CurrentSource>(),
            vec!["sinograms", "file", "hdf5", "middle", "auto", "mm", "never", "auto", "stack"],
        ];
        match value {
            Value::Bool(switch) => vec![json!(!switch)],
            Value::String(text) => {
                // replaces a digit by the next one, or the next but one
                let others =
                    text.char_indices().filter_map(|(at, c)| Some((at, c.to_digit(10)?))).flat_map(|(at, digit)| {
                        let with = |digit: u32| format!("{}{}{}", &text[..at], digit % 10, &text[at + 1..]);
                        [with(digit + 1), with(digit + 2)]
                    });
                words.concat().into_iter().map(str::to_owned).chain(others).map(|word| json!(word)).collect()
            }
            Value::Number(number) => match (number.as_u64(), number.as_f64()) {
                (Some(whole), _) => vec![json!(whole + 1), json!(whole + 2)],
                (_, Some(real)) => vec![json!(real + 0.25)],
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    #[test]
    fn every_field_of_a_recipe_changes_the_key_of_its_run() {
        for recipe in others().into_iter().chain([full()]) {
            let json = serde_json::to_value(&recipe).unwrap();
            let again: Recipe = serde_json::from_value(json.clone()).unwrap();
            assert_eq!(again, recipe, "something is not serialised");
            let key = identity(recipe.clone()).key();
            let mut fields = Vec::new();
            leaves("", &json, &mut fields);
            for field in fields {
                let value = json.pointer(&field).unwrap();
                let changed = instead_of(value).into_iter().find_map(|value| {
                    let mut json = json.clone();
                    *json.pointer_mut(&field).unwrap() = value;
                    serde_json::from_value::<Recipe>(json).ok().filter(|changed| *changed != recipe)
                });
                let changed = changed.unwrap_or_else(|| panic!("{field}: there is nothing but {value}"));
                assert_ne!(identity(changed).key(), key, "{field}");
            }
        }
    }

    #[test]
    fn nothing_of_the_full_recipe_is_a_default() {
        let [full, default] = [full(), Recipe::default()].map(|recipe| serde_json::to_value(recipe).unwrap());
        let mut fields = Vec::new();
        leaves("", &full, &mut fields);
        for field in fields {
            assert_ne!(full.pointer(&field), default.pointer(&field), "{field}: its loss would not be seen");
        }
    }

    #[test]
    fn parts_are_named_and_spelled_as_flags() {
        let parts = Identity { range: None, ..identity(full()) }.parts();
        for (name, value) in [
            ("roi", "1,2,3,4"),
            ("pixel-size", "0.5um"),
            ("remove-outliers", "5,300,both"),
            ("normalize-air", "3,4"),
            ("stripes", "sorting:size=21"),
            ("range", "0.5,1.5"),
            ("center", "12.5"),
            ("overall-angle", "200.0"),
            ("exclude", "4..6"),
        ] {
            assert_eq!(parts.get(name).map(String::as_str), Some(value), "{name}");
        }
    }

    #[test]
    fn kernels_and_input_change_the_key() {
        let same = identity(full());
        let device = || same.devices.first().unwrap().clone();
        let of = |device| Identity { devices: [device].into(), ..same.clone() };
        let others = [
            Identity { version: "2", ..same.clone() },
            Identity { input: "j".into(), ..same.clone() },
            Identity { sampled: None, ..same.clone() },
            same.with_range((0.0, 2.0)),
            of(DeviceIdentity { device: "e".into(), ..device() }),
            of(DeviceIdentity { platform: "q".into(), ..device() }),
            of(DeviceIdentity { driver: "2".into(), ..device() }),
            of(DeviceIdentity { kernel: "l".into(), ..device() }),
            of(DeviceIdentity { rows: "s".into(), ..device() }),
            of(DeviceIdentity { row_steps: StepBackend::Host, ..device() }),
            of(DeviceIdentity { sinogram_steps: StepBackend::Host, ..device() }),
            of(DeviceIdentity { part: 8, ..device() }),
        ];
        let keys: BTreeSet<String> = others.iter().chain([&same]).map(Identity::key).collect();
        assert_eq!(keys.len(), others.len() + 1);
        assert_eq!(same.key(), identity(full()).key());
        assert_eq!(same.parts()["filter"], "hann");
    }
}
