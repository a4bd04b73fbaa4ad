//! `motor demo`: a whole run without a key and without a network.
//!
//! Recorded and real parts: the model's words were recorded once, over this very CSV. Everything they ask for happens
//! on each run: the file is listed and read, the totals are computed in the sandbox, the report is written by a tool.
//! The recorded words hold numbers, so they are not believed: the demo takes the result of the `code` call from this
//! run's trace, and fails unless report and answer state exactly those totals.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use agent::{ActReply, ActRequest, FileInput, Home};
use base::{Refusal, RefusalCode, RunId};
use motor::{RunStatus, RunTrace};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::context::{Context, compile_worker};
use super::follow::{FollowOutcome, follow};
use super::{CliError, Done};
use crate::client::Call;
use crate::exit::CommandExit;
use crate::output::text;
use crate::session::{HostTarget, Session};

const ORDERS: &str = include_str!("../../demo/orders.csv");
const RECORDING: &str = include_str!("../../demo/recording.jsonl");
const REPORT: &str = "report.md";
const TASK: &str = "Work out from orders.csv what every region and every product brought in, write it to report.md, and \
                    say which region did best.";

pub(super) async fn run(context: &Context) -> Done {
    let home = home(context.globals.home.clone())?;
    let (orders, recording) = write_inputs(&home)?;
    let place = HostTarget {
        home: home.clone(),
        config: context.globals.config.clone(),
        overrides: context.globals.settings.clone(),
        // The models that this person has configured are not used.
        env: agent::env::of_list(&[]),
        vault_variables: std::collections::BTreeMap::new(),
        compile_worker: compile_worker(),
        output: context.output.clone(),
        program: None,
    };
    let request = ActRequest {
        task: TASK.to_owned(),
        tools: vec!["code".to_owned(), "filesystem".to_owned()],
        agent: context.agent(),
        files: vec![FileInput { path: orders, name: None }],
        model: Some(format!("replay/{}", recording.display())),
        ..ActRequest::default()
    };
    context.output.say(&format!("task: {TASK}\n"));
    let mut session = Session::open(place).await?;
    let done = act(&request, &mut session, context).await;
    context.leave(session, Ok(CommandExit::Ok)).await?;
    match done? {
        Ok(told) => {
            tell(&told, &home, context)?;
            Ok(CommandExit::Ok)
        }
        Err(exit) => Ok(exit),
    }
}

/// The home that was named, else a temporary one. That stays: the report is in it, and the run can be looked at.
fn home(named: Option<PathBuf>) -> Result<Home, Refusal> {
    let home = match named {
        Some(path) => Home::locate(Some(path), &|_| None)?,
        None => {
            let directory = tempfile::Builder::new().prefix("motor-demo-").tempdir();
            Home::at(directory.map_err(|error| failed(&error))?.keep())
        }
    };
    home.create()?;
    Ok(home)
}

fn write_inputs(home: &Home) -> Result<(PathBuf, PathBuf), Refusal> {
    let directory = home.path().join("demo");
    let (orders, recording) = (directory.join("orders.csv"), directory.join("recording.jsonl"));
    fs::create_dir_all(&directory)
        .and_then(|()| fs::write(&orders, ORDERS))
        .and_then(|()| fs::write(&recording, RECORDING))
        .map_err(|error| failed(&error))?;
    Ok((orders, recording))
}

fn failed(error: &io::Error) -> Refusal {
    Refusal::new(RefusalCode::StorageFailed, format!("the demo's files cannot be written: {error}"))
        .with_remedy("pass a directory that can be written: `--home DIR`")
}

/// The outcome of the demo run. JSON: `{ runId, answer, totals, report, reportFile, checked }`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DemoReport {
    run_id: RunId,
    answer: String,
    /// The totals that the sandbox computed in this run.
    totals: Totals,
    report: String,
    report_file: PathBuf,
    /// Report and answer agree with the totals from the sandbox.
    checked: bool,
    #[serde(skip)]
    tool_calls: u32,
    #[serde(skip)]
    fuel: u64,
    /// The answer was streamed to the terminal that stdout is.
    #[serde(skip)]
    is_shown: bool,
}

