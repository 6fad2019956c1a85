//! All trials of one or two varied flags, each with its job and its command.

use super::errors::VaryError;
use super::vary::{MOST, Varied};
use crate::cli::{InputMeasures, OF_RUNS, ReconstructArgs};
use crate::commands::add_measures;
use crate::commands::flags::command_of;
use crate::error::{Error, Result};
use crate::job::Job;
use crate::remark::Remark;
use serde::Deserialize;
use toml::{Table, Value};

/// Output of the command of a trial.
const OUTPUT: &str = "slices/";
/// Flags that decide which row is reconstructed, or what is said of it, and are left out of commands.
const OF_TRIALS: [&str; 4] = ["rows", "overwrite", "log", "progress"];

/// A trial, without its job.
pub(super) struct Trial {
    /// Values of the varied flags.
    pub values: Vec<String>,
    /// The run with these values, of all rows.
    pub command: String,
    /// Name of a file for its slice.
    pub stem: String,
}

/// Trials of the same row, for all pairs of values; the values of the first flag follow each other.
pub(super) struct TrialSet {
    pub varied: Vec<Varied>,
    pub trials: Vec<Trial>,
    /// A job for each of the trials.
    pub jobs: Vec<Job>,
    /// What there is to say of the measures of the scan.
    pub remarks: Vec<Remark>,
}

/// Returns the flags of a run, in the form of a run file, of which trials are made.
pub(super) fn of_trials(mut keys: Table) -> Table {
    OF_RUNS.iter().for_each(|key| drop(keys.remove(*key)));
    keys.insert("output".to_owned(), OUTPUT.into());
    keys
}

impl TrialSet {
    /// Makes the trials of some varied flags; `keys` are the others.
    ///
    /// # Errors
    /// [`Error::Usage`] that names the values for which there is no run.
    pub fn new(keys: &Table, varied: Vec<Varied>) -> Result<TrialSet> {
        let counts: Vec<usize> = varied.iter().map(|varied| varied.values.len()).collect();
        let count = counts.iter().product();
        if count > MOST {
            return Err(VaryError::Count { count, most: MOST }.into());
        }
        let stems: Vec<Vec<String>> = varied.iter().map(Varied::stems).collect();
        let last: Vec<&str> = varied.iter().map(|varied| varied.flag.as_str()).collect();
        let mut measures = KnownMeasures::default();
        let (mut trials, mut jobs) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for number in 0..count {
            let places = [number % counts[0], number / counts[0]];
            let mut keys = keys.clone();
            let mut trial = Trial { values: Vec::new(), command: String::new(), stem: String::new() };
            for ((varied, stems), place) in varied.iter().zip(&stems).zip(places) {
                varied.put(place, &mut keys);
                trial.values.push(varied.values[place].text.clone());
                trial.stem += if trial.stem.is_empty() { "" } else { "_" };
                trial.stem += &stems[place];
            }
            jobs.push(measures.job_of(keys.clone()).map_err(|error| in_trial(&varied, &trial, error))?);
            OF_TRIALS.iter().for_each(|key| drop(keys.remove(*key)));
            trial.command = command_of(&keys, &last);
            trials.push(trial);
        }
        Ok(TrialSet { varied, trials, jobs, remarks: measures.remarks })
    }

    /// Returns the number of the trial in the middle, which is the most likely to show the sample as it is.
    pub fn middle(&self) -> usize {
        let middle = |varied: &Varied| varied.values.len() / 2;
        let [first, second] = [self.varied.first(), self.varied.get(1)].map(|varied| varied.map_or(0, middle));
        second * self.varied.first().map_or(0, |varied| varied.values.len()) + first
    }

    /// Returns the axes, if nothing but the axis is varied.
    pub fn axes(&self) -> Option<Vec<f64>> {
        match self.varied.as_slice() {
            [varied] if varied.flag == "center" => varied.values.iter().map(|value| value.text.parse().ok()).collect(),
            _ => None,
        }
    }

    /// Names the values of a trial in an error of its run.
    pub fn in_trial(&self, number: usize, error: Error) -> Error {
        in_trial(&self.varied, &self.trials[number], error)
    }

    /// Says in words what is varied.
    pub fn described(&self) -> String {
        let one = |varied: &Varied| {
            let texts: Vec<&str> = varied.values.iter().map(|value| value.text.as_str()).collect();
            match texts.as_slice() {
                [first, .., last] => format!("{} values of {} from {first} to {last}", texts.len(), varied.flag),
                all => format!("{} {}", varied.flag, all.concat()),
            }
        };
        self.varied.iter().map(one).collect::<Vec<_>>().join(" and ")
    }
}

