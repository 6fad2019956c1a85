//! The commands beside `reconstruct`: devices, profiles, kernel, model, doctor, bench, tune, preprocess, center,
//! phantom, compare, info.

mod bench;
mod center;
mod doctor;
mod model;
mod preprocess;
mod tune;

pub use bench::bench;
pub use center::center;
pub use doctor::doctor;
pub use model::model;
pub use preprocess::preprocess;
pub use tune::tune;

use crate::cli::{CompareArgs, DevicesArgs, InfoArgs, KernelArgs, PhantomArgs, ProfilesAction};
use crate::compare::{Accumulator, Comparison, Mask, Range};
use crate::config::{ProgressKind, parse_algorithm, parse_slices};
use crate::device;
use crate::error::{Error, Result};
use crate::geometry::{default_axis, even_angles, parse_angles};
use crate::io::{
    Description, Dtype, Encoding, Hdf5Contents, Hdf5Frames, Hdf5Scan, Present, SliceWriter, Stack, Target, described,
    hdf5, read_text, write_image,
};
use crate::kernelgen::{
    KernelSource, KernelSpec, Padding, Problem, RowFilter, RowWay, SMALLEST_CONSTANT_BUFFER, SUB_GROUP_SHUFFLES, Texel,
    generate_filter, generate_probe,
};
use crate::phantom::{Detector, Phantom, add_gaussian, row_rng};
use crate::pipeline::SOFTWARE;
use crate::plan::human;
use crate::profile::{DeviceFacts, Profile, ProfileStore};
use crate::report::Reporter;
use crate::spectrum::padded_length;
use rayon::prelude::*;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// `fbp devices`: a table, or JSON.
pub fn devices(args: &DevicesArgs) -> Result<String> {
    let store = ProfileStore::load()?;
    let reporter = Reporter::new(0, ProgressKind::None, None)?;
    let mut text = String::new();
    let mut list = Vec::new();
    for (index, found) in device::enumerate()?.iter().enumerate() {
        let f = &found.facts;
        let choice = store.for_device(None, f)?;
        for note in &choice.notes {
            reporter.note(&format!("note: {note}"));
        }
        let formats: Vec<String> = f.image_formats.iter().map(|f| f.to_string()).collect();
        list.push(json!({
            "index": index,
            "facts": f,
            "profile": choice.profile.name,
            "profile_reason": choice.reason,
        }));
        text += &format!("{index} ({}:{})  {} [{}]\n", f.platform_index, f.device_index, f.name, f.kind);
        for (what, value) in [
            ("platform", f.platform.clone()),
            ("vendor", format!("{} ({}), architecture {}", f.vendor, f.vendor_word, f.architecture)),
            ("driver", format!("{}, {}, {}", f.driver, f.version, f.c_version)),
            ("compute units", format!("{} at {} MHz", f.compute_units, f.clock_mhz)),
            (
                "memory",
                format!(
                    "{}, largest allocation {}, local {}, constant {}",
                    human(f.global_memory),
                    human(f.max_allocation),
                    human(f.local_memory),
                    human(f.constant_buffer)
                ),
            ),
            ("work-group", format!("up to {}, {:?}", f.max_work_group, f.max_work_items)),
            (
                "images",
                if formats.is_empty() {
                    "none usable".to_owned()
                } else {
                    format!("up to {} x {}: {}", f.image_max[0], f.image_max[1], formats.join(", "))
                },
            ),
            ("profile", format!("{} ({})", choice.profile.name, choice.reason)),
        ] {
            text += &format!("    {what:<15}{value}\n");
        }
    }
    if args.json {
        text = format!("{:#}\n", serde_json::Value::Array(list));
    }
    Ok(text)
}

