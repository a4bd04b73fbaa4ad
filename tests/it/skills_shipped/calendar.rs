//! `calendar`: a component that reaches nothing, as a directory and as a bare file, against an arithmetic of its own kind: days
//! counted from the year's length, one after another.

use std::fs;
use std::sync::{Arc, OnceLock};

use runtime::{
    CallReport, Component, ComponentOrigin, EngineConfig, Limits, Outcome, Runtime, ToolCall, ToolComponent, ToolError,
    inspect,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{World, call, says, shipped};

const TOOLS: [&str; 6] = ["add_to_date", "date_difference", "date_facts", "list_dates", "parse_date", "week_dates"];

fn bytes() -> Vec<u8> {
    let path = shipped("calendar").join("calendar.wasm");
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}: run `cargo xtask guests`", path.display()))
}

fn component() -> &'static ToolComponent {
    static COMPONENT: OnceLock<ToolComponent> = OnceLock::new();
    COMPONENT.get_or_init(|| {
        let config = EngineConfig { cache: Some(tests::cache()), ..EngineConfig::default() };
        let runtime = Runtime::new(config).unwrap();
        let component = tests::block_on(Component::load(&runtime, &bytes(), ComponentOrigin::Bundled)).unwrap();
        ToolComponent::link(&runtime, &component).unwrap()
    })
}

/// The limits that its `policy.json` proposes.
fn limits() -> Limits {
    let policy: Value = serde_json::from_slice(&fs::read(shipped("calendar").join("policy.json")).unwrap()).unwrap();
    let limit = |name: &str| policy["limits"][name].as_u64().unwrap();
    Limits { deadline_ms: limit("deadline_ms"), memory_bytes: limit("memory_bytes"), ..Limits::default() }
}

fn finished(tool: &str, arguments: &Value) -> CallReport<String, ToolError> {
    let call = ToolCall {
        name: tool,
        arguments: &arguments.to_string(),
        run_id: "run_test",
        step: 1,
        idempotency_key: "key",
        workspace: None,
        network: None,
        scripts: None,
        environment: Vec::new(),
        seeded: None,
        limits: limits(),
        notes: Arc::new(|_| ()),
        cancel: CancellationToken::new(),
    };
    tests::block_on(component().call(call))
}

