//! docs/dev/paper.md is what `scripts/paper --page` makes of the committed measurements.

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn the_page_is_made_from_the_committed_data() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let directory = tempfile::tempdir().unwrap();
    let made = directory.path().join("paper.md");
    let mut script = Command::new("python3");
    script.args(["-B", "scripts/paper", "--page", "--fbp", env!("CARGO_BIN_EXE_fbp"), "--to"]).arg(&made);
    // no profiles of the user
    script.env("FBP_PROFILE_PATH", "").env("XDG_CONFIG_HOME", directory.path()).env("FBP_CACHE_DIR", directory.path());
    let done = script.current_dir(root).output().expect("scripts/paper needs python3");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let [made, kept] = [made, root.join("docs/dev/paper.md")].map(|path| fs::read_to_string(path).unwrap());
    let unequal = made.lines().zip(kept.lines()).find(|(made, kept)| made != kept);
    assert!(made == kept, "docs/dev/paper.md is out of date, scripts/paper --page writes it: {unequal:#?}");
}
