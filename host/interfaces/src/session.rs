//! How a command comes by its host (SPEC CONF-4): it connects to the one that owns the home; where there is none it
//! opens one, serves it for as long as the command lasts, and is a client of it like any other.
//!
//! What it survives: two commands that start at once (one gets the lock, the other waits for its socket), and a host
//! that ends while it is asked. Every request may be made twice: acting carries a key, the rest changes nothing twice.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent::config::Loaded;
use agent::{Env, Home, Host, HostOptions};
use base::{Random, Refusal, RefusalCode, SystemClock};
use serde::de::DeserializeOwned;

use crate::client::events::EventStream;
use crate::client::{Call, Client, ClientError};
use crate::http::listen::Server;
use crate::http::{Lifetime, Status};
use crate::output::{Output, text};

/// How long a command waits for a home that is being taken or given up.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// How often it is looked what a host is at that does not answer yet.
const LOOK: Duration = Duration::from_millis(200);
const LOOK_WITHOUT_TERMINAL: Duration = Duration::from_secs(2);

/// Where and how to open a host.
#[derive(Clone)]
pub struct Place {
    /// The home.
    pub home: Home,
    /// The configuration file that was named.
    pub config: Option<PathBuf>,
    /// Keys that were set on the command line.
    pub overrides: Vec<(String, String)>,
    /// The environment's variables.
    pub env: Env,
    /// The variables `VAULT_*`.
    pub vault_variables: std::collections::BTreeMap<String, String>,
    /// The program that compiles untrusted components.
    pub compile_worker: Option<PathBuf>,
    /// Where it is said that something takes its time.
    pub output: Output,
}

impl Place {
    /// The configuration in force here.
    ///
    /// # Errors
    /// When a source of it is wrong.
    pub fn load(&self) -> Result<Loaded, Refusal> {
        Loaded::load(&self.home, self.config.as_deref(), &self.env, &self.overrides)
    }

    /// Opens the home in this process, and serves it.
    ///
    /// # Errors
    /// When another process owns it, or its state cannot be used.
    pub async fn serve(&self, lifetime: Lifetime) -> Result<Server, Refusal> {
        let options = HostOptions {
            home: self.home.clone(),
            config: self.load()?,
            env: self.env.clone(),
            vault_variables: self.vault_variables.clone(),
            compile_worker: self.compile_worker.clone(),
            clock: Arc::new(SystemClock::default()),
            random: Arc::new(Random::from_system()),
        };
        let host = match lifetime {
            Lifetime::Stays => Host::open(options).await?,
            Lifetime::Command => Host::open_idle(options).await?,
        };
        Server::start(host, &self.home, lifetime)
    }

    fn client(&self) -> Client {
        Client::new(&self.home.socket())
    }
}

/// A way to a host.
pub struct Session {
    place: Place,
    client: Client,
    /// The host, when it is this process's own.
    own: Option<Server>,
    status: Status,
}

impl Session {
    /// Connects to the home's host, or becomes it.
    ///
    /// # Errors
    /// When the home cannot be opened, or its host does not answer.
    pub async fn open(place: Place) -> Result<Self, Refusal> {
        let (own, status) = reach(&place).await?;
        Ok(Self { client: place.client(), place, own, status })
    }

    /// Connects to the home's host, if it has one.
    ///
    /// # Errors
    /// When there is one and it refuses.
    pub async fn connect(place: Place) -> Result<Option<Self>, Refusal> {
        let client = place.client();
        match client.ask(&Call::get("/v1/status")).await {
            Ok(status) => Ok(Some(Self { place, client, own: None, status })),
            Err(ClientError::Gone { .. }) => Ok(None),
            Err(ClientError::Refused(refusal)) => Err(refusal),
        }
    }

    /// What the host said of itself when the session began.
    #[must_use]
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// Whether the host is this process.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// Asks. When the host ends meanwhile, the next one is asked.
    ///
    /// # Errors
    /// What the host refuses.
    pub async fn ask<T: DeserializeOwned>(&mut self, call: &Call) -> Result<T, Refusal> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.told(self.client.ask(call)).await {
                Ok(answer) => return Ok(answer),
                Err(ClientError::Refused(refusal)) => return Err(refusal),
                Err(ClientError::Gone { .. }) => self.again(deadline).await?,
            }
        }
    }

    /// Waits for an answer, and says which component the host compiles for it.
    async fn told<T>(&self, asking: impl Future<Output = T>) -> T {
        let output = &self.place.output;
        let looking = async {
            loop {
                // A line that can be taken back is shown early; one that stays has to be worth it.
                tokio::time::sleep(if output.live { LOOK } else { LOOK_WITHOUT_TERMINAL }).await;
                if let Ok(Status { host, .. }) = self.client.ask::<Status>(&Call::get("/v1/status")).await {
                    output.notice(host.preparing.map(|preparing| text::quoted(&preparing.to_string())).as_deref());
                }
            }
        };
        tokio::select! {
            biased;
            answer = asking => {
                output.notice(None);
                answer
            }
            never = looking => never,
        }
    }

    /// Asks for events after the id `after`.
    ///
    /// # Errors
    /// What the host refuses.
    pub async fn events(&mut self, path: &str, after: Option<u64>) -> Result<EventStream, Refusal> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.client.stream(path, after).await {
                Ok(stream) => return Ok(stream),
                Err(ClientError::Refused(refusal)) => return Err(refusal),
                Err(ClientError::Gone { .. }) => self.again(deadline).await?,
            }
        }
    }

    /// Whether the host that was there lasted only as long as another command: then the next one is reached, and may
    /// be this process. A host that was meant to stay and is gone was stopped by somebody, and that is respected.
    ///
    /// # Errors
    /// When the home cannot be opened.
    pub async fn succeed(&mut self) -> Result<bool, Refusal> {
        if self.own.is_some() || self.status.stays {
            return Ok(false);
        }
        self.again(Instant::now() + PATIENCE).await?;
        Ok(true)
    }

    async fn again(&mut self, deadline: Instant) -> Result<(), Refusal> {
        if self.own.is_some() || Instant::now() > deadline {
            return Err(unreachable());
        }
        tokio::time::sleep(PAUSE).await;
        (self.own, self.status) = reach(&self.place).await?;
        Ok(())
    }

    /// How many requests of other commands depend on the host that this process is.
    #[must_use]
    pub fn attached(&self) -> usize {
        self.own.as_ref().map_or(0, Server::attached)
    }

    /// Waits until no other command depends on the host that this process is.
    pub async fn nobody_attached(&self) {
        if let Some(server) = &self.own {
            server.nobody_attached().await;
        }
    }

    /// Ends the host, when it is this process's own.
    pub async fn close(self) {
        if let Some(server) = self.own {
            server.stop().await;
        }
    }
}

