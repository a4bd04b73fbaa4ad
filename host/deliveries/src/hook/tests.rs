//! The hook with real programs: their input, and their end.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use base::{AgentName, RunId, Timestamp};
use rustix::fs::{Mode, OFlags};
use serde_json::Value;
use signals::{MotorResult, Priority, SignalApproval, SignalError, TaskResult, TaskStats};

use super::*;
use crate::tests::Fixture;

fn signal(body: impl FnOnce(MotorResult) -> MotorResult) -> Signal {
    let run = RunId::parse("run_0123456789abcdef").unwrap();
    Signal {
        id: 7,
        agent: AgentName::default(),
        created_at: Timestamp::from_millis(0),
        ttl_ms: 300_000,
        priority: Priority::High,
        source: signals::SOURCE.to_owned(),
        body: body(MotorResult::new(run, SignalStatus::AwaitingInput)),
    }
}

fn asking(question: &str) -> Signal {
    signal(|body| MotorResult { question: Some(question.to_owned()), ..body })
}

fn hook(home: &Fixture, command: &[&str]) -> Hook {
    hook_with(home, command, 60)
}

fn hook_with(home: &Fixture, command: &[&str], timeout_seconds: u64) -> Hook {
    let command = command.iter().map(|word| (*word).to_owned()).collect();
    let statuses = vec![SignalStatus::AwaitingInput];
    Hook::new(&HookConfig { command, timeout_seconds, statuses }, &home.open()).unwrap()
}

