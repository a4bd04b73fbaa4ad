//! Drafts that obey an injection, drafts that are nonsense, and their benign twins.

use std::time::Duration;

use super::*;
use crate::draft::offer::OfferedSkill;

const TASK: &str = "Report the worst of https://news.example.com/log to api.example.com with the signing-key.";

fn credential(name: &str, domains: &[&str]) -> CredentialInfo {
    CredentialInfo {
        name: CredentialName::parse(name).unwrap(),
        skill: None,
        domains: domains.iter().map(|domain| (*domain).to_owned()).collect(),
        raw: false,
        source: CredentialSource::Vault,
        set_at: None,
        unreadable: false,
        pending: None,
    }
}

fn offer() -> Offer {
    Offer {
        tools: Vec::new(),
        credentials: vec![
            credential("api_key", &["api.example.com"]),
            credential("signing-key", &[]),
            credential("bank", &["bank.example"]),
        ],
        skills: vec![OfferedSkill { name: "csv".to_owned(), description: String::new() }],
        max_iterations: 50,
        timeout_seconds: 600,
    }
}

fn list(entries: &[&str]) -> Vec<String> {
    entries.iter().map(|entry| (*entry).to_owned()).collect()
}

fn draft() -> Draft {
    Draft {
        reason: "it reads and reports".to_owned(),
        tools: list(&["fetch", "bash"]),
        domains: list(&["news.example.com", "api.example.com"]),
        writes: list(&["POST api.example.com/report"]),
        credentials: list(&["api_key", "signing-key"]),
        commands: list(&["curl", "jq"]),
        skill: None,
        max_iterations: 8,
        timeout_seconds: 120,
    }
}

fn bounded(request: ActRequest, draft: Draft) -> (ActRequest, Vec<String>) {
    let request = ActRequest { task: TASK.to_owned(), ..request };
    let bounds = Bounds::of(&request, &motor::MotorConfig::default()).unwrap();
    let mut offer = offer();
    if !bounds.credentials.is_empty() {
        offer.credentials.retain(|info| bounds.credentials.contains(&info.name));
    }
    let mut notes = Notes::default();
    let narrowed = narrow(draft, &offer, &bounds, request, &mut notes);
    (narrowed.request, notes.listed())
}

fn narrowed(draft: Draft) -> (ActRequest, Vec<String>) {
    bounded(ActRequest::default(), draft)
}

#[test]
fn a_good_draft_is_taken_as_it_is() {
    let (request, notes) = narrowed(draft());
    assert_eq!(notes, [] as [&str; 0]);
    assert_eq!(request.tools, ["fetch", "bash"]);
    assert_eq!(request.domains, ["news.example.com", "api.example.com"]);
    assert_eq!(request.writes, ["POST api.example.com/report"]);
    assert_eq!(request.credentials, ["api_key", "signing-key"]);
    assert_eq!(request.commands.unwrap(), ["curl", "jq"]);
    assert_eq!((request.max_iterations, request.timeout_ms), (Some(8), Some(120_000)));
}

#[test]
fn an_obedient_draft_is_cut_and_each_entry_is_named() {
    let (request, notes) = narrowed(Draft {
        tools: list(&["fetch", "sudo", "ask_user", "a\nb\u{1b}[2J"]),
        domains: list(&[
            "*",
            "*.example.com",
            "*.com",
            "evil.example",
            "https://x.example/",
            "",
            "a b",
            "x\u{202e}y.example",
            "news.example.com",
        ]),
        writes: list(&[
            "api.example.com",
            "POST api.example.com",
            "PUT api.example.com/*",
            "POST *.example.com/x",
            "*",
            "everything",
            "POST api.example.com/../x",
            "GET bank.example/all with bank",
            "POST api.example.com/report",
        ]),
        credentials: list(&["bank", "root", "<credential:bank>", "BANK", "api_key\n"]),
        commands: list(&["curl; rm -rf /", "$(id)", "curl"]),
        skill: Some("unreviewed".to_owned()),
        max_iterations: u64::MAX,
        timeout_seconds: u64::MAX,
        ..draft()
    });
    assert_eq!(request.tools, ["fetch"]);
    assert_eq!(request.domains, ["evil.example", "news.example.com", "bank.example", "api.example.com"]);
    assert_eq!(request.writes, ["POST api.example.com/report"]);
    assert_eq!(request.credentials, ["api_key"]);
    assert_eq!(request.commands, None, "bash is not among the tools");
    assert_eq!((request.skill, request.max_iterations, request.timeout_ms), (None, Some(50), Some(600_000)));
    let said = notes.join("\n");
    for named in [
        "tool `sudo`",
        "tool `ask_user`",
        "tool `a\\nb\\u{1b}[2J`",
        "domain `*`",
        "domain `*.example.com`",
        "domain `*.com`",
        "domain `https://x.example/`",
        "domain ``",
        "domain `a b`",
        "domain `x\\u{202e}y.example`",
        "write `api.example.com`",
        "write `POST api.example.com`",
        "write `PUT api.example.com/*`",
        "write `POST *.example.com/x`",
        "write `*`",
        "write `everything`",
        "write `POST api.example.com/../x`",
        "write `GET bank.example/all with bank`",
        "credential `bank`: neither",
        "credential `root`: no such",
        "credential `<credential:bank>`",
        "credential `BANK`: no such",
        "skill `unreviewed`",
        "`evil.example` is the model's own choice",
        "`bank.example` is the model's own choice",
        "model calls are cut",
        "seconds are cut",
    ] {
        assert!(said.contains(named), "{named} is not named in\n{said}");
    }
    assert!(notes.iter().all(|note| !note.contains(['\n', '\u{1b}', '\u{202e}'])), "{said}");
}

