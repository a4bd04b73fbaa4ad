//! Where the built guests are, and the table of them that the crate includes. Part of the build script, and of the
//! tests of this crate.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The directory of the bundled guests, in the target directory.
const GUESTS: &str = "guests/bundled";

/// The directory of the built guests. `out` is `OUT_DIR`, which is
/// `<target>[/<triple>]/<profile>/build/<crate>-<hash>/out`: the guests are next to the profile, under any name of the
/// target directory. Where none are built, the place they will be built at.
pub fn directory(out: &Path, triple: &str) -> PathBuf {
    let candidates = || out.ancestors().skip(1).map(|dir| dir.join(GUESTS));
    if let Some(found) = candidates().find(|dir| files(dir, COMPONENT).is_ok_and(|names| !names.is_empty())) {
        return found;
    }
    let beside_profile = out.ancestors().nth(4).unwrap_or(out);
    match beside_profile.parent() {
        Some(target) if beside_profile.ends_with(triple) => target.join(GUESTS),
        _ => beside_profile.join(GUESTS),
    }
}

/// The ending of the file names of packed components.
pub const COMPONENT: &str = ".packed";

/// The ending of the file names of their compiled code.
pub const CODE: &str = ".code";

/// The directory of the engines that are files beside the program, next to that of the guests.
pub const ENGINES: &str = "engines";

/// The ending of the file with the hashes of an engine: of its component and of the code, in hex, apart by a space.
pub const PIN: &str = ".pin";

/// The source of the table of engines whose hashes are part of the program.
///
/// # Errors
/// If the directory or a file of hashes cannot be read.
pub fn pinned(directory: &Path) -> io::Result<String> {
    let names = files(directory, PIN)?;
    let mut rows = String::new();
    for file in &names {
        let (name, hashes) = (file.trim_end_matches(PIN), fs::read_to_string(directory.join(file))?);
        let (component, code) = hashes.trim().split_once(' ').ok_or(io::ErrorKind::InvalidData)?;
        rows.push_str(&format!(
            "    PinnedEngine {{ name: {name:?}, component: {component:?}, code: {code:?}, built_in: {directory:?} }},\n"
        ));
    }
    Ok(format!(
        "/// The engines that are files beside the program. Empty unless `cargo xtask python` built them before it.\n\
         pub static ENGINES: [PinnedEngine; {}] = [\n{rows}];\n",
        names.len()
    ))
}

/// The file names in a directory with this ending, sorted.
///
/// # Errors
/// If the directory cannot be read.
pub fn files(directory: &Path, ending: &str) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        names.extend(
            entry?.file_name().into_string().ok().filter(|name| name.ends_with(ending) && !name.starts_with('.')),
        );
    }
    names.sort();
    Ok(names)
}

/// The source of the table of components, or of their code. A static and not a constant: each use of a constant would
/// embed a further copy.
pub fn table(directory: &Path, names: &[String], ending: &str) -> String {
    let rows: String = names
        .iter()
        .map(|name| {
            let path = directory.join(name);
            format!("    ({:?}, include_bytes!({path:?})),\n", name.trim_end_matches(ending))
        })
        .collect();
    let (table, content) =
        if ending == CODE { ("CODE", "code") } else { ("COMPONENTS", "their bytes, packed behind their hash") };
    format!(
        "/// The bundled components: names, sorted, and {content}. Empty in a build without guests.\n\
         pub static {table}: [(&str, &[u8]); {}] = [\n{rows}];\n",
        names.len()
    )
}
