//! The conformance suite of the Model Context Protocol (SPEC MCP-1), in both protocol eras: the whole suite and its
//! extensions against the fixture server, which mounts the product's own transport, and the scenarios that need no
//! fixture tools against the real program. No failure and no warning is expected.
//!
//! The suite comes from the toolchain `conformance` (`cargo xtask conformance`); without it these tests are skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;
use tests::binary::Motor;
use tests::mcp_fixture::Served;
use tests::{block_on, target_directory};

/// The last version with a handshake, and the one without.
const VERSIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// A check without a probe: the suite always skips it.
const SKIPPED: &str = "tasks-status-notifications";

/// The prefix of the scenarios of the skills extension, which the fixture does not have.
const SKILLS: &str = "sep-2640-skills-";

/// Scenarios that need no fixture tools, against the real program.
const OF_PRODUCT: [(&str, &[&str]); 2] = [
    (
        "2025-11-25",
        &[
            "server-initialize",
            "server-session-lifecycle",
            "ping",
            "tools-list",
            "server-sse-multiple-streams",
            "dns-rebinding-protection",
        ],
    ),
    (
        "2026-07-28",
        &[
            "server-stateless",
            "tools-list",
            "server-sse-multiple-streams",
            "dns-rebinding-protection",
            "http-header-validation",
            "input-required-result-unsupported-methods",
            "resources-list",
            "sep-2164-resource-not-found",
        ],
    ),
];

/// Checks of these scenarios that call a fixture tool, which the product does not have.
const NEED_FIXTURE: [&str; 4] = [
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-server-no-log-without-loglevel",
];

/// The check for changed tools: the suite changes them by a fixture tool.
const NEEDS_CHANGE: &str = "sep-2575-server-sends-tools-list-changed-on-subscription";

/// Prefixes of checks for optional parts of the protocol that the product does not declare.
const NOT_DECLARED: [&str; 3] = [
    "sep-2575-server-sends-prompts-list-changed",
    "sep-2640-capability-directory-read-flag",
    "sep-2640-directory-read",
];

/// An approved skill, for the scenarios of its extension.
const SKILL: &str = "---\nname: say\ndescription: Says hello.\n---\n\nSay hello.\n";

/// The suite that the toolchain installed.
struct Suite {
    node: PathBuf,
    program: PathBuf,
}

/// A server that is tested.
struct Target {
    url: String,
    token: String,
}

/// One check of a scenario.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Check {
    #[serde(skip)]
    scenario: String,
    id: String,
    status: String,
    #[serde(default)]
    error_message: Option<String>,
    #[serde(default)]
    details: Value,
}

impl Suite {
    fn find() -> Option<Self> {
        let modules = target_directory().join("toolchains/conformance/node_modules");
        let (node, program) =
            (modules.join("node/bin/node"), modules.join("@modelcontextprotocol/conformance/dist/index.js"));
        let found = node.exists() && program.exists();
        if !found {
            println!("the conformance suite: skipped: run `cargo xtask conformance`");
        }
        found.then_some(Self { node, program })
    }

    fn command(&self, directory: &Path) -> Command {
        let mut command = Command::new(&self.node);
        command.env_clear().current_dir(directory).stdin(Stdio::null());
        command
    }

    /// The names of the server scenarios of a version, or of the extensions.
    fn scenarios(&self, version: Option<&str>) -> BTreeSet<String> {
        let mut command = self.command(Path::new("/"));
        command.arg(&self.program).args(["list", "--server"]);
        if let Some(version) = version {
            command.args(["--spec-version", version]);
        }
        let listed = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let lines = listed.lines().filter_map(|line| line.trim().strip_prefix("- ")?.split_once(" ["));
        let of_version = |list: &str| version.is_some() || list == "extension]";
        lines.filter(|(_, list)| of_version(list)).map(|(name, _)| name.to_owned()).collect()
    }

    /// Runs scenarios against a server, and returns every check.
    fn run(&self, target: &Target, arguments: &[&str]) -> Vec<Check> {
        let results = tempfile::tempdir().unwrap();
        let preload = concat!(env!("CARGO_MANIFEST_DIR"), "/clients/token.mjs");
        let mut command = self.command(results.path());
        command.env("MOTOR_TOKEN", &target.token).args(["--import", preload]).arg(&self.program);
        let said = command.args(["server", "--url", &target.url, "-o", "."]).args(arguments).output().unwrap();
        let name = Regex::new(r"^server-(.+)-\d{4}-\d\d-\d\dT[-\dZ]+$").unwrap();
        let mut checks = Vec::new();
        for entry in std::fs::read_dir(results.path()).unwrap() {
            let entry = entry.unwrap();
            let directory = entry.file_name().into_string().unwrap();
            let scenario = &name.captures(&directory).unwrap_or_else(|| panic!("no scenario: {directory}"))[1];
            let text = std::fs::read_to_string(entry.path().join("checks.json")).unwrap();
            let of_scenario: Vec<Check> = serde_json::from_str(&text).unwrap();
            checks.extend(of_scenario.into_iter().map(|check| Check { scenario: scenario.to_owned(), ..check }));
        }
        assert!(!checks.is_empty(), "{arguments:?}: {said:?}");
        checks
    }
}

