//! What the generator makes of the shipped profiles is kept in `tests/golden/kernels.txt`, a line for each kernel, and a few
//! whole programs beside it. The tables of parameters in docs/profiles.md are kept in the same manner.
//!
//! After a wanted change run `FBP_UPDATE_GOLDEN=1 cargo test --test host golden` and look at the difference in git.

use fbp::facts::DeviceFacts;
use fbp::kernel::{
    Algorithm, Declared, ImageFilterBackend, KernelSource, KernelSpec, Mode, Parameter, Parameters, Problem, RowFilter,
    RowFilterMethod, StepBackends, StepSizes, StepTarget, Texel, generate_filter, generate_probe, line_programs,
};
use fbp::operations::{self, ProgramTarget, files};
use fbp::profile::ProfileStore;
use fbp::spectrum::Padding;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The problem that the kernels are for.
const PROBLEM: Problem = Problem::new(1024, true);

/// What the generator makes of a kernel.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Program {
    /// Files of `cl/`, in order, and the kernel in them that is run.
    files: Vec<String>,
    entry: String,
    name: String,
    /// For the compiler.
    options: String,
    /// Work-group and block.
    shape: String,
    defines: BTreeMap<String, String>,
}

impl Program {
    fn new(source: &KernelSource) -> Program {
        let files = source.text.lines().filter_map(|line| line.strip_prefix("/* ---- ")?.strip_suffix(" ---- */"));
        let defines = source.text.lines().skip(1).map_while(|line| line.strip_prefix("#define "));
        let define = |line: &str| {
            let (key, value) = line.split_once(' ').unwrap_or((line, ""));
            (key.to_owned(), if value.contains(' ') { format!("`{value}`") } else { value.to_owned() })
        };
        Program {
            files: files.map(str::to_owned).collect(),
            entry: source.entry.to_string(),
            name: source.name.clone(),
            options: source.options.clone(),
            shape: format!("{:?} {:?}", source.work_group, source.block),
            defines: defines.map(define).collect(),
        }
    }
}

/// A program, and the names of the profiles or sizes that lead to it.
type ProgramUsers<'a> = (&'a Program, &'a BTreeSet<String>);

/// All programs, and what leads to each.
#[derive(Default)]
struct Programs(BTreeMap<Program, BTreeSet<String>>);

impl Programs {
    fn add(&mut self, user: &str, source: &KernelSource) {
        self.0.entry(Program::new(source)).or_default().insert(user.to_owned());
    }

    /// Programs of the same files together: the value that most of them have of each define, and for every program what it
    /// has instead. A `-` before a define says that it is not there.
    fn text(&self) -> String {
        let mut groups: BTreeMap<(&[String], &str), Vec<ProgramUsers>> = BTreeMap::new();
        for (program, users) in &self.0 {
            groups.entry((&program.files, &program.entry)).or_default().push((program, users));
        }
        let mut text = String::new();
        for ((files, entry), programs) in groups {
            let mut counts: BTreeMap<&str, BTreeMap<Option<&str>, usize>> = BTreeMap::new();
            let keys: BTreeSet<&str> =
                programs.iter().flat_map(|(p, _)| p.defines.keys().map(String::as_str)).collect();
            for key in &keys {
                for (program, _) in &programs {
                    *counts
                        .entry(key)
                        .or_default()
                        .entry(program.defines.get(*key).map(String::as_str))
                        .or_default() += 1;
                }
            }
            // the least of those that are as frequent
            let usual =
                |key: &str| counts[key].iter().rev().max_by_key(|(_, count)| **count).and_then(|(value, _)| *value);
            let said =
                |key: &str, value: Option<&str>| value.map_or(format!("-{key}"), |value| format!("{key}={value}"));
            let common: Vec<String> = keys.iter().map(|key| said(key, usual(key))).collect();
            text += &format!("{entry} of {}\n    {}\n", files.join(" "), common.join(" "));
            for (program, users) in programs {
                let own = |key: &&&str| program.defines.get(**key).map(String::as_str) != usual(key);
                let own: Vec<String> = keys
                    .iter()
                    .filter(own)
                    .map(|key| said(key, program.defines.get(*key).map(String::as_str)))
                    .collect();
                let users: Vec<&str> = users.iter().map(String::as_str).collect();
                let Program { name, options, shape, .. } = program;
                text += &format!("{name} | {shape} | {options} | {} | {}\n", own.join(" "), users.join(" "));
            }
            text += "\n";
        }
        text
    }
}

