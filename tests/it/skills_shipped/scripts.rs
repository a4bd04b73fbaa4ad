//! The scripts of `csv-analyst` in the sandbox they are made for: tables whose rows are known, and files that want to be read wrong.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use runtime::{
    Access, CodeAccess, CodeReport, CodeSandbox, Component, ComponentOrigin, EngineConfig, Limits, Program, Runtime,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::shipped;

fn sandbox() -> &'static CodeSandbox {
    static SANDBOX: OnceLock<CodeSandbox> = OnceLock::new();
    SANDBOX.get_or_init(|| {
        let config = EngineConfig { cache: Some(tests::cache()), ..EngineConfig::default() };
        let runtime = Runtime::new(config).unwrap();
        let component =
            tests::block_on(Component::load(&runtime, &tests::bundled("code-js-connected"), ComponentOrigin::Bundled))
                .unwrap();
        CodeSandbox::link_connected(&runtime, &component).unwrap()
    })
}

/// A workspace as a run of the skill has one, with files of the user.
fn workspace(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let workspace = tempfile::tempdir().unwrap();
    let scripts = shipped("csv-analyst").join("scripts");
    fs::create_dir(workspace.path().join("scripts")).unwrap();
    for entry in fs::read_dir(scripts).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, workspace.path().join("scripts").join(path.file_name().unwrap())).unwrap();
    }
    for (name, content) in files {
        fs::write(workspace.path().join(name), content).unwrap();
    }
    workspace
}

/// Runs a program with the guard on: the scripts are for programs that a model writes.
fn run(workspace: &Path, source: &str) -> CodeReport {
    let program = Program {
        source: source.to_owned(),
        timeout: Duration::from_secs(300),
        guard: true,
        seed: 7,
        now_ms: 1_000_000,
    };
    let surroundings =
        CodeAccess { workspace: Some(workspace.to_owned().into()), access: Access::ReadWrite, ..CodeAccess::default() };
    tests::block_on(sandbox().execute_in(&program, surroundings, &Limits::default(), &CancellationToken::new()))
}

const LOAD: &str = "const t = await workspace.load('scripts/table.js');\n";

#[track_caller]
fn value_in(workspace: &Path, source: &str) -> Value {
    let report = run(workspace, &format!("{LOAD}{source}"));
    let value = report.outcome.unwrap_or_else(|error| panic!("{source}: {error}"));
    serde_json::from_str(&value.json).unwrap()
}

#[track_caller]
fn value(files: &[(&str, &[u8])], source: &str) -> Value {
    value_in(workspace(files).path(), source)
}

/// A list of expressions, each with its value: one program for all of them.
#[track_caller]
fn check(cases: &[(&str, Value)]) {
    let expressions: Vec<_> = cases.iter().map(|(expression, _)| format!("() => {expression}")).collect();
    let source = format!("return [{}].map((each) => each())", expressions.join(",\n"));
    let found = value(&[], &source);
    for ((expression, expected), found) in cases.iter().zip(found.as_array().unwrap()) {
        assert_eq!(found, expected, "{expression}");
    }
}

