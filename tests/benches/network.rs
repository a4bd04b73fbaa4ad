//! The cost of the network: the gate over a loopback request, the scrubber over text, the shell over a command.

use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use base::{CredentialName, Secret};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Full};
use hyper_util::rt::TokioIo;
use network::{CallLimits, Gate, NetworkConfig, Policy, Taint, Timeouts};
use runtime::{Component, ComponentOrigin, EngineConfig, Limits, Outcome, Runtime, ToolCall, ToolComponent};
use tokio_util::sync::CancellationToken;
use vault::{GrantedCredential, RunSecrets, Scrubber};

use crate::stats::{Aim, Times, line};

/// Requests of each of the kinds.
const ROUNDS: usize = 2_000;
/// Bytes of a small request.
const SENT: usize = 1 << 10;
/// A small request as programs send it.
static SMALL_BODY: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let json = r#"{"id":4711,"name":"customer 12","amount":12.50,"tags":["a","b"],"note":"nothing \"special\""},"#;
    json.bytes().cycle().take(SENT).collect()
});
/// Secrets that the scrubber looks for.
const SECRETS: usize = 100;
/// Text it looks through, in bytes.
const TEXT: usize = 16 << 20;

pub fn run() -> Result<()> {
    println!("\nnetwork");
    let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    executor.block_on(gate())?;
    scrubber()?;
    executor.block_on(shell())
}

/// A server on this machine that answers every request with the same few bytes.
fn server() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            if stream.read(&mut request).is_ok() {
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello").ok();
            }
        }
    });
    Ok(address)
}

async fn gate() -> Result<()> {
    let address = server()?;
    let config = NetworkConfig { private: vec![address.to_string()], ..NetworkConfig::default() };
    // The measured writes come after reads, and pass by a shape of the owner.
    let writes = vec![format!("POST {address}/").parse()?];
    let policy = Policy { domains: vec![address.to_string().parse()?], writes, ..Policy::default() };
    let gate = Gate::new(&config)?;
    let plain = gate.run(policy.clone(), Arc::new(RunSecrets::default()), Taint::default());
    let granted = GrantedCredential {
        name: CredentialName::parse("key")?,
        value: Secret::new(secret(0)),
        domains: vec![address.to_string()],
        raw: false,
    };
    let secrets = RunSecrets::new(vec![granted], Arc::new(Scrubber::new(secrets()?)));
    let scrubbed = gate.run(policy, Arc::new(secrets), Taint::default());
    let (mut direct, mut through, mut with_secrets) = (Times::default(), Times::default(), Times::default());
    let (mut sent, mut searched) = (Times::default(), Times::default());
    for _ in 0..ROUNDS {
        direct.add(timed(straight(address)).await?);
        through.add(timed(guarded(&plain, address, b"")).await?);
        with_secrets.add(timed(guarded(&scrubbed, address, b"")).await?);
        sent.add(timed(guarded(&plain, address, &SMALL_BODY)).await?);
        searched.add(timed(guarded(&scrubbed, address, &SMALL_BODY)).await?);
    }
    let floor = direct.p50();
    line("loopback request without the gate, p50", floor, "ms", None);
    line("added by the gate, p50", through.p50() - floor, "ms", Some(Aim::AtMost(0.3)));
    line("added by the gate with 100 secrets, p50", with_secrets.p50() - floor, "ms", Some(Aim::AtMost(0.3)));
    let added = searched.p50() - sent.p50();
    line("added by searching a request of 1 KiB, 100 secrets, p50", added, "ms", Some(Aim::AtMost(0.05)));
    Ok(())
}

async fn timed(work: impl Future<Output = Result<Bytes>>) -> Result<Duration> {
    let started = Instant::now();
    ensure!(work.await? == "hello");
    Ok(started.elapsed())
}

/// The same library, straight to the server.
async fn straight(address: SocketAddr) -> Result<Bytes> {
    let stream = tokio::net::TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let request = http::Request::builder().uri("/").header("host", address.to_string()).body(Empty::<Bytes>::new())?;
    let exchange = async move {
        let response = sender.send_request(request).await?;
        Ok::<_, hyper::Error>(response.into_body().collect().await?.to_bytes())
    };
    // In one task, as the gate does it: a hand-over to another thread would be measured instead.
    let (bytes, connection) = tokio::join!(exchange, connection);
    connection?;
    Ok(bytes?)
}

async fn guarded(run: &network::RunNetwork, address: SocketAddr, body: &'static [u8]) -> Result<Bytes> {
    let limits = CallLimits { requests: 1, request_bytes: 1 << 20, response_bytes: 1 << 20, idempotency_key: None };
    let method = if body.is_empty() { "GET" } else { "POST" };
    let body = Full::new(Bytes::from_static(body)).map_err(|never| match never {}).boxed_unsync();
    let request = http::Request::builder().method(method).uri(format!("http://{address}/")).body(body)?;
    let response = run.call(limits).send(request, Timeouts::default()).await?;
    Ok(response.into_body().collect().await?.to_bytes())
}

