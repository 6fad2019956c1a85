//! Input made to hurt: a clear message and the right exit code, soon, and within bounded memory.

use crate::support::cli::{Lab, SMALL, text};
use std::fs;
use std::time::{Duration, Instant};

/// What a run on hostile input may take.
const SOON: Duration = Duration::from_secs(30);

// --- TIFF ---

/// A little-endian TIFF of one page: entries of tag, type, count and value, and what follows its directory at
/// [`Header::END`].
struct Header(Vec<(u16, u16, u32, u32)>);

impl Header {
    /// Offset of what follows the directory.
    const END: u32 = 8 + 2 + 10 * 12 + 4;

    /// One strip of 8-bit values that follows the directory.
    fn new(width: u32, height: u32, compression: u32, bytes: u32) -> Header {
        Header(vec![
            (256, 4, 1, width),
            (257, 4, 1, height),
            (258, 3, 1, 8),
            (259, 3, 1, compression),
            (262, 3, 1, 1),
            (273, 4, 1, Header::END),
            (277, 3, 1, 1),
            (278, 4, 1, height),
            (279, 4, 1, bytes),
            (339, 3, 1, 1),
        ])
    }

    fn with(mut self, tag: u16, count: u32, value: u32) -> Header {
        let entry = self.0.iter_mut().find(|entry| entry.0 == tag).unwrap();
        (entry.1, entry.2, entry.3) = (4, count, value);
        self
    }

    fn file(&self, next: u32, tail: &[u8]) -> Vec<u8> {
        let mut bytes = b"II\x2a\0\x08\0\0\0".to_vec();
        bytes.extend((self.0.len() as u16).to_le_bytes());
        for (tag, kind, count, value) in &self.0 {
            bytes.extend(tag.to_le_bytes());
            bytes.extend(kind.to_le_bytes());
            bytes.extend(count.to_le_bytes());
            bytes.extend(value.to_le_bytes());
        }
        bytes.extend(next.to_le_bytes());
        assert_eq!(bytes.len(), Header::END as usize);
        bytes.extend(tail);
        bytes
    }
}

/// Two strips of `bytes` each, at the offsets.
fn two_strips(offsets: [u32; 2], bytes: u32) -> Vec<u8> {
    let header = Header::new(8, 8, 1, 0).with(273, 2, Header::END).with(278, 1, 4).with(279, 2, Header::END + 8);
    let tables = offsets.into_iter().chain([bytes; 2]).flat_map(u32::to_le_bytes);
    header.file(0, &tables.chain([0; 64]).collect::<Vec<u8>>())
}

/// A run that may have a gigabyte of address space, and must fail because of its input.
fn starved(lab: &Lab, args: &str, words: &[&str]) {
    let start = Instant::now();
    let mut command = assert_cmd::Command::new("sh");
    command.args(["-c", "ulimit -v 1048576; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_fbp")]);
    command.args(args.split_whitespace()).current_dir(lab.path(".")).timeout(SOON);
    // what threads reserve is not what input takes
    command.env("RAYON_NUM_THREADS", "2").env("MALLOC_ARENA_MAX", "2");
    let output = command.output().unwrap();
    lab.check_failure(&output, args, 3, words);
    assert!(start.elapsed() < SOON, "{args}: {:?}", start.elapsed());
}

