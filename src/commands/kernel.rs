//! `fbp kernel`: generated programs as text.

use crate::cli::KernelArgs;
use crate::error::{Error, Result};
use crate::facts::DeviceFacts;
use crate::files::{InputSet, OutputFile, OutputKind, SOFTWARE};
use crate::kernel::{
    KernelSource, KernelSpec, Problem, RowFilter, RowFilterMethod, SMALLEST_CONSTANT_BUFFER, SUB_GROUP_SHUFFLES,
    StepTarget, Texel, generate_filter, generate_probe, line_programs,
};
use crate::measure::Protocol;
use crate::operations::{self, ProgramTarget};
use crate::profile::{Profile, ProfileStore};
use crate::recipe::{parse_algorithm, parse_slices};
use crate::spectrum::{Padding, padded_length};
use crate::visible::Shown;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Runs `fbp kernel`: prints options and source of one kernel, or writes every kernel of a profile to files.
pub fn kernel(args: &KernelArgs) -> Result<String> {
    // a built-in profile needs no access to the user's directories
    let profile =
        ProfileStore::built_in()?.named(&args.profile).or_else(|_| ProfileStore::load()?.named(&args.profile))?;
    if let Some(directory) = &args.every {
        return every_kernel(&profile, args, directory);
    }
    let offer = profile.select(
        parse_algorithm(args.algorithm.as_deref())?,
        args.interpolation,
        args.mode,
        parse_slices(&args.slices_per_pass)?,
        usize::MAX,
        args.size.unwrap_or(args.bins),
    )?;
    let texel = offer.texels().first().copied().unwrap_or(Texel::Buffer);
    let source = KernelSpec::new(&offer, &profile, texel, problem(args), None).generate()?;
    Ok(kernel_text(&profile, &source, args))
}

/// Returns the problem that the flags describe, as far as it influences kernels.
fn problem(args: &KernelArgs) -> Problem {
    let KernelArgs { bins, projections, .. } = *args;
    Protocol::check(bins, projections, args.size.unwrap_or(bins)).problem()
}

/// Returns the text of a program, with a header that tells how to build and launch it.
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

/// Numbers of bins whose padded rows cover each last step of the fused filter: 2, 4, 8 and 16, and one in parts.
const LAST_STEPS: [usize; 5] = [256, 512, 1024, 2048, 4096];

/// Writes every program that the profile can use, for every layout of the sinogram that it may read.
fn every_kernel(profile: &Profile, args: &KernelArgs, directory: &Path) -> Result<String> {
    std::fs::create_dir_all(directory).map_err(|e| Error::unwritable(directory, "--every", e))?;
    let problem = problem(args);
    // devices without the architecture's extensions, and with the standard sub-group shuffles
    let device = |extensions: &[&str]| DeviceFacts {
        constant_buffer: SMALLEST_CONSTANT_BUFFER,
        extensions: extensions.iter().map(|&e| e.to_owned()).collect(),
        ..DeviceFacts::default()
    };
    let bare = device(&[]);
    let typical = DeviceFacts { local_memory: 16 << 10, max_work_group: 256, ..device(&[]) };
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
            let transform = RowFilter { length: padded_length(args.bins), method: RowFilterMethod::Transform };
            if let Texel::Spectra { together } = texel {
                let lengths = LAST_STEPS.map(|bins| RowFilter::new(&spec, &profile.fft, bins, None));
                let sources = lengths.into_iter().chain((!together).then_some(transform));
                let sources = sources.map(|rows| generate_filter(&spec, Padding::Edge, rows));
                let sources = sources.chain(line_programs(&spec, &typical)?.into_iter().map(Ok));
                for source in sources {
                    let source = source?;
                    programs.insert(source.name.clone(), source);
                }
                continue;
            }
            programs.insert(format!("filter-{}", spec.layout()), generate_filter(&spec, Padding::Edge, transform)?);
            // padding and filtering do not depend on the layout, so one is enough
            programs.insert("filter-zero".into(), generate_filter(&spec, Padding::Zero, transform)?);
            programs.insert("filter-mirror".into(), generate_filter(&spec, Padding::Mirror, transform)?);
            for bins in LAST_STEPS {
                let rows = RowFilter::new(&spec, &profile.fft, bins, None);
                if let RowFilterMethod::Fused { .. } = rows.method {
                    programs.insert(format!("fused-{}", rows.length), generate_filter(&spec, Padding::Edge, rows)?);
                }
            }
        }
    }
    programs.insert("probe-image".into(), generate_probe());
    let target = StepTarget { facts: &typical, sizes: &profile.step_sizes };
    let on = ProgramTarget { target, backends: profile.steps, images: profile.fft.images };
    for source in operations::programs(&on)? {
        let forms = programs.keys().filter(|name| name.starts_with(&source.name)).count();
        let suffix = if forms > 0 { format!("-form-{}", forms + 1) } else { String::new() };
        programs.insert(source.name.clone() + &suffix, source);
    }

    let mut names = String::new();
    for (name, source) in &programs {
        let file = directory.join(format!("{}-{name}.cl", profile.name));
        let text = format!("// {SOFTWARE}\n{}", kernel_text(profile, source, args));
        OutputFile::new("--every", &file, OutputKind::Kernel, &InputSet::default(), None)?.write(text)?;
        names += &format!("{}\n", file.shown());
    }
    Ok(names)
}