/// Everything that the shipped profiles can lead to, and some whole texts, by file name.
fn generated() -> BTreeMap<&'static str, String> {
    let mut programs = Programs::default();
    let store = ProfileStore::built_in().unwrap();
    for (profile, _) in store.iter() {
        let mut add = |source: &KernelSource| programs.add(&profile.name, source);
        for offer in profile.offers() {
            for texel in offer.texels() {
                let spec = KernelSpec::new(&offer, profile, texel, PROBLEM, None);
                add(&spec.generate().unwrap());
                let method = match texel {
                    Texel::Spectra { together: true } => RowFilterMethod::Vector,
                    _ => RowFilterMethod::Transform,
                };
                let rows = RowFilter { length: 4096, method };
                add(&generate_filter(&spec, Padding::Edge, rows).unwrap());
                let facts = DeviceFacts { local_memory: 48 << 10, max_work_group: 1024, ..DeviceFacts::default() };
                line_programs(&spec, &facts).unwrap().iter().for_each(&mut add);
            }
        }
        let offer = &profile.offers()[0];
        let spec = KernelSpec::new(offer, profile, Texel::Buffer, PROBLEM, None);
        for bins in [100, 2048, 4096] {
            let rows = RowFilter::new(&spec, &profile.fft, bins, None);
            if let RowFilterMethod::Fused { .. } = rows.method {
                add(&generate_filter(&spec, Padding::Edge, rows).unwrap());
            }
        }
    }
    for (name, local_memory, max_work_group) in [("steps-small", 16 << 10, 64), ("steps-large", 48 << 10, 1024)] {
        let extensions = vec!["cl_khr_fp64".to_owned()];
        let facts = DeviceFacts { local_memory, max_work_group, extensions, ..DeviceFacts::default() };
        let target = StepTarget { facts: &facts, sizes: &StepSizes::default() };
        let (backends, images) = (StepBackends::default(), ImageFilterBackend::Fused);
        let steps = operations::programs(&ProgramTarget { target, backends, images }).unwrap();
        steps.iter().for_each(|source| programs.add(name, source));
    }
    let profile = store.named("default").unwrap();
    let spec = KernelSpec::new(&profile.offers()[0], &profile, Texel::Buffer, PROBLEM, None);
    [
        ("kernels.txt", programs.text()),
        ("whole.cl", spec.generate().unwrap().text),
        ("probe-image.cl", generate_probe().text),
    ]
    .into()
}

#[test]
fn generated_text_is_what_git_has() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let texts = generated();
    if std::env::var_os("FBP_UPDATE_GOLDEN").is_some() {
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        for (name, text) in &texts {
            fs::write(directory.join(name), text).unwrap();
        }
    }
    let mut kept: Vec<String> =
        fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    kept.sort();
    assert_eq!(kept, texts.keys().copied().collect::<Vec<_>>(), "files of tests/golden; see the head of this test");
    for (name, text) in &texts {
        let golden = fs::read_to_string(directory.join(name)).unwrap();
        let differ = golden.lines().zip(text.lines()).position(|(a, b)| a != b);
        assert!(golden == *text, "tests/golden/{name}, line {:?}; see the head of this test", differ.map(|at| at + 1));
    }
}

#[test]
fn every_kernel_file_is_known_to_the_generator() {
    let mut on_disk: Vec<String> = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("cl"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    on_disk.sort();
    let mut known: Vec<&str> = files().iter().map(|((name, _), _)| *name).collect();
    known.sort_unstable();
    assert_eq!(on_disk, known);
}

/// A table of parameters as docs/profiles.md has it.
fn parameter_table(parameters: &[&Parameter]) -> String {
    let mut text = "| key | default | values | meaning |\n|---|---|---|---|\n".to_owned();
    for parameter in parameters {
        let default = match parameter.default.as_integer() {
            Some(number) => number.to_string(),
            None => format!("`{}`", parameter.default),
        };
        let (key, legal, meaning) = (parameter.name(), parameter.legal.to_string(), &parameter.meaning);
        text += &format!("| `{key}` | {default} | {legal} | {meaning} |\n");
    }
    text
}

/// The section on parameters in docs/profiles.md: what every family has, then each family.
fn parameter_section() -> String {
    let declared = |algorithm| Parameters::declared(algorithm).iter();
    let own = |algorithm| declared(algorithm).filter(|p| !p.key.contains('.')).collect::<Vec<_>>();
    let common: Vec<&Parameter> = declared(Algorithm::Standard).filter(|p| p.key.starts_with("common.")).collect();
    let mut text = format!("Each family has a table `common`:\n\n{}", parameter_table(&common));
    for (place, &algorithm) in Algorithm::ALL.iter().enumerate() {
        let parameters = Parameters::start(algorithm, Mode::Fast);
        let family = parameters.family();
        text += &format!("\n**`[kernel.{algorithm}]`**: {}.", family.meaning());
        let same = Algorithm::ALL[..place].iter().find(|&&earlier| own(earlier) == own(algorithm));
        if let Some(same) = same {
            text += &format!(" Its keys are those of `{same}`.");
        }
        if !family.notes().is_empty() {
            text += &format!(" {}", family.notes());
        }
        text += "\n";
        if same.is_none() {
            text += &format!("\n{}", parameter_table(&own(algorithm)));
        }
    }
    let sizes = StepSizes::parameters();
    text += "\n**`[step-sizes]`**: sizes of the work-groups of the steps around the filter, and with them their local memory. \
             A device's own limits are kept, too. Slices are the same bit for bit with all values of the others; \
             with those of `lamino-slices`, slices about an inclined axis are rounded differently.\n\n";
    text + &parameter_table(&sizes.iter().collect::<Vec<_>>())
}

#[test]
fn parameters_are_documented() {
    const BEGIN: &str = "<!-- parameters, written by the test of tests/host/golden.rs -->\n";
    const END: &str = "\n<!-- end of parameters -->";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/profiles.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (kept, after) = rest.split_once(END).unwrap();
    let section = parameter_section();
    if std::env::var_os("FBP_UPDATE_GOLDEN").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{section}{END}{after}")).unwrap();
        return;
    }
    let differ = kept.lines().zip(section.lines()).find(|(a, b)| a != b);
    assert!(kept == section, "docs/profiles.md: {differ:?}; see the head of this test");
}
