//! The device at hand, kernels for it, and slices from them.

use fbp::device::{DeviceSelector, FoundDevice, Session, enumerate};
use fbp::engine::{Engine, Setup};
use fbp::facts::DeviceKind;
use fbp::fft::HostRows;
use fbp::geometry::{Cut, Geometry, Roi};
use fbp::kernel::{Common, Interpolation, Mode, Offer, Parameters, Sampler, Standard, Storage, Tensor};
use fbp::kernel::{Fft, KernelSpec, Problem, RowFilter, RowFilterMethod, Texel};
use fbp::profile::{Profile, ProfileStore};
use fbp::spectrum::{Filter, Padding};
use fbp_reference::Scan;
use std::cell::RefCell;

/// A session for one engine after the other, and the layouts of sinograms that were tried with it.
#[derive(Default)]
struct CachedSession {
    session: Option<Session>,
    tried: Vec<(Texel, bool)>,
}

thread_local! {
    static CACHED: RefCell<CachedSession> = RefCell::default();
}

/// Does something with this thread's session, which engines take and give back.
fn with_session<T>(found: &FoundDevice, work: impl FnOnce(Session) -> (Session, T)) -> T {
    let session =
        CACHED.with_borrow_mut(|cached| cached.session.take()).unwrap_or_else(|| Session::open(found).unwrap());
    let (session, result) = work(session);
    CACHED.with_borrow_mut(|cached| cached.session = Some(session));
    result
}

fn texel_is_usable(found: &FoundDevice, texel: Texel) -> bool {
    let known = CACHED.with_borrow(|cached| cached.tried.iter().find(|(t, _)| *t == texel).map(|(_, works)| *works));
    known.unwrap_or_else(|| {
        let works = with_session(found, |session| {
            let works = session.texel_works(texel).unwrap();
            (session, works)
        });
        CACHED.with_borrow_mut(|cached| cached.tried.push((texel, works)));
        works
    })
}

pub fn device() -> FoundDevice {
    let devices = enumerate().expect("the tests need an OpenCL device; scripts/setup installs one");
    let facts: Vec<_> = devices.iter().map(|d| &d.facts).collect();
    let selector =
        std::env::var("FBP_TEST_DEVICE").map(|text| DeviceSelector::parse(&text).unwrap()).unwrap_or_default();
    devices[selector.select(&facts).unwrap()].clone()
}

/// Whether a kernel is tested: `FBP_TEST_KERNEL` is a part of its name, by default all are.
pub fn is_selected(spec: &KernelSpec) -> bool {
    std::env::var("FBP_TEST_KERNEL").map_or(true, |part| spec.name().contains(&part))
}

/// The profile whose build options the tests use where they choose the kernel themselves.
pub fn plain() -> Profile {
    ProfileStore::built_in().unwrap().named("default").unwrap()
}

/// Options of the device's compiler beside the profile's: `FBP_TEST_OPTIONS`. By default a processor's compiler does not
/// optimise kernels that are made for other devices, unless they compute so many slices that they are slow then: it takes
/// most of the time, and what is tested here is the kernel. scripts/implementations runs all kernels as they are.
fn options(found: &FoundDevice, profile: &Profile, offer: &Offer) -> Vec<String> {
    given_options().unwrap_or_else(|| {
        let other = found.facts.kind == DeviceKind::Cpu && profile.name != "cpu";
        (other && offer.slices < 16).then(|| "-cl-opt-disable".into()).into_iter().collect()
    })
}

/// Those that `FBP_TEST_OPTIONS` names, if it is there.
pub fn given_options() -> Option<Vec<String>> {
    Some(std::env::var("FBP_TEST_OPTIONS").ok()?.split_whitespace().map(str::to_owned).collect())
}

fn problem(scan: &Scan) -> Problem {
    Problem::new(scan.projections(), scan.axis.windows(2).all(|a| a[0] == a[1]))
}

/// An offer of a standard kernel.
pub fn standard(sampler: Sampler, interpolation: Interpolation, slices: u32, storage: Storage) -> Offer {
    let common = Common { sampler, storage, ..Common::default() };
    let parameters = Parameters::Standard(Standard { common, ..Standard::default() });
    Offer { interpolation, mode: Mode::Precise, slices, parameters }
}

