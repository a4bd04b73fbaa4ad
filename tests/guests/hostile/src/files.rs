//! Attacks on the workspace and on the handles of an instance.

use std::{
    fs::{self, File},
    hint::black_box,
    io::Write as _,
    mem,
};

const ROOT: &str = "/workspace";

/// Goes on after every refusal: a host that only refuses still has to end this.
pub(crate) fn fill_disk() -> String {
    let block = vec![b'x'; 1024 * 1024];
    let Ok(mut file) = File::create(format!("{ROOT}/filler")) else { return "no file".to_owned() };
    let mut failures = 0_u64;
    loop {
        failures += u64::from(file.write_all(&block).is_err());
        black_box(failures);
    }
}

/// Its length is a terabyte though nothing of it is written: a host that counts written bytes counts wrongly.
pub(crate) fn sparse_file() -> String {
    let made = File::create(format!("{ROOT}/sparse")).and_then(|file| file.set_len(1 << 40));
    match made {
        Ok(()) => "REACHED a file of a terabyte".to_owned(),
        Err(error) => format!("refused: {}", error.kind()),
    }
}

pub(crate) fn many_files() -> String {
    let mut failures = 0_u64;
    for number in 0_u64.. {
        failures += u64::from(File::create(format!("{ROOT}/file-{number}")).is_err());
        black_box(failures);
    }
    "made more files than there are numbers".to_owned()
}

pub(crate) fn deep_directories() -> String {
    let mut path = ROOT.to_owned();
    let mut failures = 0_u64;
    loop {
        path.push_str("/d");
        if fs::create_dir(&path).is_err() {
            failures += 1;
            path.truncate(ROOT.len());
            path.push_str(&format!("/{failures}"));
        }
    }
}

pub(crate) fn table_bomb() -> String {
    let mut failures = 0_u64;
    loop {
        match File::open(ROOT) {
            Ok(directory) => mem::forget(directory),
            Err(_) => failures += 1,
        }
        black_box(failures);
    }
}

pub(crate) fn listing_bomb() -> String {
    let mut listings = Vec::new();
    loop {
        match fs::read_dir("/workspace") {
            Ok(listing) => listings.push(listing),
            Err(error) => return format!("REACHED {} listings, then {error}", listings.len()),
        }
    }
}
