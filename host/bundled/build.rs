//! Lists the guests that `cargo xtask guests` built for the program, or says that they are missing.

use std::path::PathBuf;
use std::{env, fs};

#[expect(clippy::disallowed_methods, reason = "cargo's variables")]
fn main() {
    let Some(out) = env::var_os("OUT_DIR").map(PathBuf::from) else { panic!("cargo sets OUT_DIR") };
    // OUT_DIR is `<target>[/<triple>]/<profile>/build/<crate>-<hash>/out`: the guests are next to the profile, under
    // any name of the target directory.
    let Some(guests) = out.ancestors().skip(1).map(|dir| dir.join("guests/bundled")).find(|dir| dir.is_dir()) else {
        panic!("the bundled guests are not built: run `cargo xtask guests` first");
    };
    println!("cargo:rerun-if-changed={}", guests.display());
    let mut names: Vec<String> = match fs::read_dir(&guests) {
        Ok(entries) => entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect(),
        Err(error) => panic!("cannot read `{}`: {error}", guests.display()),
    };
    names.retain(|name| name.ends_with(".wasm"));
    names.sort();
    let rows: String = names
        .iter()
        .map(|name| {
            println!("cargo:rerun-if-changed={}", guests.join(name).display());
            format!("    ({:?}, include_bytes!({:?})),\n", name.trim_end_matches(".wasm"), guests.join(name))
        })
        .collect();
    // A static and not a constant: each use of a constant would embed a further copy.
    let source = format!(
        "/// The bundled components: names, sorted, and bytes.\npub static COMPONENTS: [(&str, &[u8]); {}] = [\n{rows}];\n",
        names.len()
    );
    if let Err(error) = fs::write(out.join("components.rs"), source) {
        panic!("cannot write the list of guests: {error}");
    }
}
