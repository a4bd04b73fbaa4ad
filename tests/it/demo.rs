//! `motor demo`: no key, no network, no configuration; and numbers that are right.

use std::collections::BTreeMap;
use std::path::Path;

use tests::binary::Motor;

const ORDERS: &str = include_str!("../../host/interfaces/demo/orders.csv");

/// Cents by name of the column, computed here from the orders.
fn cents(column: usize) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for line in ORDERS.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let (units, hundredths) = cells[5].split_once('.').unwrap();
        let price = units.parse::<u64>().unwrap() * 100 + hundredths.parse::<u64>().unwrap();
        *sums.entry(cells[column].to_owned()).or_default() += cells[4].parse::<u64>().unwrap() * price;
    }
    sums
}

/// The rows of the tables in a report: name and cents.
fn rows(report: &str) -> BTreeMap<String, u64> {
    let cells = report.lines().filter_map(|line| line.strip_prefix('|')?.strip_suffix('|')?.split_once('|'));
    let rows = cells.filter_map(|(name, total)| {
        let (units, hundredths) = total.trim().split_once('.')?;
        Some((name.trim().to_owned(), units.parse::<u64>().ok()? * 100 + hundredths.parse::<u64>().ok()?))
    });
    rows.collect()
}

#[test]
fn the_demo_reports_what_the_orders_add_up_to() {
    let motor = Motor::new();
    let ended = motor.run(&["demo"]).succeeded();
    let (regions, products) = (cents(2), cents(3));
    assert!(regions.len() == 4 && products.len() == 5);
    let expected: BTreeMap<String, u64> = regions.clone().into_iter().chain(products).collect();
    assert_eq!(rows(&ended.stdout), expected);
    let total: u64 = regions.values().sum();
    let (best, most) = regions.iter().max_by_key(|(_, cents)| **cents).unwrap();
    let money = |cents: u64| format!("{}.{:02}", cents / 100, cents % 100);
    let answer = ended.stdout.lines().next().unwrap();
    for said in [&format!("{} orders", ORDERS.lines().count() - 1), best, &money(*most), &money(total)] {
        assert!(answer.contains(said.as_str()), "{said:?} is not in {answer:?}");
    }

    let file = ended.stdout.lines().find_map(|line| line.strip_prefix("report: ")).unwrap();
    assert_eq!(rows(&std::fs::read_to_string(Path::new(file)).unwrap()), expected);
    let trace = motor.json(&["task", "status"]);
    assert_eq!((trace["status"].as_str(), trace["toolCalls"].as_u64()), (Some("completed"), Some(4)));
}

#[test]
fn the_demo_needs_no_network() {
    let Some(motor) = Motor::new().without_network() else {
        println!("not tried: a process cannot be put into a network of its own here");
        return;
    };
    assert_eq!(motor.json(&["demo"])["checked"], true);
}

#[test]
fn the_demo_leaves_the_models_of_its_user_alone() {
    let motor = Motor::new().env("LLM_MOTOR_MODEL", "openai/never").env("OPENAI_BASE_URL", "http://127.0.0.1:1/v1");
    motor.run(&["demo"]).succeeded();
    // Again on the same home: a second run beside the first.
    motor.run(&["demo"]).succeeded();
    assert_eq!(motor.json(&["task", "list"]).as_array().unwrap().len(), 2);
}
