//! `fbp help` and `fbp man`.

use crate::support::cli::Lab;
use clap::CommandFactory;
use fbp::cli::{Cli, Topic};
use fbp::geometry::default_axis;
use fbp::recipe::{parse_size, parse_time};
use fbp::units::parse_length;
use std::fs;
use strum::VariantArray;

/// A command and all below it, by the names of their pages.
fn pages(command: &clap::Command, found: &mut Vec<(String, Vec<String>)>) {
    let flags = command.get_arguments().filter(|flag| !flag.is_hide_set()).filter_map(|flag| flag.get_long());
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    found.push((name, flags.map(str::to_owned).collect()));
    command.get_subcommands().for_each(|part| pages(part, found));
}

#[test]
fn every_command_and_topic_has_a_page() {
    let lab = Lab::new();
    let (printed, _) = lab.ok("man --output pages");
    let mut command = Cli::command();
    command.build();
    let mut commands = Vec::new();
    pages(&command, &mut commands);
    assert!(commands.len() > 18);
    for (name, flags) in &commands {
        let page = fs::read_to_string(lab.path(format!("pages/{name}.1"))).unwrap_or_else(|e| panic!("{name}: {e}"));
        let start = page.find(".TH").unwrap_or_else(|| panic!("{name} has no title"));
        assert!(page[start..].contains(".SH NAME") && page.contains(".SH SYNOPSIS"), "{name}");
        for flag in flags {
            assert!(page.contains(&format!("\\-\\-{}", flag.replace('-', "\\-"))), "{name}: no --{flag}");
        }
    }
    for topic in Topic::VARIANTS {
        let page = fs::read_to_string(lab.path(format!("pages/fbp-{topic}.7"))).unwrap();
        assert!(page.contains(".SH DESCRIPTION"), "{topic}");
    }
    assert_eq!(printed.lines().count(), commands.len() + Topic::VARIANTS.len());
    assert_eq!(fs::read_dir(lab.path("pages")).unwrap().count(), printed.lines().count());
}

#[test]
fn help_prints_commands_and_topics() {
    let lab = Lab::new();
    let (all, _) = lab.ok("help");
    for topic in Topic::VARIANTS {
        assert!(all.contains(&format!("  {topic} ")), "{all}");
        let (text, _) = lab.ok(&format!("help {topic}"));
        assert_eq!(text, topic.text());
        assert!(text.lines().all(|line| line.chars().count() <= 92), "{topic} is wide");
    }
    let (text, _) = lab.ok("help reconstruct");
    assert!(text.contains("Usage: fbp reconstruct") && text.contains("--interpolation"), "{text}");
    let (text, _) = lab.ok("help profiles show");
    assert!(text.contains("Usage: fbp profiles show"), "{text}");
    lab.fails("help lengths", 2, &["lengths", "reconstruct", "units"]);
    lab.fails("help profiles units", 2, &["list, show, check"]);
    lab.fails("help info slices", 2, &["leave `slices` out"]);
}

/// What the topics say is what the program does.
#[test]
fn topics_are_right() {
    let conventions = Topic::Conventions.text();
    assert!(conventions.contains("middle of 512 bins is 255.5") && default_axis(512) == 255.5, "{conventions}");
    let units = Topic::Units.text();
    for length in ["650nm", "0.65um", "50mm", "5cm", "0.05m"] {
        assert!(units.contains(length) && parse_length(length, "--pixel-size").is_ok(), "{length}");
    }
    for (size, bytes) in [("500M", 500 << 20), ("8G", 8 << 30), ("1.5GiB", 3 << 29), ("8GiB", 8 << 30)] {
        assert!(size == "8GiB" || units.contains(size), "{size}");
        assert_eq!(parse_size(size, "--memory").unwrap(), bytes, "{size}");
    }
    for (time, seconds) in [("90s", 90), ("10m", 600), ("1h", 3600)] {
        assert!(units.contains(time), "{time}");
        assert_eq!(parse_time(time, "--watch").unwrap().as_secs(), seconds, "{time}");
    }
    // every code that is listed is explained
    let text = Topic::ExitCodes.text();
    let (codes, advice) = text.split_once("\n\n").unwrap();
    let code = |line: &str| line.trim().split_once(' ').and_then(|(code, _)| code.parse::<u8>().ok());
    for listed in codes.lines().filter_map(code).filter(|&listed| listed > 0) {
        assert!(advice.lines().filter_map(code).any(|explained| explained == listed), "{listed} is not explained");
    }
}