#[test]
fn headers_that_promise_too_much() {
    let lab = Lab::new();
    let after = Header::END + 16;
    let mut endless = b"II\x2b\0\x08\0\0\0\x10\0\0\0\0\0\0\0".to_vec();
    endless.extend([0xff; 64]);
    for (name, bytes, words) in [
        ("sides", Header::new(u32::MAX, u32::MAX, 1, 64).file(0, &[0; 64]), &["claims", "4294967295"][..]),
        ("area", Header::new(1 << 20, 1 << 20, 1, 64).file(0, &[0; 64]), &["claims"]),
        ("plain", Header::new(1 << 20, 1 << 11, 1, 64).file(0, &[0; 64]), &["64 bytes", "damaged"]),
        ("uncounted", Header::new(1 << 20, 1 << 11, 1, 0).file(0, &[0; 64]), &["truncated or damaged"]),
        // as much as deflate can hide, and more
        ("bomb", Header::new(1 << 20, 1 << 11, 8, 1 << 20).file(0, &[0; 1 << 20]), &["2147483648", "more strips"]),
        ("dense", Header::new(1 << 14, 1 << 14, 8, 64).file(0, &[0; 64]), &["cannot decompress"]),
        ("sparse", Header::new(8, 8, 8, 1 << 22).file(0, &[0; 1 << 22]), &["4194304 bytes for 64", "damaged"]),
        ("strips", Header::new(8, 8, 1, 64).with(273, u32::MAX, 8).file(0, &[0; 64]), &["tag 273", "4294967295"]),
        ("tables", Header::new(8, 8, 1, 64).with(278, 1, 1).with(273, 8, 9999).file(0, &[0; 64]), &["damaged"]),
        ("past", Header::new(8, 8, 1, 64).with(273, 1, u32::MAX - 8).file(0, &[0; 64]), &["truncated or damaged"]),
        ("head", Header::new(8, 8, 1, 64).with(273, 1, 0).file(0, &[0; 64]), &["truncated or damaged"]),
        ("same", two_strips([after, after], 32), &["same place"]),
        ("overlap", two_strips([after + 16, after], 32), &["same place"]),
        ("loop", Header::new(8, 8, 1, 64).file(8, &[0; 64]), &["loop"]),
        ("entries", b"II\x2a\0\x08\0\0\0\xff\xff".to_vec(), &["truncated or damaged"]),
        ("big-entries", endless, &["claims 18446744073709551615 entries"]),
    ] {
        let name = format!("{name}.tif");
        fs::write(lab.path(&name), bytes).unwrap();
        let words = [&[name.as_str()], words].concat();
        starved(&lab, &format!("reconstruct --sinograms {name} -o out"), &words);
        starved(&lab, &format!("info {name}"), &words);
    }
    // strips beside each other in another order are valid
    fs::write(lab.path("swapped.tif"), two_strips([after + 32, after], 32)).unwrap();
    lab.ok("info swapped.tif");
}

/// EDF, raw volumes and Zarr: what they claim is not taken before it is known to be there.
#[test]
fn other_headers_that_promise_too_much() {
    let lab = Lab::new();
    let edf = |lines: &str| {
        let mut bytes = format!("{{\nByteOrder = LowByteFirst ;\nDataType = FloatValue ;\n{lines}").into_bytes();
        bytes.resize(510, b' ');
        bytes.extend(b"}\n");
        bytes.extend([0; 64]);
        bytes
    };
    fs::write(lab.path("area.edf"), edf("Dim_1 = 1048576 ;\nDim_2 = 2048 ;\n")).unwrap();
    fs::write(lab.path("sides.edf"), edf("Dim_1 = 4294967295 ;\nDim_2 = 1 ;\n")).unwrap();
    fs::write(lab.path("size.edf"), edf("Dim_1 = 4 ;\nDim_2 = 4 ;\nSize = 18446744073709551615 ;\n")).unwrap();
    fs::write(lab.path("brace.edf"), vec![b'{'; 1 << 20]).unwrap();
    fs::write(lab.path("x.raw"), [0; 64]).unwrap();
    // 2^28 bytes a chunk, and a frame of 256
    let zarr = |name: &str, shape: &str, chunk: &str, compressor: &str| {
        lab.directory(name);
        let meta = format!(
            r#"{{"zarr_format": 2, "shape": {shape}, "chunks": {chunk}, "dtype": "|u1", "fill_value": 0, "order": "C",
            "filters": null, "compressor": {compressor}}}"#
        );
        lab.text(&format!("{name}/.zarray"), &meta);
        fs::write(lab.path(format!("{name}/0.0.0")), [0; 64]).unwrap();
    };
    zarr("large.zarr", "[1048576, 1048576, 2048]", "[1, 1048576, 2048]", "null");
    zarr("many.zarr", "[1048576, 4096, 4096]", "[1, 1, 1]", "null");
    zarr("bomb.zarr", "[1024, 16, 16]", "[1024, 512, 512]", r#"{"id": "zlib"}"#);
    for (spec, words) in [
        ("area.edf", &["truncated", "8589934592 bytes"][..]),
        ("sides.edf", &["Dim_1 = 4294967295"]),
        ("size.edf", &["truncated"]),
        ("brace.edf", &["does not end with }"]),
        ("x.raw,1048576x2048x1048576,f64le", &["64 bytes", "too few"]),
        ("x.raw,1x1x1,u8,18446744073709551615", &["too few"]),
        ("large.zarr", &["chunks of", "smaller chunks"]),
        ("many.zarr", &["files of chunks"]),
    ] {
        starved(&lab, &format!("reconstruct --projections {spec} -o out"), words);
        starved(&lab, &format!("info {spec}"), words);
    }
    starved(&lab, "compare bomb.zarr bomb.zarr", &["0.0.0", "damaged"]);
    let args = "reconstruct --projections bomb.zarr --overall-angle 180 -o out --memory 256M";
    lab.fails(args, 2, &["--memory", "256.0 MiB", "chunks of the input that are decoded or kept"]);
}

