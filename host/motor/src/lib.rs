//! The motor loop: a task in, tool calls, an answer out, durable at every step (SPEC RUN, DUR).
//!
//! Architecture invariant: the motor knows no skill but by its label, no policy, no sandbox, no HTTP and no file system. It sees a
//! [`Toolbox`], a [`llm::Model`] and the store. A run is a list of events; its record, conversation, trace and log are
//! folds of that list, and one driver per run is the only writer of it. It survives a stop of the host between
//! any two writes, a full disk, a panic in a tool, a model that goes in circles or writes nonsense.

pub mod artifact;
pub mod budget;
pub mod config;
pub mod environment;
mod event;
pub mod failure;
pub mod live;
pub mod record;
pub mod request;
pub mod skill;
pub mod status;
pub mod toolbox;
pub mod trace;
pub mod wait;
mod watch;

mod call;
mod ceiling;
mod command;
mod compact;
mod consent;
mod conversation;
mod counters;
mod drive;
mod drivers;
mod fence;
mod guard;
mod hear;
mod hint;
mod host_tools;
mod journal;
mod ledger;
mod log;
mod money;
mod motor;
mod phase;
mod places;
mod prompt;
mod prune;
mod query;
mod relay;
mod reply;
mod rules;
mod spend;
mod state;
mod step;
mod timers;

pub use artifact::Artifact;
pub use budget::{BudgetExhausted, CreditBudget, Prices};
pub use ceiling::{CeilingKind, CeilingRaise, Ceilings};
pub use command::{ApprovalDecision, CommandReply, OwnerMessage, QuestionAnswer, RetryReply, RetryRequest, TellReply};
pub use config::{ITERATION_CEILING, MAX_OWNER_MESSAGES, MAX_WORDS_BYTES, MotorConfig, UNLIMITED};
pub use consent::is_host_tool;
pub use counters::RunTotals;
pub use environment::Environment;
pub use event::{RunEvent, StoredEvent, TellReason};
pub use failure::{FailureCategory, FailureSummary, LastToolResult, RunError};
pub use host_tools::SAVE_CREDENTIAL;
pub use live::{LiveEvent, Preparing};
pub use money::RunMoney;
pub use motor::{CancelReply, Motor, MotorParts, RunRequest};
pub use places::{MAX_UNFINISHED, PlacesConfig};
pub use prune::{ExpiredRun, KEY_MEMORY};
pub use query::ListFilter;
pub use record::RunRecord;
pub use request::{CallLeases, OutgoingRequest, ShownField, ShownRequest, ValueOrigin};
pub use rules::RunRules;
pub use skill::{InstalledSkill, SkillLabel};
pub use spend::{AgentSpend, Spend, SpendBook};
pub use status::{IllegalTransition, RunStatus, StatusEvent};
pub use toolbox::{
    CallReview, ConsentNeeded, PlannedCall, SandboxUsage, ToolDefinition, ToolEffects, ToolInvocation, ToolNote,
    ToolReply, ToolResult, Toolbox,
};
pub use trace::{
    ApprovalTrace, AttemptTrace, OwnerMessageTrace, QuestionTrace, RunTrace, StepTrace, ToolCallTrace, TransitionTrace,
};
pub use wait::{Approval, ApprovalItem, Question, Scope, Waiting};
pub use watch::Watch;
