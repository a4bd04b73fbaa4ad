//! Pipes, devices, links and directories in the places of a home: refused by name or passed over, and never waited for.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::json;
use tests::binary::Motor;
use tests::model_server::ModelServer;
use tests::{AT_ONCE, block_on};

/// The kind of file that takes the place of the right one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Odd {
    Pipe,
    Device,
    Dangling,
    Directory,
    Socket,
    Sparse,
}

const ALL: [Odd; 6] = [Odd::Pipe, Odd::Device, Odd::Dangling, Odd::Directory, Odd::Socket, Odd::Sparse];

impl Odd {
    fn put(self, path: &Path) {
        match self {
            Self::Pipe => mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR).unwrap(),
            Self::Device => symlink("/dev/zero", path).unwrap(),
            Self::Dangling => symlink("/nowhere/at/all", path).unwrap(),
            Self::Directory => fs::create_dir(path).unwrap(),
            Self::Socket => drop(UnixListener::bind(path).unwrap()),
            Self::Sparse => {
                let file = File::create(path).unwrap();
                file.set_len(64 << 30).unwrap();
                rustix::fs::fchmod(file, Mode::RUSR | Mode::WUSR).unwrap();
            }
        }
    }
}

fn remove(path: &Path) {
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()) {
        fs::remove_dir_all(path).unwrap();
    } else {
        // A file that a cache should not have is gone by then.
        fs::remove_file(path).ok();
    }
}

/// A command's reaction to something odd in a place.
enum Expected {
    /// It fails with a message that has this in it.
    Refused(&'static str),
    /// It works all the same.
    PassedOver,
}

struct Place {
    path: &'static str,
    command: &'static [&'static str],
    /// Combinations that are out of scope: a socket's name is too long, or a large file is a file.
    but: &'static [Odd],
    expected: Expected,
}

#[test]
fn no_place_of_a_home_is_waited_for() {
    use Expected::{PassedOver, Refused};
    use Odd::{Directory, Sparse};
    let motor = Motor::bare().env("MOTOR_KEYRING", "off");
    motor.configure("[motor]\nmax_iterations = 7\n");
    let skill = motor.home().join("skills/mail");
    fs::create_dir_all(&skill).unwrap();
    fs::write(skill.join("SKILL.md"), "---\nname: mail\ndescription: Reads mail\n---\nRead it.\n").unwrap();
    motor.stdout(&["owner", "status"]);
    let set = ["credential", "set", "api", "--no-domain"];
    motor.run_as_owner(&set, "a-secret-of-some-length").succeeded();
    let list = motor.stdout(&["skill", "list"]);
    assert!(list.contains("mail"), "{list}");
    let places = [
        Place { path: "config/motor.toml", command: &["config", "show"], but: &[], expected: Refused("motor.toml") },
        Place { path: "config/owner.token", command: &["owner", "status"], but: &[], expected: PassedOver },
        Place { path: "host.lock", command: &["task", "list"], but: &[Sparse], expected: Refused("host.lock") },
        Place { path: "host.sock", command: &["task", "list"], but: &[Directory], expected: PassedOver },
        Place { path: "host.sock.new", command: &["task", "list"], but: &[Directory], expected: PassedOver },
        Place {
            path: "state/odd",
            command: &["task", "list"],
            but: &[Directory, Sparse],
            expected: Refused("state/odd"),
        },
        Place {
            path: "state/version",
            command: &["task", "list"],
            but: &[Directory, Sparse],
            expected: Refused("state/version"),
        },
        Place { path: "cache/odd", command: &["execute", "return 1"], but: &[], expected: PassedOver },
        Place { path: "cache/skills.json", command: &["skill", "list"], but: &[], expected: PassedOver },
        Place { path: "skills/odd", command: &["skill", "list"], but: &[], expected: PassedOver },
        Place { path: "skills/odd.wasm", command: &["skill", "list"], but: &[], expected: PassedOver },
        Place { path: "skills/mail/SKILL.md", command: &["skill", "list"], but: &[], expected: PassedOver },
        Place { path: "skills/mail/odd", command: &["skill", "list"], but: &[], expected: PassedOver },
        Place { path: "skills/mail/policy.json", command: &["skill", "list"], but: &[], expected: PassedOver },
    ];
    // Nothing is compiled while the clock runs.
    motor.stdout(&["execute", "return 1"]);
    for Place { path, command, but, expected } in places {
        let at = motor.home().join(path);
        let kept = PathBuf::from(format!("{}.kept", motor.home().display()));
        let is_kept = fs::rename(&at, &kept).is_ok();
        for odd in ALL.into_iter().filter(|odd| !but.contains(odd)) {
            odd.put(&at);
            let began = Instant::now();
            let ended = motor.run(command);
            let took = began.elapsed();
            assert!(took < AT_ONCE, "{path}, {odd:?}: {took:?}");
            match expected {
                Refused(word) => {
                    assert!(ended.code != Some(0) && ended.stderr.contains(word), "{path}, {odd:?}: {ended:?}");
                }
                PassedOver => assert_eq!(ended.code, Some(0), "{path}, {odd:?}: {ended:?}"),
            }
            remove(&at);
        }
        if is_kept {
            fs::rename(&kept, &at).unwrap();
        }
        assert_eq!(motor.run(command).code, Some(0), "{path}, as it was");
    }
    // A link to a regular file is how many keep their settings.
    let settings = motor.file("motor.toml", "[motor]\nmax_iterations = 9\n");
    remove(&motor.home().join("config/motor.toml"));
    symlink(&settings, motor.home().join("config/motor.toml")).unwrap();
    assert!(motor.stdout(&["config", "show"]).contains('9'));
    // The key of the credentials: it cannot be read, and is never replaced by a new one.
    let key = motor.home().join("config/credentials.key");
    let content = fs::read(&key).unwrap();
    for odd in ALL {
        remove(&key);
        odd.put(&key);
        let began = Instant::now();
        let ended = motor.run_as_owner(&["credential", "set", "other", "--no-domain"], "another-secret-value");
        assert!(began.elapsed() < AT_ONCE, "{odd:?}");
        assert!(ended.code != Some(0) && ended.stderr.contains("key"), "{odd:?}: {ended:?}");
    }
    remove(&key);
    fs::write(&key, content).unwrap();
    rustix::fs::chmod(&key, Mode::RUSR | Mode::WUSR).unwrap();
    motor.run_as_owner(&["credential", "set", "other", "--no-domain"], "another-secret-value").succeeded();
}

