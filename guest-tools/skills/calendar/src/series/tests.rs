//! Series against lists that were written by hand, and against hostile arguments.

use motor_sdk::serde_json::{self, Value};

use super::*;

fn answer(arguments: &str) -> Result<String, ToolError> {
    let context = Context { run_id: String::new(), step: 0, deadline_ms: 1_000, idempotency_key: String::new() };
    motor_sdk::call(&crate::tools(), "list_dates", arguments, &context)
}

/// The dates alone, with the ones that they replace.
#[track_caller]
fn check(arguments: &str, expected: &[&str]) {
    let answer = answer(arguments).unwrap_or_else(|error| panic!("{arguments}: {error:?}"));
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let shown = answer["dates"].as_array().unwrap().iter().map(|listed| {
        let date = listed["date"].as_str().unwrap();
        listed["instead_of"].as_str().map_or(date.to_owned(), |before| format!("{date} for {before}"))
    });
    assert_eq!(shown.collect::<Vec<_>>(), expected, "{arguments}");
}

#[track_caller]
fn refused(arguments: &str, expected: &str) {
    assert_eq!(answer(arguments).unwrap_err().sentence(), expected, "{arguments}");
}

#[test]
fn days_and_weeks() {
    check(r#"{"start":"2024-02-28","every":"day","count":3}"#, &["2024-02-28", "2024-02-29", "2024-03-01"]);
    check(
        r#"{"start":"2026-01-01","every":"day","interval":10,"until":"2026-01-31"}"#,
        &["2026-01-01", "2026-01-11", "2026-01-21", "2026-01-31"],
    );
    check(r#"{"start":"2026-01-07","every":"week","count":2}"#, &["2026-01-07", "2026-01-14"]);
    check(
        r#"{"start":"2026-01-07","every":"week","interval":2,"weekdays":["fri","monday","fri"],"count":4}"#,
        &["2026-01-09", "2026-01-19", "2026-01-23", "2026-02-02"],
    );
    check(r#"{"start":"0001-01-07","every":"week","weekdays":["monday"],"count":1}"#, &["0001-01-08"]);
    check(
        r#"{"start":"2026-01-09","every":"business_day","interval":2,"count":3,"holidays":["2026-01-12"]}"#,
        &["2026-01-09", "2026-01-14", "2026-01-16"],
    );
    check(r#"{"start":"2026-01-10","every":"business_day","count":1}"#, &["2026-01-12"]);
}

#[test]
fn months_and_years() {
    check(
        r#"{"start":"2026-01-31","every":"month","count":4}"#,
        &["2026-01-31", "2026-02-28", "2026-03-31", "2026-04-30"],
    );
    check(
        r#"{"start":"2026-01-31","every":"month","count":3,"missing_day":"skip"}"#,
        &["2026-01-31", "2026-03-31", "2026-05-31"],
    );
    check(r#"{"start":"2026-01-15","every":"month","day_of_month":-1,"count":2}"#, &["2026-01-31", "2026-02-28"]);
    check(r#"{"start":"2026-01-15","every":"month","day_of_month":1,"count":2}"#, &["2026-02-01", "2026-03-01"]);
    check(
        r#"{"start":"2026-01-15","every":"month","interval":3,"day_of_month":15,"until":"2026-10-15"}"#,
        &["2026-01-15", "2026-04-15", "2026-07-15", "2026-10-15"],
    );
    // The third Friday, and the last Monday.
    check(
        r#"{"start":"2026-01-01","every":"month","nth":3,"weekdays":["friday"],"count":3}"#,
        &["2026-01-16", "2026-02-20", "2026-03-20"],
    );
    check(r#"{"start":"2026-05-26","every":"month","nth":-1,"weekdays":["monday"],"count":1}"#, &["2026-06-29"]);
    // A fifth Friday is not in every month.
    check(
        r#"{"start":"2026-01-01","every":"month","nth":5,"weekdays":["friday"],"until":"2026-08-31"}"#,
        &["2026-01-30", "2026-05-29", "2026-07-31"],
    );
    check(r#"{"start":"2024-02-29","every":"year","count":3}"#, &["2024-02-29", "2025-02-28", "2026-02-28"]);
    check(r#"{"start":"2024-02-29","every":"year","count":2,"missing_day":"skip"}"#, &["2024-02-29", "2028-02-29"]);
    check(
        r#"{"start":"1896-02-29","every":"year","interval":4,"count":2,"missing_day":"skip"}"#,
        &["1896-02-29", "1904-02-29"],
    );
}

#[test]
fn dates_roll_off_days_that_are_not_worked() {
    let ends = r#"{"start":"2026-01-31","every":"month","day_of_month":-1,"count":3"#;
    check(&format!("{ends}}}"), &["2026-01-31", "2026-02-28", "2026-03-31"]);
    check(
        &format!(r#"{ends},"roll":"following"}}"#),
        &["2026-02-02 for 2026-01-31", "2026-03-02 for 2026-02-28", "2026-03-31"],
    );
    let before = ["2026-01-30 for 2026-01-31", "2026-02-27 for 2026-02-28", "2026-03-31"];
    check(&format!(r#"{ends},"roll":"preceding"}}"#), &before);
    check(&format!(r#"{ends},"roll":"modified_following"}}"#), &before);
    check(
        r#"{"start":"2026-08-15","every":"month","count":1,"roll":"modified_following","holidays":["2026-08-17"]}"#,
        &["2026-08-18 for 2026-08-15"],
    );
    // Two dates that roll onto one day are one.
    check(
        r#"{"start":"2026-01-09","every":"day","count":2,"roll":"following"}"#,
        &["2026-01-09", "2026-01-12 for 2026-01-10"],
    );
    check(
        r#"{"start":"2026-01-10","every":"day","count":2,"roll":"following"}"#,
        &["2026-01-12 for 2026-01-10", "2026-01-13"],
    );
    check(
        r#"{"start":"9999-12-25","every":"day","count":1,"roll":"modified_following","weekend":["saturday"]}"#,
        &["9999-12-26 for 9999-12-25"],
    );
}

#[test]
fn arguments_that_do_not_fit_are_named() {
    let from = |rest: &str| format!(r#"{{"start":"2026-01-01",{rest}}}"#);
    refused(&from(r#""every":"day""#), "give `count` or `until`: the dates go on for ever");
    refused(&from(r#""every":"day","count":0"#), "`count` is 0: ask for at least one date");
    refused(&from(r#""every":"day","count":1001"#), "`count` is 1001, and at most 1000 dates are listed");
    refused(&from(r#""every":"day","count":1,"interval":0"#), "`interval` is 0: it must be 1 to 10000");
    refused(
        &from(r#""every":"day","count":1,"interval":4294967295"#),
        "`interval` is 4294967295: it must be 1 to 10000",
    );
    refused(&from(r#""every":"day","count":1,"nth":1"#), "`nth` goes with `every`: `month` only");
    refused(&from(r#""every":"year","count":1,"day_of_month":1"#), "`day_of_month` goes with `every`: `month` only");
    refused(
        &from(r#""every":"day","count":1,"weekdays":["monday"]"#),
        "`weekdays` goes with `every`: `week`, or `month` with `nth`, only",
    );
    refused(&from(r#""every":"week","count":1,"weekdays":[]"#), "`weekdays` is empty: name a day, or leave it out");
    let together = "with `month`, `nth` and exactly one of `weekdays` go together";
    refused(&from(r#""every":"month","count":1,"nth":1"#), together);
    refused(&from(r#""every":"month","count":1,"weekdays":["monday"]"#), together);
    refused(&from(r#""every":"month","count":1,"nth":1,"weekdays":["monday","friday"]"#), together);
    refused(
        &from(r#""every":"month","count":1,"nth":1,"weekdays":["monday"],"day_of_month":1"#),
        "give `nth` with `weekdays`, or `day_of_month`, not both",
    );
    refused(
        &from(r#""every":"month","count":1,"nth":0,"weekdays":["monday"]"#),
        "`nth` is 0: it must be 1 to 5, or -1 for the last",
    );
    refused(
        &from(r#""every":"month","count":1,"day_of_month":32"#),
        "`day_of_month` is 32: it must be 1 to 31, or -1 for the last",
    );
    refused(
        &from(r#""every":"fortnight","count":1"#),
        "the argument `every` is wrong: unknown variant `fortnight`, expected one of `day`, `business_day`, `week`, `month`, `year`",
    );
}

#[test]
fn the_calendar_and_the_answer_have_an_end() {
    let most = answer(r#"{"start":"2026-01-01","every":"day","count":1000}"#).unwrap();
    assert!(most.contains("2028-09-26") && most.len() < 64 * 1024, "{}", most.len());
    refused(
        r#"{"start":"2026-01-01","every":"day","until":"9999-12-31"}"#,
        "there are more than 1000 dates: give `count`, or a nearer `until`",
    );
    refused(
        r#"{"start":"9999-12-30","every":"day","count":3}"#,
        "the calendar ends with 9999-12-31 before that many dates",
    );
    check(r#"{"start":"9999-12-30","every":"day","until":"9999-12-31"}"#, &["9999-12-30", "9999-12-31"]);
    check(r#"{"start":"2026-01-02","every":"day","until":"2026-01-01"}"#, &[]);
    // There is never a 31st of February.
    check(
        r#"{"start":"2026-02-01","every":"month","interval":12,"day_of_month":31,"missing_day":"skip","until":"9999-12-31"}"#,
        &[],
    );
    refused(
        r#"{"start":"2026-02-01","every":"month","interval":12,"day_of_month":31,"missing_day":"skip","count":1}"#,
        "the calendar ends with 9999-12-31 before that many dates",
    );
    // Every day is free and rolls on to one: the days between are passed over, not looped over for ever.
    refused(
        r#"{"start":"9999-12-25","every":"day","count":9,"roll":"following","weekend":["friday","saturday"]}"#,
        "the result is not between 0001-01-01 and 9999-12-31",
    );
}