/// `fbp profiles list|show|check`.
pub fn profiles(action: &ProfilesAction) -> Result<String> {
    let mut text = String::new();
    match action {
        ProfilesAction::List => {
            for (profile, origin) in ProfileStore::load()?.iter() {
                text += &format!("{:<20}{}  [{origin}]\n", profile.name, profile.title);
            }
        }
        ProfilesAction::Show { profile } => {
            let profile = ProfileStore::load()?.named(profile)?;
            text = toml::to_string_pretty(&profile).map_err(|e| Error::profile(&profile.name, e.to_string()))?;
        }
        ProfilesAction::Check { files } => {
            for file in files {
                let name = file.display().to_string();
                let content = read_text(file).map_err(|e| Error::profile(&name, format!("cannot be read: {e}")))?;
                let profile = Profile::parse(&content, &name)?;
                text += &format!("{name}: profile {}, {} kernels, right\n", profile.name, profile.offers().len());
            }
        }
    }
    Ok(text)
}

/// `fbp kernel`: options and source of one kernel, or every kernel of a profile as files.
pub fn kernel(args: &KernelArgs) -> Result<String> {
    // a built-in profile needs no look at the user's directories
    let profile =
        ProfileStore::built_in()?.named(&args.profile).or_else(|_| ProfileStore::load()?.named(&args.profile))?;
    if let Some(directory) = &args.every {
        return every_kernel(&profile, args, directory);
    }
    let offer = profile.select(
        parse_algorithm(args.algorithm.as_deref())?,
        args.interpolation.parse()?,
        args.mode.parse()?,
        parse_slices(&args.slices_per_pass)?,
        usize::MAX,
    )?;
    let texel = offer.texels().first().copied().unwrap_or(Texel::Buffer);
    let problem = Problem { projections: args.projections, same_axis: true };
    let source = KernelSpec::new(&offer, &profile, texel, problem, None).generate()?;
    Ok(kernel_text(&profile, &source, args))
}

/// Text of a program, with a head that says how to build and launch it.
fn kernel_text(profile: &Profile, source: &KernelSource, args: &KernelArgs) -> String {
    let side = args.size.unwrap_or(args.bins);
    let blocks = |edge: usize| side.div_ceil(edge);
    format!(
        "// profile {}, kernel {}, key {}\n// options: {}\n// work-group {} x {}, {} x {} groups for slices of {side} x {side} from {} projections of {} bins\n{}",
        profile.name,
        source.name,
        source.key,
        source.options,
        source.work_group[0],
        source.work_group[1],
        blocks(source.block[0]),
        blocks(source.block[1]),
        args.projections,
        args.bins,
        source.text
    )
}

/// Every program that the profile can lead to, for every layout of the sinogram that it may read.
/// Bins whose padded rows take each of the last steps of the fused filter: 2, 4, 8 and 16, and one in parts.
const LAST_STEPS: [usize; 5] = [256, 512, 1024, 2048, 4096];

fn every_kernel(profile: &Profile, args: &KernelArgs, directory: &Path) -> Result<String> {
    std::fs::create_dir_all(directory).map_err(|e| Error::output(directory, format!("--every: {e}")))?;
    let problem = Problem { projections: args.projections, same_axis: true };
    // devices without what the profile's architecture has beyond the standard, and with the standard's shuffles
    let device = |extensions: &[&str]| DeviceFacts {
        constant_buffer: SMALLEST_CONSTANT_BUFFER,
        extensions: extensions.iter().map(|&e| e.to_owned()).collect(),
        ..DeviceFacts::default()
    };
    let bare = device(&[]);
    let sub_groups = device(&[SUB_GROUP_SHUFFLES[0], SUB_GROUP_SHUFFLES[1], &profile.hardware.compiler_extension]);

    let mut programs = BTreeMap::new();
    for offer in profile.offers() {
        for texel in offer.texels() {
            let mut texts = BTreeSet::new();
            for (suffix, facts) in [("", None), ("-bare", Some(&bare)), ("-sub-groups", Some(&sub_groups))] {
                let source = KernelSpec::new(&offer, profile, texel, problem, facts).generate()?;
                if texts.insert(source.text.clone()) {
                    programs.insert(format!("{}-{}{suffix}", offer.mode, source.name), source);
                }
            }
            let spec = KernelSpec::new(&offer, profile, texel, problem, None);
            let transform = RowFilter { length: padded_length(args.bins), way: RowWay::Transform };
            programs.insert(format!("filter-{}", spec.layout()), generate_filter(&spec, Padding::Edge, transform)?);
            // the layout does not matter to how rows are continued and filtered, so once is enough
            programs.insert("filter-zero".into(), generate_filter(&spec, Padding::Zero, transform)?);
            programs.insert("filter-mirror".into(), generate_filter(&spec, Padding::Mirror, transform)?);
            for bins in LAST_STEPS {
                let rows = RowFilter::new(&spec, &profile.fft, bins, None);
                if let RowWay::Fused { .. } = rows.way {
                    programs.insert(format!("fused-{}", rows.length), generate_filter(&spec, Padding::Edge, rows)?);
                }
            }
        }
    }
    programs.insert("probe-image".into(), generate_probe());

    let mut names = String::new();
    for (name, source) in &programs {
        let file = directory.join(format!("{}-{name}.cl", profile.name));
        std::fs::write(&file, kernel_text(profile, source, args))
            .map_err(|e| Error::output(&file, format!("--every: {e}")))?;
        names += &format!("{}\n", file.display());
    }
    Ok(names)
}

