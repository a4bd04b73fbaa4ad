//! The memory of a host after it has prepared the components that come with it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::time::Duration;

use tests::Patience;
use tests::binary::Motor;

/// Far below the compiler's memory for the shell alone, and twice that of a host with all components.
const MAX_KILOBYTES: u64 = 240 << 10;

fn peak_kilobytes(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn a_host_does_not_keep_what_a_compiler_took() {
    let motor = Motor::bare();
    let prepared = || -> BTreeSet<OsString> {
        let entries = fs::read_dir(motor.home().join("cache/prepared")).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name()).collect()
    };
    let all = ["explain", "look", "--tools", "bash,fetch,filesystem,code", "--model", "replay/none"];
    let mut found = Vec::new();
    // The second host finds the code in the cache.
    for _ in 0..2 {
        let serving = motor.start(&["serve"]);
        serving.wait_for_words("listening");
        assert_eq!(motor.stdout(&["execute", "return 1 + 1"]).trim(), "2");
        assert!(!motor.run(&all).stdout.is_empty());
        // The host prepares the rest by itself.
        let mut patience = Patience::default();
        while prepared().len() < 4 {
            assert!(patience.lasts(), "{:?}", prepared());
            std::thread::sleep(Duration::from_millis(20));
        }
        let peak = peak_kilobytes(serving.id());
        assert!(peak < MAX_KILOBYTES, "{} MiB", peak >> 10);
        found.push(prepared());
        serving.kill();
    }
    // The first host was killed: it may not have prepared components that no command has asked for.
    assert!(found[0].is_subset(&found[1]), "{found:?}");
}
