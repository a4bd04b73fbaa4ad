//! The host, assembled: configuration, home, environment, adapters, and one facade, [`Host`], that every surface uses.
//!
//! `agent` is where the ports of `motor` meet `runtime`, `providers` and the file system. It has no policy of its own
//! beyond putting the pieces together, and no surface: nothing here parses a command line or speaks HTTP to a client.
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests"))]

mod access;
pub mod api;
mod artifacts;
mod changes;
pub mod components;
pub mod config;
mod decisions;
mod directories;
pub mod doctor;
mod draft;
mod elicitation;
pub mod env;
mod environment;
mod execute;
mod explain;
pub mod home;
mod host;
mod keeper;
mod landing;
mod loss;
mod metrics;
mod mind;
mod models;
mod neuron;
mod origins;
pub mod otlp;
mod owner;
mod plan;
mod receipt;
mod reflection;
mod retention;
mod runs;
mod settings;
mod setup;
mod skill;
mod spending;
mod staged;
mod task;
mod trace_file;
mod why;
mod withhold;
mod workspace;

pub use api::changes::{
    ChangedDirectory, ChangedFile, ChangingStep, LandReply, LandRequest, LandingPlan, LandingSummary, PathChange,
    PathKind, PlannedOutcome, PlannedPath, RunChanges,
};
pub use api::commits::{CommitEffect, CommitRequest, CommitState, LandedCommit, PlannedCommit};
pub use api::cortex::{
    ApproveReflector, CortexStatus, ReflectReply, ReflectRequest, ReflectorApproval, ReflectorStatus, ReflectorSummary,
    RevokeReflector,
};
pub use api::neurons::{
    ApproveNeuron, NamedNeuron, NeuronDetail, NeuronList, ProposeNeuron, ProposedProgram, SwitchNeurons,
};
pub use api::plans::{AgreedPlan, TaskPlan};
pub use api::staged::{DiscardStaged, SendStaged, ShownWrite, StagedResponse, StagedStatus, StagedTask, StagedWrite};
pub use api::tasks::TaskSummary;
pub use api::{
    ActReply, ActRequest, Caller, DirectoryInput, ExecuteReply, ExecuteRequest, FileInput, HostStatus, PendingDecision,
    SetCredential, TaskFilter, Tier,
};
pub use base::Env;
pub use decisions::{Decision, DecisionLevel, DomainVerdict};
pub use deliveries::{FollowStep, Follower};
pub use draft::{LeastGrant, least};
pub use elicitation::{Elicitation, ElicitedAnswer};
pub use energy::EnergyReport;
pub use execute::Programs;
pub use explain::{
    AskWhen, AskingCommand, ExplainedCredential, ExplainedDirectory, ExplainedEnergy, ExplainedFiles, ExplainedNetwork,
    ExplainedSkill, ExplainedTool, Explanation, FileAccess,
};
pub use home::Home;
pub use host::{Capabilities, Host, HostOptions};
pub use loss::{AcceptedLoss, accept_loss};
pub use metrics::HostMetrics;
pub use motor::{AgentSpend, Spend};
pub use neuron::Neurons;
pub use owner::{Credentials, Domains};
pub use receipt::verify::{CheckedFile, UncheckedFile, Verification, VerifyRequest};
pub use reflection::{CortexEvent, CortexEventBody, Reflections};
pub use retention::HomeUsage;
pub use runs::Runs;
pub use runtime::Language;
pub use settings::{ChangedSetting, Settings, TakesEffect};
pub use setup::{EndpointAddress, LocalServer, ModelAnswer, ModelSetup};
pub use skill::{SkillFollower, Skills};
pub use task::{ApproveTask, RespondRequest, RetryTask, TellRequest};
pub use toolbox::Preparations;

/// Runs the compile worker: the work of a process that [`Host`] started with the argument
/// [`runtime::worker::ARGUMENT`].
///
/// # Errors
/// If its limits cannot be set or its pipes break.
pub fn run_compile_worker(arguments: impl IntoIterator<Item = String>) -> std::io::Result<()> {
    runtime::worker::run(arguments)
}
