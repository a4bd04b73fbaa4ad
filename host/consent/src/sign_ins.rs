//! The browsers in which the owner signed in (SPEC CONSENT-1, WEB-1). Kept in memory alone: a host that starts knows none.

use std::collections::HashMap;
use std::time::Duration;

use base::{ConsentRecord, ContentHash, Door, Secret, Timestamp};
use parking_lot::Mutex;

use crate::gate::{Claim, Consent, ConsentGate, OWNER};
use crate::token::random;
use crate::{ConsentError, OwnerToken};

/// How a session begins in text.
const SESSION: &str = "motor-session-";
/// How the code of a link begins in text.
const CODE: &str = "motor-link-";
/// The time after its last use for which a session is good.
const IDLE: Duration = Duration::from_secs(12 * 60 * 60);
/// The time for which a link is good.
const LINK: Duration = Duration::from_secs(2 * 60);
/// Sessions and links of one host. The one that was not used for longest makes room.
const MAX: usize = 32;

/// Proofs that follow from the owner's token, by the hash of their text.
#[derive(Debug, Default)]
pub(crate) struct SignIns {
    sessions: Mutex<HashMap<ContentHash, Proof>>,
    links: Mutex<HashMap<ContentHash, Proof>>,
}

#[derive(Debug, Clone, Copy)]
struct Proof {
    /// The hash of the owner's token that was shown. The proof is void once that token is replaced.
    token: ContentHash,
    used: Timestamp,
}

fn issue(
    proofs: &Mutex<HashMap<ContentHash, Proof>>,
    prefix: &str,
    proof: Proof,
) -> Result<Secret<String>, ConsentError> {
    let text = random(prefix)?;
    let mut proofs = proofs.lock();
    if proofs.len() >= MAX
        && let Some(oldest) = proofs.iter().min_by_key(|(_, proof)| proof.used).map(|(hash, _)| *hash)
    {
        proofs.remove(&oldest);
    }
    proofs.insert(ContentHash::of(text.expose().as_bytes()), proof);
    Ok(text)
}

impl ConsentGate {
    /// Signs the owner in, and returns the text by which the browser is known from then on.
    ///
    /// # Errors
    /// When the token is not the owner's.
    pub async fn sign_in(&self, token: Secret<String>) -> Result<Secret<String>, ConsentError> {
        let proof = self.prove(Claim { door: Door::Web, token: Some(token) }).await?;
        issue(&self.sign_ins.sessions, SESSION, proof)
    }

    /// Makes the code of a link that signs one browser in, within two minutes.
    ///
    /// # Errors
    /// When the claim is refused.
    pub async fn make_link(&self, claim: Claim) -> Result<Secret<String>, ConsentError> {
        let proof = self.prove(claim).await?;
        issue(&self.sign_ins.links, CODE, proof)
    }

    /// Signs the owner in by the code of a link, which is used up by that.
    ///
    /// # Errors
    /// When the code is unknown, used or too old.
    pub async fn follow_link(&self, code: &str) -> Result<Secret<String>, ConsentError> {
        let proof = self.sign_ins.links.lock().remove(&ContentHash::of(code.as_bytes()));
        match proof.filter(|proof| self.is_good(proof, LINK)) {
            Some(proof) => issue(&self.sign_ins.sessions, SESSION, Proof { used: self.clock.now(), ..proof }),
            None => Err(self.attempts.wrong().await),
        }
    }

    /// The consent of the owner in a browser, if the owner signed in there and did not sign out.
    #[must_use]
    pub fn signed_in(&self, session: &str) -> Option<Consent> {
        let now = self.clock.now();
        let mut sessions = self.sign_ins.sessions.lock();
        sessions.retain(|_, proof| self.is_good(proof, IDLE));
        let proof = sessions.get_mut(&ContentHash::of(session.as_bytes()))?;
        proof.used = now;
        Some(Consent(ConsentRecord { given_by: OWNER.to_owned(), door: Door::Web, at: now }))
    }

    /// Ends the session of a browser.
    pub fn sign_out(&self, session: &str) {
        self.sign_ins.sessions.lock().remove(&ContentHash::of(session.as_bytes()));
    }

    async fn prove(&self, claim: Claim) -> Result<Proof, ConsentError> {
        let token = claim.token.as_ref().and_then(|token| OwnerToken::parse(token.expose())).map(|token| token.hash());
        self.admit(claim).await?;
        Ok(Proof { token: token.ok_or(ConsentError::Wrong)?, used: self.clock.now() })
    }

