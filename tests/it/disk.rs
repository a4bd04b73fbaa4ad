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
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let directory = tempfile::Builder::new().prefix("motor-it-disk-").tempdir().unwrap();
        let mount = ["-t", "tmpfs", "-o", "size=48m", "tmpfs"];
        let mounted = Command::new("mount").args(mount).arg(directory.path()).output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Self(directory))
    }

    /// Takes all the space that is left.
    fn fill(&self) -> PathBuf {
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
    // What only reads still works.
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
