//! Distributes slices to devices: chunks go to whichever device has a free buffer, and return from one that fails.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What a device takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pace {
    /// Most slices at once.
    pub chunk: usize,
    /// Slices of a kernel run; a chunk is a multiple of it where that is possible.
    pub pass: usize,
    /// Chunks that it has buffers for at first.
    pub slots: usize,
    /// Predicted slices per second, if there is a prediction.
    pub rate: Option<f64>,
}

/// The slices of a run, by their position in the scan's list, and the devices that compute them.
pub(super) struct Work {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Ascending, apart from each other.
    todo: VecDeque<Range<usize>>,
    devices: Vec<Worker>,
}

struct Worker {
    pace: Pace,
    /// Chunks that it has free buffers for.
    slots: usize,
    /// Not done yet.
    assigned: Vec<Range<usize>>,
    /// It has not left.
    alive: bool,
    first: Option<Instant>,
    done: usize,
}

impl Worker {
    /// Slices per second: measured, else predicted.
    fn rate(&self) -> Option<f64> {
        match self.first {
            Some(first) if self.done > 0 => Some(self.done as f64 / first.elapsed().as_secs_f64().max(1e-6)),
            _ => self.pace.rate,
        }
    }

    fn assigned_slices(&self) -> usize {
        self.assigned.iter().map(Range::len).sum()
    }
}