#[test]
fn csv_is_read_as_it_is_written() {
    let check = |csv: &[u8], columns: Value, rows: Value, problems: Value| {
        let found = value(
            &[("a.csv", csv)],
            "const r = await t.read('a.csv'); return [r.columns, r.rows.map((row) => Object.values(row)), r.problems]",
        );
        assert_eq!(found, json!([columns, rows, problems]), "{}", String::from_utf8_lossy(csv));
    };
    check(b"a,b\n1,2\n", json!(["a", "b"]), json!([["1", "2"]]), json!([]));
    check(b"a,b\r\n1,2", json!(["a", "b"]), json!([["1", "2"]]), json!([]));
    check(b"a,b\r1,2\r", json!(["a", "b"]), json!([["1", "2"]]), json!([]));
    check(b"a\tb\n1,5\t2\n", json!(["a", "b"]), json!([["1,5", "2"]]), json!([]));
    check(b"a|b\n1|2\n", json!(["a", "b"]), json!([["1", "2"]]), json!([]));
    check(
        b"a,b\n\"x, \"\"y\"\"\",\"line\r\n2\"\n\"\",\n",
        json!(["a", "b"]),
        json!([["x, \"y\"", "line\r\n2"], ["", ""]]),
        json!([]),
    );
    // A comma in quotes does not make a comma the delimiter.
    check(b"a;b\n\"1,2,3\";4\n\"5,6,7\";8\n", json!(["a", "b"]), json!([["1,2,3", "4"], ["5,6,7", "8"]]), json!([]));
    // A quote inside of a cell is a quote.
    check(b"a,b\n5\" pipe,2\n", json!(["a", "b"]), json!([["5\" pipe", "2"]]), json!([]));
    check(b"\n\na,b\n\n1,2\n\n", json!(["a", "b"]), json!([["1", "2"]]), json!([]));
    check(
        b"a,b\n1\n1,2,3\n\"x\"y,2\n",
        json!(["a", "b"]),
        json!([["1", ""], ["1", "2"], ["xy", "2"]]),
        json!(["line 2: has 1 cells, not 2", "line 3: has 3 cells, not 2", "line 4: text after a closing quote"]),
    );
    check(
        b"a,,a,__proto__\n1,2,3,4\n",
        json!(["a", "column_2", "a_2", "__proto__"]),
        json!([["1", "2", "3", "4"]]),
        json!(["line 1: column 2 is called `column_2` here", "line 1: column 3 is called `a_2` here"]),
    );
    check(b"", json!([]), json!([]), json!([]));
    check(b"a,b\n", json!(["a", "b"]), json!([]), json!([]));
    let headless = value(&[("a.csv", b"1,2\n3,4\n")], "return (await t.read('a.csv', { header: false })).rows");
    assert_eq!(headless, json!([{ "column_1": "1", "column_2": "2" }, { "column_1": "3", "column_2": "4" }]));
}

#[test]
fn what_cannot_be_read_is_an_error_that_says_where() {
    let error = |name: &str, content: &[u8], words: &str| {
        let workspace = workspace(&[(name, content)]);
        let found = run(workspace.path(), &format!("{LOAD}return await t.read('{name}')")).outcome.expect_err(name);
        assert!(found.message.contains(words), "{name}: {found}");
    };
    error("a.csv", b"a,b\n1,\"2\n3,4\n", "line 2: a quoted cell does not end");
    error("a.json", b"{\"a\": [1], \"b\": [2]}", "holds 2 lists");
    error("a.json", b"{", "JSON");
    // It begins as UTF-8 and goes on as something else.
    let mut late = format!("{}\n", "ü".repeat(99)).repeat(6_000).into_bytes();
    late.extend_from_slice(b"\xfc\n");
    error("late.csv", &late, "windows-1252");
    let workspace = workspace(&[]);
    let found = run(workspace.path(), &format!("{LOAD}return await t.read('none.csv')")).outcome.unwrap_err();
    assert!(found.message.contains("none.csv"), "{found}");
}