#[track_caller]
fn answer(tool: &str, arguments: &Value) -> Value {
    match finished(tool, arguments).outcome {
        Outcome::Returned(text) => serde_json::from_str(&text).unwrap(),
        other => panic!("{tool} {arguments}: {other:?}"),
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    [31, if is_leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        [usize::try_from(month - 1).unwrap()]
}

/// The date so many days after 1970-01-01, a Thursday, by counting.
fn date(mut days: i64) -> (i64, i64, i64) {
    let (mut year, mut month) = (1970, 1);
    while days < 0 {
        year -= 1;
        days += if is_leap(year) { 366 } else { 365 };
    }
    while days >= days_in(year, month) {
        days -= days_in(year, month);
        (year, month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    }
    (year, month, days + 1)
}

fn iso((year, month, day): (i64, i64, i64)) -> String {
    format!("{year:04}-{month:02}-{day:02}")
}

fn weekday(days: i64) -> i64 {
    // Monday is 0.
    (days + 3).rem_euclid(7)
}

#[test]
fn it_imports_nothing_that_can_be_called() {
    let found = inspect(&bytes(), 64 << 20).unwrap();
    let harmless = [runtime::inspect::Capability::Types];
    assert!(found.capabilities().iter().all(|capability| harmless.contains(capability)), "{:?}", found.imports);
    let text = String::from_utf8_lossy(&bytes()).into_owned();
    let here = shipped("").parent().unwrap().to_str().unwrap().to_owned();
    assert!(
        !text.contains(&here) && !text.contains(".cargo/registry"),
        "the component names directories of this machine"
    );
}

#[test]
fn it_says_of_itself_what_its_directory_says() {
    let manifest = fs::read_to_string(shipped("calendar").join("SKILL.md")).unwrap();
    let Outcome::Returned(Some(about)) = tests::block_on(component().about(limits())).outcome else {
        panic!("it says nothing")
    };
    assert_eq!(about.name, "calendar");
    assert!(manifest.contains(&format!("\ndescription: {}\n", about.description)));
    assert!(manifest.ends_with(&about.instructions) && about.instructions.starts_with("# Calendar"));
    let Outcome::Returned(tools) = tests::block_on(component().describe(limits())).outcome else { panic!("no tools") };
    let mut names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, TOOLS);
    assert!(tools.iter().all(|tool| tool.effects.read_only && tool.output.is_some()));
}

/// The examples of its `SKILL.md` are answered as it says.
#[test]
fn its_examples_are_right() {
    let due = json!({ "date": "2026-12-18", "business_days": 10, "holidays": ["2026-12-25", "2027-01-01"] });
    let expected = json!({ "date": "2027-01-05", "weekday": "tuesday", "is_business_day": true });
    assert_eq!(answer("add_to_date", &due), expected);
    let manifest = fs::read_to_string(shipped("calendar").join("SKILL.md")).unwrap();
    assert!(manifest.contains(r#"{"date":"2027-01-05","weekday":"tuesday","is_business_day":true}"#));
    let quarters = json!({ "start": "2026-03-31", "every": "month", "interval": 3, "day_of_month": -1, "count": 4, "roll": "preceding" });
    let listed = answer("list_dates", &quarters);
    let dates: Vec<_> = listed["dates"].as_array().unwrap().iter().map(|date| date["date"].as_str().unwrap()).collect();
    assert_eq!(dates, ["2026-03-31", "2026-06-30", "2026-09-30", "2026-12-31"]);
    let fridays =
        json!({ "start": "2026-01-01", "every": "month", "nth": 3, "weekdays": ["friday"], "until": "2026-06-30" });
    let listed = answer("list_dates", &fridays);
    let dates: Vec<_> = listed["dates"].as_array().unwrap().iter().map(|date| date["date"].as_str().unwrap()).collect();
    assert_eq!(dates, ["2026-01-16", "2026-02-20", "2026-03-20", "2026-04-17", "2026-05-15", "2026-06-19"]);
}

#[test]
fn it_agrees_with_counting() {
    // Pairs over eight centuries, spread by a step that shares no factor with weeks, months or leap cycles.
    for step in 0..120_i64 {
        let (from, to) = (step * 2_477 - 140_000, step * 1_483 % 40_009 - 20_000);
        let (first, last) = (iso(date(from)), iso(date(to)));
        let found = answer("date_difference", &json!({ "from": first, "to": last }));
        assert_eq!(found["days"], to - from, "{first} {last}");
        let (low, high) = (from.min(to), from.max(to));
        let worked = |range: std::ops::Range<i64>| range.filter(|day| weekday(*day) < 5).count() as i64;
        let expected = if from <= to { worked(low + 1..high + 1) } else { -worked(low..high) };
        assert_eq!(found["business_days"], expected, "{first} {last}");
        assert_eq!(found["business_days_with_both_ends"], worked(low..high + 1), "{first} {last}");

        let added = answer("add_to_date", &json!({ "date": first, "days": to - from }));
        assert_eq!(added["date"], last, "{first} and {} days", to - from);
        let facts = answer("date_facts", &json!({ "date": first }));
        let names = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
        assert_eq!(facts["weekday"], names[usize::try_from(weekday(from)).unwrap()], "{first}");
        let (year, month, day) = date(from);
        assert_eq!(facts["day_of_year"], (1..month).map(|month| days_in(year, month)).sum::<i64>() + day, "{first}");
        assert_eq!(facts["is_leap_year"], is_leap(year), "{first}");
        let read = answer("parse_date", &json!({ "text": format!("{day}.{month}.{year}") }));
        assert_eq!(read["date"], first);
    }
}

#[test]
fn hostile_arguments_end_within_the_limits_it_proposes() {
    let flood: Vec<String> = (0..5_000).map(|day| iso(date(day))).collect();
    let too_many = vec!["2026-01-01"; 5_001];
    let check = |tool: &str, arguments: &Value, words: &str| match finished(tool, arguments).outcome {
        Outcome::Refused(ToolError::BadInput(text) | ToolError::Limit(text) | ToolError::Missing(text)) => {
            assert!(text.contains(words) && text.len() < 500, "{tool}: {text}");
        }
        other => panic!("{tool}: {other:?}"),
    };
    check("date_difference", &json!({ "from": "2026-01-01", "to": "2026-02-01", "holidays": too_many }), "5000");
    check("add_to_date", &json!({ "date": "2026-01-01", "business_days": i32::MAX }), "9999-12-31");
    check("add_to_date", &json!({ "date": "9".repeat(100_000) }), "date");
    check("list_dates", &json!({ "start": "0001-01-01", "every": "day", "until": "9999-12-31" }), "1000");
    check("parse_date", &json!({ "text": "1 ".repeat(50_000) }), "longer than a date");
    check("week_dates", &json!({ "year": i64::MAX, "week": 1 }), "year");
    check("dates", &json!({}), "no such tool");
    // The twin: as many holidays as it takes, and the longest list.
    let most = answer("add_to_date", &json!({ "date": "1970-01-01", "business_days": 1, "holidays": flood }));
    assert_eq!(most["date"], iso(date((5_000..).find(|day| weekday(*day) < 5).unwrap())));
    let never = json!({ "start": "2026-02-01", "every": "month", "interval": 12, "day_of_month": 31, "missing_day": "skip",
                        "until": "9999-12-31", "holidays": flood });
    assert_eq!(answer("list_dates", &never), json!({ "dates": [] }));
}

#[test]
fn an_approved_calendar_computes_dates_with_tools_of_its_own() {
    let mut world = World::new();
    let inputs = json!({ "today": "2026-12-18", "holidays": ["2026-12-25", "2027-01-01"] }).to_string();
    let review = world.add_and_review("calendar", &["--inputs", &inputs]);
    reaches_nothing(&review);
    assert_eq!((&review["proposal"]["tools"], &review["proposal"]["domains"]), (&json!([]), &json!([])), "{review:#}");
    let shown = world.motor.stdout(&["skill", "review", "calendar"]);
    assert!(shown.contains("cannot reach the network, see files, use credentials"), "{shown}");

    world.approve(&["calendar", "--proposed"]);
    world.inputs_are_refused(
        "calendar",
        &[
            (&["--inputs", r#"{"today":"tomorrow"}"#], "today"),
            (&["--inputs", r#"{"holidays":"2026-12-25"}"#], "holidays"),
            (&["--inputs", r#"{"weekend":["caturday"]}"#], "weekend"),
            (&["--inputs", r#"{"now":"2026-12-18"}"#], "now"),
        ],
    );
    world.plays(vec![
        call(
            "add_to_date",
            &json!({ "date": "2026-12-18", "business_days": 10, "holidays": ["2026-12-25", "2027-01-01"] }),
        ),
        call("date_difference", &json!({ "from": "2026-12-18", "to": "2027-01-05" })),
        call("add_to_date", &json!({ "date": "2026-02-30" })),
        call("read", &json!({ "path": "SKILL.md" })),
        says("It is due on Tuesday, 5 January 2027."),
    ]);
    let ended = world.act("calendar", &["--inputs", &inputs]).succeeded();
    assert_eq!(ended.stdout, "It is due on Tuesday, 5 January 2027.\n");
    assert_eq!(world.offered(), TOOLS);
    assert!(world.prompt().contains("2026-12-18") && world.prompt().contains("Never count days"));
    let results = world.results();
    assert!(results[0].as_ref().unwrap().contains("\"date\":\"2027-01-05\""), "{results:?}");
    assert!(results[1].as_ref().unwrap().contains("\"days\":18"), "{results:?}");
    assert!(results[2].is_err(), "{results:?}");
    assert_eq!(results[3], Err("tool_not_available".to_owned()), "it can read files");
}

/// The same component dropped in as it is.
#[test]
fn the_bare_component_is_the_same_skill() {
    let mut world = World::new();
    fs::create_dir_all(world.motor.home().join("skills")).unwrap();
    fs::write(world.motor.home().join("skills/calendar.wasm"), bytes()).unwrap();
    let list = world.motor.json(&["skill", "list"]);
    assert_eq!((&list[0]["form"], &list[0]["status"]), (&json!("component"), &json!("needs_reapproval")), "{list:#}");
    world.may_not_act("calendar", &[]);
    let review = world.motor.json(&["skill", "review", "calendar"])["review"].clone();
    reaches_nothing(&review);
    assert!(review["description"].as_str().unwrap().starts_with("Works out dates exactly"), "{review:#}");
    // Without tools of the host beside its own.
    world.approve(&["calendar", "--tools", ""]);
    world.plays(vec![call("week_dates", &json!({ "year": 2026, "week": 53 })), says("It begins on 28 December.")]);
    assert_eq!(world.act("calendar", &[]).succeeded().stdout, "It begins on 28 December.\n");
    assert_eq!(world.offered(), TOOLS);
    assert!(world.prompt().contains("Never count days"), "what it says of itself is not in the prompt");
    let result: Value = serde_json::from_str(world.results()[0].as_ref().unwrap()).unwrap();
    assert_eq!(result, json!({ "monday": "2026-12-28", "sunday": "2027-01-03", "weeks_in_year": 53 }));
}

/// The one component of a review has no power, and six tools.
#[track_caller]
fn reaches_nothing(review: &Value) {
    let components = review["components"].as_array().unwrap();
    assert_eq!(components.len(), 1, "{review:#}");
    assert_eq!((&components[0]["capabilities"], &components[0]["problem"]), (&json!([]), &Value::Null), "{review:#}");
    let tools = components[0]["tools"].as_array().unwrap();
    let mut names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, TOOLS);
}