/// The result of the demo's program.
#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Totals {
    orders: u64,
    total: String,
    regions: Vec<Total>,
    products: Vec<Total>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Total {
    name: String,
    total: String,
}

async fn act(
    request: &ActRequest,
    session: &mut Session,
    context: &Context,
) -> Result<Result<DemoReport, CommandExit>, CliError> {
    let reply: ActReply = session.ask(&Call::post("/v1/tasks", request)?).await?;
    let ended = match follow(session, &reply.run_id, context).await? {
        FollowOutcome::Ended(ended) => ended,
        FollowOutcome::Interrupted { .. } => return Ok(Err(CommandExit::Interrupted)),
        FollowOutcome::HostGone { .. } => return Err(Refusal::new(RefusalCode::TryLater, "the host stopped").into()),
    };
    context.output.say_trusted(&context.output.err.dim(&format!("{}\n", ended.line())));
    let trace: RunTrace = session.ask(&Call::get(format!("/v1/tasks/{}", reply.run_id))).await?;
    let report_file = reply.workspace.join(REPORT);
    Ok(Ok(DemoReport { is_shown: ended.is_shown, ..judge(&trace, &report_file)? }))
}

/// Reads the run's results, and checks the recorded words against them.
fn judge(trace: &RunTrace, report_file: &Path) -> Result<DemoReport, Refusal> {
    let wrong = |reason: String| {
        Refusal::new(RefusalCode::Failed, reason).with_remedy("`motor task status --home DIR` shows every step")
    };
    let answer = match (trace.status, &trace.summary, &trace.error) {
        (RunStatus::Completed, Some(answer), _) => answer.clone(),
        (status, _, error) => {
            let why = error.as_ref().map(|error| format!(": {}", error.message)).unwrap_or_default();
            return Err(wrong(format!("the demo's run is {status}{why}")));
        }
    };
    let calls = trace.steps.iter().flat_map(|step| &step.tool_calls);
    let computed = calls.clone().find(|call| call.tool == "code").and_then(|call| call.result.as_ref());
    let computed = computed.map(|result| result.output.as_str()).unwrap_or_default();
    let totals: Totals = serde_json::from_str(computed)
        .map_err(|_| wrong(format!("the program in the sandbox returned no totals: {}", text::brief(computed, 200))))?;
    let report = fs::read_to_string(report_file).map_err(|error| wrong(format!("there is no report: {error}")))?;
    if let Some(missing) = disagreement(&totals, &report, &answer) {
        return Err(wrong(format!("the sandbox computed {missing}, and the report or the answer says otherwise")));
    }
    Ok(DemoReport {
        run_id: trace.run_id.clone(),
        answer,
        report,
        report_file: report_file.to_owned(),
        checked: true,
        tool_calls: trace.tool_calls,
        fuel: calls.filter_map(|call| call.fuel).sum(),
        is_shown: false,
        totals,
    })
}

/// The first total that the report does not state beside its name, or that the answer lacks.
fn disagreement(totals: &Totals, report: &str, answer: &str) -> Option<String> {
    let stated = |entry: &&Total| {
        report.lines().any(|line| {
            let mut cells = line.split('|').map(str::trim).filter(|cell| !cell.is_empty());
            cells.next() == Some(&entry.name) && cells.next() == Some(&entry.total)
        })
    };
    let absent = totals.regions.iter().chain(&totals.products).find(|entry| !stated(entry));
    if let Some(entry) = absent {
        return Some(format!("{} for {}", entry.total, entry.name));
    }
    let words = |text: &str, word: &str| {
        text.split_whitespace().any(|found| found.trim_matches(|c: char| !c.is_ascii_alphanumeric()) == word)
    };
    let best = totals.regions.first()?;
    let claims = [totals.orders.to_string(), totals.total.clone(), best.total.clone(), best.name.clone()];
    if let Some(claim) = claims.into_iter().find(|claim| !words(answer, claim)) {
        return Some(format!("{claim} (orders, sum or best region)"));
    }
    (!words(report, &totals.total)).then(|| format!("{} in all", totals.total))
}