impl Work {
    /// `slices` slices for some devices.
    pub fn new(slices: usize, paces: &[Pace]) -> Self {
        let devices = paces
            .iter()
            .map(|&pace| Worker { pace, slots: pace.slots, assigned: Vec::new(), alive: true, first: None, done: 0 })
            .collect();
        Work {
            state: Mutex::new(State { todo: std::iter::once(0..slices).collect(), devices }),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A device has a free buffer for another chunk.
    pub fn ready(&self, device: usize) {
        self.state().devices[device].slots += 1;
        self.changed.notify_all();
    }

    /// The next chunk and its device; waits until one has a free buffer. `None` when all is done, or will never be.
    pub fn next(&self) -> Option<(usize, Range<usize>)> {
        let mut state = self.state();
        loop {
            state.todo.retain(|range| !range.is_empty());
            let idle = state.todo.is_empty() && state.devices.iter().all(|d| d.assigned.is_empty());
            if idle || state.devices.iter().all(|d| !d.alive) {
                return None;
            }
            if let Some(found) = state.assign() {
                return Some(found);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A device has computed some slices, in the order in which it got them.
    pub fn done(&self, device: usize, slices: Range<usize>) {
        let mut state = self.state();
        let worker = &mut state.devices[device];
        worker.done += slices.len();
        if let Some(at) = worker.assigned.iter().position(|assigned| assigned.start == slices.start) {
            worker.assigned[at].start = slices.end;
            if worker.assigned[at].is_empty() {
                worker.assigned.remove(at);
            }
        }
        self.changed.notify_all();
    }

    /// A device computes no more; what it had in hand is to be done by others.
    pub fn leave(&self, device: usize) {
        let mut state = self.state();
        state.devices[device].alive = false;
        let assigned = std::mem::take(&mut state.devices[device].assigned);
        state.todo.extend(assigned);
        state.todo.make_contiguous().sort_by_key(|range| range.start);
        self.changed.notify_all();
    }

    /// Whether any device is still there.
    pub fn has_devices(&self) -> bool {
        self.state().devices.iter().any(|d| d.alive)
    }

    /// Whether every slice is done.
    pub fn complete(&self) -> bool {
        let state = self.state();
        state.todo.iter().all(Range::is_empty) && state.devices.iter().all(|d| d.assigned.is_empty())
    }

    /// Slices that every device has done.
    pub fn shares(&self) -> Vec<usize> {
        self.state().devices.iter().map(|d| d.done).collect()
    }
}

impl State {
    /// The first slices that are left, for the device that has least to do and did least.
    fn assign(&mut self) -> Option<(usize, Range<usize>)> {
        let Range { start: first, end } = self.todo.front()?.clone();
        let left: usize = self.todo.iter().map(Range::len).sum();
        let alive = self.devices.iter().filter(|d| d.alive).count();
        let mut ready: Vec<usize> = (0..self.devices.len()).filter(|&d| self.devices[d].slots > 0).collect();
        ready.retain(|&d| self.devices[d].alive);
        ready.sort_by_key(|&d| (self.devices[d].assigned_slices(), self.devices[d].done, d));
        for device in ready {
            let Pace { chunk, pass, .. } = self.devices[device].pace;
            // smaller ones towards the end, so that all devices end together
            let fair = left.div_ceil(2 * alive).next_multiple_of(pass.max(1));
            let most = if alive > 1 { chunk.min(fair) } else { chunk };
            let Some(count) = self.share(device, most, left) else { continue };
            let range = first..end.min(first + count);
            if let Some(front) = self.todo.front_mut() {
                front.start = range.end;
            }
            let worker = &mut self.devices[device];
            worker.slots -= 1;
            worker.first.get_or_insert_with(Instant::now);
            worker.assigned.push(range.clone());
            return Some((device, range));
        }
        None
    }

    /// How many slices, at most `most`, a device should take: none if faster ones do all that is left sooner.
    fn share(&self, device: usize, most: usize, left: usize) -> Option<usize> {
        let worker = &self.devices[device];
        let others = || self.devices.iter().enumerate().filter(|(d, w)| *d != device && w.alive).map(|(_, w)| w);
        let rates: Option<Vec<f64>> = others().map(Worker::rate).collect();
        let (Some(rates), Some(own)) = (rates, worker.rate()) else { return Some(most) };
        if rates.iter().all(|&rate| rate <= own) {
            return Some(most);
        }
        let assigned_slices: usize = others().map(Worker::assigned_slices).sum();
        let seconds = (left + assigned_slices) as f64 / rates.iter().sum::<f64>();
        let mine = ((seconds * own) as usize).saturating_sub(worker.assigned_slices());
        let pass = worker.pace.pass.max(1);
        Some((mine / pass * pass).min(most)).filter(|&count| count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(chunk: usize, rate: Option<f64>) -> Pace {
        Pace { chunk, pass: 1, slots: 1, rate }
    }

    /// All that is assigned while `device` has a free buffer and does it at once.
    fn drain(work: &Work, device: usize) -> Vec<usize> {
        let mut all = Vec::new();
        while let Some((who, range)) = work.next() {
            assert_eq!(who, device);
            work.done(who, range.clone());
            all.extend(range);
            work.ready(device);
        }
        all
    }

    #[test]
    fn one_device_takes_whole_chunks_in_order() {
        let work = Work::new(10, &[Pace { slots: 2, ..pace(4, None) }]);
        assert_eq!(work.next(), Some((0, 0..4)));
        assert_eq!(work.next(), Some((0, 4..8)));
        work.done(0, 0..2);
        work.done(0, 2..4);
        work.done(0, 4..8);
        assert!(!work.complete());
        work.ready(0);
        assert_eq!(drain(&work, 0), [8, 9]);
        assert!(work.complete());
        assert_eq!(work.shares(), [10]);
    }

    #[test]
    fn what_a_lost_device_had_is_done_by_another() {
        let work = Work::new(12, &[pace(3, None), pace(3, None)]);
        assert_eq!(work.next(), Some((0, 0..3)));
        work.done(0, 0..1);
        work.leave(0);
        let mut remaining = drain(&work, 1);
        remaining.sort_unstable();
        assert_eq!(remaining, (1..12).collect::<Vec<_>>());
        assert!(work.complete());
    }

    #[test]
    fn without_devices_nothing_is_awaited() {
        let work = Work::new(5, &[pace(2, None)]);
        assert!(work.next().is_some());
        work.leave(0);
        assert_eq!(work.next(), None);
        assert!(!work.complete());
    }

    #[test]
    fn a_slow_device_takes_nothing_that_it_would_be_waited_for() {
        let work = Work::new(100, &[pace(10, Some(100.0)), pace(10, Some(1.0))]);
        // the fast one needs a second for everything; the slow one does one slice in it
        let (device, range) = work.next().unwrap();
        assert_eq!((device, range.len()), (0, 10));
        assert_eq!(work.next(), Some((1, 10..11)));
        // and it is not asked for the last ones
        let work = Work::new(100, &[pace(100, Some(100.0)), Pace { pass: 2, ..pace(10, Some(1.0)) }]);
        assert_eq!(work.next(), Some((0, 0..25)));
        work.ready(0);
        assert_eq!(work.next(), Some((0, 25..44)));
    }

    #[test]
    fn devices_end_together() {
        let work = Work::new(20, &[pace(16, None), pace(16, None)]);
        assert_eq!(work.next(), Some((0, 0..5)));
        assert_eq!(work.next(), Some((1, 5..9)));
    }
}
