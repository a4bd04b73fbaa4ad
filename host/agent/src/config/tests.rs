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
        ("[motr]\nmax_iterations = 3", "did you mean `motor.max_iterations`"),
        ("[limit]\nfuel = 3", "did you mean `limits.fuel`"),
        ("[motr]", "unknown key `motr`"),
        ("[motor]\nmax_iterations = \"many\"", "`motor.max_iterations`"),
        ("[motor]\nmax_iterations = -1", "`motor.max_iterations`"),
        ("[rules]\nmax_attempts = 0", "`rules.max_attempts` is 0: use a whole number from 1 to 10"),
        ("[rules]\nmax_attempt = 1", "did you mean `rules.max_attempts`"),
        ("[code]\nmax_timeout_ms = 1", "`code.max_timeout_ms` is 1: use a whole number from 100 to 600000"),
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

#[test]
fn a_value_that_a_host_cannot_start_with_is_refused_where_it_is_set() {
    for (file, key) in [
        ("[network]\nwrites = ['POST']", "network.writes"),
        ("[network]\nprivate = ['nowhere']", "network.private"),
        ("[network]\ncode_domains = ['not a domain']", "network.code_domains"),
        ("[network]\nresolver = 'localhost:53'", "network.resolver"),
        ("[network]\nauthorities = ['/no/such/authority.pem']", "network.authorities"),
        ("[telemetry]\nendpoint = 'notaurl'", "telemetry.endpoint"),
        ("[telemetry]\nendpoint = 'http://collector.example.com'", "telemetry.endpoint"),
        ("[signals.webhook]\nurl = 'notaurl'\nsecret = 's'", "signals.webhook"),
        ("[signals.hook]\ncommand = []", "signals.hook"),
    ] {
        let error = load(file, &[], &[]).unwrap_err();
        assert!(error.contains(&format!("`{key}` (file")) && error.contains("is wrong"), "{file:?}: {error}");
    }
    let good = "[network]\nwrites = ['POST api.example.com/transfers']\nprivate = ['127.0.0.1:8080']\n\
                code_domains = ['api.example.com']\nresolver = '127.0.0.1:53'\n\
                [telemetry]\nendpoint = 'http://127.0.0.1:4318'\n\
                [signals.webhook]\nurl = 'https://example.com/hook'\nsecret = 's'\n\
                [signals.hook]\ncommand = ['notify']\n";
    let loaded = load(good, &[], &[]).unwrap();
    assert_eq!(loaded.config.network.private, ["127.0.0.1:8080"]);
}

#[test]
fn an_examination_leaves_out_what_does_not_fit_and_names_the_command_that_mends_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("motor.toml");
    std::fs::write(&path, "[network]\nwrites = ['POST']\n[limits]\nfuel = 7\nhandle = 1\n").unwrap();
    let home = Home::at(directory.path().into());
    let env = of_list(&[("MOTOR_LIMITS_HANDLES", "many")]);
    let (loaded, mut faults) = LoadedConfig::examine(&home, Some(&path), &env, &[]).unwrap();
    assert_eq!((loaded.config.limits.fuel, loaded.config.network.writes.len()), (7, 0));
    faults.sort_by(|one, other| one.key.cmp(&other.key));
    let fixes: Vec<_> = faults.iter().map(|fault| (fault.key.as_str(), fault.fix.as_str())).collect();
    let expected = [
        ("limits.handle", "motor config edit"),
        ("limits.handles", "unset MOTOR_LIMITS_HANDLES"),
        ("network.writes", "motor config unset network.writes"),
    ];
    assert_eq!(fixes, expected);
    let refusal = LoadedConfig::load(&home, Some(&path), &of_list(&[]), &[]).unwrap_err();
    assert!(refusal.remedy.is_some_and(|remedy| remedy.contains("motor config")));
    // A flag is a mistake of this moment.
    let flag = [("limits.fuel".to_owned(), "many".to_owned())];
    assert!(LoadedConfig::examine(&home, Some(&path), &env, &flag).is_err());
}

