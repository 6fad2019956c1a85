//! The generator's output is kept in `tests/golden/`: one file for every shipped profile. The tables of parameters in
//! docs/profiles.md are kept in the same manner.
//!
//! After a wanted change run `FBP_UPDATE_GOLDEN=1 cargo test --test host golden` and look at the difference in git.

use fbp::facts::DeviceFacts;
use fbp::kernel::{
    Algorithm, Declared, ImageFilterBackend, KernelSource, KernelSpec, Mode, Padding, Parameter, Parameters, Problem,
    RowFilter, RowFilterMethod, StepBackends, StepSizes, StepTarget, Texel, files, generate_filter, generate_probe,
    line_programs, step_programs,
};
use fbp::profile::ProfileStore;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The problem that the kernels are for.
const PROBLEM: Problem = Problem::new(1024, true);

/// What the generator adds to the files of `cl/`: options, launch shape, defines, order of files.
fn head(source: &KernelSource) -> String {
    let defines = source.text.lines().skip(1).take_while(|line| line.starts_with("#define"));
    let files = source.text.lines().filter(|line| line.starts_with("/* ---- "));
    let lines: Vec<&str> = defines.chain(files).collect();
    format!(
        "== {}\noptions: {}\nentry: {}, work-group {:?}, block {:?}\n{}\n",
        source.name,
        source.options,
        source.entry,
        source.work_group,
        source.block,
        lines.join("\n")
    )
}

/// Every text that the shipped profiles can lead to, by file name: a file a profile, and one whole program.
fn generated() -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    let store = ProfileStore::built_in().unwrap();
    for (profile, _) in store.iter() {
        let mut sections = BTreeSet::new();
        for offer in profile.offers() {
            for texel in offer.texels() {
                let spec = KernelSpec::new(&offer, profile, texel, PROBLEM, None);
                sections.insert(head(&spec.generate().unwrap()));
                let method = match texel {
                    Texel::Spectra { together: true } => RowFilterMethod::Vector,
                    _ => RowFilterMethod::Transform,
                };
                let rows = RowFilter { length: 4096, method };
                sections.insert(head(&generate_filter(&spec, Padding::Edge, rows).unwrap()));
                let facts = DeviceFacts { local_memory: 48 << 10, max_work_group: 1024, ..DeviceFacts::default() };
                sections.extend(line_programs(&spec, &facts).unwrap().iter().map(head));
            }
        }
        let offer = &profile.offers()[0];
        let spec = KernelSpec::new(offer, profile, Texel::Buffer, PROBLEM, None);
        for bins in [100, 2048, 4096] {
            let rows = RowFilter::new(&spec, &profile.fft, bins, None);
            if let RowFilterMethod::Fused { .. } = rows.method {
                sections.insert(head(&generate_filter(&spec, Padding::Edge, rows).unwrap()));
            }
        }
        texts.insert(format!("{}.txt", profile.name), sections.into_iter().collect::<Vec<_>>().join("\n"));
    }
    let profile = store.named("default").unwrap();
    let spec = KernelSpec::new(&profile.offers()[0], &profile, Texel::Buffer, PROBLEM, None);
    texts.insert("whole.cl".into(), spec.generate().unwrap().text);
    texts.insert("probe-image.cl".into(), generate_probe().text);
    for (name, local_memory, max_work_group) in [("small", 16 << 10, 64), ("large", 48 << 10, 1024)] {
        let extensions = vec!["cl_khr_fp64".to_owned()];
        let facts = DeviceFacts { local_memory, max_work_group, extensions, ..DeviceFacts::default() };
        let heads: Vec<String> = step_programs(
            StepTarget { facts: &facts, sizes: &StepSizes::default() },
            StepBackends::default(),
            ImageFilterBackend::Fused,
        )
        .unwrap()
        .iter()
        .map(head)
        .collect();
        texts.insert(format!("steps-{name}.txt"), heads.join("\n"));
    }
    texts
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
    let names: Vec<&String> = texts.keys().collect();
    assert_eq!(kept.iter().collect::<Vec<_>>(), names, "files of tests/golden; see the head of this test");
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
             A device's own limits are kept, too. Slices are the same bit for bit with all values.\n\n";
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