/// A named pipe. Reading it ends when the last process that has it open for writing is gone.
fn fifo(home: &Fixture) -> std::path::PathBuf {
    let fifo = home.path("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    fifo
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[tokio::test]
async fn the_program_gets_the_signal_and_a_small_environment() {
    let home = Fixture::new();
    let (input, variables) = (home.path("input"), home.path("variables"));
    let script = format!("cat > {}; env > {}", input.display(), variables.display());
    let hook = hook(&home, &["sh", "-c", &script]);
    let asked = asking("which `$(reboot)` one?\n\u{1b}[31mred\u{202e}");
    hook.deliver(&asked).await.unwrap();
    assert_eq!(serde_json::from_str::<Signal>(&read(&input)).unwrap(), asked);
    assert_eq!(serde_json::from_str::<Value>(&read(&input)).unwrap()["status"], "awaiting_input");
    let variables = read(&variables);
    for expected in [
        "HOME=/home/owner",
        "MOTOR_SIGNAL_ID=7",
        "MOTOR_RUN_ID=run_0123456789abcdef",
        "MOTOR_AGENT=main",
        "MOTOR_STATUS=awaiting_input",
        "MOTOR_TITLE=which `$(reboot)` one? [31mred",
    ] {
        assert!(variables.lines().any(|line| line == expected), "{expected:?} is not in {variables}");
    }
    assert!(!variables.contains("sk-secret") && !variables.contains("CARGO"), "{variables}");
}

#[tokio::test]
async fn words_of_a_run_reach_no_shell_and_no_command_line() {
    let home = Fixture::new();
    let (arguments, trap) = (home.path("arguments"), home.path("trap"));
    let script = format!("printf '%s|' \"$@\" > {}", arguments.display());
    let hook = hook(&home, &["sh", "-c", &script, "sh", "one; two", "$(three)"]);
    let hostile = format!("'; touch {trap}; $(touch {trap}) `touch {trap}`", trap = trap.display());
    hook.deliver(&asking(&hostile)).await.unwrap();
    assert_eq!(read(&arguments), "one; two|$(three)|");
    assert!(!trap.exists());
}

#[tokio::test]
async fn a_program_that_does_not_read_is_fine() {
    let home = Fixture::new();
    hook(&home, &["true"]).deliver(&asking(&"long ".repeat(1 << 20))).await.unwrap();
}

#[tokio::test]
async fn a_program_that_fails_is_told() {
    let home = Fixture::new();
    for (command, says) in [
        (vec!["sh", "-c", "exit 3"], "exit status: 3"),
        (vec!["sh", "-c", "kill -9 $$"], "signal: 9"),
        (vec!["/no/such/program"], "does not start"),
    ] {
        let error = hook(&home, &command).deliver(&asking("?")).await.unwrap_err();
        assert!(error.contains(says), "{command:?}: {error}");
    }
}

#[tokio::test]
async fn a_program_that_takes_too_long_is_killed_with_all_it_has_started() {
    let home = Fixture::new();
    let fifo = fifo(&home);
    let script = format!("exec 3> {}; sleep 1000 & sleep 1000; wait", fifo.display());
    let hook = hook_with(&home, &["sh", "-c", &script], 1);
    // Opened without waiting for the program, which may be killed before it opens its end.
    let nonblocking = OFlags::RDONLY | OFlags::NONBLOCK;
    let mut reader = std::fs::File::from(rustix::fs::open(&fifo, nonblocking, Mode::empty()).unwrap());
    rustix::fs::fcntl_setfl(&reader, OFlags::empty()).unwrap();
    let error = hook.deliver(&asking("?")).await.unwrap_err();
    assert!(error.contains("longer than 1 s"), "{error}");
    let rest = tokio::task::spawn_blocking(move || reader.read_to_end(&mut Vec::new()));
    assert_eq!(rest.await.unwrap().unwrap(), 0);
}

#[tokio::test]
async fn a_host_that_ends_leaves_no_program_behind() {
    let home = Fixture::new();
    let fifo = fifo(&home);
    let script = format!("exec 3> {}; echo up >&3; sleep 1000 & wait", fifo.display());
    let hook = Arc::new(hook(&home, &["sh", "-c", &script]));
    let delivering = tokio::spawn(async move { hook.deliver(&asking("?")).await });
    let reader = tokio::task::spawn_blocking(move || {
        let mut reader = std::fs::File::open(fifo).unwrap();
        let mut up = [0; 3];
        reader.read_exact(&mut up).unwrap();
        (up, reader)
    });
    let (up, mut reader) = reader.await.unwrap();
    assert_eq!(&up, b"up\n");
    delivering.abort();
    assert!(delivering.await.unwrap_err().is_cancelled());
    let rest = tokio::task::spawn_blocking(move || reader.read_to_end(&mut Vec::new()));
    assert_eq!(rest.await.unwrap().unwrap(), 0);
}

#[test]
fn only_what_the_owner_wants_and_while_it_is_news() {
    let home = Fixture::new();
    let hook = hook(&home, &["true"]);
    let ended = signal(|body| MotorResult { status: SignalStatus::Cancelled, ..body });
    assert!(hook.wants(&asking("?"), true));
    assert!(!hook.wants(&asking("?"), false));
    assert!(!hook.wants(&ended, true));
}

#[test]
fn titles_are_one_short_line_of_harmless_characters() {
    let approval = |summaries: &[&str], reason: &str| {
        let summaries = summaries.iter().map(|text| (*text).to_owned()).collect();
        Some(SignalApproval { summaries, reason: reason.to_owned(), ..SignalApproval::default() })
    };
    let result =
        |summary: &str| Some(TaskResult { ok: true, summary: summary.to_owned(), stats: TaskStats::default() });
    for (found, expected) in [
        (asking("which one?"), "which one?"),
        (asking("  a\r\n\tb\0c\u{7}\u{2028}d\u{feff}  "), "a b c d"),
        (asking("\u{1b}]0;pwn\u{7}"), "]0;pwn"),
        (signal(|body| MotorResult { approval: approval(&["send a mail"], "why"), ..body }), "send a mail"),
        (signal(|body| MotorResult { approval: approval(&[], "why"), ..body }), "why"),
        (signal(|body| MotorResult { result: result("done"), ..body }), "done"),
        (
            signal(|body| MotorResult {
                result: result(""),
                error: Some(SignalError { message: "it broke".to_owned(), last_step: None }),
                ..body
            }),
            "it broke",
        ),
        (signal(|body| body), ""),
    ] {
        assert_eq!(title(&found), expected);
    }
    assert_eq!(title(&asking(&"ü".repeat(1_000))), format!("{}…", "ü".repeat(120)));
    assert_eq!(title(&asking(&"a ".repeat(100_000))).chars().count(), 121);
    assert_eq!(title(&asking(&"\u{0}".repeat(1 << 20))), "");
}
