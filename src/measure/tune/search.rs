//! Order in which points are tried: a state machine that returns the next point and takes its speed, independent of the
//! device.
//!
//! First come the starting points. Then rounds: all legal points one step away from the best, those with the highest
//! predicted speed first. Rounds continue until one brings no gain; then the next family is searched from its own best
//! point. Among kernels with the same predicted speed, the one with more resident warps comes first, so work-groups and
//! registers are tried from the highest occupancy on (the method of the thinning paper, 4.5). Before a round starts
//! around a point, the point is measured again and the lower speed counts, so that a lucky measurement does not mislead
//! the search.

use super::space::{Point, Reach, Space};
use crate::error::Result;
use crate::kernel::{Algorithm, KernelSpec};
use std::collections::{HashSet, VecDeque};

/// Smallest gain of a round; less is noise.
const GAIN: f64 = 1.01;

/// Factor by which the best point of a family may be slower than the best of all, for the family to be searched.
const MAX_SLOWDOWN: f64 = 3.0;

/// A point that can be tried, with its kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    pub point: Point,
    pub spec: KernelSpec,
    /// Key of the kernel: points with the same key are the same.
    pub key: String,
}

/// Function that turns a point into a candidate; `None` if the point is not legal.
pub type Admit<'a> = dyn FnMut(&Point) -> Result<Option<Candidate>> + 'a;

/// Prediction for a kernel before it is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prediction {
    /// Highest speed that the units of the device allow, in GU/s.
    pub speed: f64,
    /// Share of the warps that fit with the kernel's local memory, its groups and the registers that the compiler is
    /// asked for.
    pub occupancy: f64,
}

/// Function that predicts how a kernel does, if possible.
pub type Predict<'a> = dyn Fn(&KernelSpec) -> Option<Prediction> + 'a;

/// The point to be measured next.
#[derive(Clone, Debug, PartialEq)]
pub struct NextPoint {
    pub candidate: Candidate,
    /// True if the point was measured before, and a round starts around it.
    pub repeated: bool,
}

/// The search of one interpolation and mode.
#[derive(Clone, Debug)]
pub struct Search {
    space: Space,
    queue: VecDeque<Candidate>,
    seen: HashSet<String>,
    /// Correct points with their speeds.
    correct: Vec<(Candidate, f64)>,
    /// Keys of points that were measured again.
    confirmed: HashSet<String>,
    /// Family and speed of the point around which the present round started.
    centre: Option<(Algorithm, f64)>,
    finished: Vec<Algorithm>,
    rounds: usize,
}

impl Search {
    /// Makes a search that begins with `starts`, in their order.
    pub fn new(space: Space, starts: Vec<Candidate>) -> Search {
        let mut search = Search {
            space,
            queue: VecDeque::new(),
            seen: HashSet::new(),
            correct: Vec::new(),
            confirmed: HashSet::new(),
            centre: None,
            finished: Vec::new(),
            rounds: 0,
        };
        for candidate in starts {
            search.offer(candidate);
        }
        search
    }

    fn offer(&mut self, candidate: Candidate) {
        if self.seen.insert(candidate.key.clone()) {
            self.queue.push_back(candidate);
        }
    }

    /// Returns the next point to measure; `None` when the search is over.
    pub fn next(&mut self, admit: &mut Admit, predict: &Predict) -> Result<Option<NextPoint>> {
        loop {
            if let Some(candidate) = self.queue.pop_front() {
                return Ok(Some(NextPoint { candidate, repeated: false }));
            }
            let Some((centre, speed)) = self.next_centre() else {
                return Ok(None);
            };
            if self.confirmed.insert(centre.key.clone()) {
                return Ok(Some(NextPoint { candidate: centre, repeated: true }));
            }
            self.centre = Some((family(&centre), speed));
            self.rounds += 1;
            let mut round = Vec::new();
            for point in self.space.neighbours(&centre.point) {
                round.extend(admit(&point)?);
            }
            let nothing = Prediction { speed: f64::NEG_INFINITY, occupancy: 0.0 };
            let predicted = |c: &Candidate| predict(&c.spec).unwrap_or(nothing);
            round.sort_by(|a, b| {
                let (a, b) = (predicted(a), predicted(b));
                b.speed.total_cmp(&a.speed).then(b.occupancy.total_cmp(&a.occupancy))
            });
            round.into_iter().for_each(|candidate| self.offer(candidate));
        }
    }

