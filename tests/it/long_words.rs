//! Files, components and requests with words of 100 KB: an error text repeats a bounded piece of them.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use tests::binary::Motor;

/// Bytes that a command may print about one error: a message of 2 KiB, its remedy, and a few lines around them.
const MAX_PRINTED: usize = 8 << 10;

const LONG: usize = 100_000;

fn check(motor: &Motor, what: &str, command: &[&str], fails: bool) {
    let ended = motor.run(command);
    let printed = ended.stdout.len() + ended.stderr.len();
    assert!(printed < MAX_PRINTED, "{what}: {printed} bytes: {:.3000}{:.3000}", ended.stdout, ended.stderr);
    assert_eq!(ended.code != Some(0), fails, "{what}: {:.300}{:.3000}", ended.stdout, ended.stderr);
    assert!(!fails || ended.stderr.len() > 20, "{what} is refused without a word");
}

#[test]
fn errors_about_settings_repeat_a_bounded_piece() {
    let long = "x".repeat(LONG);
    let wide = "\u{1f600}".repeat(LONG / 4);
    let motor = Motor::new();
    for long in [&long, &wide] {
        for settings in [
            format!("[motor]\n\"{long}\" = 1\n"),
            format!("[\"{long}\"]\nkey = 1\n"),
            format!("\"{long}\" = 1\n"),
            format!("[motor]\nmax_iterations = \"{long}\"\n"),
            format!("[network]\nprivate = [\"{long}\"]\n"),
            format!("[signals]\nwebhooks = [{{ \"{long}\" = 1 }}]\n"),
            format!("[models]\nmotor = \"{long}\"\ntimeout = \"{long}\"\n"),
            format!("[motor\n{long}"),
            long.clone(),
        ] {
            motor.configure(&settings);
            check(&motor, &settings.chars().take(20).collect::<String>(), &["task", "list"], true);
        }
    }
    motor.configure("[motor]\nmax_iterations = 7\n");
    check(&motor, "as it should be", &["task", "list"], false);
}

#[test]
fn errors_about_files_and_names_repeat_a_bounded_piece() {
    let motor = Motor::new();
    let long = "x".repeat(LONG);
    for (name, text) in [
        ("a", format!("---\nname: {long}\ndescription: x\n---\nx\n")),
        ("b", format!("---\nname: b\n{long}: x\n---\nx\n")),
        ("c", format!("---\n{long}\n---\nx\n")),
        ("d", format!("---\nname: d\ndescription: [\"{long}\n---\nx\n")),
        ("e", long.clone()),
    ] {
        let skill = motor.home().join("skills").join(name);
        fs::create_dir_all(&skill).unwrap();
        fs::write(skill.join("SKILL.md"), text).unwrap();
        check(&motor, name, &["skill", "show", name], true);
        check(&motor, name, &["skill", "list", "--json"], false);
        fs::remove_dir_all(skill).unwrap();
    }
    for policy in [
        format!("{{\"{long}\": 1}}"),
        format!("{{\"domains\": [\"{long}\"]}}"),
        format!("{{\"status\": \"{long}\"}}"),
        long.clone(),
    ] {
        let skill = motor.home().join("skills/mail");
        fs::create_dir_all(&skill).unwrap();
        fs::write(skill.join("SKILL.md"), "---\nname: mail\ndescription: Reads mail\n---\nx\n").unwrap();
        fs::write(skill.join("policy.json"), policy).unwrap();
        check(&motor, "policy", &["skill", "list", "--json"], false);
    }
    for (what, content) in [
        ("text", format!("{{\"format\":\"motor-replay\",\"version\":1}}\n{{\"{long}\": 1}}\n")),
        ("header", format!("{{\"{long}\":\"motor-replay\"}}\n")),
        ("nothing", long.clone()),
    ] {
        let file = motor.file("replay.jsonl", content);
        check(&motor, what, &["act", "x", "--model", &format!("replay/{}", file.display())], true);
        check(&motor, what, &["receipt", "verify", file.to_str().unwrap()], true);
        check(&motor, what, &["inspect", file.to_str().unwrap()], true);
    }
    for command in [
        &["task", "status", &long][..],
        &["skill", "show", &long],
        &["act", "x", "--tools", &long],
        &["act", "x", "--model", &long],
        &["act", "x", "--domains", &long],
        &["act", "x", "--credential", &long],
        &["act", "x", "--skill", &long],
    ] {
        let ended = motor.run(command);
        // The parser of the command line may repeat the owner's own words once.
        assert!(ended.code != Some(0) && ended.stderr.len() < LONG + MAX_PRINTED, "{command:.2?}");
    }
}

/// A component that imports an interface of this name, exports it, or has a function of it.
fn component(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap()
}

#[test]
fn errors_about_components_and_requests_repeat_a_bounded_piece() {
    let motor = Motor::new();
    let long = "x".repeat(LONG);
    for (what, text) in [
        ("import", format!("(component (import \"{long}\" (func)))")),
        ("interface", format!("(component (import \"a:b/{long}\" (instance)))")),
        ("module", format!("(module (import \"{long}\" \"{long}\" (func)))")),
        ("export", format!("(component (instance $i) (export \"{long}\" (instance $i)))")),
    ] {
        let file = motor.file("long.wasm", component(&text));
        check(&motor, what, &["inspect", file.to_str().unwrap()], what != "export");
        check(&motor, what, &["call", file.to_str().unwrap(), &long], true);
    }
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    for (path, body) in [
        ("/v1/tasks", format!("{{\"task\": \"x\", \"{long}\": 1}}")),
        ("/v1/tasks", format!("{{\"task\": \"x\", \"tools\": [\"{long}\"]}}")),
        ("/v1/tasks", format!("{{\"task\": \"x\", \"tools\": \"{long}\"}}")),
        ("/v1/tasks", format!("{{\"task\": \"x\", \"mode\": \"{long}\"}}")),
        ("/v1/executions", format!("{{\"{long}\": 1}}")),
        ("/v1/tasks/xxx/answer", format!("{{\"answer\": \"{long}\", \"{long}\": 1}}")),
    ] {
        let mut stream = UnixStream::connect(motor.home().join("host.sock")).unwrap();
        let head = "host: x\r\nconnection: close\r\ncontent-type: application/json";
        write!(stream, "POST {path} HTTP/1.1\r\n{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 4") && answer.len() < MAX_PRINTED,
            "{path}: {}: {:.3000}",
            answer.len(),
            answer
        );
    }
}