/// Finds the host, or becomes it.
async fn reach(place: &Place) -> Result<(Option<Server>, Status), Refusal> {
    let deadline = Instant::now() + PATIENCE;
    let client = place.client();
    let status = Call::get("/v1/status");
    loop {
        match client.ask::<Status>(&status).await {
            Ok(status) => {
                check_settings(place, &status)?;
                return Ok((None, status));
            }
            Err(ClientError::Refused(refusal)) => return Err(refusal),
            Err(ClientError::Gone { .. }) => {}
        }
        match place.serve(Lifetime::Command).await {
            Ok(server) => match client.ask(&status).await {
                Ok(status) => return Ok((Some(server), status)),
                Err(ClientError::Refused(refusal)) => return Err(refusal),
                Err(ClientError::Gone { .. }) => return Err(unreachable()),
            },
            // Somebody has the lock and no socket yet, or no longer.
            Err(refusal) if refusal.code == RefusalCode::HomeInUse && Instant::now() < deadline => {
                tokio::time::sleep(PAUSE).await;
            }
            Err(refusal) => return Err(refusal),
        }
    }
}

/// Settings of this command line mean nothing to a host that is already there: better said than ignored.
fn check_settings(place: &Place, status: &Status) -> Result<(), Refusal> {
    if place.config.is_none() && place.overrides.is_empty() {
        return Ok(());
    }
    let pid = status.host.pid;
    let reason = format!(
        "`--set`, `--config` and `--skills-dir` cannot change the host that is already running on this home (pid {pid})"
    );
    Err(Refusal::new(RefusalCode::InvalidRequest, reason).with_remedy("stop it first, or leave them out"))
}

fn unreachable() -> Refusal {
    Refusal::new(RefusalCode::TryLater, "the host of this home went away and did not come back")
        .with_remedy("try again; `motor doctor` looks at the home")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::ColorChoice;

    fn place(directory: &tempfile::TempDir) -> Place {
        Place {
            home: Home::at(directory.path().join("home")),
            config: None,
            overrides: Vec::new(),
            env: agent::env::of_list(&[]),
            vault_variables: std::collections::BTreeMap::new(),
            compile_worker: None,
            output: Output::of_process(false, ColorChoice::Never, &|_| None),
        }
    }

    async fn alive(session: &mut Session) -> bool {
        session.ask::<Status>(&Call::get("/v1/status")).await.is_ok()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn of_commands_that_start_at_once_one_is_the_host_and_the_others_outlive_it() {
        let directory = tempfile::tempdir().unwrap();
        let opening = (0..5).map(|_| tokio::spawn(Session::open(place(&directory))));
        let mut sessions = Vec::new();
        for opened in opening.collect::<Vec<_>>() {
            sessions.push(opened.await.unwrap().unwrap());
        }
        assert_eq!(sessions.iter().filter(|session| session.is_own()).count(), 1);
        for session in &mut sessions {
            assert!(alive(session).await);
        }
        let own = sessions.iter().position(Session::is_own).unwrap();
        sessions.swap_remove(own).close().await;
        // Whoever asks first is the next host.
        for session in &mut sessions {
            assert!(alive(session).await);
        }
        assert_eq!(sessions.iter().filter(|session| session.is_own()).count(), 1);
    }

    #[tokio::test]
    async fn a_host_that_was_stopped_is_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        assert!(Session::connect(place(&directory)).await.unwrap().is_none());
        let server = place(&directory).serve(Lifetime::Stays).await.unwrap();
        let mut session = Session::connect(place(&directory)).await.unwrap().unwrap();
        assert!(session.status().stays && alive(&mut session).await);
        session.ask::<serde_json::Value>(&Call::post("/v1/shutdown", &()).unwrap()).await.unwrap();
        server.asked_to_end().await;
        server.stop().await;
        assert!(!session.succeed().await.unwrap());
        assert!(!place(&directory).home.socket().exists());
    }

    #[tokio::test]
    async fn settings_for_a_host_that_is_already_there_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let own = Session::open(place(&directory)).await.unwrap();
        let overrides = vec![("code.guard".to_owned(), "false".to_owned())];
        let refused = Session::open(Place { overrides, ..place(&directory) }).await.err().unwrap();
        assert_eq!(refused.code, RefusalCode::InvalidRequest);
        assert!(Session::open(place(&directory)).await.is_ok_and(|session| !session.is_own()));
        own.close().await;
    }
}
