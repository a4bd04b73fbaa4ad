//! `csv-analyst` in a run: the model loads the skill's scripts in the `code` tool, and the exact total is the one that Rust comes to.

use serde_json::{Value, json};

use super::{World, call, says};

/// Orders whose amounts do not add up in floating point, with a quoted region and one cell that is not a number.
fn orders() -> (String, i64) {
    let mut csv = String::from("\u{feff}order;region;amount\r\n");
    let mut cents = 0;
    for order in 0..250_i64 {
        let amount = order * order % 9_973 + 10;
        cents += amount;
        let region = if order % 3 == 0 { "\"North; \"\"upper\"\"\"" } else { "South" };
        csv.push_str(&format!("{order};{region};{},{:02}\r\n", amount / 100, amount % 100));
    }
    csv.push_str("250;South;n/a\r\n");
    (csv, cents)
}

#[test]
fn an_approved_analyst_answers_exactly() {
    let mut world = World::new();
    let question = ["--input", "question=What do the orders add up to?"];
    let review = world.add_and_review("csv-analyst", &question);
    assert_eq!((&review["components"], &review["domains"]), (&json!([]), &json!([])), "{review:#}");
    let proposal = &review["proposal"];
    assert_eq!(
        (&proposal["tools"], &proposal["domains"], &proposal["writes"], &proposal["requiredCredentials"]),
        (&json!(["code", "list", "read", "write"]), &json!([]), &json!([]), &json!([]))
    );
    world.approve(&["csv-analyst", "--proposed"]);

    world.inputs_are_refused(
        "csv-analyst",
        &[
            (&[], "question"),
            (&["--inputs", r#"{"question":""}"#], "question"),
            (&["--inputs", r#"{"question":"x","file":"a.csv"}"#], "file"),
            (&["--inputs", r#"{"question":"x","files":[7]}"#], "files"),
        ],
    );

    let (csv, cents) = orders();
    let file = world.motor.file("orders.csv", csv);
    let profile = "const t = await workspace.load('scripts/table.js'); return await t.profile('orders.csv')";
    let total = "const t = await workspace.load('scripts/table.js'); const { rows } = await t.read('orders.csv');\n\
                 return t.group(rows, 'region').map(({ key, rows }) => ({ key, ...t.sum(rows.map((row) => row.amount), ',') }))\n\
                   .concat({ key: 'all', ...t.sum(rows.map((row) => row.amount), ',') })";
    world.plays(vec![
        call("list", &json!({ "path": "." })),
        call("code", &json!({ "code": profile })),
        call("code", &json!({ "code": total })),
        call("code", &json!({ "code": "return typeof fetch" })),
        says("It is done."),
    ]);
    let ended = world.act("csv-analyst", &[&question[..], &["--file", file.to_str().unwrap()]].concat()).succeeded();
    assert_eq!(ended.stdout, "It is done.\n");
    assert_eq!(world.offered(), ["code", "list", "read", "write"]);
    let prompt = world.prompt();
    assert!(
        prompt.contains("Every number in the answer comes from a program")
            && prompt.contains("What do the orders add up to?")
    );

    let results: Vec<String> = world.results().into_iter().map(|result| result.unwrap()).collect();
    for file in ["SKILL.md", "scripts/", "orders.csv"] {
        assert!(results[0].contains(file), "{}", results[0]);
    }
    assert!(!results[0].contains("policy.json"), "a guest sees the policy: {}", results[0]);
    let profile: Value = serde_json::from_str(&results[1]).unwrap();
    assert_eq!(
        (&profile["delimiter"], &profile["rowCount"], &profile["problems"]),
        (&json!(";"), &json!(251), &json!([]))
    );
    let amount = &profile["columns"][2];
    assert_eq!((&amount["number"], &amount["notNumbers"]), (&json!(","), &json!(1)));
    assert_eq!(profile["columns"][1]["common"], json!(["South", "North; \"upper\""]));
    let totals: Value = serde_json::from_str(&results[2]).unwrap();
    let money = |cents: i64| format!("{}.{:02}", cents / 100, cents % 100);
    let north: i64 = (0..250).filter(|order| order % 3 == 0).map(|order: i64| order * order % 9_973 + 10).sum();
    assert_eq!(totals[0]["key"], "North; \"upper\"");
    assert_eq!(
        (&totals[0]["sum"], &totals[0]["count"], &totals[0]["bad"]),
        (&json!(money(north)), &json!(84), &json!(0))
    );
    assert_eq!((&totals[1]["sum"], &totals[1]["badExamples"]), (&json!(money(cents - north)), &json!(["n/a"])));
    assert_eq!(
        (&totals[2]["sum"], &totals[2]["count"], &totals[2]["bad"]),
        (&json!(money(cents)), &json!(250), &json!(1))
    );
    assert_eq!(results[3], "\"undefined\"", "the analyst has a network");
}
