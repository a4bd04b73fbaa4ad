//! The benign twin of the hostile guests: this works before, beside and after any limit that ends them. Its `append` is
//! not repeatable, so a host that ran a call twice would be found out by the file.

use std::{fs::OpenOptions, io::Write as _, thread, time::Duration};

use motor_sdk::{Context, Effects, Tool, ToolError, log, progress, serde_json::json};

motor_sdk::arguments! {
    struct Echo {
        /// What to give back.
        text: String,
    }

    struct Primes {
        /// Up to which number, at most 10,000,000.
        below: u32,
    }

    struct Append {
        /// The file, relative to the workspace.
        path: String,
        /// The line to add.
        line: String,
        /// Milliseconds to wait after the line is written, so that a test can end the host meanwhile.
        wait_ms: Option<u64>,
    }

    struct Fail {
        /// `denied`, `missing`, `bad-input`, `limit`, `failed` or `failed-for-now`.
        how: String,
    }

    struct Nothing {}
}

fn echo(arguments: Echo, _context: &Context) -> Result<String, ToolError> {
    Ok(arguments.text)
}

fn primes(arguments: Primes, _context: &Context) -> Result<String, ToolError> {
    if arguments.below > 10_000_000 {
        return Err(ToolError::limit("`below` is over 10,000,000"));
    }
    let below = usize::try_from(arguments.below).unwrap_or(0);
    let mut composite = vec![false; below];
    let mut count = 0_u32;
    for number in 2..below {
        if composite.get(number) == Some(&false) {
            count += 1;
            composite.iter_mut().skip(number * 2).step_by(number).for_each(|composite| *composite = true);
        }
    }
    Ok(count.to_string())
}

fn append(arguments: Append, _context: &Context) -> Result<String, ToolError> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .open(format!("/workspace/{}", arguments.path))
        .and_then(|mut file| file.write_all(format!("{}\n", arguments.line).as_bytes()))
        .map_err(|error| ToolError::failed(format!("`{}`: {}", arguments.path, error.kind())))?;
    thread::sleep(Duration::from_millis(arguments.wait_ms.unwrap_or(0)));
    Ok("appended".to_owned())
}

fn fail(arguments: Fail, _context: &Context) -> Result<String, ToolError> {
    let reason = "as it was asked to";
    Err(match arguments.how.as_str() {
        "denied" => ToolError::denied(reason),
        "missing" => ToolError::missing(reason),
        "limit" => ToolError::limit(reason),
        "failed" => ToolError::failed(reason),
        "failed-for-now" => ToolError::failed_for_now(reason),
        _ => ToolError::bad_input(reason),
    })
}

fn describe(_arguments: Nothing, context: &Context) -> Result<String, ToolError> {
    log::info("a line");
    progress::report("half of it", Some(0.5));
    Ok(json!({
        "runId": context.run_id,
        "step": context.step,
        "deadlineMs": context.deadline_ms,
        "idempotencyKey": context.idempotency_key,
    })
    .to_string())
}

/// A static is per instance: in a fresh instance for each call the answer is always 1.
fn count(_arguments: Nothing, _context: &Context) -> Result<String, ToolError> {
    use std::sync::atomic::{AtomicU32, Ordering};
    static CALLS: AtomicU32 = AtomicU32::new(0);
    Ok((CALLS.fetch_add(1, Ordering::Relaxed) + 1).to_string())
}

fn tools() -> Vec<Tool> {
    vec![
        Tool::new("ok", "Gives back its text.", echo).read_only(),
        Tool::new("primes", "Counts primes.", primes).read_only(),
        Tool::new("append_line", "Adds a line to a file.", append).effects(Effects {
            read_only: false,
            destructive: false,
            idempotent: false,
            open_world: false,
        }),
        Tool::new("fail", "Fails in the way it is told.", fail).read_only(),
        Tool::new("context", "Tells the circumstances of the call.", describe).read_only(),
        Tool::new("count", "Counts the calls of this instance.", count).read_only(),
        Tool::new("unmarked", "Says nothing about its effects.", echo),
    ]
}

motor_sdk::export!(tools);
