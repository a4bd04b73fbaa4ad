//! Posting to places that behave and places that do not, over real sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::NetworkConfig;

fn gate(private: &[&str]) -> Gate {
    let private = private.iter().map(|text| (*text).to_owned()).collect();
    // No resolver of this machine takes part in a test.
    Gate::new(&NetworkConfig { private, resolver: Some("127.0.0.1:1".to_owned()), ..NetworkConfig::default() }).unwrap()
}

/// Reads one request, whole.
async fn request(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let read = stream.read(&mut piece).await.unwrap();
        text.extend_from_slice(&piece[..read]);
        let head = String::from_utf8_lossy(&text).to_ascii_lowercase();
        if let Some((head, body)) = head.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
            if body.len() >= length.parse().unwrap() || read == 0 {
                return String::from_utf8(text).unwrap();
            }
        }
    }
}

/// A server that answers each request with these bytes, and reports their number and the last one.
async fn server(answer: Vec<u8>) -> (u16, Arc<AtomicUsize>, tokio::sync::watch::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicUsize::new(0));
    let (last, seen) = tokio::sync::watch::channel(String::new());
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
            last.send_replace(request(&mut stream).await);
            // A client that has heard enough may be gone.
            stream.write_all(&answer).await.ok();
        }
    });
    (port, count, seen)
}

async fn post(url: &str) -> Result<StatusCode, GateError> {
    let webhook = Webhook::new(&gate(&[]), url, Duration::from_secs(10)).unwrap();
    webhook.post(&[("content-type", "application/json".to_owned())], b"{\"a\":1}".to_vec()).await
}

#[tokio::test]
async fn a_post_arrives_whole_and_its_status_comes_back() {
    let (port, count, seen) = server(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()).await;
    let status = post(&format!("http://127.0.0.1:{port}/hook?token=t#there")).await.unwrap();
    assert_eq!((status.as_u16(), count.load(Ordering::SeqCst)), (204, 1));
    let text = seen.borrow().clone();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /hook?token=t HTTP/1.1\r\n"), "{head}");
    let head = head.to_ascii_lowercase();
    for line in [
        format!("host: 127.0.0.1:{port}"),
        "content-length: 7".into(),
        "connection: close".into(),
        "content-type: application/json".into(),
    ] {
        assert!(head.lines().any(|found| found == line), "{line:?} is not in {head}");
    }
    assert_eq!(body, "{\"a\":1}");
}

#[tokio::test]
async fn localhost_is_this_machine_without_asking_anybody() {
    let (port, ..) = server(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec()).await;
    assert_eq!(post(&format!("http://localhost:{port}/")).await.unwrap().as_u16(), 200);
}

#[tokio::test]
async fn redirects_are_answers_and_nobody_goes_there() {
    let (elsewhere, reached, _) = server(b"HTTP/1.1 200 OK\r\n\r\n".to_vec()).await;
    for code in [301, 302, 303, 307, 308] {
        let answer =
            format!("HTTP/1.1 {code} Moved\r\nlocation: http://127.0.0.1:{elsewhere}/\r\ncontent-length: 0\r\n\r\n");
        let (port, count, _) = server(answer.into_bytes()).await;
        assert_eq!(post(&format!("http://127.0.0.1:{port}/")).await.unwrap().as_u16(), code);
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }
    assert_eq!(reached.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_answer_is_heard_and_its_body_thrown_away_however_long_it_is() {
    for body in [
        "content-length: 3\r\n\r\nabc".to_owned(),
        // More is promised than comes, and more comes than is read.
        "content-length: 300\r\n\r\nabc".to_owned(),
        format!("content-length: 40000000\r\n\r\n{}", "x".repeat(4 << 20)),
        "transfer-encoding: chunked\r\n\r\nnonsense".to_owned(),
    ] {
        let (port, ..) = server(format!("HTTP/1.1 500 No\r\n{body}").into_bytes()).await;
        assert_eq!(post(&format!("http://127.0.0.1:{port}/")).await.unwrap().as_u16(), 500);
    }
}

#[tokio::test]
async fn what_is_no_answer_is_an_error() {
    for (answer, expected) in [
        ("", "protocol"),
        ("SMTP ready\r\n", "protocol"),
        ("HTTP/1.1 200 OK\r\n", "protocol"),
        (&format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(1 << 20)), "limit"),
    ] {
        let (port, ..) = server(answer.as_bytes().to_vec()).await;
        let error = post(&format!("http://127.0.0.1:{port}/")).await.unwrap_err();
        let found = match error {
            GateError::Protocol { .. } => "protocol",
            GateError::Limit { .. } => "limit",
            other => panic!("{answer:.20}: {other:?}"),
        };
        assert_eq!(found, expected, "{answer:.20}");
    }
    // Bound and dropped: no server listens there.
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    assert!(matches!(post(&format!("http://127.0.0.1:{port}/")).await, Err(GateError::Connect { .. })));
}

#[tokio::test]
async fn a_place_that_does_not_answer_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let webhook = Webhook::new(&gate(&[]), &url, Duration::from_millis(50)).unwrap();
    assert!(matches!(webhook.post(&[], Vec::new()).await, Err(GateError::Timeout { after_ms: 50, .. })));
}

#[test]
fn a_name_must_not_lead_inwards_but_an_address_that_was_written_may() {
    let check = |url: &str, private: &[&str], addresses: &[&str], reached: bool| {
        let webhook = Webhook::new(&gate(private), url, Duration::from_secs(1)).unwrap();
        let addresses: Vec<IpAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
        let unwanted = webhook.unwanted(&addresses);
        assert_eq!(unwanted.is_none(), reached, "{url}: {unwanted:?}");
        if let Some(blocked) = unwanted {
            assert_eq!(blocked.rule, Rule::PrivateAddress);
            assert!(blocked.remedy.contains("network.private"), "{}", blocked.remedy);
        }
    };
    check("https://example.com/", &[], &["93.184.216.34"], true);
    check("https://example.com/", &[], &["10.0.0.1"], false);
    check("https://example.com/", &[], &["93.184.216.34", "127.0.0.1"], false);
    check("https://example.com/", &[], &["169.254.169.254"], false);
    check("https://example.com/", &[], &["::ffff:10.0.0.1"], false);
    check("https://example.com/", &["10.0.0.1:443"], &["10.0.0.1"], true);
    check("https://example.com:8443/", &["10.0.0.1:443"], &["10.0.0.1"], false);
    check("http://10.0.0.1/", &[], &["10.0.0.1"], true);
    check("http://[::1]:8080/", &[], &["::1"], true);
}

#[test]
fn what_is_no_place_to_post_to_is_refused() {
    for (url, rule) in [
        ("example.com", Rule::InvalidUrl),
        ("", Rule::InvalidUrl),
        ("file:///etc/passwd", Rule::Scheme),
        ("https://user:pass@example.com/", Rule::Userinfo),
        ("https://exa mple.com/", Rule::InvalidUrl),
        ("https://example.com/\r\nx: y", Rule::InvalidUrl),
    ] {
        assert_eq!(Webhook::new(&gate(&[]), url, Duration::from_secs(1)).unwrap_err().rule, rule, "{url:?}");
    }
    let webhook = Webhook::new(&gate(&[]), "https://Example.com/secret?token=x", Duration::from_secs(1)).unwrap();
    assert_eq!(
        (webhook.place(), format!("{webhook:?}")),
        ("https://example.com".into(), "Webhook(https://example.com)".into())
    );
}