#[test]
fn files_that_are_handed_over_are_regular_files() {
    let motor = Motor::new();
    let replay =
        motor.file("answer.jsonl", "{\"format\":\"motor-replay\",\"version\":1}\n{\"reply\":{\"text\":\"done\"}}\n");
    let model = format!("replay/{}", replay.display());
    let at = motor.directory().join("given");
    let given = at.to_str().unwrap().to_owned();
    let commands: [(&[&str], &str); 5] = [
        (&["act", "look", "--model", &model, "--file", &given], "given"),
        (&["act", "look", "--model", &format!("replay/{given}")], "given"),
        (&["act", "look", "--model", &model, "--record", &given], "given"),
        (&["config", "show", "--config", &given], "given"),
        (&["inspect", &given], "given"),
    ];
    for (command, word) in commands {
        for odd in ALL {
            // A link that leads nowhere is a name for a new recording.
            if odd == Odd::Dangling && command.contains(&"--record") {
                continue;
            }
            odd.put(&at);
            let began = Instant::now();
            let ended = motor.run(command);
            assert!(began.elapsed() < AT_ONCE, "{command:?}, {odd:?}");
            // A file that is too large may be refused by the limit that it exceeds.
            let named = ended.stderr.contains(word) || (odd == Odd::Sparse && ended.stderr.contains("larger than"));
            assert!(ended.code != Some(0) && named, "{command:?}, {odd:?}: {ended:?}");
            remove(&at);
        }
    }
    fs::write(&at, "[motor]\n").unwrap();
    motor.stdout(&["act", "look", "--model", &model, "--file", &given]);
    motor.stdout(&["config", "show", "--config", &given]);
}

#[test]
fn a_workspace_that_became_a_link_is_not_given_to_a_guest() {
    for is_replaced in [false, true] {
        let model = block_on(ModelServer::scripted(json!({ "turns": [
            { "tool_calls": [{ "name": "ask_user", "arguments": { "question": "which?" } }] },
            { "tool_calls": [{ "name": "list", "arguments": {} }] },
            { "text": "done" },
        ] })));
        let motor = Motor::with_model(&model);
        let serving = motor.start(&["serve"]);
        serving.wait_for_words("listening");
        motor.stdout(&["act", "look", "--tools", "filesystem", "--detach"]);
        let run = motor.only_run();
        motor.wait_for_status(&run, "awaiting_input");
        let workspace = motor.workspace(&run);
        let outside = motor.directory().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("precious.txt"), "x").unwrap();
        fs::write(workspace.join("own.txt"), "x").unwrap();
        if is_replaced {
            fs::remove_dir_all(&workspace).unwrap();
            symlink(&outside, &workspace).unwrap();
        }
        let ended = motor.run_as_owner(&["task", "respond", &run, "the first"], "");
        motor.wait_for_status(&run, if is_replaced { "failed" } else { "completed" });
        let trace = motor.stdout(&["task", "status", &run, "--json"]);
        let sent: String = model.requests().iter().map(|request| format!("{request:?}")).collect();
        assert!(!sent.contains("precious.txt") && !trace.contains("precious.txt"), "{trace}");
        assert_eq!(sent.contains("own.txt"), !is_replaced, "{ended:?}: {trace}");
        if is_replaced {
            let told = format!("{}{}{trace}", ended.stdout, ended.stderr);
            assert!(told.contains("is not a directory"), "{told}");
        }
    }
}

#[test]
fn a_file_that_is_never_read_to_its_end_does_not_outlast_the_deadline() {
    let motor = Motor::new();
    let shell = tests::target_directory().join("guests/bundled/bash.wasm");
    let directory = motor.directory().join("files");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("text"), "words\n").unwrap();
    Odd::Pipe.put(&directory.join("pipe"));
    let read = |settings: &[&str], name: &str| {
        let script = json!({ "script": format!("cat {name}") }).to_string();
        let (shell, directory) = (shell.to_str().unwrap(), directory.to_str().unwrap());
        // As a file the shell is compiled like any other component: half a minute, longer on a busy machine.
        let call = ["--set", "engine.compile_seconds=600", "call", shell, "bash", &script, "--workspace", directory];
        motor.run(&[settings, &call].concat())
    };
    // A short deadline is for the file that has no end: a busy machine may take longer than that to read a word.
    assert_eq!(read(&[], "text").succeeded().stdout, "words\n");
    let ended = read(&["--set", "limits.deadline_ms=2000"], "pipe");
    assert!(ended.code == Some(1) && ended.stderr.contains("`deadline_ms`"), "{ended:?}");
}
