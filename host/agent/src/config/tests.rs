//! Loading configuration from every source.

use super::*;
use crate::env::of_list;

fn load(file: &str, variables: &[(&str, &str)], flags: &[(&str, &str)]) -> Result<LoadedConfig, String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("motor.toml");
    std::fs::write(&path, file).unwrap();
    let flags: Vec<_> = flags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    LoadedConfig::load(&Home::at(directory.path().into()), Some(&path), &of_list(variables), &flags)
        .map_err(|refusal| refusal.reason)
}

fn origin(loaded: &LoadedConfig, key: &str) -> String {
    let entry = loaded.entries().into_iter().find(|entry| entry.key == key).unwrap();
    let origin = entry.origin.to_string();
    origin.split(' ').next().unwrap().to_owned()
}

#[test]
fn flag_beats_environment_beats_file_beats_default() {
    let file = "[code]\ntimeout_ms = 1\n[motor]\nmax_iterations = 1\n[limits]\nfuel = 1\n";
    let variables = [("MOTOR_CODE_TIMEOUT_MS", "2"), ("MOTOR_MOTOR_MAX_ITERATIONS", "2")];
    let loaded = load(file, &variables, &[("code.timeout_ms", "3")]).unwrap();
    assert_eq!((loaded.config.code.timeout_ms, origin(&loaded, "code.timeout_ms").as_str()), (3, "flag"));
    assert_eq!((loaded.config.motor.max_iterations, origin(&loaded, "motor.max_iterations").as_str()), (2, "env"));
    assert_eq!((loaded.config.limits.fuel, origin(&loaded, "limits.fuel").as_str()), (1, "file"));
    assert_eq!(origin(&loaded, "limits.handles"), "default");
}

#[test]
fn models_have_their_customary_variables() {
    let loaded = load("", &[("LLM_MOTOR_MODEL", "openrouter/anthropic/claude-haiku-4.5")], &[]).unwrap();
    assert_eq!(loaded.config.models.motor.unwrap().to_string(), "openrouter/anthropic/claude-haiku-4.5");
    let error = load("", &[("LLM_MOTOR_MODEL", "opnai/gpt")], &[]).unwrap_err();
    assert!(error.contains("LLM_MOTOR_MODEL") && error.contains("openai"), "{error}");
}

#[test]
fn what_does_not_fit_names_the_key_and_its_source() {
    for (file, says) in [
        ("[motor]\nmax_iteration = 3", "`motor.max_iterations`"),
        ("[motr]\nmax_iterations = 3", "unknown key `motr`"),
        ("[motor]\nmax_iterations = \"many\"", "`motor.max_iterations`"),
        ("[motor]\nmax_iterations = -1", "`motor.max_iterations`"),
        ("[motor\n", "line 1"),
        ("x = 1", "unknown key `x`"),
    ] {
        let error = load(file, &[], &[]).unwrap_err();
        assert!(error.contains(says), "{file:?}: {error}");
    }
}

#[test]
fn a_file_that_was_not_named_may_be_missing() {
    let directory = tempfile::tempdir().unwrap();
    let home = Home::at(directory.path().into());
    assert!(LoadedConfig::load(&home, None, &of_list(&[]), &[]).is_ok());
    assert!(LoadedConfig::load(&home, Some(&directory.path().join("no.toml")), &of_list(&[]), &[]).is_err());
}

#[test]
fn who_is_told_is_configured_whole_or_not_at_all() {
    let webhook = "[signals.webhook]\nurl = \"https://example.com/hook\"\nsecret = \"hook_secret\"\n";
    let loaded = load(&format!("{webhook}[signals.hook]\ncommand = [\"notify\"]\n"), &[], &[]).unwrap();
    let SignalsConfig { webhook: Some(there), hook: Some(hook) } = loaded.config.signals.clone() else {
        panic!("{:?}", loaded.config.signals)
    };
    assert_eq!((there.timeout_seconds, there.max_backoff_seconds, hook.timeout_seconds), (10, 300, 10));
    assert_eq!(hook.statuses.len(), 4);
    assert!(!hook.statuses.contains(&::signals::SignalStatus::Cancelled));
    assert_eq!(origin(&loaded, "signals.webhook"), "file");
    let variable = "{ url = \"http://127.0.0.1:1/\", secret = \"s\", timeout_seconds = 3 }";
    let there = load(webhook, &[("MOTOR_SIGNALS_WEBHOOK", variable)], &[]).unwrap().config.signals.webhook.unwrap();
    assert_eq!((there.url.as_str(), there.timeout_seconds), ("http://127.0.0.1:1/", 3));
    assert_eq!(load("", &[], &[]).unwrap().config.signals, SignalsConfig::default());
    for (file, says) in [
        ("[signals.webhook]\nurl = \"https://example.com\"", "missing field `secret`"),
        (
            "[signals.webhook]\nurl = \"https://example.com\"\nsecret = \"not a name\"",
            "is not the name of a credential",
        ),
        ("[signals.webhook]\nurl = \"https://example.com\"\nsecret = \"s\"\nretries = 3", "unknown field `retries`"),
        ("[signals.hook]\ncommand = \"notify\"", "`signals.hook`"),
        ("[signals.hook]\ncommand = [\"notify\"]\nstatuses = [\"done\"]", "unknown variant `done`"),
        ("[signals.mail]\nto = \"x\"", "unknown key `signals.mail`"),
    ] {
        let error = load(file, &[], &[]).unwrap_err();
        assert!(error.contains(says), "{file:?}: {error}");
    }
}

#[test]
fn the_budget_is_a_section_like_any_other() {
    let loaded = load("[budget]\ncredits = 5\n", &[("MOTOR_BUDGET_OUTPUT_TOKEN", "9")], &[]).unwrap();
    assert_eq!((loaded.config.budget.credits, loaded.config.budget.output_token), (5, 9));
    assert_eq!(origin(&loaded, "budget.credits"), "file");
    assert!(load("[budget]\ncredit = 5\n", &[], &[]).unwrap_err().to_string().contains("`budget.credits`"));
    assert!(load("[motor.budget]\ncredits = 5\n", &[], &[]).is_err());
}