fn secret(number: usize) -> String {
    format!("sk-live-{:016x}-{number}", (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

fn secrets() -> Result<Vec<(CredentialName, Secret<String>)>> {
    let named = |number| Ok((CredentialName::parse(&format!("key_{number}"))?, Secret::new(secret(number))));
    (0..SECRETS).map(named).collect()
}

fn scrubber() -> Result<()> {
    let scrubber = Arc::new(Scrubber::new(secrets()?));
    let prose = "The quick brown fox jumps over the lazy dog, and 17 others watch it from 42 metres away.\n";
    let json = r#"{"id":4711,"name":"customer 12","amount":12.50,"tags":["a","b"],"note":"nothing \"special\""},"#;
    let html = "<p class=\"x\">The fox &amp; the lazy dog, 100% of them;\n<a href='/a?b=1&c=2'>go on</a></p>\n";
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |n: u64| char::from(digits[(n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize]);
    let base64: String = (0..60_000).map(digit).collect();
    let percent = "%D0%BF%D1%80%D0%B8%D0%B2%D0%B5%D1%82+";
    let kinds = [
        ("prose", prose),
        ("JSON", json),
        ("base64", base64.as_str()),
        ("HTML full of entities", html),
        ("nothing but %-escapes", percent),
    ];
    for (name, piece) in kinds {
        let text = piece.repeat(TEXT / piece.len()).into_bytes();
        let mut times = Times::default();
        for _ in 0..15 {
            let started = Instant::now();
            let mut stream = scrubber.stream();
            for piece in text.chunks(16 << 10) {
                black_box(stream.push(piece));
            }
            black_box(stream.finish());
            times.add(started.elapsed());
        }
        let speed = text.len() as f64 / 1_000.0 / times.p50();
        line(&format!("scrubbing {name}, 100 secrets"), speed, "MB/s", Some(Aim::AtLeast(200.0)));
    }
    Ok(())
}

async fn shell() -> Result<()> {
    let cache = tempfile::tempdir()?;
    let runtime = Runtime::new(EngineConfig { cache: Some(cache.path().into()), ..EngineConfig::default() })?;
    let component = Component::load(&runtime, &tests::bundled("bash"), ComponentOrigin::Bundled).await?;
    let bash = ToolComponent::link(&runtime, &component)?;
    let workspace = tempfile::tempdir()?;
    let mut times = Times::default();
    let mut memory = 0;
    for _ in 0..200 {
        let started = Instant::now();
        let finished = bash
            .call(ToolCall {
                name: "bash",
                arguments: r#"{"script":"echo hi"}"#,
                run_id: "",
                step: 0,
                idempotency_key: "",
                workspace: Some(workspace.path().to_owned().into()),
                network: None,
                scripts: None,
                environment: Vec::new(),
                seeded: None,
                limits: Limits::default(),
                notes: Arc::new(|_| ()),
                cancel: CancellationToken::new(),
            })
            .await;
        times.add(started.elapsed());
        memory = memory.max(finished.usage.peak_memory_bytes);
        ensure!(
            matches!(&finished.outcome, Outcome::Returned(output) if output.contains("hi")),
            "{:?}",
            finished.outcome
        );
    }
    line("`bash -c 'echo hi'` in the sandbox, p50", times.p50(), "ms", Some(Aim::AtMost(3.0)));
    line("the same, p99", times.p99(), "ms", None);
    line("memory of that instance", memory as f64 / (1 << 20) as f64, "MiB", Some(Aim::AtMost(24.0)));
    let mut forked = Times::default();
    for _ in 0..50 {
        let started = Instant::now();
        let output = std::process::Command::new("bash").args(["-c", "echo hi"]).output().context("bash")?;
        forked.add(started.elapsed());
        ensure!(output.stdout == b"hi\n");
    }
    line("a forked `bash -c 'echo hi'`, no isolation, p50", forked.p50(), "ms", None);
    // The least that a container is: new namespaces around a process. Engines add a file system and a daemon to that.
    let mut namespaced = Times::default();
    for _ in 0..20 {
        let started = Instant::now();
        let mut command = std::process::Command::new("unshare");
        let output = command.args(["-Urmpfn", "--mount-proc", "bash", "-c", "echo hi"]).output().context("unshare")?;
        namespaced.add(started.elapsed());
        if output.stdout != b"hi\n" {
            println!("  (this machine lets nobody make namespaces: not compared with a container's)");
            return Ok(());
        }
    }
    line("the same in fresh namespaces, p50", namespaced.p50(), "ms", None);
    line("the sandbox is faster than that by", namespaced.p50() / times.p50(), "times", None);
    Ok(())
}
