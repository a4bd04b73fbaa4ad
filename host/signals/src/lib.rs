//! Signals: messages of runs to their consumers. Stored in the same batch as the state that caused them,
//! delivered after (SPEC SIG-1, SIG-2).
//!
//! Architecture invariant: it must not know who consumes signals, nor anything of a run beyond its id. It survives a
//! crash between commit and delivery, because a consumer reads the table from the last id that it has seen, and the
//! in-process wake-up only says that there is something to read.

mod bus;
mod signal;

pub use bus::{SignalBus, StagedSignal};
pub use signal::{
    MotorResult, Priority, SOURCE, Signal, SignalApproval, SignalArtifact, SignalError, SignalSkill, SignalStatus, TTL,
    TaskResult, TaskStats,
};
