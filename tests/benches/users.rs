//! The paths of users, measured from outside in one run: the program's size, whole commands, programs through the socket of a
//! host, and four programs beside other sandboxes.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use runtime::{CodeSandbox, Limits};
use tests::binary::Motor;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::code::{Workload, program, sandbox, workloads};
use crate::peer::Peer;
use crate::stats::{Aim, Times, line};

const PROGRAM: &str = "return 6 * 7";
/// Whole commands of each kind.
const COMMANDS: usize = 15;
/// Requests of each kind over a kept connection.
const REQUESTS: usize = 3_000;
/// How long two connections ask.
const TIME: Duration = Duration::from_secs(3);
/// How often each opponent runs each of the four programs.
const ROUNDS: usize = 15;

pub fn run() -> Result<()> {
    println!("\nusers");
    let size = std::fs::metadata(tests::binary::program_file())?.len();
    line("size of the program", size as f64 / 1e6, "MB", Some(Aim::AtMost(60.0)));
    commands()?;
    let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let sandbox = sandbox()?;
    socket(&executor, &sandbox)?;
    four_programs(&executor, &sandbox)
}

/// One whole command after the other, from start to end.
fn commands() -> Result<()> {
    let timed = |times: &mut Times, work: &mut dyn FnMut() -> Result<()>| {
        let started = Instant::now();
        work()?;
        times.add(started.elapsed());
        anyhow::Ok(())
    };
    let settled = Motor::bare().env("MOTOR_KEYRING", "off");
    let execute = |motor: &Motor| {
        ensure!(motor.stdout(&["execute", PROGRAM]).trim() == "42");
        Ok(())
    };
    execute(&settled)?;
    let (mut first, mut later, mut node) = (Times::default(), Times::default(), Times::default());
    for _ in 0..COMMANDS {
        let fresh = Motor::bare().env("MOTOR_KEYRING", "off");
        timed(&mut first, &mut || execute(&fresh))?;
        timed(&mut later, &mut || execute(&settled))?;
        let mut other = Command::new("node");
        other.args(["-e", "console.log(6 * 7)"]);
        if let Ok(output) = other.output() {
            ensure!(output.status.success(), "node failed");
            timed(&mut node, &mut || other.output().map(drop).map_err(Into::into))?;
        }
    }
    line("first `motor execute` of a new home, p50", first.p50(), "ms", Some(Aim::AtMost(60.0)));
    line("`motor execute` without a host, p50", later.p50(), "ms", Some(Aim::AtMost(12.0)));
    line("`node -e`, p50 (0: there is no Node)", node.p50(), "ms", None);
    Ok(())
}

/// A kept connection to the socket of a host.
struct Connection(BufReader<UnixStream>);

impl Connection {
    async fn open(socket: &Path) -> Result<Self> {
        Ok(Self(BufReader::new(UnixStream::connect(socket).await?)))
    }

    /// One request; the body of the answer.
    async fn ask(&mut self, head: &str, body: &str) -> Result<String> {
        let json = format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        self.0.get_mut().write_all(format!("{head} HTTP/1.1\r\nhost: localhost\r\n{json}").as_bytes()).await?;
        let (mut length, mut row) = (None, String::new());
        loop {
            row.clear();
            self.0.read_line(&mut row).await?;
            let row = row.trim_end();
            if let Some(bytes) = row.to_ascii_lowercase().strip_prefix("content-length:") {
                length = Some(bytes.trim().parse()?);
            }
            if row.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length.context("an answer of known length")?];
        self.0.read_exact(&mut body).await?;
        Ok(String::from_utf8(body)?)
    }

    async fn execute(&mut self) -> Result<()> {
        let answer = self.ask("POST /v1/executions", &serde_json::json!({ "code": PROGRAM }).to_string()).await?;
        ensure!(answer.contains("\"42\""), "{answer}");
        Ok(())
    }
}

