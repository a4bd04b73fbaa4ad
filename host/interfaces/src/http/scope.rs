//! The caller of a route, and the scope that the route demands (SPEC API-1).
//!
//! A handler's first argument is its scope: [`Routes`](super::routes::Routes) takes no handler without one. Requests on
//! the home's socket come from programs of the owner's account on this machine. Every other request carries a token: the
//! owner's, or an API token that the owner made for a program. An API token never counts as the owner's consent.

use agent::{ActRequest, Caller};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use base::{AgentName, Door, Refusal, RefusalCode, RunId};
use consent::{ApiToken, ApiTokens, Claim, Consent, ConsentError, TokenScope};
use llm::{ModelRef, Provider};
use serde::Serialize;

use super::claim::claim;
use super::reply::ErrorReply;
use super::{ApiState, Channel};

/// The scope that a route demands, from the least to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RouteScope {
    /// No token is needed.
    Anyone,
    /// A token with the scope `read`.
    Read,
    /// A token with the scope `agent`.
    Agent,
    /// A program of the owner's user on the home's socket, or the owner's token.
    Local,
    /// The owner's token is needed.
    Owner,
}

/// An extractor that lets through only the callers of its scope.
pub(super) trait Scope: FromRequestParts<ApiState> {
    /// The scope that it checks.
    const SCOPE: RouteScope;
}

/// An authenticated caller of a route.
#[derive(Debug)]
enum Identity {
    /// The owner, by the owner's token.
    Owner(Consent),
    /// A program of the operating system's account of the owner. If it sent an owner's token that was rejected, with the
    /// error.
    Local(Option<ConsentError>),
    /// A program with an API token.
    Token(ApiToken),
}

impl Identity {
    async fn of(parts: &Parts, api: &ApiState) -> Result<Self, ErrorReply> {
        let claim = claim(&parts.headers);
        match &claim.token {
            Some(token) if ApiTokens::is_token(token.expose()) => {
                let token = api.host.tokens.identify(token.expose());
                token.map(Self::Token).ok_or_else(|| unauthorized("the token is unknown, revoked or expired"))
            }
            Some(_) => match api.host.consent.admit(claim).await {
                Ok(consent) => Ok(Self::Owner(consent)),
                Err(error) if api.channel == Channel::Socket => Ok(Self::Local(Some(error))),
                Err(error) => Err(unauthorized(&error.to_string())),
            },
            None if api.channel == Channel::Socket => Ok(Self::Local(None)),
            None => Err(unauthorized("the request carries no token: `Authorization: Bearer TOKEN`")),
        }
    }

    fn access(&self) -> Access {
        match self {
            Self::Token(token) => Access { agent: token.agent.clone(), token: Some(token.scope) },
            Self::Owner(_) | Self::Local(_) => Access { agent: None, token: None },
        }
    }
}

/// The caller of a request without a token: a model, if the program says that it speaks for one, as `motor mcp` does.
fn local_caller(parts: &Parts) -> Caller {
    if claim(&parts.headers).door == Door::Model { Caller::Model } else { Caller::Local }
}

fn unauthorized(reason: &str) -> ErrorReply {
    let refusal = Refusal::new(RefusalCode::Unauthorized, reason);
    ErrorReply::from(refusal.with_remedy("ask the owner for a token: `motor token create --name NAME --scope agent`"))
}

fn forbidden(reason: impl Into<String>) -> ErrorReply {
    ErrorReply::from(Refusal::new(RefusalCode::Forbidden, reason))
}

/// The part of the home that a caller may see and use.
#[derive(Debug)]
pub(super) struct Access {
    /// The only agent. `None`: all agents.
    agent: Option<AgentName>,
    /// The scope of the caller's API token, if it has one. Such a caller may be on another machine, so its requests must
    /// not refer to paths of this one.
    token: Option<TokenScope>,
}

impl Access {
    /// The run, if it exists within this access. A run of another agent is not found.
    pub(super) fn run(&self, api: &ApiState, id: RunId) -> Result<RunId, ErrorReply> {
        if self.agent.is_some() && !self.sees(&api.host.runs.agent(&id)?) {
            return Err(ErrorReply::from(Refusal::new(RefusalCode::NotFound, format!("there is no run `{id}`"))));
        }
        Ok(id)
    }

