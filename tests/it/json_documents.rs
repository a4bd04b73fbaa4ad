//! The outputs of the real program with `--json`, held against the schemas that it prints itself (SPEC CLI-0): each printed
//! field is described.

use serde_json::{Value, json};
use tests::binary::Motor;
use tests::block_on;
use tests::model_server::ModelServer;

/// The program's own schemas, closed: a property that no schema names is an error.
struct Documents(Value);

impl Documents {
    fn of(motor: &Motor) -> Self {
        let mut document = motor.json(&["help", "json"]);
        document["$defs"].as_object_mut().unwrap().values_mut().for_each(|schema| close(schema, false));
        let commands = document["commands"].as_object_mut().unwrap();
        assert!(commands.len() > 70, "{}", commands.len());
        commands.values_mut().for_each(|command| close(&mut command["schema"], true));
        close(&mut document["refusal"], true);
        Self(document)
    }

    fn errors(&self, schema: &Value, output: &Value) -> Vec<String> {
        let mut schema = schema.clone();
        schema["$defs"] = self.0["$defs"].clone();
        schema["$schema"] = self.0["$schema"].clone();
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        validator.iter_errors(output).map(|error| format!("{}: {error}", error.instance_path())).collect()
    }

    fn of_command(&self, command: &str, output: &Value) -> Vec<String> {
        let schema = &self.0["commands"][command]["schema"];
        assert!(schema.is_object(), "{command} is not described");
        self.errors(schema, output)
    }

    /// Checks the output of a command that ended with this code.
    fn check(&self, motor: &Motor, command: &str, arguments: &[&str]) -> Value {
        let words: Vec<&str> = command.split(' ').chain(arguments.iter().copied()).chain(["--json"]).collect();
        // Only `credential set` reads it.
        let ended = motor.run_as_owner(&words, "a secret of some length");
        let lines = self.0["commands"][command]["lines"] == true;
        let outputs: Vec<Value> = match lines {
            true => ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
            false => vec![
                serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{words:?}: {error}: {ended:?}")),
            ],
        };
        for output in &outputs {
            let errors = self.of_command(command, output);
            assert!(errors.is_empty(), "{words:?}: {errors:#?}\n{output:#}");
        }
        outputs.into_iter().next_back().unwrap_or_else(|| panic!("{words:?} printed nothing: {ended:?}"))
    }
}

/// Forbids properties that are not described, wherever a schema stands for a value of its own (`whole`) rather than for one
/// side of it.
fn close(schema: &mut Value, whole: bool) {
    let Value::Object(fields) = schema else { return };
    for (name, value) in fields.iter_mut() {
        match (name.as_str(), value) {
            ("properties" | "patternProperties", Value::Object(all)) => {
                all.values_mut().for_each(|schema| close(schema, true));
            }
            ("items" | "additionalProperties" | "contains", value) => close(value, true),
            ("prefixItems", Value::Array(all)) => all.iter_mut().for_each(|schema| close(schema, true)),
            ("anyOf" | "oneOf" | "allOf", Value::Array(all)) => all.iter_mut().for_each(|schema| close(schema, false)),
            _ => {}
        }
    }
    let describes = ["properties", "$ref", "anyOf", "oneOf", "allOf"].iter().any(|name| fields.contains_key(*name));
    if whole && describes && !fields.contains_key("additionalProperties") {
        fields.insert("unevaluatedProperties".to_owned(), json!(false));
    }
}

/// A home whose model writes a file and ends, with a skill and a credential.
fn furnished() -> (ModelServer, Motor) {
    let write = json!({ "name": "write", "arguments": { "path": "answer.txt", "content": "42" } });
    let turns = json!({ "turns": [{ "text": "I write.", "tool_calls": [write] }, { "text": "It is 42." }] });
    let server = block_on(ModelServer::scripted(turns));
    let motor = Motor::with_model(&server);
    let skill = motor.home().join("skills/adder");
    std::fs::create_dir_all(&skill).unwrap();
    let text = "---\nname: adder\ndescription: Adds numbers. Use it for sums.\n---\n\n# How\n\nAdd them.\n";
    std::fs::write(skill.join("SKILL.md"), text).unwrap();
    (server, motor)
}