fn tell(told: &DemoReport, home: &Home, context: &Context) -> Result<(), CliError> {
    let output = &context.output;
    if output.is_json() {
        output.print_json(told)?;
    } else {
        if !told.is_shown {
            output.print_answer(&told.answer)?;
            output.print_trusted("")?;
        }
        output.print(&told.report)?;
        output.print_trusted(&format!("\nreport: {}", told.report_file.display()))?;
    }
    let (calls, fuel) = (text::plural(told.tool_calls.into(), "tool call"), text::count(told.fuel));
    let home = home.path().display();
    output.say(&format!(
        "\nwhat happened:  a recorded model asked for {calls}; each ran in a sandbox of its own (fuel {fuel} in all), and \
         its words were checked against what the sandbox computed just now"
    ));
    output.say(&format!("look closer:    `motor task status --home {home}`"));
    output.say("your turn:      `motor doctor`, then `motor act \"…\" --tools code,filesystem --file data.csv`");
    Ok(())
}

#[cfg(test)]
mod tests {
    use llm::{Arguments, Replay};

    use super::*;

    /// The totals, worked out from the CSV without any JavaScript: cents by region and product.
    fn independent() -> Totals {
        let mut sums: [Vec<(String, u64)>; 2] = [Vec::new(), Vec::new()];
        let (mut orders, mut sum) = (0, 0);
        for line in ORDERS.lines().skip(1) {
            let cells: Vec<&str> = line.split(',').collect();
            let price: u64 = cells[5].replace('.', "").parse().unwrap();
            let cents = cells[4].parse::<u64>().unwrap() * price;
            orders += 1;
            sum += cents;
            for (sums, name) in sums.iter_mut().zip([cells[2], cells[3]]) {
                match sums.iter_mut().find(|(known, _)| known == name) {
                    Some((_, total)) => *total += cents,
                    None => sums.push((name.to_owned(), cents)),
                }
            }
        }
        let money = |cents: u64| format!("{}.{:02}", cents / 100, cents % 100);
        let [regions, products] = sums.map(|mut sums| {
            sums.sort_by_key(|(_, cents)| std::cmp::Reverse(*cents));
            sums.into_iter().map(|(name, cents)| Total { name, total: money(cents) }).collect()
        });
        Totals { orders, total: money(sum), regions, products }
    }

    /// The recorded model's report, code and answer.
    async fn recorded() -> (String, String, String) {
        let replay = Replay::from_bytes("replay/demo", RECORDING.as_bytes()).unwrap();
        let mut request = llm::ChatRequest::default();
        let (mut report, mut code) = (String::new(), String::new());
        loop {
            let reply = llm::Model::chat(&replay, &request, &mut |_| {}).await.unwrap();
            for call in &reply.tool_calls {
                let Arguments::Json(arguments) = &call.arguments else { panic!("{call:?}") };
                let text = |key: &str| arguments[key].as_str().unwrap().to_owned();
                match call.name.as_str() {
                    "write" => report = text("content"),
                    "code" => code = text("code"),
                    _ => {}
                }
            }
            if reply.tool_calls.is_empty() {
                return (report, code, reply.text);
            }
            request.messages.push(reply.into());
        }
    }

    #[tokio::test]
    async fn the_recording_states_what_the_orders_add_up_to() {
        let (report, code, answer) = recorded().await;
        assert!(code.contains(ORDERS), "the program works on other orders");
        assert_eq!(disagreement(&independent(), &report, &answer), None);
    }

    #[tokio::test]
    async fn another_result_is_noticed() {
        let (report, _, answer) = recorded().await;
        let mut totals = independent();
        totals.products[2].total = "1.00".to_owned();
        assert!(disagreement(&totals, &report, &answer).unwrap().starts_with("1.00 for "));
        let totals = Totals { total: "2.00".to_owned(), ..independent() };
        assert!(disagreement(&totals, &report, &answer).is_some());
        assert!(disagreement(&independent(), &report, "north did best").is_some());
        assert!(disagreement(&independent(), "", &answer).is_some());
    }
}