/// Brightest beam whose counts stay below 65535 at every pixel's gain.
const MOST_PHOTONS: f64 = 55000.0;

/// `fbp phantom`: writes the files, says what was written.
pub fn phantom(args: &PhantomArgs) -> Result<String> {
    let positive = |value: usize, flag: &str| match value {
        0 => Err(Error::usage(format!("{flag}: must be at least 1"))),
        value => Ok(value),
    };
    let size = positive(args.size, "--size")?;
    let projections = positive(args.projections, "--projections")?;
    let slices = positive(args.slices, "--slices")?;
    let bins = positive(args.bins.unwrap_or(size), "--bins")?;
    for (value, flag) in [
        (args.overall_angle, "--overall-angle"),
        (args.start_angle, "--start-angle"),
        (args.scale, "--scale"),
        (args.noise, "--noise"),
        (args.center.unwrap_or(0.0), "--center"),
        (args.photons.unwrap_or(0.0), "--photons"),
    ] {
        if !value.is_finite() {
            return Err(Error::usage(format!("{flag}: {value} is not a finite number")));
        }
    }
    if let Some(photons) = args.photons
        && !(1.0..=MOST_PHOTONS).contains(&photons)
    {
        return Err(Error::usage(format!(
            "--photons: {photons} is not within 1..={MOST_PHOTONS}; more would clip the 16-bit counts"
        )));
    }
    let kind = args.kind.parse()?;
    let axis = args.center.unwrap_or(default_axis(bins));
    let angles = match &args.angles {
        None => even_angles(args.start_angle, args.overall_angle, projections),
        Some(file) => {
            let text = read_text(file).map_err(|e| Error::input(file, format!("--angles: {e}")))?;
            let (angles, note) = parse_angles(&text, &format!("--angles {}", file.display()))?;
            if let Some(note) = note {
                Reporter::new(0, ProgressKind::None, None)?.note(&format!("note: {note}"));
            }
            angles
        }
    };
    if angles.len() != projections {
        return Err(Error::Input(format!("--angles: {} angles for --projections {projections}", angles.len())));
    }
    // counts need an attenuation that a beam can pass: twice the mean free path along the densest ray
    let scale = match args.photons {
        Some(_) => args.scale * 2.0 / Phantom::new(kind, size).densest_ray(),
        None => args.scale,
    };
    let phantoms: Vec<Phantom> =
        (0..slices).map(|slice| Phantom::for_slice(kind, size, slice, slices).scaled(scale)).collect();
    let row = |slice: usize, p: usize, out: &mut [f32]| {
        phantoms[slice].project_row(angles[p].to_radians(), axis, out);
        if args.noise > 0.0 {
            add_gaussian(out, args.noise, &mut row_rng(args.seed, p as u32, slice as u32));
        }
    };

    let sinograms = args.layout == "sinograms";
    if sinograms && args.photons.is_some() {
        return Err(Error::usage("--photons: works with --as projections"));
    }
    let (count, rows) = if sinograms { (slices, projections) } else { (projections, slices) };
    let page = |page: usize| {
        let mut values = vec![0f32; rows * bins];
        values.par_chunks_mut(bins).enumerate().for_each(
            |(r, out)| {
                if sinograms { row(page, r, out) } else { row(r, page, out) }
            },
        );
        values
    };
    // all that would be refused is refused before anything is written
    for directory in [Some(&args.output), args.flats.as_ref(), args.darks.as_ref()].into_iter().flatten() {
        refuse_filled(directory, args.overwrite)?;
    }
    if let Some(truth) = &args.truth {
        if let Some(parent) = truth.parent() {
            std::fs::create_dir_all(parent).map_err(|e| Error::output(truth, format!("--truth: {e}")))?;
        }
        if !args.overwrite && truth.exists() {
            return Err(Error::output(truth, "--truth: exists already; add --overwrite or choose another file"));
        }
    }
    if let (Some(photons), Some(flats), Some(darks)) = (args.photons, &args.flats, &args.darks) {
        let detector = Detector { bins, rows, photons };
        let counts = |stream: u32, make: &(dyn Fn(usize, &mut rand_chacha::ChaCha8Rng) -> Vec<u16> + Sync)| {
            let rows: Vec<Vec<u16>> =
                (0..rows).into_par_iter().map(|r| make(r, &mut row_rng(args.seed, stream, r as u32))).collect();
            rows.concat().into_iter().map(f32::from).collect::<Vec<f32>>()
        };
        const FIELDS: usize = 10;
        write_stack(&args.output, "proj", count, bins, rows, args.overwrite, true, |p| {
            let lines = page(p);
            counts(p as u32, &|r, rng| detector.counts(r, &lines[r * bins..(r + 1) * bins], rng))
        })?;
        write_stack(flats, "flat", FIELDS, bins, rows, args.overwrite, true, |f| {
            counts(u32::MAX - f as u32, &|r, rng| detector.flat_row(r, rng))
        })?;
        write_stack(darks, "dark", FIELDS, bins, rows, args.overwrite, true, |f| {
            counts(u32::MAX - (FIELDS + f) as u32, &|r, rng| detector.dark_row(r, rng))
        })?;
    } else {
        let prefix = if sinograms { "sino" } else { "proj" };
        write_stack(&args.output, prefix, count, bins, rows, args.overwrite, false, page)?;
    }
    if let Some(path) = &args.truth {
        let encoding = Encoding { dtype: Dtype::F32, range: None };
        if slices == 1 {
            write_image(path, size, size, &phantoms[0].rasterise(4), encoding, SOFTWARE)?;
        } else {
            let indices: Vec<usize> = (0..slices).collect();
            let target = Target::Single(path.clone());
            let mut writer = SliceWriter::create(
                target,
                size,
                size,
                encoding,
                &indices,
                Present::new(args.overwrite, None),
                SOFTWARE,
            )?;
            for (slice, phantom) in phantoms.iter().enumerate() {
                writer.write(slice, &phantom.rasterise(4))?;
            }
            writer.finish()?;
        }
    }
    Ok(format!(
        "{count} {} of {bins} x {rows} in {}: {kind}, side {size}, axis at bin {axis}\n",
        args.layout,
        args.output.display()
    ))
}