/// Checks that every scenario ran and that no check failed, warned or was skipped unexpectedly; prints the figures.
fn judge(title: &str, scenarios: &BTreeSet<String>, checks: &[Check], is_expected: impl Fn(&Check) -> bool) {
    let ran: BTreeSet<String> = checks.iter().map(|check| check.scenario.clone()).collect();
    assert_eq!(&ran, scenarios, "{title}: scenarios that did not run, or ran unasked");
    let mut figures: BTreeMap<&str, usize> = BTreeMap::new();
    for check in checks {
        *figures.entry(&check.status).or_default() += 1;
    }
    println!("{title}: {} scenarios, {figures:?}", scenarios.len());
    let bad = checks.iter().filter(|check| !matches!(check.status.as_str(), "SUCCESS" | "INFO") && !is_expected(check));
    let lines: Vec<String> = bad
        .map(|Check { scenario, id, status, error_message, details }| {
            format!(
                "{status} {scenario}: {id}: {} {details:.200}",
                error_message.as_deref().unwrap_or_default().chars().take(400).collect::<String>()
            )
        })
        .collect();
    assert!(lines.is_empty(), "{title}:\n{}", lines.join("\n"));
}

fn is_skipped(check: &Check) -> bool {
    check.status == "SKIPPED" && check.id == SKIPPED
}

#[test]
fn the_fixture_server_passes_the_whole_suite() {
    let Some(suite) = Suite::find() else { return };
    let served = block_on(Served::start());
    let target = Target { url: served.url.clone(), token: "none".to_owned() };
    for version in VERSIONS {
        let checks = suite.run(&target, &["--suite", "all", "--spec-version", version]);
        judge(&format!("the fixture, {version}"), &suite.scenarios(Some(version)), &checks, is_skipped);
    }
    let mut extensions = suite.scenarios(None);
    extensions.retain(|name| !name.starts_with(SKILLS));
    let run = |name: &String| suite.run(&target, &["--scenario", name]);
    let checks: Vec<Check> = extensions.iter().flat_map(run).collect();
    judge("the fixture, extensions", &extensions, &checks, is_skipped);
}

#[test]
fn the_program_passes_the_scenarios_without_fixture_tools() {
    let Some(suite) = Suite::find() else { return };
    let motor = Motor::new();
    let skill = motor.directory().join("say");
    std::fs::create_dir_all(&skill).unwrap();
    std::fs::write(skill.join("SKILL.md"), SKILL).unwrap();
    for arguments in [["skill", "add", skill.to_str().unwrap()], ["skill", "approve", "say"]] {
        assert_eq!(motor.run_as_owner(&arguments, "").code, Some(0), "{arguments:?}");
    }
    let made = motor.run_as_owner(&["token", "create", "--name", "suite", "--scope", "agent"], "");
    let serving = motor.start(&["serve", "--listen", "127.0.0.1:0", "--json"]);
    let line: Value = serde_json::from_str(&serving.wait_for_output("listening")).unwrap();
    let url = format!("{}/mcp", line["address"].as_str().unwrap());
    let target = Target { url, token: made.stdout.trim().to_owned() };
    let is_expected = |check: &Check| {
        let id = check.id.as_str();
        match check.status.as_str() {
            "SKIPPED" => NOT_DECLARED.iter().any(|prefix| id.starts_with(prefix)),
            "WARNING" => id == NEEDS_CHANGE,
            _ => check.details["untestable"] == true && NEED_FIXTURE.contains(&id),
        }
    };
    for (version, scenarios) in OF_PRODUCT {
        let run = |name: &&str| suite.run(&target, &["--scenario", name, "--spec-version", version]);
        let checks: Vec<Check> = scenarios.iter().flat_map(run).collect();
        let scenarios = scenarios.iter().map(|&name| name.to_owned()).collect();
        judge(&format!("motor, {version}"), &scenarios, &checks, is_expected);
    }
    let mut skills = suite.scenarios(None);
    skills.retain(|name| name.starts_with(SKILLS));
    let checks: Vec<Check> = skills.iter().flat_map(|name| suite.run(&target, &["--scenario", name])).collect();
    judge("motor, skills", &skills, &checks, is_expected);
}