fn in_trial(varied: &[Varied], trial: &Trial, error: Error) -> Error {
    let pairs = varied.iter().zip(&trial.values).map(|(varied, value)| format!("{}={value}", varied.flag));
    match error {
        Error::Usage(error) => VaryError::OfTrial { values: pairs.collect::<Vec<_>>().join(" "), error }.into(),
        error => error,
    }
}

/// Measures that the input states, by which flags leave them out, and what there is to say of them.
#[derive(Default)]
struct KnownMeasures {
    known: Vec<([bool; 4], InputMeasures)>,
    remarks: Vec<Remark>,
}

impl KnownMeasures {
    /// Returns the job with these flags. The input is asked once for the measures that several leave out.
    fn job_of(&mut self, keys: Table) -> Result<Job> {
        let unreadable = |error: toml::de::Error| Error::Internal(format!("flags of a trial: {}", error.message()));
        let mut args = ReconstructArgs::deserialize(Value::Table(keys)).map_err(unreadable)?;
        let (steps, has_pixel_size) = (&mut args.steps, args.pixel_size.is_some());
        let given = [steps.phase.is_some(), steps.energy_kev.is_some(), steps.distance.is_some(), has_pixel_size];
        match self.known.iter().find(|(known, _)| *known == given) {
            Some((_, measures)) => steps.of_input = measures.clone(),
            None => {
                let more = add_measures(&args.input, steps, has_pixel_size)?;
                self.remarks.extend(more);
                self.known.push((given, steps.of_input.clone()));
            }
        }
        Job::new(&args)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(keys: &str, varied: &[&str]) -> Result<TrialSet> {
        let keys = of_trials(keys.parse().unwrap());
        TrialSet::new(&keys, varied.iter().map(|text| Varied::parse(text).unwrap()).collect())
    }

    #[test]
    fn trials_are_all_pairs_of_values() {
        let keys = "sinograms = 's'\nstripes = ['all']\nrows = '3..4'\ndtype = 'u8'\nshard = '0/2'\ncenter = 4.0";
        let set = set(keys, &["center=5,6.5,7", "stripes=none,dead+mean"]).unwrap();
        let values: Vec<String> = set.trials.iter().map(|trial| trial.values.join(" ")).collect();
        assert_eq!(values, ["5 none", "6.5 none", "7 none", "5 dead,mean", "6.5 dead,mean", "7 dead,mean"]);
        assert_eq!(
            set.trials[4].command,
            "fbp reconstruct --sinograms s --center 6.5 --stripes dead,mean --output slices/"
        );
        assert_eq!(set.trials[0].command, "fbp reconstruct --sinograms s --center 5 --output slices/");
        assert_eq!((set.trials[4].stem.as_str(), set.middle()), ("center_6.50_stripes_dead,mean", 4));
        assert_eq!(set.jobs[4].recipe.steps.stripes.len(), 2);
        assert!(set.jobs.iter().all(|job| job.execution.rows.is_some() && job.execution.shard.is_none()));
        assert_eq!(set.described(), "3 values of center from 5 to 7 and 2 values of stripes from none to dead,mean");
        assert_eq!(set.axes(), None);
    }

    #[test]
    fn axes_alone_are_a_sweep() {
        assert_eq!(set("sinograms = 's'", &["center=5..=6:0.5"]).unwrap().axes(), Some(vec![5.0, 5.5, 6.0]));
        assert_eq!(set("sinograms = 's'", &["filter-cutoff=0.5"]).unwrap().axes(), None);
    }

    #[test]
    fn values_without_a_run_are_named() {
        let said = |keys: &str, varied: &[&str]| {
            let error = set(keys, varied).err().unwrap();
            assert_eq!(error.exit_code(), 2);
            error.to_string()
        };
        let text = said("sinograms = 's'", &["filter-cutoff=0.5,1.5"]);
        assert!(text.starts_with("with filter-cutoff=1.5: --filter-cutoff: "), "{text}");
        let text = said("projections = 'p'\ncenter = 'auto:vo'", &["tilt=1", "overall-angle=0"]);
        assert!(text.starts_with("with tilt=1 overall-angle=0: --overall-angle"), "{text}");
        let text = said("sinograms = 's'", &["center=1..=100:1", "strength=1..=5:1"]);
        assert!(text.contains("500 slices are more than 400"), "{text}");
    }
}
