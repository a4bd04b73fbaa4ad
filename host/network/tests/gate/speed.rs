//! What the gate costs. A measurement, not a test of correctness.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::server::Server;
use crate::setup::{LIMITS, Setup, get};

const ROUNDS: usize = 3000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures"]
async fn measure() {
    let server = Server::ok("hello").await;
    let address = server.address.to_string();
    let plain = Setup::default().reaching(server.address).run();
    let run = Setup::default().reaching(server.address).credential("key", "swordfish42", &address).run();
    let url = server.url("/");
    let limits =
        network::CallLimits { requests: u64::MAX, request_bytes: u64::MAX, response_bytes: u64::MAX, ..LIMITS };
    let (mut direct, mut gate, mut scrubbed) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        direct.push(timed(fetch(&server)).await);
        gate.push(timed(async { get(&plain.call(limits.clone()), &url).await.unwrap() }).await);
        scrubbed.push(timed(async { get(&run.call(limits.clone()), &url).await.unwrap() }).await);
    }
    let [direct, gate, scrubbed] = [direct, gate, scrubbed].map(median);
    println!("p50 of {ROUNDS}: direct {direct:?}, gate {gate:?}, gate with a credential to scrub {scrubbed:?}");
    println!("the gate adds {:?}, with scrubbing {:?}", gate.saturating_sub(direct), scrubbed.saturating_sub(direct));

    let server = Server::ok(&"0123456789abcdef".repeat(8 << 20)).await;
    for (name, setup) in [
        ("nothing to scrub", Setup::default()),
        ("one secret to scrub", Setup::default().credential("key", "swordfish42", "nowhere.example")),
    ] {
        let call = setup.reaching(server.address).run().call(limits.clone());
        let mut body = call
            .send(crate::setup::request("GET", &server.url("/"), &[], ""), network::Timeouts::default())
            .await
            .unwrap()
            .into_body();
        let (started, mut bytes) = (Instant::now(), 0);
        while let Some(frame) = body.frame().await {
            bytes += frame.unwrap().into_data().unwrap().len();
        }
        println!("{name}: {:.0} MB/s", bytes as f64 / 1e6 / started.elapsed().as_secs_f64());
    }
}

async fn timed<T>(work: impl Future<Output = T>) -> Duration {
    let started = Instant::now();
    work.await;
    started.elapsed()
}

/// The same request by the same library, without the gate.
async fn fetch(server: &Server) -> Bytes {
    let stream = TcpStream::connect(server.address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    let request = http::Request::builder().uri("/").header("host", server.address.to_string());
    let exchange = async move {
        let response = sender.send_request(request.body(Empty::<Bytes>::new()).unwrap()).await.unwrap();
        response.into_body().collect().await.unwrap().to_bytes()
    };
    // In the same task, as the gate does it: a hand-over to another thread would be measured instead.
    let (bytes, connection) = tokio::join!(exchange, connection);
    connection.unwrap();
    bytes
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