/// The sandbox itself, a request that does nothing, and a program through the socket, in turn; then two connections at once.
fn socket(executor: &Runtime, sandbox: &CodeSandbox) -> Result<()> {
    let motor = Motor::bare().env("MOTOR_KEYRING", "off").env("MOTOR_ENERGY_ENABLED", "false");
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    let path = motor.home().join("host.sock");
    executor.block_on(async {
        let mut connection = Connection::open(&path).await?;
        let (mut inside, mut status, mut whole) = (Times::default(), Times::default(), Times::default());
        for _ in 0..REQUESTS {
            let started = Instant::now();
            let report = sandbox.execute(&program(PROGRAM, 5_000), &Limits::default(), &CancellationToken::new()).await;
            inside.add(started.elapsed());
            ensure!(report.outcome.is_ok(), "{:?}", report.outcome);
            let started = Instant::now();
            connection.ask("GET /v1/status", "").await?;
            status.add(started.elapsed());
            let started = Instant::now();
            connection.execute().await?;
            whole.add(started.elapsed());
        }
        line("a program in the sandbox itself, p50", inside.p50(), "ms", None);
        line("`GET /v1/status` through the socket, p50", status.p50(), "ms", None);
        line("a program through the socket, p50", whole.p50(), "ms", None);
        let floor = inside.p50() + status.p50();
        line("  to the two above together", whole.p50() / floor, "x", Some(Aim::AtMost(2.0)));
        let until = Instant::now() + TIME;
        let asking = || async {
            let (mut connection, mut count) = (Connection::open(&path).await?, 0_u32);
            while Instant::now() < until {
                connection.execute().await?;
                count += 1;
            }
            anyhow::Ok(count)
        };
        let (one, other) = tokio::try_join!(asking(), asking())?;
        let rate = f64::from(one + other) / TIME.as_secs_f64();
        line("programs over two connections", rate, "/s", Some(Aim::AtLeast(20_000.0)));
        Ok(())
    })
}

/// The same in Python, for Monty: programs that it can run.
fn in_python(name: &str) -> Option<&'static str> {
    match name {
        "one-liner" => Some("10000 * 1.05 ** 10"),
        "fib(27)" => Some("def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\nfib(27)"),
        _ => None,
    }
}

fn four_programs(executor: &Runtime, sandbox: &CodeSandbox) -> Result<()> {
    let mut peers =
        [("forked Node", Peer::forked()), ("quickjs-emscripten", Peer::quickjs()), ("Monty", Peer::monty())];
    for (name, peer) in &peers {
        if peer.is_none() {
            println!("  {name} cannot be had here: it is not measured");
        }
    }
    for Workload { name, code, repeats, .. } in workloads() {
        let (mut ours, mut theirs) = (Times::default(), <[Times; 3]>::default());
        for round in 0..=ROUNDS {
            for _ in 0..repeats.min(20) {
                let program = program(&code, 5_000);
                let started = Instant::now();
                let report =
                    executor.block_on(sandbox.execute(&program, &Limits::default(), &CancellationToken::new()));
                ensure!(report.outcome.is_ok(), "{name}: {:?}", report.outcome);
                // The first round warms all sides up.
                if round > 0 {
                    ours.add(started.elapsed());
                }
            }
            for ((peer, opponent), times) in peers.iter_mut().zip(&mut theirs) {
                let code = if *peer == "Monty" { in_python(name) } else { Some(code.as_str()) };
                if let (Some(opponent), Some(code)) = (opponent, code) {
                    let time = opponent.run(code)?;
                    if round > 0 {
                        times.add(time);
                    }
                }
            }
        }
        line(&format!("{name} p50"), ours.p50(), "ms", None);
        for ((peer, _), times) in peers.iter().zip(&mut theirs) {
            let theirs = times.p50();
            if theirs > 0.0 {
                let aim = (*peer == "quickjs-emscripten").then_some(Aim::AtLeast(1.0));
                line(&format!("  {peer}"), theirs, "ms", None);
                line("  ratio", theirs / ours.p50(), "x", aim);
            }
        }
    }
    Ok(())
}
