//! Windows of a scan of many turns: which projections each of them has.

use crate::error::{Result, messages};
use crate::recipe::{Division, WindowLength};
use std::ops::Range;

messages! {
    /// Why a scan cannot be divided as requested.
    enum WindowError: Usage {
        FewInWindow { every: WindowLength, count: usize, least: usize, step: f64 } =>
            "--every: {every} have {count} projections, which are {step:.4} degrees apart; a window needs {least}";
            "give a longer one, or for an interleaved or golden-ratio scan a number of projections, such as 610p",
        ShortAdvance { advance: WindowLength, step: f64 } =>
            "--overlap: each window would begin {advance} after the one before, less than the {step:.4} degrees between \
             projections";
            "give a smaller one",
        NotOneWay { every: WindowLength, projection: usize } =>
            "--every: the angles turn back at projection {projection}, so windows of {every} have no order in time";
            "give a number of projections, such as 610p, or the angles of one direction by --projection-range",
        ShortScan { every: WindowLength, degrees: f64, count: usize } =>
            "--every: {every} are more than the scan has, {degrees:.1} degrees by {count} projections";
            "give a shorter one, or leave it out",
        ManyProjections { every: WindowLength, count: usize } =>
            "--every: {every} are more than the scan has, {count}"; "give a smaller number, or leave it out",
    }
}

/// Smallest number of projections of a window.
const FEWEST: usize = 8;

/// Returns the windows of a scan: for each the places of its projections among those whose angles in degrees are given in
/// the order of time. A window that the scan does not fill is left out.
///
/// A window of degrees begins half a step before the angle of its first projection, so that angles that were measured may
/// be off by almost half a step.
///
/// # Errors
/// [`Error::Usage`](crate::error::Error::Usage) when there is no window, or one would have too few projections.
pub fn windows(division: &Division, angles: &[f64]) -> Result<Vec<Range<usize>>> {
    match (division.every, division.advance) {
        (WindowLength::Projections(length), WindowLength::Projections(advance)) => {
            of_projections(division.every, length, advance, angles)
        }
        (WindowLength::Degrees(length), WindowLength::Degrees(advance)) => {
            of_degrees(division, length, advance, angles)
        }
        _ => Err(crate::error::Error::Internal("windows and their distances have different units".into())),
    }
}

fn of_projections(every: WindowLength, length: usize, advance: usize, angles: &[f64]) -> Result<Vec<Range<usize>>> {
    if length < FEWEST {
        let step = median(&steps(angles));
        return Err(WindowError::FewInWindow { every, count: length, least: FEWEST, step }.into());
    }
    if length > angles.len() {
        return Err(WindowError::ManyProjections { every, count: angles.len() }.into());
    }
    Ok((0..=angles.len() - length).step_by(advance).map(|first| first..first + length).collect())
}

fn of_degrees(division: &Division, length: f64, advance: f64, angles: &[f64]) -> Result<Vec<Range<usize>>> {
    let every = division.every;
    let steps = steps(angles);
    let step = median(&steps);
    if step == 0.0 {
        return Err(WindowError::ShortScan { every, degrees: 0.0, count: angles.len() }.into());
    }
    let direction = steps.iter().sum::<f64>().signum();
    if let Some(back) = steps.iter().position(|along| along * direction < -0.5 * step) {
        return Err(WindowError::NotOneWay { every, projection: back + 1 }.into());
    }
    let count = (length / step + 0.5) as usize;
    if count < FEWEST {
        return Err(WindowError::FewInWindow { every, count, least: FEWEST, step }.into());
    }
    if advance < step {
        return Err(WindowError::ShortAdvance { advance: division.advance, step }.into());
    }
    // degrees from the first projection on, which never fall
    let mut turned = vec![0.0];
    for along in &steps {
        let before: f64 = turned[turned.len() - 1];
        turned.push(before + along * direction);
    }
    (1..turned.len()).for_each(|i| turned[i] = turned[i].max(turned[i - 1]));
    let all = turned[turned.len() - 1] + step;
    let first = |degrees: f64| turned.partition_point(|&turned| turned < degrees - step / 2.0);
    let starts = (0..).map(|number| f64::from(number) * advance);
    let filled = starts.take_while(|start| start + length <= all + step / 2.0);
    let found: Vec<_> = filled.map(|start| first(start)..first(start + length)).collect();
    if found.is_empty() {
        return Err(WindowError::ShortScan { every, degrees: all, count: angles.len() }.into());
    }
    Ok(found)
}

/// Returns the steps between angles, by the shorter way around: angles may be modulo 360 degrees.
fn steps(angles: &[f64]) -> Vec<f64> {
    let shorter = |step: f64| step - 360.0 * (step / 360.0).round();
    angles.windows(2).map(|pair| shorter(pair[1] - pair[0])).collect()
}

