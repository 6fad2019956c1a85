//! Every kernel variant that a device can run: right, and how fast.
//!
//! `cargo bench --bench variants -- [--device SEL] [--size N] [--passes N] [--profile NAME]` checks each kernel of each shipped
//! profile on a small scan against the `f64` reference of the tests, then times it by
//! the paper's protocol (section 2.3: dummy data on the device, warm-up, median): N x N slices from N projections of
//! N bins. A speed is printed only beside a passed check. The table goes to stdout as Markdown.

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Pad, Read, Scan, back_project, filter, noise, relative_rms};
use fbp::device::{BackProjector, DeviceSelector, FoundDevice, Session, SinogramStore, enumerate};
use fbp::geometry::{Geometry, Roi};
use fbp::kernelgen::{KernelSpec, Padding, Problem};
use fbp::margins::margin;
use fbp::pipeline::{Engine, Setup, open, texel_works};
use fbp::profile::{Interpolation, Offer, Parameters, Profile, ProfileStore};
use fbp::spectrum::{Filter, padded_length};
use std::collections::BTreeSet;
use std::error::Error;

type Any<T> = Result<T, Box<dyn Error>>;

struct Options {
    device: DeviceSelector,
    size: usize,
    passes: usize,
    profiles: Vec<String>,
}

fn options() -> Any<Options> {
    let mut options = Options { device: DeviceSelector::default(), size: 2048, passes: 5, profiles: Vec::new() };
    let mut arguments = std::env::args().skip(1);
    while let Some(flag) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{flag} needs a value"));
        match flag.as_str() {
            "--device" => options.device = DeviceSelector::parse(&value()?)?,
            "--size" => options.size = value()?.parse()?,
            "--passes" => options.passes = value()?.parse()?,
            "--profile" => options.profiles.push(value()?),
            // cargo adds it
            "--bench" => {}
            other => return Err(format!("unknown flag {other}").into()),
        }
    }
    Ok(options)
}

fn scan_geometry(scan: &Scan) -> Geometry {
    Geometry {
        bins: scan.bins,
        size: scan.size,
        roi: Roi::full(scan.size),
        angles: scan.angles.clone(),
        axis: scan.axis.clone(),
        weights: scan.weights.clone(),
    }
}

/// Relative error on a small scan with a drifting axis.
fn error_of(found: &FoundDevice, spec: &KernelSpec, scan: &Scan) -> Any<f64> {
    let geometry = scan_geometry(scan);
    let count = spec.slices as usize;
    let values = scan.bins * scan.projections();
    let sinograms = noise(count * values, 3);
    let length = padded_length(scan.bins, &[2, 3, 5, 7]);
    let setup = Setup {
        spec,
        geometry: &geometry,
        filter: Filter::Ramp,
        cutoff: 1.0,
        padding: Padding::Edge,
        fft_length: length,
        chunk: count,
    };
    let mut engine = Engine::new(open(found)?, &setup)?;
    let pixels = scan.size * scan.size;
    let mut slices = vec![0f32; count * pixels];
    engine.reconstruct(&sinograms, &mut slices)?;
    let last = count - 1;
    let filtered = filter(&sinograms[last * values..], scan.bins, length, Pad::Edge, Some(&|_| 1.0));
    let read = match (&spec.parameters, spec.interpolation) {
        (Parameters::Oversample(_), _) => Read::Oversampled(4),
        (_, Interpolation::Linear) => Read::Linear,
        _ => Read::Nearest,
    };
    let (want, slack) = back_project(&filtered, scan, read);
    Ok(relative_rms(&slices[last * pixels..], &want, &slack))
}

/// 10^9 updates a second of the back-projection kernel alone: median over `passes`, after a warm-up.
fn speed_of(session: &Session, spec: &KernelSpec, size: usize, passes: usize) -> Any<f64> {
    let scan = Scan::even(size, size, size);
    let geometry = scan_geometry(&scan);
    let source = spec.generate()?;
    let projector = BackProjector::new(session, &source, &geometry)?;
    let mut sinogram = SinogramStore::new(session, spec.texel, size, size, spec.element_bytes())?;
    sinogram.publish(session)?;
    let slices = session.buffer::<f32>(spec.slices as usize * size * size, 1, "slices")?;
    let peaks = session.constant_buffer(&vec![0u32; spec.slices as usize], "peaks")?;
    let mut times = Vec::new();
    for pass in 0..passes + 2 {
        let event = projector.run(session, &sinogram, &peaks, &slices, 0, spec.slices as usize)?;
        session.finish()?;
        let time = event.profiling_command_end()? - event.profiling_command_start()?;
        if pass >= 2 {
            times.push(time);
        }
    }
    times.sort_unstable();
    let updates = (size * size * size * spec.slices as usize) as f64;
    Ok(updates / times[times.len() / 2] as f64)
}

/// The layouts of an offer that work here, best first.
fn specs(
    found: &FoundDevice,
    session: &Session,
    profile: &Profile,
    offer: &Offer,
    problem: Problem,
) -> Any<Vec<KernelSpec>> {
    let mut specs = Vec::new();
    for texel in offer.texels() {
        let there = texel.format().is_none_or(|f| found.facts.image_formats.contains(&f));
        if there && texel_works(session, texel)? {
            specs.push(KernelSpec::new(offer, profile, texel, problem, Some(&found.facts)));
            break;
        }
    }
    Ok(specs)
}

fn main() -> Any<()> {
    let options = options()?;
    let devices = enumerate()?;
    let facts: Vec<_> = devices.iter().map(|d| &d.facts).collect();
    let found = devices[options.device.select(&facts)?].clone();
    let session = open(&found)?;
    let mut small = Scan::even(131, 45, 150);
    small.axis = (0..45).map(|p| 63.0 + 0.11 * f64::from(p)).collect();

    println!(
        "{} {}, {n} x {n} slices from {n} projections of {n} bins\n",
        found.facts.name,
        found.facts.driver,
        n = options.size
    );
    println!("| profile | mode | kernel | key | error | margin | right | GU/s |\n|---|---|---|---|---|---|---|---|");
    let mut seen = BTreeSet::new();
    let mut wrong = 0;
    for (profile, _) in ProfileStore::built_in()?.iter() {
        if !options.profiles.is_empty() && !options.profiles.contains(&profile.name) {
            continue;
        }
        for offer in profile.offers() {
            let problem = Problem { projections: options.size, same_axis: false };
            for spec in specs(&found, &session, profile, &offer, problem)? {
                let source = spec.generate()?;
                if !seen.insert(source.key.clone()) {
                    continue;
                }
                let bound = margin(&spec).relative_rms;
                let (error, right) = match error_of(&found, &spec, &small) {
                    Ok(error) => (format!("{error:.1e}"), error <= bound),
                    Err(error) => (error.to_string().lines().next().unwrap_or("").to_owned(), false),
                };
                let speed = match right {
                    true => format!("{:.1}", speed_of(&session, &spec, options.size, options.passes)?),
                    false => "-".to_owned(),
                };
                wrong += usize::from(!right);
                println!(
                    "| {} | {} | {} | {} | {error} | {bound:.0e} | {} | {speed} |",
                    profile.name,
                    offer.mode,
                    source.name,
                    source.key,
                    if right { "yes" } else { "NO" }
                );
            }
        }
    }
    println!("\n{} kernels, {wrong} wrong", seen.len());
    if wrong > 0 { Err("a kernel is wrong".into()) } else { Ok(()) }
}