fn refuse_filled(directory: &Path, overwrite: bool) -> Result<()> {
    if !overwrite && directory.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(Error::output(directory, "the directory is not empty; add --overwrite or choose another --output"));
    }
    Ok(())
}

/// Writes `count` pages of `width x height` as single files `prefix_00000.tif` ...
#[allow(clippy::too_many_arguments)]
fn write_stack(
    directory: &Path,
    prefix: &str,
    count: usize,
    width: usize,
    height: usize,
    overwrite: bool,
    counts: bool,
    page: impl Fn(usize) -> Vec<f32>,
) -> Result<()> {
    refuse_filled(directory, overwrite)?;
    let target = Target::Pattern {
        directory: directory.to_owned(),
        prefix: format!("{prefix}_"),
        digits: 5,
        suffix: ".tif".into(),
    };
    let encoding = match counts {
        true => Encoding { dtype: Dtype::U16, range: Some((0.0, 65535.0)) },
        false => Encoding { dtype: Dtype::F32, range: None },
    };
    let indices: Vec<usize> = (0..count).collect();
    let mut writer =
        SliceWriter::create(target, width, height, encoding, &indices, Present::new(overwrite, None), SOFTWARE)?;
    for index in indices {
        writer.write(index, &page(index))?;
    }
    writer.finish()?;
    Ok(())
}

