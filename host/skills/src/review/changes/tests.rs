//! Tests of review changes.

use std::collections::BTreeMap;

use base::{ContentHash, CredentialName};
use serde_json::json;

use super::*;
use crate::SkillForm;

/// Components of these tests state their abilities in their bytes: capabilities, `/`, tools.
fn inspect(path: &str, bytes: &[u8]) -> ComponentFact {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let words = |text: &str| text.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    let (capabilities, tools) = text.trim_start_matches("\0asm").split_once('/').unwrap();
    let tool = |name: String| match name.split_once('=') {
        Some((name, description)) => {
            ToolFact { name: name.into(), description: description.into(), parameters: json!({}) }
        }
        None => ToolFact { name, description: String::new(), parameters: json!({}) },
    };
    ComponentFact {
        path: path.to_owned(),
        hash: ContentHash::of(bytes),
        capabilities: words(capabilities),
        imports: Vec::new(),
        tools: words(tools).into_iter().map(tool).collect(),
        problem: None,
    }
}

fn skill(files: &[(&str, &str)], proposal: Option<serde_json::Value>) -> Snapshot {
    let files: BTreeMap<String, (Vec<u8>, u32)> =
        files.iter().map(|(path, text)| ((*path).to_owned(), (text.as_bytes().to_vec(), 0o644))).collect();
    Snapshot::of(SkillForm::Directory, files, proposal.map(|value| value.to_string().into_bytes().into()))
}

fn lines(old: &Snapshot, policy: &Policy, new: &Snapshot) -> Vec<String> {
    let powers = power_changes((old, policy), new, &inspect);
    powers.into_iter().map(|power| format!("{} {}", if power.added { '+' } else { '-' }, power.what)).collect()
}

#[test]
fn a_network_import_a_new_domain_and_a_changed_script_come_first() {
    let old = skill(&[("SKILL.md", "use it"), ("scripts/a.sh", "echo"), ("t.wasm", "\0asmclock/add")], None);
    let new = skill(
        &[
            ("SKILL.md", "use it\u{200b} with MY_API_KEY\nat https://evil.dev/x"),
            ("scripts/a.sh", "echo no"),
            ("t.wasm", "\0asmclock,credentials,network/add,send"),
            ("u.wasm", "\0asm/x"),
            ("notes.md", "n"),
        ],
        None,
    );
    let powers = lines(&old, &Policy::default(), &new);
    assert_eq!(
        powers,
        [
            "+ imports network (`t.wasm`)",
            "+ mentions domain `evil.dev` (SKILL.md:2)",
            "+ changes script `scripts/a.sh`",
            "+ imports credentials (`t.wasm`)",
            "+ adds component `u.wasm`",
            "+ changes component `t.wasm`",
            "+ offers tool `send` (`t.wasm`)",
            "+ offers tool `x` (`u.wasm`)",
            "+ mentions credential `MY_API_KEY` (SKILL.md:1)",
            "+ hides something: U+200B ZERO WIDTH SPACE (SKILL.md:1)",
        ]
    );
    // In the other direction everything is removed, and only changes are new.
    let back = lines(&new, &Policy::default(), &old);
    let (added, removed): (Vec<_>, Vec<_>) = back.iter().partition(|line| line.starts_with('+'));
    assert_eq!(added, ["+ changes script `scripts/a.sh`", "+ changes component `t.wasm`"]);
    assert_eq!(removed.len(), 8);
    assert_eq!(lines(&new, &Policy::default(), &new), [""; 0]);
}