/// Returns the median of the sizes of steps; 0 if there are none.
fn median(steps: &[f64]) -> f64 {
    let mut sizes: Vec<f64> = steps.iter().map(|step| step.abs()).collect();
    sizes.sort_unstable_by(f64::total_cmp);
    sizes.get(sizes.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::even_angles;

    fn divided(
        every: WindowLength,
        advance: WindowLength,
        angles: &[f64],
    ) -> std::result::Result<Vec<Range<usize>>, String> {
        windows(&Division { every, advance, turns: None }, angles).map_err(|error| error.to_string())
    }

    fn degrees(every: f64, advance: f64, angles: &[f64]) -> std::result::Result<Vec<Range<usize>>, String> {
        divided(WindowLength::Degrees(every), WindowLength::Degrees(advance), angles)
    }

    /// Repeatable values from -1 to 1.
    fn noise(i: usize) -> f64 {
        (i as f64 * 12.9898).sin() * 43758.5453 % 1.0
    }

    #[test]
    fn even_turns_have_as_many_projections_each() {
        for (start, overall, count) in [(0.0, 3600.0, 6000), (-7.3, -3600.0, 6000), (1e5, 3600.0, 6000)] {
            let angles = even_angles(start, overall, count);
            let wrapped: Vec<f64> = angles.iter().map(|angle| angle.rem_euclid(360.0)).collect();
            let jittered: Vec<f64> = angles.iter().enumerate().map(|(i, a)| a + 0.25 * noise(i)).collect();
            for angles in [angles, wrapped, jittered] {
                let turns = degrees(360.0, 360.0, &angles).unwrap();
                assert_eq!(turns, (0..10).map(|turn| 600 * turn..600 * (turn + 1)).collect::<Vec<_>>());
                let halves = degrees(180.0, 90.0, &angles).unwrap();
                assert_eq!(halves, (0..39).map(|half| 150 * half..150 * half + 300).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_window_that_is_not_filled_is_left_out() {
        let angles = even_angles(0.0, 899.0, 899);
        assert_eq!(degrees(360.0, 360.0, &angles).unwrap(), [0..360, 360..720]);
        // the last projection stands for a step as well
        assert_eq!(degrees(360.0, 360.0, &angles[..720]).unwrap().len(), 2);
        assert_eq!(degrees(360.0, 360.0, &angles[..719]).unwrap().len(), 1);
        // steps that do not divide the window
        let angles: Vec<f64> = (0..1000).map(|i| 0.7 * f64::from(i)).collect();
        assert_eq!(degrees(180.0, 180.0, &angles).unwrap(), [0..257, 257..514, 514..771]);
        // a pause between turns belongs to none
        let paused: Vec<f64> = (0..720).map(|i| f64::from(i) + if i < 360 { 0.0 } else { 0.4 }).collect();
        assert_eq!(degrees(360.0, 360.0, &paused).unwrap(), [0..360, 360..720]);
    }

    #[test]
    fn interleaved_scans_are_divided_by_their_projections() {
        let golden: Vec<f64> = (0..100).map(|i| f64::from(i) * 111.246_117_975 % 180.0).collect();
        let count = WindowLength::Projections;
        assert_eq!(divided(count(34), count(34), &golden).unwrap(), [0..34, 34..68]);
        assert_eq!(divided(count(34), count(21), &golden).unwrap(), [0..34, 21..55, 42..76, 63..97]);
        assert_eq!(divided(count(100), count(100), &golden).unwrap().first(), Some(&(0..100)));
        assert!(divided(count(101), count(101), &golden).unwrap_err().contains("more than the scan has, 100"));
        assert!(divided(count(7), count(7), &golden).unwrap_err().contains("a window needs 8"));
    }

    #[test]
    fn scans_without_windows_of_degrees_are_refused() {
        // rotation of 111 degrees a step, and modulo 180
        let golden: Vec<f64> = (0..100).map(|i| f64::from(i) * 111.246_117_975).collect();
        let error = degrees(180.0, 180.0, &golden).unwrap_err();
        assert!(error.contains("180 degrees have 2 projections, which are 111.2461 degrees apart"), "{error}");
        assert!(error.contains("610p"), "{error}");
        let folded: Vec<f64> = golden.iter().map(|angle| angle % 180.0).collect();
        assert!(degrees(180.0, 180.0, &folded).unwrap_err().contains("turn back at projection"));
        let there_and_back: Vec<f64> = (0..360).map(|i| f64::from(if i < 180 { i } else { 359 - i })).collect();
        let error = degrees(180.0, 180.0, &there_and_back).unwrap_err();
        assert!(error.contains("turn back at projection 181"), "{error}");
        let half = even_angles(0.0, 180.0, 180);
        assert!(degrees(360.0, 360.0, &half).unwrap_err().contains("180.0 degrees by 180 projections"));
        assert!(degrees(90.0, 0.5, &half).unwrap_err().contains("--overlap"));
        for angles in [&[][..], &[3.0], &[3.0; 20]] {
            assert!(degrees(180.0, 180.0, angles).unwrap_err().contains("more than the scan has"));
        }
    }
}