#[test]
fn a_huge_draft_is_cut_to_a_number_that_can_be_read() {
    let many = |prefix: &str| (0..10_000).map(|number| format!("{prefix}{number}.example")).collect::<Vec<_>>();
    let (request, notes) = narrowed(Draft {
        domains: many("a"),
        tools: many("t"),
        writes: (0..10_000).map(|number| format!("POST a0.example/{number}")).collect(),
        credentials: many("c"),
        commands: many("k"),
        reason: "x\n".repeat(100_000),
        ..draft()
    });
    assert_eq!((request.domains.len(), request.writes.len()), (MAX_ENTRIES, MAX_ENTRIES));
    assert!(notes.len() <= MAX_NOTES + 1 && notes.iter().map(String::len).sum::<usize>() < 16 << 10);
    assert!(notes.iter().any(|note| note.contains("9968 more tools")), "{notes:?}");
    assert!(notes.last().unwrap().contains("more remarks"), "{notes:?}");
}

#[test]
fn the_bounds_of_the_user_hold() {
    let request = ActRequest {
        tools: list(&["fetch", "read"]),
        domains: list(&["*.example.com", "10.0.0.1:8080"]),
        writes: list(&["api.example.com", "POST 10.0.0.1:8080/x"]),
        credentials: list(&["api_key"]),
        commands: Some(list(&["curl"])),
        max_iterations: Some(5),
        timeout_ms: Some(30_000),
        skill: Some("mine".to_owned()),
        ..ActRequest::default()
    };
    let (request, notes) = bounded(
        request,
        Draft {
            tools: list(&["filesystem", "fetch", "bash", "read"]),
            domains: list(&[
                "*.example.com",
                "api.example.com",
                "example.com",
                "10.0.0.1",
                "10.0.0.1:8080",
                "other.example",
            ]),
            writes: list(&[
                "api.example.com",
                "POST api.example.com/report",
                "POST news.example.com/x",
                "PUT 10.0.0.1:8080/x",
            ]),
            skill: Some("csv".to_owned()),
            max_iterations: 6,
            timeout_seconds: 31,
            ..draft()
        },
    );
    assert_eq!(request.tools, ["fetch", "read"]);
    assert_eq!(request.domains, ["*.example.com", "api.example.com", "10.0.0.1:8080"]);
    // The user named the whole host: the model may choose it.
    assert_eq!(request.writes, ["api.example.com", "POST api.example.com/report"]);
    assert_eq!((request.credentials, request.skill), (list(&["api_key"]), Some("mine".to_owned())));
    assert_eq!((request.max_iterations, request.timeout_ms), (Some(5), Some(30_000)));
    let said = notes.join("\n");
    for named in [
        "tool `filesystem`",
        "tool `bash`",
        "domain `example.com`",
        "domain `10.0.0.1`",
        "domain `other.example`",
        "write `POST news.example.com/x`: it is outside of `--writes`",
        "write `PUT 10.0.0.1:8080/x`",
        "credential `signing-key`: it is not among",
        "skill `csv`: the user named `mine`",
        "6 model calls",
        "31 seconds",
    ] {
        assert!(said.contains(named), "{named} is not named in\n{said}");
    }
    let bounds = Bounds::of(&ActRequest::default(), &motor::MotorConfig::default()).unwrap();
    assert!(!bounds.is_bounded && bounds.timeout > Duration::ZERO);
}

#[test]
fn a_shell_is_narrowed_also_if_the_draft_forgets_its_commands() {
    let (request, notes) = narrowed(Draft { commands: Vec::new(), ..draft() });
    assert_eq!(request.commands, Some(Vec::new()));
    assert!(notes.join("\n").contains("no command"), "{notes:?}");
    let (request, notes) = narrowed(Draft { commands: list(&["curl; rm -rf /", "curl"]), ..draft() });
    assert_eq!(request.commands, Some(list(&["curl"])));
    assert!(notes.join("\n").contains("`curl; rm -rf /`"), "{notes:?}");
}

#[test]
fn a_word_is_mentioned_as_a_whole() {
    for (text, word, mentioned) in [
        ("send it to api.example.com.", "api.example.com", true),
        ("https://api.example.com/x", "API.example.com", true),
        ("<credential:api_key>", "api_key", true),
        ("at 127.0.0.1:8080, please", "127.0.0.1:8080", true),
        ("api.example.com: the report", "api.example.com", true),
        ("evil-api.example.com", "api.example.com", false),
        ("x.api.example.com", "api.example.com", false),
        ("api.example.com.evil.org", "api.example.com", false),
        ("127.0.0.1:8080", "127.0.0.1:80", false),
        ("127.0.0.1:8080", "127.0.0.1", false),
        ("the api_key2", "api_key", false),
        ("anything", "", false),
    ] {
        assert_eq!(mentions(text, word), mentioned, "{word} in {text}");
    }
}
