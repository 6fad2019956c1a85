//! A scan of many turns as several runs, one for each window.
//!
//! The run of a window has the flags of the scan but for its projections, its axis and its files, so that its slices and
//! its record are those of `fbp reconstruct` with `--projection-range`.

use crate::axis::Axis;
use crate::cli::{ReconstructArgs, Text};
use crate::engine::Source;
use crate::error::{Error, Result, messages};
use crate::job::Job;
use crate::plan::windows;
use crate::recipe::Division;
use crate::sink::Target;
use std::fmt::Write;
use std::path::{Path, PathBuf};

messages! {
    /// Why the run of a window is refused.
    enum WindowRunError: Usage {
        OfWindow { window: String, error: Error } => "window {window}: {error}",
    }
}

/// Least number of digits of a window's number in names.
const DIGITS: usize = 3;

/// The run of a window.
pub(super) struct WindowRun {
    /// Name of the window, which is in the names of its files.
    pub name: String,
    pub flags: ReconstructArgs,
    /// Projections of the window as `--projection-range` takes them.
    range: String,
    /// Angles of the first and the last of these projections in degrees.
    angles: [f64; 2],
    /// Output as `--output` takes it, if there is one.
    output: Option<String>,
}

/// The windows of a scan.
pub(super) struct Turns {
    /// Runs of the wanted windows, in order.
    pub runs: Vec<WindowRun>,
    /// Run of the window in the middle of the scan, in which the axis is searched for, whichever windows are wanted.
    pub of_axis: WindowRun,
    division: Division,
    /// Number of windows of the scan.
    count: usize,
    /// Projections at the end that are in no window, if there are any.
    rest: Option<String>,
}

impl Turns {
    /// Divides a scan whose flags ask for no windows any longer.
    ///
    /// # Errors
    /// [`Error::Usage`] if there are no such windows.
    pub fn new(division: Division, flags: &ReconstructArgs, source: &Source) -> Result<Turns> {
        let ranged = &source.scan.ranged;
        let angles: Vec<f64> = ranged.iter().map(|(_, angle)| *angle).collect();
        let windows = windows(&division, &angles)?;
        let wanted = match division.turns {
            Some(span) => span.within(windows.len(), "--turns", "windows")?,
            None => (0..windows.len()).collect(),
        };
        let run = |number: usize| {
            let projections = &ranged[windows[number].clone()];
            let name = format!("t_{number:0DIGITS$}");
            let flags = flags_of(flags, &name, range_of(projections))?;
            let ends = [projections.first(), projections.last()].map(|end| end.map_or(0.0, |(_, angle)| *angle));
            let range = range_of(projections);
            Ok(WindowRun { name, output: flags.output.clone(), flags, range, angles: ends })
        };
        let end = windows.last().map_or(0, |last| last.end);
        let rest = ranged.get(end..).filter(|rest| !rest.is_empty()).map(range_of);
        let runs = wanted.into_iter().map(run).collect::<Result<Vec<_>>>()?;
        Ok(Turns { runs, of_axis: run(windows.len() / 2)?, division, count: windows.len(), rest })
    }

    /// Sets the axis, which was found, in the flags of all runs.
    pub fn about(&mut self, job: &Job, axis: &Axis) {
        for run in &mut self.runs {
            run.flags.center = Some(Text(format!("{:?}", axis.value)));
            run.flags.steps.tilt = job.recipe.steps.tilt.map(|tilt| Text(format!("{:?}", tilt.degrees)));
        }
    }

    /// Returns the jobs of all runs, each of which fits the data.
    ///
    /// # Errors
    /// The errors of a run before it computes anything, with the name of its window.
    pub fn jobs(&self, source: &Source) -> Result<Vec<Job>> {
        let job = |run: &WindowRun| {
            let job = Job::new(&run.flags).and_then(|job| source.check(&job).map(|()| job));
            job.map_err(|error| match error {
                Error::Usage(_) => WindowRunError::OfWindow { window: run.name.clone(), error }.into(),
                error => error,
            })
        };
        self.runs.iter().map(job).collect()
    }

