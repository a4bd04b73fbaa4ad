//! Components: engine, limits, loading, calling, and the sandbox for model-written code.
//!
//! Every call runs in a fresh instance with its own store, under one set of [`Limits`]; its result is an [`Outcome`]
//! that distinguishes a guest's error, a trap, an exceeded limit and a fault of the host. Loading is bounded too:
//! untrusted bytes are compiled in a child process with resource limits.
//!
//! Architecture invariant: no runs, no models, no store, no policy. This crate knows bytes, limits and calls.

mod background;
pub mod call;
pub mod code;
pub mod compile;
mod compiler;
pub mod engine;
pub mod guard;
pub mod inspect;
mod kept_code;
pub mod limits;
pub mod link;
pub mod load;
mod load_error;
mod meter;
pub mod neuron;
pub mod outcome;
mod precompiled;
pub mod reflector;
mod scrub;
mod state;
mod supervise;
pub mod tool;
mod verdict;
mod wit_json;
pub mod worker;

pub use capabilities::workspace::{Access, Workspace, WorkspaceCall};
pub use capabilities::{Limit, LimitExceeded, Note, NoteSink};
pub use code::{
    CodeAccess, CodeError, CodeErrorCode, CodeReport, CodeSandbox, CodeValue, Language, Program, ScriptEngine,
    ScriptSandbox,
};
pub use engine::{EngineConfig, Runtime};
pub use inspect::{FunctionTool, HOST_VERSION, Inspection, Kind, UnmappedFunction, inspect};
pub use limits::Limits;
pub use load::Component;
pub use load_error::{ComponentOrigin, LoadError};
pub use neuron::{NeuronComponent, SignalText};
pub use outcome::{CallReport, CallUsage, Outcome, ToolError, Trap};
pub use reflector::{
    AssessmentProposal, BeliefProposal, CommitmentProposal, DirectiveProposal, GuidanceProposals, ReflectionPrompt,
    ReflectionProposals, ReflectorCall, ReflectorComponent,
};
pub use state::Seeded;
pub use tool::{Effects, SkillAbout, ToolCall, ToolComponent, ToolDescription};