/// Compares two stacks page by page.
pub fn compare_stacks(a: &str, b: &str, mask: Option<f64>) -> Result<Comparison> {
    let (a, b) = (Stack::open(a, "A")?, Stack::open(b, "B")?);
    let shape = |s: &Stack| (s.len(), s.width(), s.height());
    if shape(&a) != shape(&b) {
        let say = |s: &Stack| format!("{} page(s) of {}x{}", s.len(), s.width(), s.height());
        return Err(Error::Input(format!(
            "A has {}, B {}; only stacks of one shape can be compared",
            say(&a),
            say(&b)
        )));
    }
    let (width, height) = (b.width(), b.height());
    let read = |stack: &Stack, page: usize| -> Result<Vec<f32>> {
        let mut values = vec![0f32; width * height];
        stack.read_rows(page, 0..height, &mut values)?;
        Ok(values)
    };
    let mut range = Range::new(Mask::new(width, height, mask));
    for page in 0..b.len() {
        range.add(&read(&b, page)?)?;
    }
    let mut accumulator = Accumulator::new(range);
    for page in 0..b.len() {
        accumulator.add(page, &read(&a, page)?, &read(&b, page)?)?;
    }
    Ok(accumulator.finish())
}

/// `fbp compare`: the text for stdout, and whether the tolerance is kept.
pub fn compare(args: &CompareArgs) -> Result<(String, Result<()>)> {
    for (value, flag) in [(args.mask, "--mask"), (args.tolerance, "--tolerance")] {
        if let Some(value) = value
            && !(value.is_finite() && value >= 0.0)
        {
            return Err(Error::usage(format!("{flag}: {value} is not a number of at least 0")));
        }
    }
    let c = compare_stacks(&args.a, &args.b, args.mask)?;
    let text = if args.json {
        let value = serde_json::to_value(&c).map_err(|e| Error::Output(format!("JSON: {e}")))?;
        format!("{value:#}\n")
    } else {
        let place =
            c.max_at.as_ref().map(|at| format!(" at slice {}, x {}, y {}", at.slice, at.x, at.y)).unwrap_or_default();
        format!(
            "RMSE    {:.6e}\nNRMSE   {:.6e}\nPSNR    {:.2} dB\nSSIM    {:.6}\nmax     {:.6e}{place}\npixels  {}{}\n",
            c.rmse,
            c.nrmse,
            c.psnr,
            c.ssim,
            c.max_abs,
            c.pixels,
            match c.non_finite {
                0 => String::new(),
                n => format!("\nnot finite  {n}"),
            }
        )
    };
    let verdict = match args.tolerance {
        Some(tolerance) if c.nrmse.is_nan() || c.nrmse > tolerance => {
            Err(Error::Unequal(format!("NRMSE {:.6e} is past the tolerance {tolerance:e}", c.nrmse)))
        }
        _ => Ok(()),
    };
    Ok((text, verdict))
}

/// The scan of an HDF5 file, or why it has none, and its datasets.
fn hdf5_text(contents: &Hdf5Contents) -> String {
    let mut lines = Vec::new();
    match &contents.scan {
        Some(scan) => hdf5_scan(scan, &mut lines),
        None => lines.extend(contents.problem.as_ref().map(|problem| named("no scan", problem))),
    }
    lines.push("datasets".to_owned());
    lines.extend(contents.datasets.iter().map(|dataset| format!("  {dataset}")));
    lines.join("\n") + "\n"
}