#[test]
fn data_that_grow_or_end_early() {
    let lab = Lab::new();
    // deflate streams of nothing: a complete one and one that ends in the middle
    fs::write(lab.path("cut.tif"), Header::new(8, 8, 8, 6).file(0, b"\x78\x9c\x63\x60\x60\x00")).unwrap();
    lab.fails("reconstruct --sinograms cut.tif -o out", 3, &["cut.tif", "page 0", "compressed data"]);
    // 64 MiB claimed by 300 kB, 256 MiB as numbers: too much for a run of little memory
    fs::write(lab.path("bomb.tif"), Header::new(1 << 13, 1 << 13, 8, 300_000).file(0, &[0; 300_000])).unwrap();
    let args = "reconstruct --sinograms bomb.tif -o out --size 16 --slices-per-pass 1 --memory 512M";
    lab.fails(args, 2, &["--memory", "512.0 MiB", "2 sinograms"]);
}

// --- text ---

#[test]
fn run_files_with_extreme_values() {
    let lab = Lab::small();
    let nested = format!("rows = {}1{}", "[".repeat(20_000), "]".repeat(20_000));
    let key = format!("{} = 1", "k".repeat(1 << 20));
    for (line, word) in [
        ("size = 0", "--size"),
        ("size = 9223372036854775807", "--size"),
        ("size = 99999999999999999999", "run.toml"),
        ("size = -1", "run.toml"),
        ("size = 1.5", "run.toml"),
        ("center = nan", "--center"),
        ("center = -inf", "--center"),
        ("center = 1e308", "--center"),
        ("overall-angle = nan", "--overall-angle"),
        ("overall-angle = 1e300", "--overall-angle"),
        ("start-angle = -inf", "--start-angle"),
        ("start-angle = -1e10", "--start-angle"),
        ("filter-cutoff = nan", "--filter-cutoff"),
        ("mask = nan", "--mask"),
        ("mask = -1e300", "--mask"),
        ("pixel-size = \"1e-300m\"", "--pixel-size"),
        ("pixel-size = 1e300", "--pixel-size"),
        ("pixel-size = 1e-40", "--pixel-size"),
        ("range = [-1e300, 1e300]\ndtype = \"u8\"", "--range"),
        ("range = [1, 1.0000000001]\ndtype = \"u8\"", "--range"),
        ("percentile = [50, 50]\ndtype = \"u8\"", "--percentile"),
        ("roi = [9223372036854775807, 0, 9223372036854775807, 1]", "--roi"),
        ("rows = \"0..18446744073709551615\"", "--rows"),
        ("rows = \"0..=18446744073709551614:18446744073709551614\"", "--rows"),
        ("exclude = \"0..9223372036854775807\"", "--exclude"),
        ("memory = \"1e400\"", "--memory"),
        ("memory = \"nan\"", "--memory"),
        ("slices-per-pass = 0", "--slices-per-pass"),
        ("shard = \"18446744073709551615/18446744073709551615\"", "--shard"),
        ("shard = \"0/0\"", "--shard"),
        ("\"sin\\u0000ograms\" = 1", "run.toml"),
        (&nested, "run.toml"),
        (&key, "unknown key `kkk"),
    ] {
        lab.text("run.toml", &format!("sinograms = \"sin\"\noutput = \"out\"\n{line}\n"));
        let err = lab.fails("reconstruct --config run.toml", 2, &[word]);
        assert!(err.len() < 20_000, "a message of {} bytes", err.len());
    }
    for (name, bytes) in
        [("binary.toml", &[0xff, 0xfe, 0, 1][..]), ("nul.toml", &[0; 64]), ("bom.toml", b"\xef\xbb\xbf=")]
    {
        fs::write(lab.path(name), bytes).unwrap();
        lab.fails(&format!("reconstruct --config {name}"), 2, &["--config", name]);
    }
    #[cfg(target_os = "linux")]
    lab.fails("reconstruct --config /dev/zero", 2, &["--config", "/dev/zero", "regular file"]);
}

