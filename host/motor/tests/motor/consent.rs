//! The owner's consent, given by a gate whose clock shows any time.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;

use base::{Clock, Door, Secret, SystemClock, TestClock, Timestamp};
use consent::{Claim, Consent, ConsentGate, OwnerToken, TokenFile};
use store::{SimulatedDisk, Store};

/// Consent at the present time.
pub fn consent() -> Consent {
    consent_at(SystemClock::default().now())
}

/// Consent at a time.
pub fn consent_at(at: Timestamp) -> Consent {
    // In a thread of its own: the caller's runtime may have its time paused.
    thread_local!(static GATE: (ConsentGate, OwnerToken, Arc<TestClock>) = thread::spawn(open).join().unwrap());
    GATE.with(|(gate, token, clock)| {
        clock.jump(at.as_millis().cast_signed() - clock.now().as_millis().cast_signed());
        let claim = Claim { door: Door::Terminal, token: Some(Secret::new(token.expose().to_owned())) };
        match pin!(gate.admit(claim)).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(consent) => consent.unwrap(),
            Poll::Pending => unreachable!("the right token never waits"),
        }
    })
}

#[tokio::main(flavor = "current_thread")]
async fn open() -> (ConsentGate, OwnerToken, Arc<TestClock>) {
    let config = tempfile::tempdir().unwrap();
    let clock = Arc::new(TestClock::at(Timestamp::from_millis(0)));
    let store = Store::simulated(SimulatedDisk::new(0)).unwrap();
    let gate = ConsentGate::open(store, clock.clone(), config.path().to_owned()).await.unwrap();
    let token = TokenFile::read(config.path()).unwrap().unwrap().open(|| unreachable!()).unwrap();
    (gate, token, clock)
}