    /// Returns the point around which the next round starts.
    fn next_centre(&mut self) -> Option<(Candidate, f64)> {
        if self.space.reach == Reach::Adjacent && self.rounds > 0 {
            return None;
        }
        if let Some((present, before)) = self.centre {
            match self.best_of(|candidate| family(candidate) == present) {
                Some((candidate, speed)) if speed > before * GAIN => return Some((candidate.clone(), speed)),
                _ => {
                    self.finished.push(present);
                    self.centre = None;
                }
            }
        }
        let top = self.best()?.1;
        let (candidate, speed) = self.best_of(|candidate| !self.finished.contains(&family(candidate)))?;
        (speed * MAX_SLOWDOWN >= top).then(|| (candidate.clone(), speed))
    }

    /// Records the result for a point: the speed in GU/s; `None` if the kernel is not correct.
    pub fn record(&mut self, step: &NextPoint, speed: Option<f64>) {
        let at = self.correct.iter().position(|(candidate, _)| candidate.key == step.candidate.key);
        match (at, speed) {
            (Some(at), Some(speed)) => self.correct[at].1 = speed.min(self.correct[at].1),
            (Some(at), None) => {
                self.correct.remove(at);
            }
            (None, Some(speed)) if !step.repeated => self.correct.push((step.candidate.clone(), speed)),
            (None, _) => {}
        }
    }

    /// Returns the fastest correct point so far.
    pub fn best(&self) -> Option<(&Candidate, f64)> {
        self.best_of(|_| true)
    }

    /// Returns the fastest correct point of those selected by `of`, the first of equals.
    fn best_of(&self, of: impl Fn(&Candidate) -> bool) -> Option<(&Candidate, f64)> {
        let some = self.correct.iter().filter(|(candidate, _)| of(candidate));
        some.rev().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(candidate, speed)| (candidate, *speed))
    }
}

fn family(candidate: &Candidate) -> Algorithm {
    candidate.point.parameters.algorithm()
}

#[cfg(test)]
mod tests {
    use super::super::space::{changes, describe_changes};
    use super::*;
    use crate::kernel::{Interpolation, Mode, Offer, Parameters, Problem, Vector};
    use crate::profile::{Profile, ProfileStore};

    fn cpu() -> Profile {
        ProfileStore::built_in().unwrap().named("cpu").unwrap()
    }

    fn candidate(point: &Point) -> Candidate {
        let problem = Problem::new(8, true);
        let spec = KernelSpec::new(point, &cpu(), point.texels()[0], problem, None);
        Candidate { point: point.clone(), key: spec.generate().unwrap().key, spec }
    }

    fn admit(point: &Point) -> Result<Option<Candidate>> {
        Ok(point.check().is_ok().then(|| candidate(point)))
    }

    fn shipped() -> Offer {
        let parameters = Parameters::Vector(Vector::default());
        Offer { interpolation: Interpolation::Linear, mode: Mode::Precise, slices: 64, parameters }
    }

    /// A speed that is highest with tiles of 64 and 4 projections together.
    fn speed(point: &Point) -> f64 {
        match &point.parameters {
            Parameters::Vector(p) => {
                let far =
                    (f64::from(p.tile).log2() - 6.0).abs() + (f64::from(p.projections_at_once).log2() - 2.0).abs();
                100.0 - 10.0 * far - f64::from(64 - point.slices) - f64::from(p.columns)
            }
            _ => 30.0 + f64::from(point.slices),
        }
    }

    fn search(reach: Reach, starts: &[Offer]) -> Search {
        let space = Space { reach, slices: vec![16, 32, 64], registers: false, scheduling: false };
        Search::new(space, starts.iter().map(candidate).collect())
    }

    fn visits(mut search: Search, predict: &Predict) -> (Vec<Point>, Search) {
        let mut points = Vec::new();
        while let Some(step) = search.next(&mut admit, predict).unwrap() {
            search.record(&step, Some(speed(&step.candidate.point)));
            if !step.repeated {
                points.push(step.candidate.point);
            }
        }
        (points, search)
    }