/// An offer of 16 slices at once by a kernel with its default parameters.
pub fn sixteen(parameters: Parameters) -> Offer {
    Offer { interpolation: Interpolation::Linear, mode: Mode::Precise, slices: 16, parameters }
}

pub fn tensor(split: bool) -> Offer {
    sixteen(Parameters::Tensor(Tensor { split, flush: if split { 8 } else { 0 }, ..Tensor::default() }))
}

/// The first image format that works here for an offer.
fn image(found: &FoundDevice, offer: &Offer) -> Option<Texel> {
    let listed = |texel: &Texel| texel.format().is_some_and(|f| found.facts.image_formats.contains(&f));
    offer.texels().into_iter().find(|texel| listed(texel) && texel_is_usable(found, *texel))
}

/// The spec that an offer leads to here; `None` when the device has no image format for it.
pub fn spec(found: &FoundDevice, profile: &Profile, offer: &Offer, scan: &Scan) -> Option<KernelSpec> {
    let texel = match offer.parameters.sampler() {
        Sampler::Buffer => offer.texels()[0],
        Sampler::Image => image(found, offer)?,
    };
    let mut spec = KernelSpec::new(offer, profile, texel, problem(scan), Some(&found.facts));
    spec.build.options.extend(options(found, profile, offer));
    Some(spec)
}

fn geometry(scan: &Scan, roi: Roi) -> Geometry {
    Geometry {
        bins: scan.bins,
        size: scan.size,
        roi,
        angles: scan.angles.clone(),
        axis: scan.axis.clone(),
        weights: scan.weights.clone(),
        misfit_weights: None,
    }
}

/// What transforms rows where nothing else filters them.
#[derive(Clone, Copy)]
pub enum RowTransform {
    /// What a run would take.
    Library,
    /// Ready at once, for tests of other things.
    Host,
}

/// Slices of `sinograms` from the device.
pub fn reconstruct(
    found: &FoundDevice,
    spec: &KernelSpec,
    scan: &Scan,
    roi: Roi,
    filter: Filter,
    padding: Padding,
    sinograms: &[f32],
) -> Vec<f32> {
    let rows = RowFilter::new(spec, &Fft::default(), scan.bins, None);
    let full = Cut { projections: scan.projections(), rows: roi.height };
    reconstruct_cut(found, spec, scan, (roi, full), (rows, RowTransform::Host), (filter, padding), sinograms)
}

/// The same with another way to filter rows.
pub fn reconstruct_with(
    found: &FoundDevice,
    spec: &KernelSpec,
    scan: &Scan,
    roi: Roi,
    rows: RowFilter,
    how: (Filter, Padding),
    sinograms: &[f32],
) -> Vec<f32> {
    let full = Cut { projections: scan.projections(), rows: roi.height };
    reconstruct_cut(found, spec, scan, (roi, full), (rows, RowTransform::Library), how, sinograms)
}

/// The same in parts and bands.
pub fn reconstruct_cut(
    found: &FoundDevice,
    spec: &KernelSpec,
    scan: &Scan,
    (roi, cut): (Roi, Cut),
    (rows, by): (RowFilter, RowTransform),
    (filter, padding): (Filter, Padding),
    sinograms: &[f32],
) -> Vec<f32> {
    let geometry = geometry(scan, roi);
    let count = sinograms.len() / (scan.bins * scan.projections());
    let length = rows.length;
    let setup = Setup {
        spec,
        geometry: &geometry,
        filter,
        cutoff: 1.0,
        padding,
        row_filter: rows,
        chunk: count,
        chunks_held: 1,
        sinograms_ahead: 0,
        cut,
        solver: None,
        lamino: None,
        forms: &[],
    };
    with_session(found, |session| {
        let mut engine = match by {
            RowTransform::Library => Engine::new(session, &setup),
            RowTransform::Host => {
                let rows = cut.projections.div_ceil(2) * spec.slices as usize;
                Engine::with_transform(session, &setup, Box::new(HostRows::new(length, rows)))
            }
        }
        .unwrap();
        // a kernel that is wrong would have been replaced
        let replaced = rows.method != RowFilterMethod::Transform && engine.note.is_some();
        assert!(!replaced, "{:?}: {:?}", rows, engine.note);
        let mut slices = vec![f32::NAN; count * roi.pixels()];
        engine.reconstruct(sinograms, &mut slices).unwrap();
        (engine.into_session(), slices)
    })
}
