//! How a command reaches its host (SPEC CONF-4): it connects to the one that owns the home; otherwise it opens one,
//! serves it for as long as the command lasts, and is a client of it like any other.
//!
//! It survives two commands that start at once (one gets the lock, the other waits for its socket), and a host that
//! ends while it is asked. Requests may be made twice: acting carries a key, the rest changes nothing twice; those that
//! would are asked once ([`Session::ask_once`]). A command that becomes the host after another takes up the runs ([`Session::take_up_runs`]), and a run that is
//! followed goes on at each host, because its stream asks for that.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent::config::{ConfigFault, LoadedConfig};
use agent::{Env, Home, Host, HostOptions, Language};
use base::{Random, Refusal, RefusalCode, SystemClock};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::client::events::EventStream;
use crate::client::{Call, Client, ClientError};
use crate::http::listen::Server;
use crate::http::{Lifetime, ResumeReply, Status};
use crate::output::{Output, text};

/// How long a command waits for a home that is being taken or given up. A host that ends waits 5 s for calls in flight
/// and 3 s for deliveries, and then closes its state.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long `motor serve` waits for a command that is the host for as long as it lasts.
const SERVE_PATIENCE: Duration = Duration::from_secs(60);
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(20);
/// Before a host is asked again that ended the stream of a run that is not over.
const SAME_HOST_PAUSE: Duration = Duration::from_secs(1);

/// How often the status of a host that has not answered yet is looked up.
const LOOK: Duration = Duration::from_millis(200);
const LOOK_WITHOUT_TERMINAL: Duration = Duration::from_secs(2);

/// Where and how to open a host.
#[derive(Clone)]
pub struct HostTarget {
    /// The home of the host.
    pub home: Home,
    /// The configuration file that was named.
    pub config: Option<PathBuf>,
    /// Keys that were set on the command line.
    pub overrides: Vec<(String, String)>,
    /// The environment's variables.
    pub env: Env,
    /// The variables whose names begin with `VAULT_`.
    pub vault_variables: std::collections::BTreeMap<String, String>,
    /// The program that compiles untrusted components.
    pub compile_worker: Option<PathBuf>,
    /// Where slow work is reported.
    pub output: Output,
    /// The language of the isolated program that this command executes, if it does.
    pub program: Option<Language>,
}

impl HostTarget {
    /// The configuration in force here.
    ///
    /// # Errors
    /// If one of its sources is invalid.
    pub fn load(&self) -> Result<LoadedConfig, Refusal> {
        LoadedConfig::load(&self.home, self.config.as_deref(), &self.env, &self.overrides)
    }

    /// The configuration without the values that do not fit, and these.
    ///
    /// # Errors
    /// As [`LoadedConfig::examine`].
    pub fn examine(&self) -> Result<(LoadedConfig, Vec<ConfigFault>), Refusal> {
        LoadedConfig::examine(&self.home, self.config.as_deref(), &self.env, &self.overrides)
    }

    /// Opens the home in this process, and serves it.
    ///
    /// # Errors
    /// If another process owns it, or its state cannot be used.
    async fn serve(&self, lifetime: Lifetime) -> Result<Server, Refusal> {
        let options = self.options()?;
        let host = match lifetime {
            Lifetime::Stays => Host::open(options).await?,
            Lifetime::Command => Host::open_idle(options, self.program).await?,
        };
        Server::start(host, &self.home, lifetime)
    }

    /// The parts of a host of this home.
    ///
    /// # Errors
    /// If a source of the configuration is wrong.
    pub fn options(&self) -> Result<HostOptions, Refusal> {
        Ok(self.options_with(self.load()?))
    }

    /// The parts of a host of this home with this configuration.
    #[must_use]
    pub fn options_with(&self, config: LoadedConfig) -> HostOptions {
        HostOptions {
            home: self.home.clone(),
            config,
            env: self.env.clone(),
            vault_variables: self.vault_variables.clone(),
            compile_worker: self.compile_worker.clone(),
            clock: Arc::new(SystemClock::default()),
            random: Arc::new(Random::from_system()),
        }
    }