#[test]
fn a_proposal_asks_for_more() {
    let policy = Policy {
        domains: vec!["api.one.dev".into(), "old.dev".into()],
        tools: vec!["files".into()],
        required_credentials: vec![CredentialName::parse("one").unwrap()],
        limits: BTreeMap::from([("memory_bytes".into(), 10), ("fuel".into(), 5), ("wall_ms".into(), 7)]),
        ..Policy::default()
    };
    let files = [("SKILL.md", "x https://api.one.dev")];
    let asks = json!({
        "domains": ["api.one.dev", "two.dev", "three.dev"],
        "writes": ["two.dev"],
        "tools": ["files", "bash"],
        "requiredCredentials": ["one", "two"],
        "dependencies": {"left-pad": "1.3.0"},
        "inputs": {"type": "object"},
        "limits": {"memory_bytes": 20, "fuel": 4},
    });
    let new = skill(&[("SKILL.md", "x https://api.one.dev https://two.dev https://four.dev")], Some(asks));
    assert_eq!(
        lines(&skill(&files, None), &policy, &new),
        [
            "+ asks for domain `three.dev`",
            "+ asks for domain `two.dev`, mentions it (SKILL.md:1)",
            "+ asks to write to domain `two.dev`",
            "+ mentions domain `four.dev` (SKILL.md:1)",
            "+ asks for credential `two`",
            "+ asks for tool `bash`",
            "+ asks for no limit `wall_ms`, which is 7",
            "+ asks to raise limit `memory_bytes` from 10 to 20",
            "+ asks for dependency `left-pad` as `1.3.0`",
            "+ asks for other inputs",
            "- asks for domain `old.dev`",
            "- asks to lower limit `fuel` from 5 to 4",
        ]
    );
    // Without a proposal nothing is asked for, and the approved policy stays the owner's business.
    assert_eq!(lines(&skill(&files, None), &policy, &skill(&files, None)), [""; 0]);
    // A proposal equal to the approved policy asks for nothing new.
    let same = skill(&files, Some(serde_json::to_value(&policy).unwrap()));
    assert_eq!(lines(&skill(&files, None), &policy, &same), [""; 0]);
}

#[test]
fn what_runs_is_a_power() {
    let old =
        skill(&[("SKILL.md", ""), ("run", "x"), ("scripts/old.py", ""), ("t.wasm", "\0asmnetwork/a=one,b")], None);
    let mut new = skill(
        &[
            ("SKILL.md", ""),
            ("run", "x"),
            ("lib/new.py", ""),
            ("t.wasm", "\0asmnetwork/a=two,b"),
            ("s.png", "\0asmnetwork/"),
        ],
        None,
    );
    new.files.get_mut("run").unwrap().mode = 0o755;
    assert_eq!(
        lines(&old, &Policy::default(), &new),
        [
            "+ imports network (`s.png`)",
            "+ adds script `lib/new.py`",
            "+ makes `run` executable",
            "+ adds component `s.png`",
            "+ changes component `t.wasm`",
            "+ changes what tool `a` says or takes (`t.wasm`)",
            "+ hides something: a WebAssembly component under another name (`s.png`)",
            "- script `scripts/old.py`",
        ]
    );
}

#[test]
fn an_unchanged_component_is_inspected_once() {
    let calls = std::cell::Cell::new(0);
    let counting = |path: &str, bytes: &[u8]| {
        calls.set(calls.get() + 1);
        inspect(path, bytes)
    };
    let old = skill(&[("t.wasm", "\0asm/a")], None);
    assert_eq!(power_changes((&old, &Policy::default()), &old, &counting), []);
    assert_eq!(calls.get(), 1);
}

#[test]
fn files_scripts_and_components_first() {
    let old = skill(
        &[("SKILL.md", "a\nb\n"), ("a.md", "1"), ("scripts/z.sh", "1\n"), ("t.wasm", "\0asm/"), ("gone.md", "")],
        None,
    );
    let new = skill(
        &[("SKILL.md", "a\nc\nd\n"), ("a.md", "2"), ("scripts/z.sh", "2\n"), ("t.wasm", "\0asm/a"), ("b.md", "")],
        None,
    );
    let changes = super::files(&old, &new);
    let told: Vec<_> = changes.iter().map(|change| (change.path.as_str(), change.kind, change.lines)).collect();
    assert_eq!(
        told,
        [
            ("scripts/z.sh", FileChangeKind::Changed, Some((1, 1))),
            ("t.wasm", FileChangeKind::Changed, None),
            ("SKILL.md", FileChangeKind::Changed, Some((2, 1))),
            ("a.md", FileChangeKind::Changed, Some((1, 1))),
            ("b.md", FileChangeKind::Added, Some((0, 0))),
            ("gone.md", FileChangeKind::Removed, Some((0, 0))),
        ]
    );
}

#[test]
fn names_are_shown_as_they_are() {
    let old = skill(&[], None);
    let new = skill(&[("scripts/\u{202e}a.sh", "$\u{200b}")], None);
    for line in lines(&old, &Policy::default(), &new) {
        assert!(!line.contains(['\u{202e}', '\u{200b}']), "{line}");
    }
}

#[test]
fn a_flood_is_counted() {
    let text: String = (0..5_000).map(|number| format!("https://h{number}.evil.dev\n")).collect();
    let powers = lines(&skill(&[], None), &Policy::default(), &skill(&[("SKILL.md", &text)], None));
    assert_eq!(powers.len(), MAX_POWERS + 1);
    assert_eq!(powers[MAX_POWERS], "+ … and 4000 more changes");
}