    /// Describes the division in a sentence.
    pub fn in_words(&self) -> String {
        let Division { every, advance, .. } = self.division;
        let mut text = format!("{} windows of {every}", self.count);
        if advance != every {
            let _ = write!(text, ", one every {advance}"); // a text takes everything
        }
        if let Some(rest) = &self.rest {
            let _ = write!(text, "; projections {rest} are in none");
        }
        text
    }

    /// Describes the division and the wanted windows, as the beginning of a plan.
    pub fn describe(&self) -> String {
        let mut text = format!("{:<16}{}\n", "windows", self.in_words());
        for WindowRun { name, range, angles: [first, last], output, .. } in &self.runs {
            let output = output.as_ref().map(|output| format!(", {output}")).unwrap_or_default();
            let line = format!("projections {range}, {first:.2} to {last:.2} degrees{output}");
            let _ = writeln!(text, "{name:<16}{line}");
        }
        text
    }
}

/// Returns the numbers of projections, in even steps, as `--projection-range` takes them.
fn range_of(projections: &[(usize, f64)]) -> String {
    let number = |place: usize| projections.get(place).map_or(0, |(number, _)| *number);
    let (first, last) = (number(0), number(projections.len().saturating_sub(1)));
    match number(1).saturating_sub(first) {
        step @ 2.. if projections.len() > 1 => format!("{first}..{}:{step}", last + 1),
        _ => format!("{first}..{}", last + 1),
    }
}

/// Returns the flags of a window: its projections, and its name in the names of its files.
fn flags_of(flags: &ReconstructArgs, name: &str, range: String) -> Result<ReconstructArgs> {
    let beside = |path: &PathBuf| named(path, name);
    let mut flags = ReconstructArgs {
        output: flags.output.as_deref().map(|output| output_of(output, name)).transpose()?,
        preview: flags.preview.as_ref().map(beside),
        histogram: flags.histogram.as_ref().map(beside),
        sections: flags.sections.as_ref().map(beside),
        report: flags.report.iter().map(beside).collect(),
        save_config: None,
        ..flags.clone()
    };
    flags.scan.projection_range = Some(Text(range));
    Ok(flags)
}

/// Returns the path of a file of a window: `run-t_000.html`.
fn named(path: &Path, name: &str) -> PathBuf {
    let mut file = path.file_stem().unwrap_or_default().to_owned();
    file.push("-");
    file.push(name);
    if let Some(extension) = path.extension() {
        file.push(".");
        file.push(extension);
    }
    path.with_file_name(file)
}

/// Returns the output of a window: a directory in that of the slices, or a file beside the one that is named.
fn output_of(spec: &str, name: &str) -> Result<String> {
    let target = Target::parse(spec)?;
    if target.one_file() {
        return Ok(named(Path::new(spec.trim_end_matches('/')), name).display().to_string());
    }
    let directory = target.directory().join(name).display().to_string();
    if target.fills_directory() {
        return Ok(format!("{directory}/"));
    }
    let file = spec.rsplit_once('/').map_or(spec, |(_, file)| file);
    Ok(format!("{directory}/{file}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_window_has_its_own_output() {
        for (spec, expected) in [
            ("rec", "rec/t_007/"),
            ("rec/", "rec/t_007/"),
            ("a%%b", "a%b/t_007/"),
            ("out/r-%05i.tif", "out/t_007/r-%05i.tif"),
            ("r-%05i.tif", "./t_007/r-%05i.tif"),
            ("out/all.tif", "out/all-t_007.tif"),
            ("all.zarr/", "all-t_007.zarr"),
            ("a/all.npy", "a/all-t_007.npy"),
        ] {
            let found = output_of(spec, "t_007").unwrap();
            assert_eq!(found, expected, "{spec}");
            Target::parse(&found).unwrap();
        }
        assert_eq!(named(Path::new("a/run.html"), "t_012"), Path::new("a/run-t_012.html"));
    }

    #[test]
    fn ranges_are_those_of_the_numbers() {
        let of = |numbers: &[usize]| range_of(&numbers.iter().map(|&number| (number, 0.0)).collect::<Vec<_>>());
        assert_eq!([of(&[4, 5, 6]), of(&[4, 7, 10]), of(&[4])], ["4..7", "4..11:3", "4..5"]);
    }
}