    /// Opens the home for a host that stays. If a command is the host, waits for its end, and calls `waits` once at the
    /// beginning; another host that stays is not waited for.
    ///
    /// # Errors
    /// If the home is not free in time, or its state cannot be used.
    pub async fn serve_staying(&self, mut waits: impl FnMut(&Refusal)) -> Result<Server, Refusal> {
        let deadline = Instant::now() + SERVE_PATIENCE;
        let (client, status) = (self.client(), Call::get("/v1/host"));
        let mut says = true;
        loop {
            let refusal = match self.serve(Lifetime::Stays).await {
                Err(refusal) if refusal.code == RefusalCode::HomeInUse => refusal,
                served => return served,
            };
            if client.ask::<Status>(&status).await.is_ok_and(|status| status.stays) {
                return Err(refusal);
            }
            if Instant::now() > deadline {
                let seconds = SERVE_PATIENCE.as_secs();
                let reason = format!("{}: a command that has not ended within {seconds} s", refusal.reason);
                return Err(Refusal { reason, ..refusal });
            }
            if std::mem::take(&mut says) {
                waits(&refusal);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn client(&self) -> Client {
        Client::new(&self.home.socket())
    }
}

/// A way to a host.
pub struct Session {
    place: HostTarget,
    client: Client,
    /// The host, if it is this process's own.
    own: Option<Server>,
    /// Whether this process took up the runs since it became the host.
    has_taken_up: bool,
    status: Status,
}

impl Session {
    /// Connects to the home's host, or becomes it.
    ///
    /// # Errors
    /// If the home cannot be opened, or its host does not answer.
    pub async fn open(place: HostTarget) -> Result<Self, Refusal> {
        let (own, status) = reach(&place).await?;
        Ok(Self { client: place.client(), place, own, has_taken_up: false, status })
    }

    /// Connects to the home's host, if it has one.
    ///
    /// # Errors
    /// If there is one and it refuses.
    pub async fn connect(place: HostTarget) -> Result<Option<Self>, Refusal> {
        let client = place.client();
        match client.ask(&Call::get("/v1/host")).await {
            Ok(status) => Ok(Some(Self { place, client, own: None, has_taken_up: false, status })),
            Err(ClientError::Gone { .. }) => Ok(None),
            Err(ClientError::Refused(refusal)) => Err(refusal),
        }
    }

    /// The host's status when the session began.
    #[must_use]
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// Whether the host is this process.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// Sends a request. If the host ends before it answers, the next one is asked.
    ///
    /// # Errors
    /// A refusal of the host; `outcome_unknown` if a host took the request and no host answered it.
    pub async fn ask<T: DeserializeOwned>(&mut self, call: &Call) -> Result<T, Refusal> {
        self.asked(call, Repeats::Allowed, &mut false).await
    }

    /// Sends a request that must not be carried out twice. If the host ends while it has the request, no other is asked.
    ///
    /// # Errors
    /// A refusal of the host; `outcome_unknown` if a host took the request and did not answer it.
    pub async fn ask_once<T: DeserializeOwned>(&mut self, call: &Call) -> Result<T, Refusal> {
        self.asked(call, Repeats::Refused, &mut false).await
    }

    /// Asks for a deletion. If a host took the request and went away before it answered, a target that is not found
    /// counts as deleted by this very request: whether it existed is not asked again.
    ///
    /// # Errors
    /// As [`Session::ask`].
    pub async fn delete(&mut self, call: &Call) -> Result<(), Refusal> {
        let mut was_sent = false;
        match self.asked::<serde::de::IgnoredAny>(call, Repeats::Allowed, &mut was_sent).await {
            Err(refusal) if was_sent && refusal.code == RefusalCode::NotFound => Ok(()),
            answer => answer.map(drop),
        }
    }

    /// `was_sent`: whether a host may have taken the request and gone away before it answered.
    async fn asked<T: DeserializeOwned>(
        &mut self,
        call: &Call,
        repeats: Repeats,
        was_sent: &mut bool,
    ) -> Result<T, Refusal> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let gone = match self.told(self.client.ask(call)).await {
                Ok(answer) => return Ok(answer),
                // A host that lasts as long as another command refuses while it closes: the next one may not.
                Err(ClientError::Refused(refusal)) if self.may_succeed(&refusal, deadline) => refusal,
                Err(ClientError::Refused(refusal)) => return Err(refusal),
                Err(ClientError::Gone { sent }) => {
                    *was_sent |= sent;
                    if *was_sent && repeats == Repeats::Refused {
                        return Err(unreachable(true));
                    }
                    unreachable(*was_sent)
                }
            };
            self.again(deadline, gone).await?;
        }
    }

    fn may_succeed(&self, refusal: &Refusal, deadline: Instant) -> bool {
        refusal.code == RefusalCode::TryLater && self.own.is_none() && !self.status.stays && Instant::now() < deadline
    }

    /// Waits for an answer, and shows which component the host compiles for it.
    async fn told<T>(&self, asking: impl Future<Output = T>) -> T {
        let output = &self.place.output;
        let looking = async {
            loop {
                // A line that can be taken back is shown early; one that stays has to be worth it.
                tokio::time::sleep(if output.live { LOOK } else { LOOK_WITHOUT_TERMINAL }).await;
                if let Ok(Status { host, .. }) = self.client.ask::<Status>(&Call::get("/v1/host")).await {
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
    /// A refusal of the host.
    pub async fn events(&mut self, path: &str, after: Option<u64>) -> Result<EventStream, Refusal> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.client.stream(path, after).await {
                Ok(stream) => return Ok(stream),
                Err(ClientError::Refused(refusal)) if self.may_succeed(&refusal, deadline) => {
                    self.again(deadline, refusal).await?;
                }
                Err(ClientError::Refused(refusal)) => return Err(refusal),
                Err(ClientError::Gone { .. }) => self.again(deadline, unreachable(false)).await?,
            }
        }
    }

    /// Takes up the runs that an earlier host left, once, if this process has become the host. Another command may
    /// follow runs that this one does not know.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn take_up_runs(&mut self) -> Result<(), Refusal> {
        if self.own.is_some() && !self.has_taken_up {
            self.ask::<ResumeReply>(&Call::post("/v1/host/resumption", &serde_json::json!({}))?).await?;
            self.has_taken_up = true;
        }
        Ok(())
    }

    /// Whether the lost host lasted only as long as another command: then the next one is reached, and may be this
    /// process. A host that was meant to stay and is gone was stopped on purpose, and that is respected.
    ///
    /// # Errors
    /// If the home cannot be opened.
    pub async fn succeed(&mut self) -> Result<bool, Refusal> {
        if self.own.is_some() || self.status.stays {
            return Ok(false);
        }
        let before = self.status.host.pid;
        self.again(Instant::now() + PATIENCE, unreachable(false)).await?;
        if self.status.host.pid == before {
            // It is still there, and could not go on with the run: it must not be asked all the time.
            tokio::time::sleep(SAME_HOST_PAUSE).await;
        }
        Ok(true)
    }

    /// Reaches the next host, or fails with `gone`.
    async fn again(&mut self, deadline: Instant, gone: Refusal) -> Result<(), Refusal> {
        if self.own.is_some() || Instant::now() > deadline {
            return Err(gone);
        }
        tokio::time::sleep(PAUSE).await;
        (self.own, self.status) = reach(&self.place).await.map_err(|refusal| match gone.code {
            RefusalCode::OutcomeUnknown => Refusal { reason: format!("{}: {}", gone.reason, refusal.reason), ..gone },
            _ => refusal,
        })?;
        Ok(())
    }

    /// A client of the hosts of this home, for requests made at the same time as others.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Reaches the home's next host after a request found none, and takes up the runs if it is this process.
    ///
    /// # Errors
    /// If no host can be reached within 20 s.
    pub async fn reach_next(&mut self) -> Result<(), Refusal> {
        // Another request may have reached it already.
        if self.client.ask::<Status>(&Call::get("/v1/host")).await.is_err() {
            self.again(Instant::now() + PATIENCE, unreachable(false)).await?;
        }
        self.take_up_runs().await
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

    /// Waits until the state takes no more commits, if this process is the host.
    pub async fn storage_lost(&self) -> Refusal {
        match &self.own {
            Some(server) => server.storage_lost().await,
            None => std::future::pending().await,
        }
    }

    /// Ends the host, if it is this process's own.
    pub async fn close(self) {
        if let Some(server) = self.own {
            server.stop().await;
        }
    }
}

/// Finds the host, or becomes it.
async fn reach(place: &HostTarget) -> Result<(Option<Server>, Status), Refusal> {
    let deadline = Instant::now() + PATIENCE;
    let client = place.client();
    let status = Call::get("/v1/host");
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
                Err(ClientError::Gone { .. }) => return Err(unreachable(false)),
            },
            // Another process has the lock and no socket yet, or no longer.
            Err(refusal) if refusal.code == RefusalCode::HomeInUse && Instant::now() < deadline => {
                tokio::time::sleep(PAUSE).await;
            }
            Err(refusal) => return Err(refusal),
        }
    }
}