#[test]
fn encodings_are_told_apart() {
    let utf16 = |text: &str, little: bool| -> Vec<u8> {
        let bytes = |unit: u16| if little { unit.to_le_bytes() } else { unit.to_be_bytes() };
        std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(bytes).collect()
    };
    let text = "name,sum\nZoë 😀,€5\n";
    let mut marked = b"\xef\xbb\xbf".to_vec();
    marked.extend_from_slice(text.as_bytes());
    let files: [(&str, &[u8], &str); 5] = [
        ("plain.csv", text.as_bytes(), "utf-8"),
        ("marked.csv", &marked, "utf-8"),
        ("little.csv", &utf16(text, true), "utf-16le"),
        ("big.csv", &utf16(text, false), "utf-16be"),
        ("ansi.csv", b"name,sum\nZo\xeb \x85,\x805\n", "windows-1252"),
    ];
    for (name, content, encoding) in files {
        let found = value(
            &[(name, content)],
            &format!("const r = await t.read('{name}'); return [r.encoding, r.columns, r.rows[0].name, r.rows[0].sum]"),
        );
        let read = if encoding == "windows-1252" { "Zoë …" } else { "Zoë 😀" };
        assert_eq!(found, json!([encoding, ["name", "sum"], read, "€5"]), "{name}");
    }
    // Overlong forms, surrogates and cut sequences are not UTF-8.
    for broken in [&b"a\n\xc0\xaf\n"[..], b"a\n\xed\xa0\x80\n", b"a\n\xe2\x82", b"a\n\xf5\x80\x80\x80\n"] {
        assert_eq!(
            value(&[("a.csv", broken)], "return (await t.read('a.csv')).encoding"),
            "windows-1252",
            "{broken:?}"
        );
    }
}

#[test]
fn numbers_are_exact_and_what_is_none_is_counted() {
    check(&[
        (
            "['1', '-1', '+1', '1.50', '.5', '5.', '1e3', '1.5E-7', '007'].map((cell) => t.plain(cell))",
            json!(["1", "-1", "1", "1.50", "0.5", "5", "1000", "0.00000015", "7"]),
        ),
        (
            "['1,234,567.89', '1 234.5', '1\\u00a0234', \"1'234\", '$1,234.50', '-€5', 'EUR 12', '12 USD', '(1.00)', '12-', '12%', '\\u22123'].map((cell) => t.plain(cell))",
            json!(["1234567.89", "1234.5", "1234", "1234", "1234.50", "-5", "12", "12", "-1.00", "-12", "0.12", "-3"]),
        ),
        (
            "['1.234,50', '1,5', '1 234,5', '1.5'].map((cell) => t.plain(cell, ','))",
            json!(["1234.50", "1.5", "1234.5", null]),
        ),
        (
            "['', ' ', 'x', '1,23', '12,3456', '1.2.3', '--1', '1-2', 'ABC123', 'NaN', 'Infinity', '0x10', '1e9999', null, {}, []].map((cell) => t.plain(cell))",
            json!([null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null]),
        ),
        (
            "[1e21, 1e-7, -0.1, NaN, 10n].map((cell) => t.plain(cell))",
            json!(["1000000000000000000000", "0.0000001", "-0.1", null, "10"]),
        ),
        (
            "t.sum(['0.1', '0.2', '', ' ', 'x', '-0'])",
            json!({ "sum": "0.3", "count": 3, "blank": 2, "bad": 1, "badExamples": ["x"] }),
        ),
        ("t.sum([0.1, 0.2, 0.3]).sum", json!("0.6")),
        ("t.sum(['-1.5', '0.25', '1']).sum", json!("-0.25")),
        ("t.sum(['99999999999999999999.99', '0.01']).sum", json!("100000000000000000000.00")),
        ("t.sum([]).sum", json!("0")),
        (
            "[['1', '2'], ['1.5', '2'], ['1,5'], ['1,234'], ['1,234', '1.5'], ['1,5', '1.5'], ['x.y']].map((cells) => t.decimalMark(cells))",
            json!([".", ".", ",", "either", ".", "none", "none"]),
        ),
        (
            "t.stats(['4', '1', '3', '2', '', 'x'])",
            json!({ "sum": "10", "count": 4, "blank": 1, "bad": 1, "badExamples": ["x"], "mean": 2.5, "min": 1, "p25": 1.75,
                 "median": 2.5, "p75": 3.25, "max": 4, "stdev": (5.0_f64 / 3.0).sqrt() }),
        ),
        (
            "t.stats([])",
            json!({ "sum": "0", "count": 0, "blank": 0, "bad": 0, "badExamples": [], "mean": null, "min": null,
                                "p25": null, "median": null, "p75": null, "max": null, "stdev": null }),
        ),
        (
            "[t.percentile([10, 9, 100], 0.5), t.percentile([1, 2], 0.9), t.percentile([7], 0), t.percentile([], 0.5), t.percentile([1], 2)]",
            json!([10, 1.9, 7, null, null]),
        ),
    ]);
}