fn hdf5_scan(scan: &Hdf5Scan, lines: &mut Vec<String>) {
    let frames = |frames: &Hdf5Frames| {
        let Hdf5Frames { dataset, frames, width, height, stored } = frames;
        format!("{frames} of {width} x {height} pixels, {dataset}: {stored}")
    };
    let field = |part: &Option<Hdf5Frames>| part.as_ref().map_or("none".to_owned(), frames);
    lines.push(named("layout", scan.layout));
    lines.push(named("projections", &frames(&scan.projections)));
    lines.push(named("flats", &field(&scan.flats)));
    if scan.flats_after.is_some() {
        lines.push(named("flats after", &field(&scan.flats_after)));
    }
    lines.push(named("darks", &field(&scan.darks)));
    let angles = scan.angles.as_ref().map(|angles| {
        let unit = angles.unit.as_ref().map_or("no unit is given".to_owned(), |unit| format!("given as {unit}"));
        format!("{}, {} to {} degrees, {}: {unit}", angles.count, angles.smallest, angles.largest, angles.dataset)
    });
    let missing = "none; --angles or --overall-angle is needed";
    lines.push(named("angles", angles.as_deref().unwrap_or(missing)));
    lines
        .extend(scan.pixel_size.as_ref().map(|size| named("pixel size", &format!("{size}, which --pixel-size takes"))));
    lines.extend(scan.notes.iter().map(|note| named("note", note)));
}

fn named(name: &str, value: &str) -> String {
    format!("{name:<16}{value}")
}

/// `fbp info`: what a stack holds, or the scan and the datasets of an HDF5 file.
pub fn info(args: &InfoArgs) -> Result<String> {
    if hdf5::is_hdf5(Path::new(&args.path)) {
        let contents = hdf5::contents(Path::new(&args.path))?;
        return Ok(if args.json { format!("{:#}\n", json!(contents)) } else { hdf5_text(&contents) });
    }
    let stack = Stack::open(&args.path, "PATH")?;
    let (width, height) = (stack.width(), stack.height());
    let mut low = f32::INFINITY;
    let mut high = f32::NEG_INFINITY;
    let mut values = vec![0f32; width * height];
    let mut not_finite = 0u64;
    for page in 0..stack.len() {
        stack.read_rows(page, 0..height, &mut values)?;
        for &v in &values {
            if v.is_finite() {
                low = low.min(v);
                high = high.max(v);
            } else {
                not_finite += 1;
            }
        }
    }
    let description = described(&stack.files()[0]).filter(|_| stack.len() == 1);
    if args.json {
        return Ok(format!(
            "{:#}\n",
            json!({
                "slice": description, "pages": stack.len(), "files": stack.files().len(), "width": width, "height": height,
                "sample": stack.sample().to_string(), "min": low, "max": high, "not_finite": not_finite,
                "notes": stack.notes(),
            })
        ));
    }
    let mut text = format!(
        "{} page(s) in {} file(s), {width} x {height}, {}\nvalues {low} to {high}{}\n",
        stack.len(),
        stack.files().len(),
        stack.sample(),
        if not_finite > 0 { format!(", {not_finite} not finite") } else { String::new() }
    );
    text += &format!(
        "as sinograms: {} slice(s) from {height} projections of {width} bins\nas projections: {height} slice(s) from {} projections of {width} bins\n",
        stack.len(),
        stack.len()
    );
    if let Some(Description { slice, stamp: Some(stamp), .. }) = description {
        text += &format!("slice {slice} of run {}, axis at bin {}", stamp.run, stamp.center);
        text += &stamp.pixel_size.map(|size| format!(", pixels of {size}")).unwrap_or_default();
        text.push('\n');
    }
    for note in stack.notes() {
        text += &format!("note: {note}\n");
    }
    Ok(text)
}
