//! Times a kernel at a steady rate (paper, 2.3): warms the device up until its rate is steady, times the kernel, and
//! repeats this if the rate has changed by then.

use crate::error::Result;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Share by which medians of passes may differ and be the same rate in any case.
const STEADY: f64 = 0.02;
/// Least time of the passes whose median counts as one rate, so that clocks have time to change.
const WINDOW: Duration = Duration::from_millis(200);
/// Least number of passes whose median counts as one rate, unless they take [`LONG_WINDOW`].
const WINDOW_PASSES: usize = 3;
/// Time after which fewer passes than [`WINDOW_PASSES`] count as one rate, too.
const LONG_WINDOW: Duration = Duration::from_secs(1);
/// Longest time for which a device is heated without patience.
const SHORT_HEATING: Duration = Duration::from_secs(2);
/// Longest time for which a device is heated with patience: more than cards take to become warm.
const LONG_HEATING: Duration = Duration::from_secs(120);
/// Largest number of times that a kernel whose rate moves is timed.
const MOST_RUNS: usize = 3;

/// Returns the middle value, the upper of two.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// How a kernel is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Heated for a short time, and timed once: for searches that compare kernels in turns.
    Short,
    /// Heated until the rate is steady, and timed again if it moved.
    Long,
}

/// Returns the seconds since 1970, by which other programs find what they measured at the same time, such as clocks.
pub(super) fn unix_seconds() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |elapsed| elapsed.as_secs_f64())
}

/// The time of a pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyTime {
    /// Median of the passes.
    pub seconds: f64,
    /// When the first of these passes began and the last one ended, in seconds since 1970.
    pub during: [f64; 2],
    /// Share by which the rate afterwards differs from that before; 0 if that was not measured.
    pub drift: f64,
    /// True if the drift is more than what passes scatter by.
    pub moved: bool,
    /// Number of times that the kernel was timed; only the last counts.
    pub runs: usize,
}

/// Seconds of a few passes: their median, and the quartiles around it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Window {
    median: f64,
    quartiles: [f64; 2],
    length: Duration,
}

impl Window {
    /// Runs passes for at least `length`.
    fn of(length: Duration, pass: &mut dyn FnMut() -> Result<f64>) -> Result<Window> {
        let start = Instant::now();
        let mut times = Vec::new();
        loop {
            times.push(pass()?);
            let elapsed = start.elapsed();
            if elapsed >= length && (times.len() >= WINDOW_PASSES || elapsed >= LONG_WINDOW) {
                break;
            }
        }
        // sorts them
        let median = median(&mut times);
        let last = times.len() - 1;
        Ok(Window { median, quartiles: [times[last / 4], times[last - last / 4]], length })
    }

    /// Reports whether the passes of a later window have the same rate: nearly the same median or, where times scatter,
    /// one among the middle half of the passes here.
    fn agrees(&self, later: &Window) -> bool {
        let [low, high] = self.quartiles;
        (later.median / self.median - 1.0).abs() <= STEADY || (low..=high).contains(&later.median)
    }
}

/// Runs passes until two windows in a row agree, and returns the last. Windows become longer, so that times that
/// scatter settle, too.
fn heat(patience: Patience, pass: &mut dyn FnMut() -> Result<f64>) -> Result<Window> {
    let most = match patience {
        Patience::Short => SHORT_HEATING,
        Patience::Long => LONG_HEATING,
    };
    let start = Instant::now();
    let mut before = Window::of(WINDOW, pass)?;
    while start.elapsed() < most {
        let now = Window::of(before.length, pass)?;
        if before.agrees(&now) {
            return Ok(now);
        }
        before = Window { length: 2 * now.length, ..now };
    }
    Ok(before)
}

/// Returns the median of `passes` passes at a steady rate; `pass` runs one and returns its seconds.
pub fn steady_time(passes: usize, patience: Patience, mut pass: impl FnMut() -> Result<f64>) -> Result<SteadyTime> {
    let mut runs = 0;
    loop {
        let before = heat(patience, &mut pass)?;
        let began = unix_seconds();
        let mut times = (0..passes).map(|_| pass()).collect::<Result<Vec<f64>>>()?;
        let during = [began, unix_seconds()];
        runs += 1;
        let seconds = median(&mut times);
        if patience == Patience::Short {
            return Ok(SteadyTime { seconds, during, drift: 0.0, moved: false, runs });
        }
        let after = Window::of(before.length, &mut pass)?;
        let moved = !before.agrees(&after);
        if !moved || runs == MOST_RUNS {
            let drift = before.median / after.median - 1.0;
            return Ok(SteadyTime { seconds, during, drift, moved, runs });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use std::thread::sleep;

    /// Passes of so many milliseconds, as their number says.
    fn passes(of: impl Fn(usize) -> u64) -> (impl FnMut() -> Result<f64>, std::rc::Rc<std::cell::Cell<usize>>) {
        let count = std::rc::Rc::new(std::cell::Cell::new(0));
        let counted = count.clone();
        let pass = move || {
            let milliseconds = of(counted.get());
            counted.set(counted.get() + 1);
            // some of the time passes
            sleep(Duration::from_millis(20));
            Ok(milliseconds as f64 * 1e-3)
        };
        (pass, count)
    }

    #[test]
    fn the_middle_value() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert!(median(&mut []).is_nan());
    }

    #[test]
    fn a_device_is_heated_until_its_rate_is_steady() {
        // it slows down for 60 passes, which are more than a short heating has
        let (pass, count) = passes(|number| 100 + 5 * number.min(60) as u64);
        let time = steady_time(3, Patience::Long, pass).unwrap();
        assert_eq!((time.seconds, time.moved, time.runs), (0.4, false, 1));
        assert!(count.get() > 60, "{}", count.get());
    }

    #[test]
    fn a_rate_that_moves_is_measured_again() {
        // steady at first, and slower from pass 24 on: after the first heating, in the passes that are timed or after them
        let (pass, _) = passes(|number| if number < 24 { 100 } else { 150 });
        let time = steady_time(4, Patience::Long, pass).unwrap();
        assert!(time.seconds == 0.15 && !time.moved && time.runs == 2, "{time:?}");
        // the four passes of the last run alone, of 20 ms each
        let [began, ended] = time.during;
        let length = ended - began;
        assert!((0.08..2.0).contains(&length) && (unix_seconds() - ended).abs() < 60.0, "{time:?}");
        let (pass, _) = passes(|number| if number < 24 { 100 } else { 150 });
        let time = steady_time(4, Patience::Short, pass).unwrap();
        assert_eq!((time.drift, time.runs), (0.0, 1));
    }

    #[test]
    fn times_that_scatter_are_steady_where_they_do_not_drift() {
        // by half, in an order without a trend
        let (pass, _) = passes(|number| 100 + 7 * (number as u64 * 5 % 8));
        let time = steady_time(5, Patience::Long, pass).unwrap();
        assert!(!time.moved && time.runs == 1, "{time:?}");
    }

    #[test]
    fn what_never_settles_is_said_and_errors_end_it() {
        // each window agrees with the one before, and yet the passes after are slower than those before
        let (pass, _) = passes(|number| 100_000 + 150 * number as u64);
        let time = steady_time(100, Patience::Long, pass).unwrap();
        assert!(time.moved && time.runs == MOST_RUNS && time.drift < 0.0, "{time:?}");
        assert!(steady_time(1, Patience::Long, || Err(Error::usage("no"))).is_err());
    }
}
