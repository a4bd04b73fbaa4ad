//! Traces to a collector on a real socket.

use serde_json::json;
use signals::SignalStatus;

use super::*;
use crate::tests::{Fixture, position, send};
use crate::webhook::tests::receiver;
use crate::{Deliveries, TelemetryConfig};

fn at(url: &str) -> TelemetryConfig {
    TelemetryConfig { endpoint: Some(url.to_owned()), ..TelemetryConfig::default() }
}

#[tokio::test]
async fn the_trace_of_each_ended_run_is_posted_without_secrets_until_the_collector_takes_or_rejects_it() {
    let home = Fixture::new();
    // Sent again after 503, given up after 400.
    let (url, mut posts) = receiver(&[503, 200, 400, 200]).await;
    let base = url.strip_suffix("/signals?token=t").unwrap();
    let parts = DeliverParts { telemetry: at(base), ..home.open() };
    let deliveries = Deliveries::start(home.open_again(&parts)).await.unwrap();
    send(&parts, 2, SignalStatus::AwaitingInput).await;
    // Deleted.
    send(&parts, 3, SignalStatus::Completed).await;
    for (run, status) in [(2, SignalStatus::Completed), (4, SignalStatus::Failed), (6, SignalStatus::Cancelled)] {
        send(&parts, run, status).await;
    }
    for run in [2, 2, 4, 6] {
        let (headers, body) = posts.recv().await.unwrap();
        let expected = json!({ "run": format!("run_{run:016}"), "text": "<credential:hook_secret>" });
        assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), expected);
        assert_eq!(headers["content-type"], "application/json");
    }
    deliveries.stop().await;
    assert_eq!(position(&parts, "telemetry"), Some(json!({ "after": 5 })));
    assert!(posts.try_recv().is_err());
}

#[tokio::test]
async fn nothing_is_sent_by_default_and_plain_text_leaves_this_machine_never() {
    let home = Fixture::new();
    let parts = home.open();
    assert!(PostTraces::new(&parts).unwrap().is_none());
    let consumer = |url: &str| PostTraces::new(&DeliverParts { telemetry: at(url), ..home.open_again(&parts) });
    for url in ["http://127.0.0.1:4318", "http://localhost:4318/", "http://[::1]:4318", "https://otlp.example.com/base"]
    {
        assert!(consumer(url).unwrap().is_some(), "{url}");
    }
    for url in ["http://otlp.example.com", "http://10.0.0.1:4318", "127.0.0.1:4318", "ftp://127.0.0.1", ""] {
        let refusal = consumer(url).err().unwrap();
        assert!(refusal.reason.contains("`telemetry.endpoint`") && refusal.remedy.is_some(), "{url}: {refusal:?}");
    }
}