#[test]
fn a_number_that_is_not_finite_is_no_limit_and_is_refused() {
    for number in ["nan", "inf", "-inf"] {
        for key in ["budget.usd", "budget.usd_day", "models.temperature", "energy.floor"] {
            let (section, name) = key.split_once('.').unwrap();
            let error = load(&format!("[{section}]\n{name} = {number}\n"), &[], &[]).unwrap_err();
            assert!(error.contains(&format!("`{key}` (file")), "{number}: {error}");
            let error = load("", &[], &[(key, number)]).unwrap_err();
            assert!(error.contains(&format!("`{key}` (flag)")), "{number}: {error}");
        }
        let price = format!("[prices]\n\"openai/test\" = {{ input = {number}, output = 1.0 }}\n");
        assert!(load(&price, &[], &[]).unwrap_err().contains("`prices.openai/test`"), "{number}");
    }
    let loaded = load("[budget]\nusd = 1.5\n", &[], &[("models.temperature", "0.5")]).unwrap();
    assert_eq!((loaded.config.budget.usd.is_some(), loaded.config.models.temperature), (true, Some(0.5)));
}

#[test]
fn a_number_that_no_run_can_work_with_is_refused_with_its_range() {
    for (key, value, says) in [
        ("motor.max_iterations", "0", "from 1 to 50"),
        ("motor.max_iterations", "51", "from 1 to 50"),
        ("motor.timeout_seconds", "0", "at least 1"),
        ("models.deadline_seconds", "0", "at least 1"),
        ("models.idle_seconds", "0", "at least 1"),
        ("models.output_tokens", "0", "at least 1"),
        ("models.temperature", "9", "from 0 to 2"),
        ("models.temperature", "-0.1", "from 0 to 2"),
        ("models.openai_url", "notaurl", "is no address"),
        ("models.anthropic_url", "ftp://127.0.0.1", "is no address"),
        ("limits.memory_bytes", "1", "at least 4194304"),
        ("limits.fuel", "0", "at least 1"),
        ("limits.deadline_ms", "0", "at least 1"),
        ("energy.floor", "5", "from 0 to 1"),
        ("budget.usd", "-1", "from 0 to 1000000000"),
    ] {
        let error = load("", &[], &[(key, value)]).unwrap_err();
        assert!(error.contains(&format!("`{key}`")) && error.contains(says), "{key} = {value}: {error}");
    }
    for (key, value) in [
        ("motor.max_iterations", "50"),
        ("motor.timeout_seconds", "3153600000"),
        ("motor.detached_timeout_seconds", "0"),
        ("models.retries", "0"),
        ("models.output_tokens", "1"),
        ("models.temperature", "0"),
        ("models.temperature", "2"),
        ("models.openai_url", "http://127.0.0.1:8080/v1"),
        ("models.anthropic_url", "https://proxy.example.com"),
        ("models.ollama_url", "127.0.0.1:11434"),
        ("models.ollama_url", "0.0.0.0"),
        ("limits.memory_bytes", "4194304"),
        ("limits.outgoing_requests", "0"),
        ("energy.floor", "0"),
        ("budget.usd", "0"),
        ("retention.runs", "0"),
    ] {
        assert!(load("", &[], &[(key, value)]).is_ok(), "{key} = {value}");
    }
}

#[test]
fn a_table_may_be_given_as_json() {
    let price = r#"{"input":1,"output":2.5}"#;
    let loaded =
        load("", &[("MOTOR_ENERGY_SLEEP_WINDOW", r#"{"from_hour":22,"to_hour":6}"#)], &[("prices.openai/test", price)]);
    let loaded = loaded.unwrap();
    let entry = loaded.entries().into_iter().find(|entry| entry.key == "prices.openai/test").unwrap();
    assert_eq!(entry.value, serde_json::json!({ "input": 1.0, "output": 2.5 }));
    assert!(loaded.config.energy.sleep_window.is_some());
}