    /// Whether the agent is within this access.
    pub(super) fn sees(&self, agent: &AgentName) -> bool {
        self.agent.as_ref().is_none_or(|own| own == agent)
    }

    /// Checks that a request is for an agent within this access.
    pub(super) fn check_agent(&self, requested: &AgentName) -> Result<(), ErrorReply> {
        match &self.agent {
            Some(own) if own != requested => {
                Err(forbidden(format!("the token stands for the agent `{own}`, and the request is for `{requested}`")))
            }
            _ => Ok(()),
        }
    }

    /// Checks that the caller may delegate work.
    pub(super) fn check_acts(&self) -> Result<(), ErrorReply> {
        match self.token {
            Some(scope) if scope < TokenScope::Agent => Err(forbidden(format!(
                "this route requires a token with the scope `agent`; this token has the scope `{}`",
                scope.as_str()
            ))),
            _ => Ok(()),
        }
    }

    /// Whether the caller may read conversations of the owner: not with an API token, whose holder is a program.
    pub(super) fn sees_owner(&self) -> bool {
        self.token.is_none()
    }

    /// The only agent of this access, if it has one.
    pub(super) fn agent(&self) -> Option<&AgentName> {
        self.agent.as_ref()
    }
}

/// Any caller; no token is needed. For routes that reveal nothing about a home.
#[derive(Debug)]
pub(super) struct Anyone;

/// A caller that may look.
#[derive(Debug)]
pub(super) struct Reader(pub(super) Access);

/// A caller that may delegate work.
#[derive(Debug)]
pub(super) struct Actor {
    /// Decides which rules of energy apply: the owner's, or those of everyone else.
    pub(super) caller: Caller,
    pub(super) access: Access,
    consent: Result<Option<Consent>, ConsentError>,
}

impl Actor {
    /// The owner's consent, if the request carries the owner's token.
    ///
    /// # Errors
    /// If it carries an owner's token that was rejected.
    pub(super) fn consent(self) -> Result<Option<Consent>, ErrorReply> {
        Ok(self.consent?)
    }

    /// Checks the agent and the paths of a request to act.
    pub(super) fn check(&self, request: &ActRequest) -> Result<(), ErrorReply> {
        self.access.check_agent(&request.agent)?;
        let model = request.model.as_deref().and_then(|model| model.parse::<ModelRef>().ok());
        let replays = model.is_some_and(|model| model.provider == Provider::Replay);
        let names_paths = !request.files.is_empty() || !request.directories.is_empty() || request.record.is_some();
        if self.access.token.is_some() && (names_paths || replays) {
            let reason = "a request with an API token cannot refer to files of this machine: no `files`, no `directories`, no `record`, no model `replay/FILE`";
            return Err(forbidden(reason));
        }
        Ok(())
    }
}

/// A program of the owner's user, or the owner.
#[derive(Debug)]
pub(super) struct Local {
    /// Decides which rules of energy apply: the owner's, or those of everyone else.
    pub(super) caller: Caller,
    consent: Result<Option<Consent>, ConsentError>,
}

impl Local {
    /// The owner's consent, if the request carries the owner's token.
    ///
    /// # Errors
    /// If it carries an owner's token that was rejected.
    pub(super) fn consent(self) -> Result<Option<Consent>, ErrorReply> {
        Ok(self.consent?)
    }
}

/// An MCP client that may be asked the questions of runs: a program on the home's socket, or a client of this process's
/// MCP server with a token of the scope `agent`. A token alone does not suffice, so that no request on a port can be one.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) access: Access,
    /// The client, as it is recorded with its answers.
    pub(super) client: String,
}

/// Marks a request that the MCP server of this process makes for its client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FromMcpServer;

/// The owner, by the owner's token.
#[derive(Debug)]
pub(super) struct Owner(pub(super) Consent);

/// The claim to be the owner, checked here and again by the consent gate once no other change is under way.
#[derive(Debug)]
pub(super) struct OwnerClaim(pub(super) Claim);

