//! Files that are missing, odd or cut, and outputs that cannot be written.

use super::all_fail;
use crate::support::cli::write_image;
use crate::support::cli::{Lab, SMALL, Scan};
use fbp::sink::{Dtype, Encoding};
use std::fs;
#[cfg(unix)]
use std::time::Duration;

#[test]
fn files_that_are_missing_or_do_not_fit() {
    let lab = Lab::small();
    lab.directory("empty");
    lab.directory("notes");
    lab.text("notes/readme.txt", "no slices here");
    lab.text("few.txt", "0\n90\n");
    lab.text("nan.txt", &("0\n".repeat(15) + "nan\n"));
    lab.text("words.txt", "0 # start\nabout ninety\n");
    lab.text("none.txt", "# nothing\n");
    lab.page("other/f_0.tif", 31, &[1.0; 31 * 3]);
    all_fail(
        &lab,
        3,
        &[
            ("--sinograms nowhere -o out", &["--sinograms", "nowhere", "does not exist"]),
            ("--projections nowhere.tif -o out", &["--projections", "nowhere.tif"]),
            ("--sinograms empty -o out", &["--sinograms", "empty", "no TIFF"]),
            ("--sinograms notes -o out", &["notes", "readme.txt"]),
            ("--sinograms empty/*.tif -o out", &["empty/*.tif", "glob"]),
            ("--sinograms sin --angles nowhere.txt -o out", &["--angles", "nowhere.txt"]),
            ("--sinograms sin --angles few.txt -o out", &["--angles", "few.txt", "2 angles", "16 projections"]),
            ("--sinograms sin --angles nan.txt -o out", &["--angles", "nan.txt", "line 16", "nan"]),
            ("--sinograms sin --angles words.txt -o out", &["words.txt", "line 2", "about ninety"]),
            ("--sinograms sin --angles none.txt -o out", &["none.txt", "0 angles"]),
            ("--sinograms sin --angles notes -o out", &["--angles", "notes"]),
            ("--sinograms sin --center-shifts few.txt -o out", &["--center-shifts", "2 shifts", "16 projections"]),
            ("--sinograms sin --center-shifts nan.txt -o out", &["--center-shifts", "nan.txt", "line 16"]),
            ("--sinograms sin --center-shifts nowhere.txt -o out", &["--center-shifts", "nowhere.txt"]),
            ("--projections proj --flats nowhere -o out", &["--flats", "nowhere"]),
            ("--projections proj --flats empty -o out", &["--flats", "empty"]),
            ("--projections proj --flats proj --darks nowhere -o out", &["--darks", "nowhere"]),
            ("--projections proj --flats other -o out", &["--flats", "other", "31x3", "32x3"]),
            ("--projections proj --flats proj --darks other -o out", &["--darks", "31x3", "32x3"]),
            ("--projections proj --flats proj --flats2 other -o out", &["--flats2", "31x3", "32x3"]),
        ],
    );
    // the same holds without a run
    all_fail(&lab, 3, &[("--sinograms sin --angles few.txt --dry-run", &["few.txt"])]);
    lab.fails("info nowhere", 3, &["nowhere"]);
    lab.fails("compare sin nowhere", 3, &["nowhere"]);
    lab.fails("compare sin proj", 3, &["3 page(s) of 32x16", "16 page(s) of 32x3"]);
    lab.fails("phantom --size 8 --projections 4 --angles few.txt --output out", 3, &["--angles", "2 angles"]);
}

/// What holds for `--hdf5` in builds with HDF5 and without; tests/hdf5 has the rest.
#[test]
fn hdf5_is_input_of_its_own() {
    let lab = Lab::small();
    let refused = |args: &str, words: &[&str]| lab.fails(&format!("reconstruct {args} --output out"), 2, words);
    refused("--hdf5 scan.h5 --sinograms sin", &["--sinograms and --hdf5", "one of them"]);
    refused("--projections proj --hdf5-data /scan", &["--hdf5-data: needs --hdf5 or --stack or --side-by-side; "]);
    match cfg!(feature = "hdf5") {
        true => {
            refused("--hdf5 scan.h5 --flats proj --hdf5-flats d", &["--flats and --hdf5-flats", "give one of them"]);
            refused("--hdf5 scan.h5 --darks proj --hdf5-darks d", &["--darks and --hdf5-darks", "give one of them"]);
            refused("--hdf5 scan.h5 --flats2 proj", &["--flats2: needs --flats"]);
            refused("--hdf5 scan.h5 --watch 5", &["--watch", "--hdf5"]);
            refused("--hdf5 scan.h5 --hdf5-angles a --overall-angle 180", &["--hdf5-angles and --overall-angle"]);
        }
        false => {
            refused("--hdf5 scan.h5", &["--hdf5", "built without HDF5", "--features hdf5", "libhdf5-dev"]);
        }
    }
}