#[test]
fn dates_are_read_in_a_stated_order() {
    check(&[
        (
            "['2026-01-07', '2026/1/7', '2026-01-07T23:30:00Z', '20260107', '7 Jan 2026', 'Jan 7th, 2026', 'Wed, 7 January 2026'].map((cell) => t.date(cell))",
            json!(["2026-01-07", "2026-01-07", "2026-01-07", "2026-01-07", "2026-01-07", "2026-01-07", "2026-01-07"]),
        ),
        (
            "['03/04/2026', '2026-02-30', '2026-13-01', '7 Foo 2026', '07/01/26', '', null, '12', 'x'].map((cell) => t.date(cell))",
            json!([null, null, null, null, null, null, null, null, null]),
        ),
        (
            "[t.date('03/04/2026', 'dmy'), t.date('03/04/2026', 'mdy'), t.date('13.04.2026 10:00', 'dmy'), t.date('13/04/2026', 'mdy')]",
            json!(["2026-04-03", "2026-03-04", "2026-04-13", null]),
        ),
        (
            "[['2026-01-01'], ['03/04/2026'], ['03/04/2026', '13/04/2026', ''], ['04/13/2026'], ['13/13/2026'], ['x'], ['']].map((cells) => t.dateOrder(cells))",
            json!([["ymd"], ["dmy", "mdy"], ["dmy"], ["mdy"], [], [], []]),
        ),
        (
            "[1, 59, 60, 61, 46029, 46029.75, 0, -1, 3e9].map((serial) => t.serialDate(serial))",
            json!(["1900-01-01", "1900-02-28", null, "1900-03-01", "2026-01-07", "2026-01-07", null, null, null]),
        ),
        (
            "['2021-01-01', '2026-01-07', '2024-12-30', '2026-12-31'].map((day) => [t.week(day), t.weekday(day), t.quarter(day), t.month(day), t.year(day)])",
            json!([
                ["2020-W53", "Fri", "2021-Q1", "2021-01", "2021"],
                ["2026-W02", "Wed", "2026-Q1", "2026-01", "2026"],
                ["2025-W01", "Mon", "2024-Q4", "2024-12", "2024"],
                ["2026-W53", "Thu", "2026-Q4", "2026-12", "2026"]
            ]),
        ),
        (
            "[t.days('2026-01-01', '2026-03-01'), t.days('2024-02-28', '2024-03-01'), t.days('2026-03-29', '2026-03-28')]",
            json!([59, 2, -1]),
        ),
    ]);
}

#[test]
fn rows_are_grouped_joined_and_written() {
    check(&[
        (
            "t.group([{ a: 1 }, { a: '1' }, { a: 1 }, {}], 'a').map((each) => [each.key ?? 'none', each.rows.length])",
            json!([[1, 2], ["1", 1], ["none", 1]]),
        ),
        ("t.group([{ a: 'x', b: 'y,z' }, { a: 'x,y', b: 'z' }], ['a', 'b']).length", json!(2)),
        (
            "t.join([{ id: 1, x: 2 }, { id: 2 }], [{ id: 1, x: 3 }, { id: 1, x: 4 }, { id: 9 }], 'id')",
            json!({ "rows": [{ "id": 1, "x": 2, "right_x": 3 }, { "id": 1, "x": 2, "right_x": 4 }], "unmatchedLeft": 1, "unmatchedRight": 1, "repeated": 0 }),
        ),
        (
            "(({ rows, repeated }) => [rows.length, repeated])(t.join([{ a: 1 }, { a: 1 }], [{ b: 1 }, { b: 1 }], ['a', 'b'], 'left'))",
            json!([4, 1]),
        ),
        (
            "t.join([{ id: '1' }, { id: '2' }], [{ id: '2', y: 5 }], 'id', 'left').rows",
            json!([{ "id": "1" }, { "id": "2", "y": 5 }]),
        ),
        (
            "t.flatten({ a: { b: { c: 1 } }, d: [1, { e: 2 }], f: null })",
            json!({ "a.b.c": 1, "d": "[1,{\"e\":2}]", "f": null }),
        ),
        (
            "t.toCsv([{ a: 'x,y', b: '=1+1' }, { a: 'q\"', b: '-5.5' }, { a: 'l\\nm', c: '@x' }])",
            json!("a,b,c\r\n\"x,y\",'=1+1,\r\n\"q\"\"\",-5.5,\r\n\"l\nm\",,'@x\r\n"),
        ),
        ("t.toMarkdown([{ a: 'x|y', b: 'l\\nm' }])", json!("| a | b |\n| --- | --- |\n| x\\|y | l m |\n")),
    ]);
}