    fn is_good(&self, proof: &Proof, limit: Duration) -> bool {
        self.accepts(proof.token) && self.clock.now().since(proof.used) < limit
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use base::TestClock;
    use store::Store;

    use super::*;
    use crate::{Replacement, TokenFile};

    struct World {
        gate: ConsentGate,
        clock: Arc<TestClock>,
        directory: tempfile::TempDir,
    }

    impl World {
        async fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let clock = Arc::new(TestClock::at(Timestamp::from_millis(1_000)));
            let store = Store::open(&directory.path().join("state")).unwrap();
            let gate = ConsentGate::open(store, clock.clone(), directory.path().to_owned()).await.unwrap();
            Self { gate, clock, directory }
        }

        fn claim(&self, door: Door) -> Claim {
            let file = TokenFile::read(self.directory.path()).unwrap().unwrap();
            let token = file.open(|| panic!("it is not sealed")).unwrap();
            Claim { door, token: Some(Secret::new(token.expose().to_owned())) }
        }

        async fn session(&self) -> Secret<String> {
            self.gate.sign_in(self.claim(Door::Web).token.unwrap()).await.unwrap()
        }
    }

    #[tokio::test]
    async fn a_signed_in_browser_consents_until_it_signs_out_idles_or_the_token_is_replaced() {
        let world = World::new().await;
        let (first, second) = (world.session().await, world.session().await);
        let record: ConsentRecord = world.gate.signed_in(first.expose()).unwrap().into();
        assert_eq!((record.given_by.as_str(), record.door), ("owner", Door::Web));
        assert!(world.gate.signed_in("motor-session-0").is_none());
        world.gate.sign_out(first.expose());
        assert!(world.gate.signed_in(first.expose()).is_none());
        // Each use begins the time anew.
        for _ in 0..3 {
            world.clock.advance(IDLE / 2);
            assert!(world.gate.signed_in(second.expose()).is_some());
        }
        world.clock.advance(IDLE);
        assert!(world.gate.signed_in(second.expose()).is_none());
        let third = world.session().await;
        let token = OwnerToken::random().unwrap();
        let file = TokenFile::plain(token.clone());
        world.gate.replace(world.claim(Door::Token), Replacement { token, file }).await.unwrap();
        assert!(world.gate.signed_in(third.expose()).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_link_is_good_once_and_for_two_minutes() {
        let world = World::new().await;
        assert!(world.gate.make_link(world.claim(Door::Model)).await.is_err());
        let link = world.gate.make_link(world.claim(Door::Terminal)).await.unwrap();
        let session = world.gate.follow_link(link.expose()).await.unwrap();
        assert!(world.gate.signed_in(session.expose()).is_some());
        assert!(world.gate.follow_link(link.expose()).await.is_err());
        let late = world.gate.make_link(world.claim(Door::Terminal)).await.unwrap();
        world.clock.advance(Duration::from_secs(120));
        assert!(world.gate.follow_link(late.expose()).await.is_err());
        // A link is no session, and a session no link.
        assert!(world.gate.signed_in(link.expose()).is_none());
        assert!(world.gate.follow_link(session.expose()).await.is_err());
    }

    #[tokio::test]
    async fn the_session_that_was_used_least_recently_makes_room() {
        let world = World::new().await;
        let oldest = world.session().await;
        for _ in 0..MAX {
            world.clock.advance(Duration::from_secs(1));
            world.session().await;
        }
        assert!(world.gate.signed_in(oldest.expose()).is_none());
        assert_eq!(world.gate.sign_ins.sessions.lock().len(), MAX);
    }

    #[tokio::test]
    async fn a_session_is_good_for_twelve_hours_after_its_last_use() {
        let world = World::new().await;
        let session = world.session().await;
        for (seconds, is_good) in [(12 * 3_600 - 1, true), (12 * 3_600, false)] {
            world.clock.advance(Duration::from_secs(seconds));
            assert_eq!(world.gate.signed_in(session.expose()).is_some(), is_good, "{seconds}");
        }
    }

    #[tokio::test]
    async fn a_link_is_good_for_two_minutes_and_its_session_begins_when_it_is_followed() {
        let world = World::new().await;
        let link = world.gate.make_link(world.claim(Door::Terminal)).await.unwrap();
        world.clock.advance(Duration::from_secs(119));
        let session = world.gate.follow_link(link.expose()).await.unwrap();
        world.clock.advance(Duration::from_secs(12 * 3_600 - 1));
        assert!(world.gate.signed_in(session.expose()).is_some());
    }
}
