//! Posts to a receiver on a real socket.

use std::collections::BTreeMap;

use serde_json::json;
use signals::SignalStatus;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;

use super::*;
use crate::Deliveries;
use crate::tests::{Fixture, position, send, webhook};

/// A receiver of posts: answers with the statuses in turn, and with 204 after the last one.
pub(crate) async fn receiver(
    statuses: &'static [u16],
) -> (String, mpsc::UnboundedReceiver<(BTreeMap<String, String>, String)>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/signals?token=t", listener.local_addr().unwrap());
    let (sender, posts) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut statuses = statuses.iter();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut text = String::new();
            let mut piece = [0; 4_096];
            let (headers, body) = loop {
                let read = stream.read(&mut piece).await.unwrap();
                text.push_str(std::str::from_utf8(&piece[..read]).unwrap());
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let fields = head.lines().filter_map(|line| line.split_once(": "));
                let fields = fields.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
                let headers: BTreeMap<_, _> = fields.collect();
                if headers["content-length"].parse::<usize>().unwrap() == body.len() {
                    break (headers, body.to_owned());
                }
            };
            sender.send((headers, body)).unwrap();
            let status = statuses.next().copied().unwrap_or(204);
            let answer = format!("HTTP/1.1 {status} X\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (url, posts)
}

#[tokio::test]
async fn posts_are_signed_and_tried_again_until_they_are_acknowledged() {
    let home = Fixture::new();
    let (url, mut posts) = receiver(&[500, 302, 410]).await;
    let parts = home.open_with(webhook(&url, "hook_secret"));
    let deliveries = Deliveries::start(home.open_again(&parts)).await.unwrap();
    let first = send(&parts, 1, SignalStatus::AwaitingInput).await;
    let second = send(&parts, 2, SignalStatus::Completed).await;
    let mut keys = Vec::new();
    for signal in [&first, &first, &first, &first, &second] {
        let (headers, body) = posts.recv().await.unwrap();
        assert_eq!(serde_json::from_str::<Signal>(&body).unwrap(), *signal);
        let secrets = parts.vault.for_run(&[CredentialName::parse("hook_secret").unwrap()], None).unwrap();
        let signed = format!("{}.{body}", headers["motor-timestamp"]);
        let code = compute_hex(secrets.get("hook_secret").unwrap(), &signed);
        assert_eq!(headers["motor-signature"], format!("v1={code}"));
        assert_eq!(
            (headers["motor-signal-id"].as_str(), headers["motor-timestamp"].as_str()),
            (signal.id.to_string().as_str(), "1700000000")
        );
        assert_eq!(headers["content-type"], "application/json");
        keys.push(headers["idempotency-key"].clone());
    }
    assert!(keys[..4].iter().all(|key| *key == keys[0]) && keys[4] != keys[0], "{keys:?}");
    let (home_name, id) = keys[0].rsplit_once('-').unwrap();
    assert!(home_name.len() == 32 && id == "1", "{keys:?}");
    deliveries.stop().await;
    assert_eq!(position(&parts, "webhook"), Some(json!({ "after": 2 })));
    // The home keeps its name.
    let (url, mut posts) = receiver(&[]).await;
    let again = Deliveries::start(DeliverParts { config: webhook(&url, "hook_secret"), ..home.open_again(&parts) });
    let again = again.await.unwrap();
    send(&parts, 3, SignalStatus::Completed).await;
    assert_eq!(posts.recv().await.unwrap().0["idempotency-key"], format!("{home_name}-3"));
    again.stop().await;
}

fn compute_hex(secret: &vault::GrantedCredential, text: &str) -> String {
    vault::compute::hmac_sha256(secret, text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn nothing_is_posted_unsigned() {
    let home = Fixture::new();
    let (url, mut posts) = receiver(&[]).await;
    let parts = home.open_with(webhook(&url, "other"));
    let consumer = PostWebhook::new(parts.config.webhook.as_ref().unwrap(), &parts).unwrap();
    let signal = send(&parts, 1, SignalStatus::Completed).await;
    let error = consumer.deliver(&signal).await.unwrap_err();
    assert!(error.contains("cannot be signed") && error.contains("`other`"), "{error}");
    assert!(posts.try_recv().is_err());
    let config = webhook(&url, "hook_secret");
    let consumer = PostWebhook::new(config.webhook.as_ref().unwrap(), &parts).unwrap();
    consumer.deliver(&signal).await.unwrap();
    assert!(posts.try_recv().is_ok());
}

#[tokio::test]
async fn an_endpoint_that_fails_is_told_without_its_path() {
    let home = Fixture::new();
    let (url, _posts) = receiver(&[503]).await;
    let parts = home.open_with(webhook(&url, "hook_secret"));
    let consumer = PostWebhook::new(parts.config.webhook.as_ref().unwrap(), &parts).unwrap();
    let error = consumer.deliver(&send(&parts, 1, SignalStatus::Completed).await).await.unwrap_err();
    assert!(error.ends_with("answers 503") && !error.contains("token"), "{error}");
}

#[tokio::test]
async fn a_value_that_is_one_as_a_whole_only_is_not_posted() {
    let home = Fixture::new();
    let (url, mut posts) = receiver(&[]).await;
    let parts = home.open_with(webhook(&url, "hook_secret"));
    let consumer = PostWebhook::new(parts.config.webhook.as_ref().unwrap(), &parts).unwrap();
    let mut signal = send(&parts, 1, SignalStatus::Completed).await;
    let secret = b"a secret of the hook".as_slice();
    signal.body.failure = Some(json!({ "bytes": secret, "near": secret.get(1..), "text": "a secret of the hook" }));
    consumer.deliver(&signal).await.unwrap();
    let posted: Signal = serde_json::from_str(&posts.recv().await.unwrap().1).unwrap();
    let [value, whole] = ["<credential:hook_secret>", "[<credential:hook_secret>]"];
    let clean = json!({ "bytes": whole, "near": secret.get(1..), "text": value });
    assert_eq!((posted.id, posted.body.failure), (signal.id, Some(clean)));
}