/// Settings of this command line mean nothing to a host that is already there: better said than ignored.
fn check_settings(place: &HostTarget, status: &Status) -> Result<(), Refusal> {
    if place.config.is_none() && place.overrides.is_empty() {
        return Ok(());
    }
    let pid = status.host.pid;
    let reason = format!(
        "`--set`, `--config` and `--skills-dir` cannot change the host that is already running on this home (pid {pid})"
    );
    Err(Refusal::new(RefusalCode::InvalidRequest, reason).with_remedy("stop it first, or leave them out"))
}

/// Whether a request that a host may have carried out is sent to the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repeats {
    /// It does nothing twice.
    Allowed,
    /// A second time would be a second effect.
    Refused,
}

/// `was_sent`: a host may have carried out the request.
fn unreachable(was_sent: bool) -> Refusal {
    let reason = "the host of this home went away and did not come back";
    if was_sent {
        let reason = format!("{reason}: it is not known whether it did what it was asked");
        return Refusal::new(RefusalCode::OutcomeUnknown, reason)
            .with_remedy("`motor task list` shows what was accepted");
    }
    Refusal::new(RefusalCode::TryLater, reason).with_remedy("try again; `motor doctor` looks at the home")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::ColorChoice;

    fn place(directory: &tempfile::TempDir) -> HostTarget {
        HostTarget {
            home: Home::at(directory.path().join("home")),
            config: None,
            overrides: Vec::new(),
            env: agent::env::of_list(&[]),
            vault_variables: std::collections::BTreeMap::new(),
            compile_worker: None,
            output: Output::of_process(false, ColorChoice::Never, &|_| None),
            program: None,
        }
    }

    async fn alive(session: &mut Session) -> bool {
        session.ask::<Status>(&Call::get("/v1/host")).await.is_ok()
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
        // The first session to ask is the next host.
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
        session.ask::<serde_json::Value>(&Call::post("/v1/host/shutdown", &()).unwrap()).await.unwrap();
        server.asked_to_end().await;
        server.stop().await;
        assert!(!session.succeed().await.unwrap());
        assert!(!place(&directory).home.socket().exists());
    }

    /// A host that dies after it took any request but one for its status.
    async fn dies_over_a_request(listener: tokio::net::UnixListener, status: Status) {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4_096];
            let length = stream.read(&mut request).await.unwrap();
            if !request[..length].starts_with(b"GET") {
                return;
            }
            let body = serde_json::to_string(&status).unwrap();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_run_that_is_gone_after_a_host_died_over_its_deletion_is_deleted() {
        let directory = tempfile::tempdir().unwrap();
        let own = Session::open(place(&directory)).await.unwrap();
        let status = own.status().clone();
        own.close().await;
        let call = Call::delete("/v1/tasks/run_01khzabcdefghijk");
        let socket = place(&directory).home.socket();
        let listener = tokio::net::UnixListener::bind(&socket).unwrap();
        let dying = tokio::spawn(async move {
            dies_over_a_request(listener, status).await;
            std::fs::remove_file(socket).unwrap();
        });
        let mut session = Session::connect(place(&directory)).await.unwrap().unwrap();
        session.delete(&call).await.unwrap();
        dying.await.unwrap();
        // One that nothing was ever heard of is not there.
        assert!(session.is_own());
        assert_eq!(session.delete(&call).await.unwrap_err().code, RefusalCode::NotFound);
        session.close().await;
    }

    #[tokio::test]
    async fn settings_for_a_host_that_is_already_there_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let own = Session::open(place(&directory)).await.unwrap();
        let overrides = vec![("code.guard".to_owned(), "false".to_owned())];
        let refused = Session::open(HostTarget { overrides, ..place(&directory) }).await.err().unwrap();
        assert_eq!(refused.code, RefusalCode::InvalidRequest);
        assert!(Session::open(place(&directory)).await.is_ok_and(|session| !session.is_own()));
        own.close().await;
    }
}