#[test]
fn json_and_json_lines_are_rows_too() {
    let lines = b"{\"a\":1}\n\n{\"b\":{\"c\":2}}\nnonsense\n[1]\n";
    let found = value(
        &[("a.jsonl", lines)],
        "const { rows, columns, problems } = await t.read('a.jsonl'); return { rows, columns, problems }",
    );
    let problems = json!(["line 4: is not JSON", "line 5: is not an object"]);
    assert_eq!(
        found,
        json!({ "rows": [{ "a": 1 }, { "b": { "c": 2 } }], "columns": ["a", "b"], "problems": problems })
    );
    let found = value(
        &[("a.json", b"\xef\xbb\xbf{\"total\": 2, \"rows\": [{\"a\": 1}, {\"a\": 2}]}")],
        "return t.sum((await t.read('a.json')).rows.map((row) => row.a))",
    );
    assert_eq!(found["sum"], "3");
}

#[test]
fn a_profile_says_what_is_in_each_column() {
    let csv =
        "id,when,amount,zip,note\n1,03/04/2026,\"1.234,50\",01234,\n2,13/04/2026,\"2,5\",01235,x\n2,,n/a,01236,x\n"
            .as_bytes();
    let found = value(&[("a.csv", csv)], "return (await t.profile('a.csv')).columns");
    assert_eq!(
        found,
        json!([
            { "name": "id", "blank": 0, "distinct": 2, "common": ["2", "1"], "number": "." },
            { "name": "when", "blank": 1, "distinct": 2, "common": ["03/04/2026", "13/04/2026"], "dateOrders": ["dmy"] },
            { "name": "amount", "blank": 0, "distinct": 3, "common": ["1.234,50", "2,5", "n/a"], "number": ",", "notNumbers": 1 },
            { "name": "zip", "blank": 0, "distinct": 3, "common": ["01234", "01235", "01236"], "number": "." },
            { "name": "note", "blank": 2 - 1, "distinct": 1, "common": ["x"] },
        ])
    );
}

/// Twenty megabytes, with line breaks in cells and characters of several bytes wherever a piece may end.
#[test]
fn large_files_are_read_row_by_row() {
    let (mut csv, mut cents, mut rows) = (String::from("id,text,amount\n"), 0_u64, 0_u64);
    while csv.len() < 20 << 20 {
        let amount = rows * 7_919 % 100_003;
        let text = if rows.is_multiple_of(5) {
            "\"grün,\n \"\"ü\"\" 😀\""
        } else {
            "Ein Text, nicht".split(',').next().unwrap()
        };
        csv.push_str(&format!("{rows},{text},{}.{:02}\n", amount / 100, amount % 100));
        (cents, rows) = (cents + amount, rows + 1);
    }
    let workspace = workspace(&[("large.csv", csv.as_bytes())]);
    let source = "const amounts = t.adder(); let marked = 0;\n\
                  const seen = await t.each('large.csv', (row) => { amounts.add(row.amount); if (row.text === 'grün,\\n \"ü\" 😀') marked++; });\n\
                  return [seen.rowCount, seen.problemCount, marked, amounts.result()]";
    let report = run(workspace.path(), &format!("{LOAD}{source}"));
    let found = report.outcome.as_ref().unwrap_or_else(|error| panic!("{error}"));
    let sum = format!("{}.{:02}", cents / 100, cents % 100);
    let expected =
        json!([rows, 0, rows.div_ceil(5), { "sum": sum, "count": rows, "blank": 0, "bad": 0, "badExamples": [] }]);
    assert_eq!(serde_json::from_str::<Value>(&found.json).unwrap(), expected);
    // Half of the fuel and of the memory that a call has.
    assert!(report.usage.fuel < Limits::default().fuel / 2, "{:?}", report.usage);
    assert!(report.usage.peak_memory_bytes < Limits::default().memory_bytes / 2, "{:?}", report.usage);
}