#[test]
fn one_odd_file_in_a_stack() {
    let good = Scan { slices: 5, ..SMALL }.sinograms();
    let refused_after = |name: &str, change: &dyn Fn(&Lab), words: &[&str]| {
        let lab = Lab::new();
        lab.write("sin", "s", &good);
        change(&lab);
        for flag in ["--sinograms", "--projections"] {
            lab.fails(&format!("reconstruct {flag} sin -o out"), 3, &[&[flag, name], words].concat());
        }
    };
    let cut = |keep: fn(usize) -> usize| {
        move |lab: &Lab| {
            let path = lab.path("sin/s_0003.tif");
            let bytes = fs::read(&path).unwrap();
            fs::write(path, &bytes[..keep(bytes.len())]).unwrap();
        }
    };
    let other = |width: usize, height: usize| {
        move |lab: &Lab| {
            lab.page("sin/s_0002.tif", width, &vec![0.0; width * height]);
        }
    };
    refused_after("s_0002.tif", &other(33, 16), &["33x16", "32x16"]);
    refused_after("s_0002.tif", &other(32, 15), &["32x15", "32x16"]);
    refused_after("s_0003.tif", &cut(|n| n / 2), &[]);
    // the last bytes are texts that nothing reads; the directory is before them
    refused_after("s_0003.tif", &cut(|n| n - 200), &[]);
    refused_after("s_0003.tif", &cut(|_| 5), &[]);
    refused_after("s_0003.tif", &cut(|_| 0), &[]);
    refused_after("s_0001.tif", &|lab| lab.text("sin/s_0001.tif", "this is not a picture\n"), &[]);
    refused_after(
        "s_0004.tif",
        &|lab| {
            let encoding = Encoding { dtype: Dtype::U16, range: Some((0.0, 1.0)) };
            write_image(&lab.path("sin/s_0004.tif"), 32, 16, &[0.0; 512], encoding).unwrap();
        },
        &["others"],
    );
    // a projection at 180 degrees that some beamlines put beside the scan
    refused_after("zz_180deg.tif", &|lab| lab.page("sin/zz_180deg.tif", 32, &good.pages[0]), &["glob"]);
    refused_after("s_2.tif", &|lab| lab.page("sin/s_2.tif", 32, &good.pages[2]), &["s_0002.tif"]);
}

#[test]
fn the_data_end_before_the_header_says() {
    // the header comes first here, so that only the data are cut
    let (width, height) = (32u32, 16u32);
    let mut file = b"II\x2a\0\x08\0\0\0".to_vec();
    let entries: [(u16, u16, u32); 9] = [
        (256, 4, width),
        (257, 4, height),
        (258, 3, 32),
        (259, 3, 1),
        (262, 3, 1),
        (273, 4, 8 + 2 + 9 * 12 + 4),
        (278, 4, height),
        (279, 4, width * height * 4),
        (339, 3, 3),
    ];
    file.extend((entries.len() as u16).to_le_bytes());
    for (tag, kind, value) in entries {
        file.extend(tag.to_le_bytes());
        file.extend(kind.to_le_bytes());
        file.extend(1u32.to_le_bytes());
        file.extend(value.to_le_bytes());
    }
    file.extend([0; 4]);
    let full = SMALL.sinograms().pages[0].iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let lab = Lab::small();
    lab.directory("cut");
    for (number, keep) in [full.len(), full.len() - 700, full.len()].into_iter().enumerate() {
        let bytes = [&file[..], &full[..keep]].concat();
        fs::write(lab.path(format!("cut/s_{number}.tif")), bytes).unwrap();
    }
    lab.fails("reconstruct --sinograms cut -o out", 3, &["--sinograms", "s_1.tif"]);
    lab.fails("reconstruct --sinograms cut/s_1.tif -o out", 3, &["s_1.tif"]);
    lab.ok("reconstruct -q --sinograms cut/s_[02].tif -o good");
    assert_eq!(lab.files("good").len(), 2);
}

