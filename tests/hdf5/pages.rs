//! Commands that pages show are run as they are shown, in the order of the page, with scans of the names that it uses.

use super::{alone, file, list, unit, volume};
use crate::support::cli::Lab;
use std::fs;
use std::path::Path;

/// A block of commands of a page, or of what they print.
struct Block {
    /// The exit code of the last command, which the paragraph before the block says; else 0.
    code: i32,
    commands: Vec<String>,
    output: Vec<String>,
}

/// The blocks of commands of a page, each with what is shown of its output.
fn blocks(page: &str) -> Vec<Block> {
    let parts: Vec<&str> = page.split("```").collect();
    let mut blocks: Vec<Block> = Vec::new();
    for at in (1..parts.len()).step_by(2) {
        let (language, text) = parts[at].split_once('\n').unwrap();
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        match language {
            "" => {
                let paragraph = parts[at - 1].trim_end().rsplit("\n\n").next().unwrap();
                let said =
                    paragraph.split_once("exit code ").map(|(_, rest)| rest.split(|c: char| !c.is_ascii_digit()));
                let code = said.map_or(0, |mut rest| rest.next().unwrap().parse().unwrap());
                blocks.push(Block { code, commands: lines(&text.replace("\\\n", " ")), output: Vec::new() });
            }
            "text" => blocks.last_mut().unwrap().output = lines(text),
            other => panic!("a block of {other}"),
        }
    }
    blocks
}

/// A line without its numbers, the device and the spaces that align it.
fn shape(line: &str) -> String {
    let line = line.split_once(" s on ").map_or(line, |(before, _)| before);
    let mut shape = String::new();
    for c in line.chars() {
        let c = if c.is_ascii_digit() { '#' } else { c };
        if !(shape.ends_with(c) && "# ".contains(c)) {
            shape.push(c);
        }
    }
    shape
}

/// Runs the commands of a block as a shell does, and compares exit codes and output.
fn run(lab: &Lab, block: &Block) -> usize {
    let mut printed = Vec::new();
    for (at, command) in block.commands.iter().enumerate() {
        let command = command.split('#').next().unwrap();
        let mut words = command.split_whitespace().map(|word| word.trim_matches('\''));
        assert_eq!(words.next(), Some("fbp"), "{command}");
        let done = lab.command("").args(words).output().unwrap();
        let [out, err] = [&done.stdout, &done.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        let code = if at + 1 == block.commands.len() { block.code } else { 0 };
        assert_eq!(done.status.code(), Some(code), "{command}\n{err}");
        printed.extend(out.lines().chain(err.lines()).map(shape));
    }
    for line in &block.output {
        assert!(printed.contains(&shape(line)), "`{line}` is not printed by {:#?}, but {printed:#?}", block.commands);
    }
    block.commands.len()
}

/// Whether these are commands of fbp; others are scripts, or need a network.
fn of_fbp(block: &Block) -> bool {
    let first = &block.commands[0];
    let others = ["scripts/", "git clone ", "python3 -c "];
    assert!(first.starts_with("fbp ") || others.iter().any(|other| first.starts_with(other)), "{first}");
    first.starts_with("fbp ")
}

fn read(page: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(page)).unwrap()
}

/// A Data Exchange file of counts in three directories, with angles or without.
fn exchange(lab: &Lab, name: &str, [projections, flats, darks]: [&str; 3], angles: bool) {
    let scan = file(lab, name);
    for (stack, name) in [(projections, "data"), (flats, "data_white"), (darks, "data_dark")] {
        volume(&scan, &format!("/exchange/{name}"), &lab.read(stack), |v| v as u16);
    }
    if angles {
        let count = lab.read(projections).pages.len();
        unit(&list(&scan, "/exchange/theta", &fbp::geometry::even_angles(0.0, 180.0, count)), "degrees");
    }
}

#[test]
fn the_tutorial_runs() {
    let _alone = alone();
    let lab = Lab::new();
    // as many frames of the same size as those of the tooth, and the same axis
    lab.ok("phantom --kind asymmetric --size 640 --slices 2 --projections 181 --center 295.9 --as projections \
            --photons 20000 --output proj --flats flat --darks dark");
    for (number, name) in lab.files("proj").iter().enumerate() {
        fs::rename(lab.path("proj").join(name), lab.path(format!("proj/proj_{number:04}.tif"))).unwrap();
    }
    exchange(&lab, "tooth.h5", ["proj", "flat", "dark"], false);
    fs::copy(lab.path("tooth.h5"), lab.path("scan.h5")).unwrap();
    lab.numbers("angles_deg.txt", &fbp::geometry::even_angles(0.0, 180.0, 181));
    let blocks = blocks(&read("docs/tutorial.md"));
    let commands: usize = blocks.iter().filter(|block| of_fbp(block)).map(|block| run(&lab, block)).sum();
    assert!(commands >= 13, "{commands}");
    assert_eq!(blocks.iter().filter(|block| block.code != 0).count(), 1);
    for made in ["trials/montage.png", "trials.html", "tooth.png", "clean.png", "phase/slice_00001.tif"] {
        assert!(lab.path(made).exists(), "{made}");
    }
}

#[test]
fn commands_of_the_readme_run() {
    let _alone = alone();
    let lab = Lab::new();
    lab.ok("phantom --size 512 --projections 40 --output sinos");
    lab.ok("phantom --kind asymmetric --size 96 --slices 2 --projections 150 --as projections --photons 20000 \
            --output p --flats f --darks d");
    exchange(&lab, "scan.h5", ["p", "f", "d"], true);
    let commands: usize =
        blocks(&read("README.md")).iter().filter(|block| of_fbp(block)).map(|block| run(&lab, block)).sum();
    assert!(commands >= 5, "{commands}");
    for made in ["middle.png", "report.html", "scan.html", "rec/sinos/slice_00000.tif"] {
        assert!(lab.path(made).exists(), "{made}");
    }
}

/// Blocks that make their own data; tests/device/values.rs runs those of values.md.
#[test]
fn blocks_that_begin_with_a_phantom_run() {
    let _alone = alone();
    let mut count = 0;
    for page in ["docs/geometry.md", "docs/outputs.md"] {
        let page = read(page);
        let texts = page.split("```\n").filter(|text| text.starts_with("fbp phantom "));
        for text in texts {
            let lab = Lab::new();
            count += run(&lab, &blocks(&format!("```\n{text}```\n"))[0]);
        }
    }
    assert!(count >= 6, "{count}");
}
