//! The memory of a host after it has loaded the components that come with it.

use std::fs;

use tests::binary::Motor;

/// Far below the compiler's memory for the shell alone, and twice that of a host with all components.
const MAX_KILOBYTES: u64 = 240 << 10;

fn peak_kilobytes(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn a_host_with_all_components_compiles_none_of_them() {
    let motor = Motor::bare();
    let all = ["explain", "look", "--tools", "bash,fetch,filesystem,code", "--model", "replay/none"];
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    assert_eq!(motor.stdout(&["execute", "return 1 + 1"]).trim(), "2");
    assert!(!motor.run(&all).stdout.is_empty());
    let peak = peak_kilobytes(serving.id());
    assert!(peak < MAX_KILOBYTES, "{} MiB", peak >> 10);
    // Their code is part of the program, and no compiler has run for this home.
    assert!(!motor.home().join("cache/prepared").exists());
    serving.kill();
}
