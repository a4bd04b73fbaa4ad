//! Waiting for the network is the guest's own time, and ends when its caller says so.

use std::io::Read as _;

use super::*;

#[test]
fn a_call_that_waits_for_the_network_is_cancelled_at_once() {
    let (listener, address) = silent();
    let cancel = CancellationToken::new();
    let later = cancel.clone();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut first = [0; 1];
        stream.read_exact(&mut first).unwrap();
        later.cancel();
        let cancelled = Instant::now();
        // The host closes the connection: nothing of the call is left.
        stream.read_to_end(&mut Vec::new()).ok();
        cancelled
    });
    test(async {
        let arguments = json!({"method": "GET", "url": format!("http://{address}/")});
        let mut call = Call::of("request", arguments, Some(way_to(&address, &[])));
        call.cancel = cancel;
        let called = call.make().await;
        let ended = Instant::now();
        assert_eq!(called.finished.outcome, Outcome::Cancelled);
        assert_eq!(called.finished.requests.len(), 1, "{:?}", called.finished.requests);
        assert!(ended.duration_since(server.join().unwrap()) < tests::AT_ONCE);
    });
}

#[test]
fn waiting_for_the_network_is_the_guests_time() {
    let (listener, address) = silent();
    test(async {
        let arguments = json!({"method": "GET", "url": format!("http://{address}/")});
        let call = Call::of("request", arguments, Some(way_to(&address, &[])));
        call.limits(|limits| limits.deadline_ms = 100).make().await.exceeds(Limit::DeadlineMs);
        assert_benign_works().await;
    });
    drop(listener);
}