/// The size that the recipes promise.
#[test]
fn five_megabytes_are_read_at_once() {
    let mut csv = String::from("id,date,customer,region,product,quantity,price,note\n");
    let mut rows = 0;
    while csv.len() < 5_000_000 {
        csv.push_str(&format!(
            "{rows},2026-01-{:02},customer {},north,tea,{},1.10,\n",
            rows % 28 + 1,
            rows % 997,
            rows % 7
        ));
        rows += 1;
    }
    let workspace = workspace(&[("orders.csv", csv.as_bytes())]);
    let source = "const { rows } = await t.read('orders.csv'); return [rows.length, t.sum(rows.map((row) => row.quantity)).count]";
    let report = run(workspace.path(), &format!("{LOAD}{source}"));
    let found = report.outcome.as_ref().unwrap_or_else(|error| panic!("{error} {:?}", report.usage));
    assert_eq!(found.json, format!("[{rows},{rows}]"));
}

/// Every recipe runs as it stands.
#[test]
fn the_recipes_run() {
    let orders = "order_id,customer_id,date,region,product,quantity,unit_price,amount\n\
                  1,7,2026-01-05,north,tea,3,1.10,3.30\n2,8,2026-01-06,south,cups,2,0.20,0.40\n\
                  2,8,2026-02-09,south,cups,2,0.20,0.40\n3,99,2026-02-10,north,tea,1,1.10,1.10\n";
    let customers = "id,name\n7,Ada\n8,Bob\n9,Cy\n";
    let latency: String =
        std::iter::once("ms\n".to_owned()).chain((1..=99).map(|ms| format!("{ms}\n"))).collect::<String>() + "1000\n";
    let events = "{\"user\":{\"country\":\"DE\"}}\n{\"user\":{\"country\":\"FR\"}}\n{\"user\":{\"country\":\"DE\"}}\n";
    let files: [(&str, &[u8]); 5] = [
        ("orders.csv", orders.as_bytes()),
        ("customers.csv", customers.as_bytes()),
        ("latency.csv", latency.as_bytes()),
        ("events.jsonl", events.as_bytes()),
        ("events.csv", b"kind,amount\nx,0.1\ny,0.2\nx,\n"),
    ];
    let expected = [
        json!([{ "region": "north", "orders": 2, "sum": "4.40", "count": 2, "blank": 0, "bad": 0, "badExamples": [] },
               { "region": "south", "orders": 2, "sum": "0.80", "count": 2, "blank": 0, "bad": 0, "badExamples": [] }]),
        json!({ "sum": "5.20", "count": 4, "blank": 0, "bad": 0, "badExamples": [] }),
        json!([{ "month": "2026-01", "sum": "3.70", "count": 2, "blank": 0, "bad": 0, "badExamples": [] },
               { "month": "2026-02", "sum": "1.50", "count": 2, "blank": 0, "bad": 0, "badExamples": [] }]),
        json!({ "p50": 50.5, "p95": 95.05, "p99": 108.01, "outliers": 1 }),
        json!({ "unmatchedLeft": 1, "unmatchedRight": 1, "repeated": 0, "before": 4, "after": 4 }),
        json!({ "twice": 1, "examples": ["2"], "gaps": [["2026-01-06", "2026-02-09"]] }),
        json!([{ "country": "DE", "events": 2 }, { "country": "FR", "events": 1 }]),
        json!({ "columns": ["kind", "amount"], "rowCount": 3, "problems": [], "problemCount": 0, "encoding": "utf-8", "delimiter": ",",
                "totals": { "x": 2, "y": 1 }, "sum": "0.3", "count": 2, "blank": 1, "bad": 0, "badExamples": [] }),
        json!([{ "region": "north", "total": "4.40" }, { "region": "south", "total": "0.80" }]),
    ];
    let text = fs::read_to_string(shipped("csv-analyst").join("references/recipes.md")).unwrap();
    let blocks: Vec<&str> = text.split("```js\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    // The first block only holds the common beginning.
    assert_eq!(blocks[0].trim(), LOAD.trim().replace('\'', "\""));
    assert_eq!(blocks.len() - 1, expected.len());
    let workspace = workspace(&files);
    for (block, expected) in blocks[1..].iter().zip(expected) {
        let found = value_in(workspace.path(), block);
        assert_close(&found, &expected, block);
    }
    let report = fs::read_to_string(workspace.path().join("report.md")).unwrap();
    assert_eq!(report, "# Orders by region\n\n| region | total |\n| --- | --- |\n| north | 4.40 |\n| south | 0.80 |\n");
}

/// Equal, and numbers as far as a float is exact.
#[track_caller]
fn assert_close(found: &Value, expected: &Value, what: &str) {
    match (found, expected) {
        (Value::Number(found), Value::Number(expected)) => {
            let (found, expected) = (found.as_f64().unwrap(), expected.as_f64().unwrap());
            assert!((found - expected).abs() < 1e-9, "{found} is not {expected}: {what}");
        }
        (Value::Object(found), Value::Object(expected)) if found.len() == expected.len() => {
            for (name, expected) in expected {
                assert_close(&found[name], expected, what);
            }
        }
        _ => assert_eq!(found, expected, "{what}"),
    }
}

/// `workspace.load`, which scripts need: its value, its errors, and that it reaches no other file.
#[test]
fn scripts_of_the_workspace_are_loaded() {
    let workspace = workspace(&[
        ("give.js", b"const inner = 20;\nreturn { twice: (n) => 2 * n, inner };"),
        ("nothing.js", b"const a = 1;"),
        ("nested.js", b"return (await workspace.load('give.js')).twice(4)"),
        ("broken.js", b"const a = 1;\nlet = ;"),
        ("throws.js", b"throw new RangeError('too far')"),
        ("text.js", b"throw 'plain'"),
    ]);
    let run =
        |source: &str| run(workspace.path(), source).outcome.map(|value| value.json).map_err(|error| error.to_string());
    assert_eq!(run("const s = await workspace.load('give.js'); return s.twice(s.inner) + 2").unwrap(), "42");
    assert_eq!(run("return typeof (await workspace.load('nothing.js'))").unwrap(), "\"undefined\"");
    assert_eq!(run("return await workspace.load('nested.js')").unwrap(), "8");
    // The declarations of a script stay its own.
    assert_eq!(run("await workspace.load('nothing.js'); return typeof a").unwrap(), "\"undefined\"");
    for (path, words) in [
        ("broken.js", "broken.js: "),
        ("throws.js", "throws.js: too far"),
        ("text.js", "plain"),
        ("none.js", "none.js"),
        ("scripts", "directory"),
        ("../../etc/passwd", "workspace"),
        ("/etc/passwd", "workspace"),
    ] {
        let error = run(&format!("return await workspace.load('{path}')")).unwrap_err();
        assert!(error.contains(words), "{path}: {error}");
    }
    assert_eq!(run("return await workspace.load('throws.js').catch((error) => error.name)").unwrap(), "\"RangeError\"");
}