    #[test]
    fn rounds_end_at_the_best_point() {
        let (points, search) = visits(search(Reach::Any, &[shipped()]), &|_| None);
        assert_eq!(points[0], shipped());
        // the first round is one step away
        assert!(points[1..8].iter().all(|p| changes(&shipped(), p).len() == 1));
        let best = search.best().unwrap().0.point.clone();
        assert_eq!(describe_changes(&changes(&shipped(), &best)), "projections-at-once = 4, tile = 64");
        // nothing twice
        for (number, point) in points.iter().enumerate() {
            assert!(!points[..number].contains(point));
        }
    }

    #[test]
    fn a_quick_search_is_one_round_of_near_values() {
        let (points, search) = visits(search(Reach::Adjacent, &[shipped()]), &|_| None);
        let words: Vec<String> = points.iter().map(|p| describe_changes(&changes(&shipped(), p))).collect();
        assert_eq!(words[..4], ["as shipped", "tile = 32", "columns = 8", "projections-at-once = 4"]);
        assert!(words.len() < 10, "{words:?}");
        assert_eq!(describe_changes(&changes(&shipped(), &search.best().unwrap().0.point)), "tile = 32");
    }

    #[test]
    fn predictions_order_a_round() {
        let predict = |spec: &KernelSpec| match &spec.parameters {
            Parameters::Vector(p) if p.projections_at_once == 4 => Some(Prediction { speed: 9.0, occupancy: 0.25 }),
            // as fast, with more warps
            Parameters::Vector(p) if p.projections_at_once == 2 => Some(Prediction { speed: 9.0, occupancy: 0.5 }),
            Parameters::Vector(p) if p.tile == 64 => Some(Prediction { speed: 7.0, occupancy: 1.0 }),
            _ => None,
        };
        let (points, _) = visits(search(Reach::Any, &[shipped()]), &predict);
        let words: Vec<String> = points.iter().map(|p| describe_changes(&changes(&shipped(), p))).collect();
        let order = ["as shipped", "projections-at-once = 2", "projections-at-once = 4", "tile = 64", "tile = 32"];
        assert_eq!(words[..5], order);
    }

    #[test]
    fn wrong_points_never_win_and_families_follow_each_other() {
        let parameters = Parameters::Standard(crate::kernel::Standard::default());
        let standard = Offer { parameters, slices: 16, ..shipped() };
        let mut search = search(Reach::Any, &[shipped(), standard.clone()]);
        let mut families = Vec::new();
        while let Some(step) = search.next(&mut admit, &|_| None).unwrap() {
            let family = family(&step.candidate);
            if families.last() != Some(&family) {
                families.push(family);
            }
            // every change of the vector kernel is wrong, however fast it would be
            let correct = family == Algorithm::Standard || step.candidate.point == shipped();
            search.record(&step, correct.then(|| speed(&step.candidate.point)));
        }
        assert_eq!(search.best().unwrap().0.point, shipped());
        assert_eq!(families, [Algorithm::Vector, Algorithm::Standard, Algorithm::Vector, Algorithm::Standard]);
    }

    #[test]
    fn a_lucky_moment_does_not_lead_the_search() {
        let mut search = search(Reach::Any, &[shipped(), Offer { slices: 16, ..shipped() }]);
        let mut steps = Vec::new();
        while let Some(step) = search.next(&mut admit, &|_| None).unwrap() {
            // 16 slices seem the fastest once
            let lucky = step.candidate.point.slices == 16 && steps.len() == 1;
            search.record(&step, Some(if lucky { 1000.0 } else { speed(&step.candidate.point) }));
            steps.push((step.candidate.point, step.repeated));
        }
        let few = Offer { slices: 16, ..shipped() };
        assert_eq!(steps[..4], [(shipped(), false), (few.clone(), false), (few, true), (shipped(), true)]);
        assert_eq!(describe_changes(&changes(&shipped(), &steps[4].0)), "tile = 32");
        assert_eq!(search.best().unwrap().0.point.slices, 64);
    }

    #[test]
    fn nothing_right_ends_at_once() {
        let mut search = search(Reach::Any, &[shipped()]);
        let first = search.next(&mut admit, &|_| None).unwrap().unwrap();
        search.record(&first, None);
        assert!(search.next(&mut admit, &|_| None).unwrap().is_none());
        assert!(search.best().is_none());
    }

    #[test]
    fn kernels_of_one_key_are_tried_once() {
        let search = search(Reach::Any, &[shipped(), shipped()]);
        assert_eq!(search.queue.len(), 1);
    }
}
