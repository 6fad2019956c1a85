//! Distributes slices to devices: chunks go to whichever device has a free buffer, and return from one that fails. Where
//! devices correct whole blocks of rows, each stays with a block as long as possible.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Sizes of the chunks that a device takes, and how fast it should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pace {
    /// Largest number of slices in a chunk.
    pub chunk: usize,
    /// Number of slices of a pass; a chunk is a multiple of it where that is possible.
    pub pass: usize,
    /// True if a chunk must not reach into another block.
    pub within_blocks: bool,
    /// Number of chunks that the device has buffers for at first.
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
    /// Slices that are left: ascending ranges, apart from each other, each within a block unless a device lost it.
    todo: VecDeque<Range<usize>>,
    /// Ends of the blocks of slices that a device loads as a whole.
    blocks: Vec<usize>,
    devices: Vec<Worker>,
}

struct Worker {
    pace: Pace,
    /// Number of chunks that the device has free buffers for.
    slots: usize,
    /// Slices that the device was given and has not computed yet.
    assigned: Vec<Range<usize>>,
    /// Block of which the device took slices last.
    block: Option<usize>,
    /// False if the device has left.
    alive: bool,
    first: Option<Instant>,
    done: usize,
}

impl Worker {
    /// Returns the slices per second: measured, else predicted.
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
    /// Makes the work of some devices, with slices in blocks that end at the given positions; the last block ends with
    /// the last slice.
    pub fn new(blocks: Vec<usize>, paces: &[Pace]) -> Self {
        let devices = paces
            .iter()
            .map(|&pace| Worker {
                pace,
                slots: pace.slots,
                assigned: Vec::new(),
                block: None,
                alive: true,
                first: None,
                done: 0,
            })
            .collect();
        let starts = std::iter::once(0).chain(blocks.iter().copied());
        let todo = starts.zip(&blocks).map(|(start, end)| start..*end).collect();
        Work { state: Mutex::new(State { todo, blocks, devices }), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a device has a free buffer for another chunk.
    pub fn ready(&self, device: usize) {
        self.state().devices[device].slots += 1;
        self.changed.notify_all();
    }

    /// Returns the next chunk and its device, waiting until one has a free buffer; `None` when all is done, or will
    /// never be.
    pub fn next(&self) -> Option<(usize, Range<usize>)> {
        let mut state = self.state();
        loop {
            let found = state.next();
            let idle = state.todo.is_empty() && state.devices.iter().all(|d| d.assigned.is_empty());
            if found.is_some() || idle || state.devices.iter().all(|d| !d.alive) {
                return found;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Notes that a device has computed some slices, in the order in which it got them.
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

    /// Notes that a device computes no more: the slices that it had are left to others.
    pub fn leave(&self, device: usize) {
        let mut state = self.state();
        state.devices[device].alive = false;
        let assigned = std::mem::take(&mut state.devices[device].assigned);
        state.todo.extend(assigned);
        state.todo.make_contiguous().sort_by_key(|range| range.start);
        self.changed.notify_all();
    }

    /// Reports whether any device is left.
    pub fn has_devices(&self) -> bool {
        self.state().devices.iter().any(|d| d.alive)
    }

    /// Reports whether every slice is done.
    pub fn complete(&self) -> bool {
        let state = self.state();
        state.todo.iter().all(Range::is_empty) && state.devices.iter().all(|d| d.assigned.is_empty())
    }

    /// Returns the number of slices that every device has done.
    pub fn shares(&self) -> Vec<usize> {
        self.state().devices.iter().map(|d| d.done).collect()
    }
}

impl State {
    /// Returns the chunk that a device with a free buffer takes now, if there is one.
    fn next(&mut self) -> Option<(usize, Range<usize>)> {
        self.todo.retain(|range| !range.is_empty());
        let found = self.assign(false);
        // if nobody computes, nobody is waited for
        let idle = found.is_none() && self.devices.iter().all(|d| d.assigned.is_empty());
        if idle { self.assign(true) } else { found }
    }

    /// Assigns slices to the ready device that has the fewest assigned and did the fewest; with `any`, it may take
    /// slices of any block.
    fn assign(&mut self, any: bool) -> Option<(usize, Range<usize>)> {
        let left: usize = self.todo.iter().map(Range::len).sum();
        let alive = self.devices.iter().filter(|d| d.alive).count();
        let mut ready: Vec<usize> = (0..self.devices.len()).filter(|&d| self.devices[d].slots > 0).collect();
        ready.retain(|&d| self.devices[d].alive);
        ready.sort_by_key(|&d| (self.devices[d].assigned_slices(), self.devices[d].done, d));
        for device in ready {
            let Pace { chunk, pass, within_blocks, .. } = self.devices[device].pace;
            // smaller ones towards the end, so that all devices end together
            let fair = left.div_ceil(2 * alive).next_multiple_of(pass.max(1));
            let fair = self.even(left).map_or(fair, |even| even.min(fair));
            let most = if alive > 1 { chunk.min(fair) } else { chunk };
            let Some(count) = self.share(device, most, left) else { continue };
            let Some(at) = self.choose(device, count, any) else { continue };
            let mut block = self.block_of(&self.todo[at]);
            let Range { start, end } = &mut self.todo[at];
            let mut range = *start..(*start + count).min(*end);
            *start = range.end;
            // on into the next block, which it takes anyway, rather than a kernel run that is not full
            let next =
                self.todo.get(at + 1).map(|next| self.block_of(next)).filter(|next| !self.has_other(device, *next));
            if let (Some(next), Some(after)) = (next, self.todo.get_mut(at + 1))
                && after.start == range.end
                && !within_blocks
                && range.len() < count
            {
                range.end = (range.start + count).min(after.end);
                (after.start, block) = (range.end, next);
            }
            let worker = &mut self.devices[device];
            worker.block = Some(block);
            worker.slots -= 1;
            worker.first.get_or_insert_with(Instant::now);
            worker.assigned.push(range.clone());
            return Some((device, range));
        }
        None
    }

    /// Returns the number of slices for each device that has had none, if too few are left for a full pass on each and
    /// all devices are equally fast: passes side by side take as long as one, and no device is left without.
    fn even(&self, left: usize) -> Option<usize> {
        let alive = || self.devices.iter().filter(|device| device.alive);
        let first = alive().next()?.pace;
        let alike = alive().all(|device| (device.pace.rate, device.pace.pass) == (first.rate, first.pass));
        let waiting = alive().filter(|device| device.done == 0 && device.assigned.is_empty()).count();
        (alike && waiting > 0 && left < waiting * first.pass).then(|| left.div_ceil(waiting))
    }

    fn block_of(&self, slices: &Range<usize>) -> usize {
        self.blocks.partition_point(|end| *end <= slices.start)
    }

    /// Reports whether another device took slices of a block last.
    fn has_other(&self, device: usize, block: usize) -> bool {
        let others = self.devices.iter().enumerate().filter(|(d, w)| *d != device && w.alive);
        others.map(|(_, w)| w.block).any(|of_other| of_other == Some(block))
    }

    /// Returns the range from which a device takes `count` slices: in its own block, else in one that no other device
    /// has, else the largest of those where help is worth it, or of all with `any`.
    fn choose(&self, device: usize, count: usize, any: bool) -> Option<usize> {
        if self.blocks.len() < 2 {
            return (!self.todo.is_empty()).then_some(0);
        }
        let worker = &self.devices[device];
        let others = || self.devices.iter().enumerate().filter(|(d, w)| *d != device && w.alive).map(|(_, w)| w);
        let in_block = |at: usize| self.block_of(&self.todo[at]);
        let first = |wanted: &dyn Fn(usize) -> bool| (0..self.todo.len()).find(|at| wanted(in_block(*at)));
        // to load a block for the last of its slices takes longer than to leave them to another device, unless that is slow
        let slow = |other: &Worker| other.rate().zip(worker.rate()).is_some_and(|(other, own)| 2.0 * other < own);
        let helps = |at: &usize| {
            let of_slow = || others().filter(|other| other.block == Some(in_block(*at))).all(slow);
            any || self.todo[*at].len() > 2 * count || of_slow()
        };
        first(&|block| worker.block == Some(block))
            .or_else(|| first(&|block| !self.has_other(device, block)))
            .or_else(|| (0..self.todo.len()).filter(helps).max_by_key(|at| self.todo[*at].len()))
    }

    /// Returns how many slices, at most `most`, a device should take: none if faster devices do all that is left
    /// sooner.
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
        Pace { chunk, pass: 1, within_blocks: false, slots: 1, rate }
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
        let work = Work::new(vec![10], &[Pace { slots: 2, ..pace(4, None) }]);
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
        let work = Work::new(vec![12], &[pace(3, None), pace(3, None)]);
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
        let work = Work::new(vec![5], &[pace(2, None)]);
        assert!(work.next().is_some());
        work.leave(0);
        assert_eq!(work.next(), None);
        assert!(!work.complete());
    }

    #[test]
    fn a_slow_device_takes_nothing_that_it_would_be_waited_for() {
        let work = Work::new(vec![100], &[pace(10, Some(100.0)), pace(10, Some(1.0))]);
        // the fast one needs a second for everything; the slow one does one slice in it
        let (device, range) = work.next().unwrap();
        assert_eq!((device, range.len()), (0, 10));
        assert_eq!(work.next(), Some((1, 10..11)));
        // and it is not asked for the last ones
        let work = Work::new(vec![100], &[pace(100, Some(100.0)), Pace { pass: 2, ..pace(10, Some(1.0)) }]);
        assert_eq!(work.next(), Some((0, 0..25)));
        work.ready(0);
        assert_eq!(work.next(), Some((0, 25..44)));
    }

    /// The chunks that each device takes if all need the same time for one.
    fn in_turn(work: &Work, devices: usize) -> Vec<Vec<Range<usize>>> {
        let (mut all, mut running) = (vec![Vec::new(); devices], VecDeque::new());
        loop {
            let mut state = work.state();
            // what nothing takes has no speed
            state.devices.iter_mut().for_each(|device| device.first = None);
            let taken = state.next();
            drop(state);
            if let Some((device, range)) = taken {
                all[device].push(range.clone());
                running.push_back((device, range));
            } else if let Some((device, range)) = running.pop_front() {
                work.done(device, range);
                work.ready(device);
            } else {
                return all;
            }
        }
    }

    #[test]
    fn devices_stay_with_their_blocks() {
        let work = Work::new(vec![8, 16, 24, 32, 40], &[pace(4, None), pace(4, None)]);
        let all = in_turn(&work, 2);
        let blocks = |device: usize| {
            let mut blocks: Vec<usize> = all[device].iter().map(|range| range.start / 8).collect();
            blocks.dedup();
            blocks
        };
        // both load the last block, as more than two chunks are left
        assert_eq!((blocks(0), blocks(1)), (vec![0, 2, 4], vec![1, 3, 4]));
        assert_eq!(all.concat().iter().map(Range::len).sum::<usize>(), 40);
        assert!(work.complete());
    }

    #[test]
    fn devices_go_on_into_the_next_block_rather_than_stop() {
        let work = Work::new(vec![10, 20, 30, 40, 50], &[pace(4, None), pace(4, None)]);
        let all = in_turn(&work, 2);
        // the first one's next block is the other's
        assert_eq!(all[0][..4], [0..4, 4..8, 8..10, 30..34]);
        assert_eq!(all[1][..4], [10..14, 14..18, 18..22, 22..26]);
        assert_eq!(all.concat().iter().map(Range::len).sum::<usize>(), 50);
        assert!(work.complete());
    }

    #[test]
    fn devices_share_large_blocks_at_the_end() {
        let work = Work::new(vec![100, 200, 300], &[pace(4, None), pace(4, None)]);
        let all = in_turn(&work, 2);
        let of_last = |device: usize| all[device].iter().filter(|range| range.start >= 200).map(Range::len).sum();
        let [first, second]: [usize; 2] = [of_last(0), of_last(1)];
        assert_eq!(first + second, 100);
        assert!(first >= 40 && second >= 40, "{first} {second}");
    }

    #[test]
    fn a_slow_device_is_helped_with_its_block() {
        let work = Work::new(vec![8, 16], &[pace(2, Some(1.0)), pace(4, Some(100.0))]);
        let mut taken = 0;
        while let Some((device, range)) = work.next() {
            assert_eq!(device, 1, "{range:?}");
            work.done(device, range.clone());
            work.ready(device);
            taken += range.len();
        }
        assert_eq!(taken, 16);
    }

    #[test]
    fn the_block_of_a_lost_device_is_another_ones() {
        let work = Work::new(vec![8, 16], &[pace(2, None), pace(2, None)]);
        assert_eq!(work.next(), Some((0, 0..2)));
        assert_eq!(work.next(), Some((1, 8..10)));
        work.leave(0);
        work.done(1, 8..10);
        work.ready(1);
        assert_eq!(drain(&work, 1), (10..16).chain(0..8).collect::<Vec<_>>());
        assert!(work.complete());
    }

    #[test]
    fn few_slices_are_divided_among_devices_that_are_alike() {
        let shares = |slices: usize, paces: &[Pace]| -> Vec<usize> {
            let all = in_turn(&Work::new(vec![slices], paces), paces.len());
            all.iter().map(|ranges| ranges.iter().map(Range::len).sum()).collect()
        };
        let alike = |count: usize, pass: usize| vec![Pace { pass, ..pace(16, None) }; count];
        for (slices, devices, pass, expected) in [
            (4, 2, 8, vec![2, 2]),
            (5, 2, 4, vec![3, 2]),
            (3, 2, 16, vec![2, 1]),
            (7, 4, 8, vec![2, 2, 2, 1]),
            (2, 3, 4, vec![1, 1, 0]),
            (1, 2, 4, vec![1, 0]),
            (8, 2, 4, vec![4, 4]),
            (9, 2, 8, vec![5, 4]),
        ] {
            assert_eq!(shares(slices, &alike(devices, pass)), expected, "{slices} for {devices} with passes of {pass}");
        }
        // a slow one is not waited for
        let unlike = [Pace { pass: 8, ..pace(16, Some(100.0)) }, Pace { pass: 8, ..pace(16, Some(1.0)) }];
        assert_eq!(shares(4, &unlike), [4, 0]);
    }

    #[test]
    fn devices_end_together() {
        let work = Work::new(vec![20], &[pace(16, None), pace(16, None)]);
        assert_eq!(work.next(), Some((0, 0..5)));
        assert_eq!(work.next(), Some((1, 5..9)));
    }
}