#[test]
fn numbers_that_mean_nothing() {
    let lab = Lab::small();
    let mut numbers = SMALL.angles();
    numbers[3] = 1e300;
    lab.numbers("huge.txt", &numbers);
    lab.text("long.txt", &"x".repeat(1 << 20));
    for (flag, file, words) in [
        ("--angles", "huge.txt", &["1e300", "projection 3", "degrees"][..]),
        ("--center-shifts", "huge.txt", &["projection 3", "bins"]),
        ("--angles", "long.txt", &["line 1", "xxx"]),
        ("--angles", "sin/s_0000.tif", &["s_0000.tif"]),
        #[cfg(target_os = "linux")]
        ("--angles", "/dev/zero", &["/dev/zero", "regular file"]),
    ] {
        let args = format!("reconstruct --sinograms sin {flag} {file} -o out");
        let err = lab.fails(&args, 3, &[&[flag], words].concat());
        assert!(err.len() < 20_000, "a message of {} bytes", err.len());
    }
    #[cfg(target_os = "linux")]
    lab.fails("reconstruct --sinograms sin --profile /dev/zero.toml -o out", 2, &["/dev/zero.toml"]);
}

#[test]
fn outputs_with_tricks() {
    let lab = Lab::small();
    let long = "n".repeat(300);
    let deep = "d/".repeat(3000);
    for (output, code, words) in [
        ("out/%s.tif".into(), 2, &["--output", "%05i"][..]),
        ("out/%n%n.tif".into(), 2, &["--output"]),
        ("out/%99999999999999999999i.tif".into(), 2, &["--output"]),
        ("out/%099i.tif".into(), 2, &["--output", "digits"]),
        ("out/%i.sh".into(), 2, &["--output", ".tif"]),
        (format!("out/{long}.tif"), 5, &["out", "--output"]),
        (format!("out/{long}-%i.tif"), 5, &["out"]),
        (format!("out/{deep}"), 5, &["out", "--output"]),
        ("/".into(), 5, &["not empty", "--overwrite"]),
        ("sin/..".into(), 5, &["not empty"]),
        ("out/../sin".into(), 5, &["not empty"]),
        ("sin/s_%04i.tif".into(), 5, &["input"]),
        ("out/../sin/s_%04i.tif".into(), 5, &["s_0000.tif"]),
    ] {
        let args = format!("reconstruct --sinograms sin --overall-angle 180 -o {output}");
        lab.fails(&args, code, words);
        let _ = fs::remove_dir_all(lab.path("out"));
    }
    for (output, code) in [("out\\u0000/r.tif", 5), ("out\\u0000", 5), ("out/\\u0000%i.tif", 5), ("", 2)] {
        lab.text("run.toml", &format!("sinograms = \"sin\"\noutput = \"{output}\"\n"));
        lab.fails("reconstruct --config run.toml", code, &[]);
        let _ = fs::remove_dir_all(lab.path("out"));
    }
    // going up is a path like others
    lab.directory("below");
    let mut command = lab.command("reconstruct -q --sinograms ../sin -o ../up/r-%03i.tif");
    let output = command.current_dir(lab.path("below")).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(lab.files("up").len(), 3);
}