#[test]
fn outputs_that_cannot_be_written() {
    let lab = Lab::small();
    lab.text("file", "in the way");
    lab.write("full", "r", &SMALL.sinograms());
    let before = lab.bytes("full");
    all_fail(
        &lab,
        5,
        &[
            ("--sinograms sin -o file", &["file", "--output"]),
            ("--sinograms sin -o file/out", &["file/out"]),
            ("--sinograms sin -o file/out.tif", &["file"]),
            ("--sinograms sin -o file/r-%03i.tif", &["file"]),
            ("--sinograms sin -o full", &["full", "not empty", "--overwrite"]),
            ("--sinograms sin -o full/r_%04i.tif", &["r_0000.tif", "exists", "--overwrite"]),
            ("--sinograms sin -o full/r_0001.tif", &["r_0001.tif", "exists", "--overwrite"]),
            ("--sinograms sin -o out --log nowhere/log", &["--log", "nowhere/log"]),
            ("--sinograms sin -o out --save-config nowhere/run.toml", &["--save-config", "nowhere/run.toml"]),
            #[cfg(target_os = "linux")]
            ("--sinograms sin -o /proc/out", &["/proc/out"]),
            #[cfg(target_os = "linux")]
            ("--sinograms sin -o /proc/out.tif", &["/proc"]),
        ],
    );
    lab.fails("phantom --size 8 --projections 4 --output full", 5, &["full", "--overwrite"]);
    let phantom = "phantom --size 8 --projections 4 --as projections --photons 1e4 --output out --darks dark";
    lab.fails(&format!("{phantom} --flats full"), 5, &["full", "--overwrite"]);
    lab.fails(&format!("{phantom} --flats f --truth file"), 5, &["--truth", "file", "--overwrite"]);
    lab.fails(&format!("{phantom} --flats f --truth file/t.tif"), 5, &["--truth", "file/t.tif"]);
    assert_eq!(lab.bytes("full"), before);
    assert_eq!(lab.read_text("file"), "in the way");
    // the data are not written over, whatever is asked for
    let before = (lab.bytes("sin"), lab.bytes("proj"));
    for (input, output) in [("sinograms sin", "sin/s_%04i.tif"), ("projections proj", "sin/../proj/p_0001.tif")] {
        lab.fails(&format!("reconstruct --{input} --overwrite -o {output}"), 5, &["--output", "input"]);
    }
    assert_eq!((lab.bytes("sin"), lab.bytes("proj")), before);
    // what was asked for beside the slices is refused before they are computed
    all_fail(
        &lab,
        5,
        &[
            ("--sinograms sin -o out --report nowhere/r.json", &["--report", "nowhere/r.json"]),
            ("--sinograms sin -o out --preview nowhere/p.png", &["--preview", "nowhere/p.png"]),
        ],
    );
}

/// A limit on the size of files stands for a full disk.
#[cfg(unix)]
#[test]
fn disks_that_fill_up() {
    let lab = Lab::small();
    // 4 MiB, enough for what drivers keep in files
    let script = "ulimit -f 8192; exec \"$0\" reconstruct -q --sinograms sin $1 -o $2";
    for (size, output) in [("1100", "out"), ("1100", "out/r-%03i.tif"), ("1100", "out.tif"), ("700", "out.tif")] {
        lab.ok(&format!("reconstruct -q --sinograms sin --size {size} --overwrite -o warm"));
        let mut command = assert_cmd::Command::new("sh");
        command.args(["-c", script, env!("CARGO_BIN_EXE_fbp")]).args([format!("--size {size}").as_str(), output]);
        let output = command.current_dir(lab.path(".")).timeout(Duration::from_secs(120)).output().unwrap();
        lab.check_failure(&output, size, 5, &["out"]);
    }
}