impl Scope for Anyone {
    const SCOPE: RouteScope = RouteScope::Anyone;
}

impl Scope for Reader {
    const SCOPE: RouteScope = RouteScope::Read;
}

impl Scope for Actor {
    const SCOPE: RouteScope = RouteScope::Agent;
}

impl Scope for Local {
    const SCOPE: RouteScope = RouteScope::Local;
}

impl Scope for Asked {
    const SCOPE: RouteScope = RouteScope::Local;
}

impl Scope for Owner {
    const SCOPE: RouteScope = RouteScope::Owner;
}

impl Scope for OwnerClaim {
    const SCOPE: RouteScope = RouteScope::Owner;
}

impl FromRequestParts<ApiState> for Anyone {
    type Rejection = ErrorReply;

    async fn from_request_parts(_: &mut Parts, _: &ApiState) -> Result<Self, ErrorReply> {
        Ok(Self)
    }
}

impl FromRequestParts<ApiState> for Reader {
    type Rejection = ErrorReply;

    async fn from_request_parts(parts: &mut Parts, api: &ApiState) -> Result<Self, ErrorReply> {
        Ok(Self(Identity::of(parts, api).await?.access()))
    }
}

impl FromRequestParts<ApiState> for Actor {
    type Rejection = ErrorReply;

    async fn from_request_parts(parts: &mut Parts, api: &ApiState) -> Result<Self, ErrorReply> {
        let identity = Identity::of(parts, api).await?;
        let access = identity.access();
        access.check_acts()?;
        let (caller, consent) = match identity {
            Identity::Owner(consent) => (Caller::Owner, Ok(Some(consent))),
            Identity::Local(refused) => (local_caller(parts), refused.map_or(Ok(None), Err)),
            Identity::Token(_) => (Caller::Model, Ok(None)),
        };
        Ok(Self { caller, access, consent })
    }
}

impl FromRequestParts<ApiState> for Local {
    type Rejection = ErrorReply;

    async fn from_request_parts(parts: &mut Parts, api: &ApiState) -> Result<Self, ErrorReply> {
        match Identity::of(parts, api).await? {
            Identity::Owner(consent) => Ok(Self { caller: Caller::Owner, consent: Ok(Some(consent)) }),
            Identity::Local(refused) => {
                Ok(Self { caller: local_caller(parts), consent: refused.map_or(Ok(None), Err) })
            }
            Identity::Token(_) => {
                Err(forbidden("this route requires the owner's token, or a connection through the home's socket"))
            }
        }
    }
}

impl FromRequestParts<ApiState> for Asked {
    type Rejection = ErrorReply;

    async fn from_request_parts(parts: &mut Parts, api: &ApiState) -> Result<Self, ErrorReply> {
        let identity = Identity::of(parts, api).await?;
        let client = match &identity {
            Identity::Owner(_) => "MCP client with the owner's token".to_owned(),
            Identity::Local(_) => "MCP client on this machine".to_owned(),
            Identity::Token(token) if parts.extensions.get::<FromMcpServer>().is_some() => {
                format!("MCP client with the token `{}`", token.name)
            }
            Identity::Token(_) => {
                return Err(forbidden("this route requires a connection through the home's socket"));
            }
        };
        let access = identity.access();
        access.check_acts()?;
        Ok(Self { access, client })
    }
}

impl FromRequestParts<ApiState> for Owner {
    type Rejection = ErrorReply;

    async fn from_request_parts(parts: &mut Parts, api: &ApiState) -> Result<Self, ErrorReply> {
        match Identity::of(parts, api).await? {
            Identity::Owner(consent) => Ok(Self(consent)),
            Identity::Local(refused) => Err(refused.unwrap_or(ConsentError::Missing).into()),
            Identity::Token(_) => Err(ConsentError::Model.into()),
        }
    }
}

impl FromRequestParts<ApiState> for OwnerClaim {
    type Rejection = ErrorReply;

    async fn from_request_parts(parts: &mut Parts, api: &ApiState) -> Result<Self, ErrorReply> {
        Owner::from_request_parts(parts, api).await?;
        Ok(Self(claim(&parts.headers)))
    }
}
