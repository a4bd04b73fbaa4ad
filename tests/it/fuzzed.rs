//! The seeds of the fuzzer, and every input that ever broke a parser, in seconds: `cargo xtask fuzz` looks for more.

use std::collections::BTreeSet;
use std::fs;

#[test]
fn every_input_of_the_corpus_passes_its_target() {
    let mut inputs = 0;
    for (name, target) in fuzz::TARGETS {
        let directory = fuzz::corpus().join(name);
        let files = fs::read_dir(&directory).unwrap_or_else(|error| panic!("`{}`: {error}", directory.display()));
        let before = inputs;
        for file in files {
            let path = file.unwrap().path();
            // Shown only if the target panics.
            println!("{}", path.display());
            target(&fs::read(&path).unwrap());
            inputs += 1;
        }
        assert!(inputs > before, "`{name}` has no seeds");
        // Every target also takes inputs that are nothing at all.
        for input in [&b""[..], b"\0", b"\n\n", b"\xff\xfe", &[b'['; 4_096]] {
            target(input);
        }
    }
    println!("{inputs} inputs");
}

#[test]
fn every_directory_of_the_corpus_has_a_target() {
    let directories = fs::read_dir(fuzz::corpus()).unwrap();
    let names: BTreeSet<String> = directories.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let targets: BTreeSet<String> = fuzz::TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names, targets);
    assert!(fuzz::find("pattern").is_some() && fuzz::find("nothing").is_none());
}
