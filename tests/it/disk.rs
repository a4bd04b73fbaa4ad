//! A disk that is full (SPEC DUR-5): nothing acknowledged is lost, the error is clear, and all works again when there is
//! space. It needs a small file system of its own, which only a privileged user may mount.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tests::binary::Motor;
use tests::block_on;
use tests::model_server::ModelServer;

/// A small file system, unmounted when dropped. The store keeps 16 MiB of it free, to be able to tidy up.
pub(crate) struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    pub(crate) fn mount() -> Option<Self> {
        let directory = tempfile::Builder::new().prefix("motor-it-disk-").tempdir().unwrap();
        let mount = ["-t", "tmpfs", "-o", "size=48m", "tmpfs"];
        let mounted = Command::new("mount").args(mount).arg(directory.path()).output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Self(directory))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Takes all the space that is left.
    pub(crate) fn fill(&self) -> PathBuf {
        let path = self.0.path().join("filler");
        let mut file = std::fs::File::create(&path).unwrap();
        for size in [64 << 10, 4 << 10, 1] {
            while file.write_all(&vec![b'x'; size]).is_ok() {}
        }
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount").arg("-l").arg(self.0.path()).status().ok();
    }
}

fn log(motor: &Motor, run: &str) -> String {
    std::fs::read_to_string(motor.workspace(run).join("log.txt")).unwrap_or_default()
}

fn link_cache(home: &Path) {
    std::fs::create_dir(home).unwrap();
    std::os::unix::fs::symlink(tests::cache(), home.join("cache")).unwrap();
}

#[test]
fn a_full_disk_loses_nothing_and_all_works_again_when_there_is_space() {
    let append = |line: &str| json!({ "tool_calls": [{ "name": "append", "arguments": { "path": "log.txt", "content": line } }] });
    let mut turns: Vec<Value> = ["one\n", "two\n", "three\n", "four\n"].map(append).to_vec();
    turns.push(json!({ "text": "all appended" }));
    turns[2]["gate"] = json!(true);
    let server = block_on(ModelServer::scripted(json!({ "turns": turns })));
    let motor = Motor::with_model(&server);
    let Some(disk) = SmallDisk::mount() else {
        println!("not tried: a file system cannot be mounted here");
        return;
    };
    let home = disk.0.path().join("home");
    link_cache(&home);
    let motor = motor.at(home);
    let acting = motor.start(&["act", "append", "--tools", "append"]);
    let run = acting.run_id();
    block_on(server.wait_at_gate());
    assert_eq!(log(&motor, &run), "one\ntwo\n");

    let filler = disk.fill();
    server.release();
    let ended = acting.wait();
    ended.refused(75, &["the disk is full", "nothing stored before was lost", "motor act --resume"]);
    motor.run(&["act", "another", "--agent", "other"]).refused(1, &["the disk is full", "free some space"]);
    // Commands that only read still work.
    assert_eq!(motor.json(&["task", "status", &run])["status"], "running");

    std::fs::remove_file(filler).unwrap();
    block_on(server.wait_gate_empty());
    server.release();
    assert_eq!(motor.stdout(&["act", "--resume"]), "all appended\n");
    assert_eq!(log(&motor, &run), "one\ntwo\nthree\nfour\n");
    assert_eq!(motor.only_run(), run);
    assert_eq!(motor.json_lines(&["signals"]).len(), 1);
    server.release();
    assert_eq!(motor.stdout(&["act", "again", "--tools", "append"]), "all appended\n");
}

#[test]
fn a_host_on_a_full_disk_goes_on_by_itself_when_there_is_space() {
    let append = |line: &str| json!({ "name": "append", "arguments": { "path": "log.txt", "content": line } });
    let ask = json!({ "name": "ask_user", "arguments": { "question": "Go on?" } });
    let server = block_on(ModelServer::scripted(json!({ "turns": [
        { "tool_calls": [append("one\n")] },
        { "tool_calls": [append("two\n"), ask] },
        { "tool_calls": [append("three\n")], "gate": true },
        { "text": "all appended" },
    ]})));
    let Some(disk) = SmallDisk::mount() else {
        println!("not tried: a file system cannot be mounted here");
        return;
    };
    let home = disk.0.path().join("home");
    link_cache(&home);
    let motor = Motor::with_model(&server).env("MOTOR_KEYRING", "off").at(home);
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    let act = |agent: &str| {
        let request = ["act", "append", "--tools", "append", "--agent", agent, "--detach"];
        let run = motor.stdout(&request).trim().to_owned();
        motor.wait_for_status(&run, "awaiting_input");
        run
    };
    let (run, parked) = (act("main"), act("other"));
    motor.run_as_owner(&["task", "respond", &run, "yes"], "").succeeded();
    block_on(server.wait_at_gate());

    let filler = disk.fill();
    // As often as the host tries, and once for the other run.
    (0..20).for_each(|_| server.release());
    serving.wait_for_words("suspended");
    // An answer is refused and not lost: it can be given again.
    motor.run_as_owner(&["task", "respond", &parked, "yes"], "").refused(1, &["the disk is full", "free some space"]);
    let status = |run: &str| motor.json(&["task", "status", run])["status"].clone();
    assert_eq!((status(&run), status(&parked)), (json!("running"), json!("awaiting_input")));
    assert_eq!(log(&motor, &run), "one\ntwo\n");

    std::fs::remove_file(filler).unwrap();
    motor.wait_for_status(&run, "completed");
    assert_eq!(log(&motor, &run), "one\ntwo\nthree\n");
    motor.run_as_owner(&["task", "respond", &parked, "yes"], "").succeeded();
    motor.wait_for_status(&parked, "completed");
    let signals = motor.json_lines(&["signals", "--since", "0"]);
    let statuses: Vec<&str> = signals.iter().map(|signal| signal["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["awaiting_input", "awaiting_input", "completed", "completed"]);
}