#[test]
fn every_output_is_as_its_schema_says() {
    let (_server, motor) = furnished();
    let documents = Documents::of(&motor);
    let check = |command: &str, arguments: &[&str]| documents.check(&motor, command, arguments);

    let ended = check("act", &["write it", "--tools", "filesystem"]);
    assert_eq!((&ended["status"], &ended["result"]), (&json!("completed"), &json!("It is 42.")));
    let run = ended["runId"].as_str().unwrap();
    let listed = check("task list", &[]);
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["runId"]), (1, &json!(run)));
    assert_eq!(check("task status", &[run])["runId"], run);
    assert_eq!(check("task log", &[run])["runId"], run);
    assert_eq!(check("why", &[run, "answer.txt"])["runId"], run);
    assert_eq!(check("signals", &[])["runId"], run);
    check("task staged", &[run]);
    check("receipt show", &[run]);
    check("attach", &[run]);

    assert_eq!(check("credential set", &["key", "--domain", "api.example.com"])["set"], true);
    assert_eq!(check("credential list", &[])[0]["name"], "key");
    assert_eq!(check("skill list", &[])[0]["name"], "adder");
    assert_eq!(check("skill show", &["adder"])["name"], "adder");
    check("skill review", &["adder"]);
    check("skill verify", &[]);
    check("skill approve", &["adder"]);
    check("skill versions", &["adder"]);

    check("energy", &[]);
    assert_eq!(check("spend", &[])[0]["replies"], 2);
    assert!(check("config show", &[]).as_array().unwrap().len() > 20);
    check("config get", &["limits.fuel"]);
    check("config path", &[]);
    check("config set", &["limits.fuel", "20000000000"]);
    check("doctor", &["--offline"]);
    check("verify", &[]);
    check("explain", &["post <credential:key>", "--tools", "fetch", "--domains", "api.example.com"]);
    check("execute", &["1 + 1"]);
    check("execute", &["throw new Error('no')"]);
    check("inspect", &["files"]);
    check("wit", &[]);
    check("network allow", &["api.example.com", "--always"]);
    check("network list", &[]);
    check("owner status", &[]);
    check("token list", &[]);
    check("ledger list", &[]);
    check("memory list", &[]);
    check("chat list", &[]);
    check("chat list", &["--forgotten"]);
    check("cortex status", &[]);
    check("cortex commitments", &[]);
    check("cortex directives", &[]);
    check("cortex signals", &[]);
    let scenario = |summary: &str| {
        let emits = if summary == "rain" { json!([]) } else { json!(["price.seen"]) };
        json!({ "signal": { "kind": "run.completed", "data": { "summary": summary } }, "emits": emits })
    };
    let scenarios = motor.file("scenarios.json", json!(["price 1", "price 2", "rain"].map(scenario)).to_string());
    let code = "return signal.data.summary.includes('price') ? [{ kind: 'price.seen' }] : [];";
    let code = motor.file("coded.js", code);
    let component = motor.file("built.wasm", tests::hostile_guest("neurons-pure"));
    for (name, file) in [("coded", code), ("built", component)] {
        let [file, scenarios] = [&file, &scenarios].map(|path| path.to_str().unwrap());
        let kinds = ["--inputs", "run.completed", "--outputs", "price.seen", "--scenarios", scenarios];
        let words = [&[name, file, "--purpose", "notices prices"][..], &kinds].concat();
        assert_eq!(check("neuron propose", &words)["status"], "quarantined");
        assert_eq!(check("neuron show", &[name])["neuron"]["name"], name);
    }
    assert_eq!(check("neuron list", &[])["neurons"].as_array().unwrap().len(), 2);
    check("mcp tools", &[]);
    check("help", &["terms"]);
    check("help", &["fuel"]);
    assert_eq!(check("task delete", &[run])["deleted"], json!([run]));
    assert_eq!(check("credential delete", &["key"])["deleted"], true);
}

/// Keys of the configuration have the names that they have in its file.
const SETTINGS: [&str; 3] = ["CortexConfig", "TriggerConfig", "Limits"];

/// Properties of a schema whose names are not camelCase, in `found`.
fn underscored(schema: &Value, at: &str, found: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                if let ("properties", Value::Object(all)) = (name.as_str(), value) {
                    found.extend(all.keys().filter(|name| name.contains('_')).map(|name| format!("{at}.{name}")));
                }
                underscored(value, at, found);
            }
        }
        Value::Array(all) => all.iter().for_each(|schema| underscored(schema, at, found)),
        _ => {}
    }
}

#[test]
fn names_are_camel_case_everywhere_but_in_settings() {
    let motor = Motor::bare();
    let document = motor.json(&["help", "json"]);
    let mut found = Vec::new();
    for (name, schema) in document["$defs"].as_object().unwrap() {
        if !SETTINGS.contains(&name.as_str()) {
            underscored(schema, name, &mut found);
        }
    }
    for (name, command) in document["commands"].as_object().unwrap() {
        underscored(&command["schema"], name, &mut found);
    }
    assert!(found.is_empty(), "{found:#?}");
    // The search itself finds such a name, as of the settings.
    underscored(&document["$defs"]["Limits"], "Limits", &mut found);
    assert!(found.contains(&"Limits.deadline_ms".to_owned()), "{found:#?}");
}

#[test]
fn refusals_and_usage_errors_are_as_their_schema_says() {
    let (_server, motor) = furnished();
    let documents = Documents::of(&motor);
    for (arguments, code, name) in [
        (&["act", "--nonsense"][..], 2, "invalid_request"),
        (&["nonsense"], 2, "invalid_request"),
        (&["config", "get", "limits.feul"], 2, "invalid_request"),
        (&["act", "x", "--tools", "nonsense"], 2, "unknown_tool"),
        (&["act", "post <credential:key>"], 4, "credentials_needed"),
        (&["act", "x", "--skill", "adder"], 5, "skill_untrusted"),
        (&["task", "status", "run_0123456789abcdef"], 1, "not_found"),
    ] {
        let ended = motor.run(&[arguments, &["--json"]].concat());
        let output: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
        assert_eq!((ended.code, output["error"]["code"].as_str()), (Some(code), Some(name)), "{ended:?}");
        let errors = documents.errors(&documents.0["refusal"], &output);
        assert!(errors.is_empty(), "{arguments:?}: {errors:#?}\n{output:#}");
    }
}

#[test]
fn a_field_that_is_not_described_is_found_at_any_depth() {
    let (_server, motor) = furnished();
    let documents = Documents::of(&motor);
    let ended = documents.check(&motor, "act", &["write it", "--tools", "filesystem"]);
    let trace = documents.check(&motor, "task status", &[ended["runId"].as_str().unwrap()]);
    for (command, output, place) in
        [("act", &ended, ""), ("task status", &trace, ""), ("task status", &trace, "/steps/0")]
    {
        let mut changed = output.clone();
        changed.pointer_mut(place).unwrap()["undescribed"] = json!(1);
        let errors = documents.of_command(command, &changed);
        assert!(!errors.is_empty(), "{command} {place}");
    }
    // A schema with options describes each: the run is not a list.
    assert!(!documents.of_command("task list", &ended).is_empty());
}
