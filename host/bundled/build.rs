//! Copies the guests that `cargo xtask guests` built into this crate's output, or says that they are missing.

use std::path::PathBuf;
use std::{env, fs};

const GUESTS: [&str; 5] = ["bash", "code-js", "code-js-connected", "fetch", "files"];

#[expect(clippy::disallowed_methods, reason = "cargo's variables")]
fn main() {
    let Some(out) = env::var_os("OUT_DIR").map(PathBuf::from) else { panic!("cargo sets OUT_DIR") };
    // OUT_DIR is `<target>[/<triple>]/<profile>/build/<crate>-<hash>/out`: the guests are next to the profile, under
    // any name of the target directory.
    let Some(guests) = out.ancestors().skip(1).map(|dir| dir.join("guests")).find(|dir| dir.is_dir()) else {
        panic!("the bundled guests are not built: run `cargo xtask guests` first");
    };
    for name in GUESTS {
        let from = guests.join(name).with_extension("wasm");
        println!("cargo:rerun-if-changed={}", from.display());
        if let Err(error) = fs::copy(&from, out.join(name).with_extension("wasm")) {
            panic!("the guest `{name}` is not built ({error}): run `cargo xtask guests` first");
        }
    }
}
