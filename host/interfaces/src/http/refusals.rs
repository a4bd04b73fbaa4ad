//! Codes of the refusals of handlers, for the description of their routes. Those that follow from the scope, from reading the
//! request and from the state of the host are added where they arise.

use base::RefusalCode::{
    self, Busy, ConsentNeeded, CredentialsNeeded, EnergyTooLow, IllegalState, InvalidComponent, InvalidRequest,
    ModelUnavailable, NotFound, OutcomeUnknown, PriceUnknown, SkillUntrusted, SpendCapReached, StateUnusable, TryLater,
    UnknownTool,
};

/// Starting a run, or explaining it.
pub(super) const ACT: [RefusalCode; 13] = [
    UnknownTool,
    ConsentNeeded,
    InvalidComponent,
    SkillUntrusted,
    NotFound,
    Busy,
    IllegalState,
    ModelUnavailable,
    CredentialsNeeded,
    EnergyTooLow,
    SpendCapReached,
    PriceUnknown,
    OutcomeUnknown,
];

/// Refusals of executing a program.
pub(super) const EXECUTE: [RefusalCode; 2] = [InvalidComponent, EnergyTooLow];

/// Refusals of commands to a run.
pub(super) const COMMAND: [RefusalCode; 4] = [Busy, IllegalState, ConsentNeeded, OutcomeUnknown];

/// Refusals of another attempt at a run.
pub(super) const RETRY: [RefusalCode; 5] = [Busy, IllegalState, ConsentNeeded, EnergyTooLow, OutcomeUnknown];

/// Resuming a run to follow it.
pub(super) const TAKE_UP: [RefusalCode; 2] = [IllegalState, OutcomeUnknown];

/// Refusals of requests that do not fit the present state.
pub(super) const STATE: [RefusalCode; 1] = [IllegalState];

/// Refusals of a cycle of the cortex.
pub(super) const REFLECT: [RefusalCode; 5] = [IllegalState, Busy, NotFound, ModelUnavailable, TryLater];

/// Refusals of an approval of a reflector.
pub(super) const REFLECTOR: [RefusalCode; 4] = [NotFound, SkillUntrusted, InvalidComponent, ConsentNeeded];

/// Refusals of a proposed neuron.
pub(super) const NEURON: [RefusalCode; 4] = [IllegalState, NotFound, InvalidComponent, ConsentNeeded];

/// Reading or landing the changes of a run in the owner's directories.
pub(super) const LAND: [RefusalCode; 3] = [IllegalState, NotFound, InvalidRequest];

/// Refusals of changes to tokens.
pub(super) const CONSENT: [RefusalCode; 3] = [IllegalState, NotFound, ConsentNeeded];

/// Refusals of changes to credentials.
pub(super) const CREDENTIAL: [RefusalCode; 4] = [CredentialsNeeded, IllegalState, NotFound, InvalidRequest];

/// Refusals of decisions about credentials that runs saved.
pub(super) const SAVED: [RefusalCode; 4] = [SkillUntrusted, IllegalState, NotFound, InvalidRequest];

/// Reading credentials: their key may be missing.
pub(super) const VAULT: [RefusalCode; 1] = [CredentialsNeeded];

/// Refusals of messages to agents.
pub(super) const MESSAGE: [RefusalCode; 3] = [ConsentNeeded, CredentialsNeeded, OutcomeUnknown];

/// Refusals of forgetting a conversation.
pub(super) const FORGET: [RefusalCode; 3] = [NotFound, IllegalState, ConsentNeeded];

/// Refusals of decisions about domains.
pub(super) const DECISION: [RefusalCode; 1] = [NotFound];

/// Refusals of requests about a skill.
pub(super) const SKILL: [RefusalCode; 13] = [
    NotFound,
    IllegalState,
    SkillUntrusted,
    ConsentNeeded,
    InvalidComponent,
    UnknownTool,
    Busy,
    ModelUnavailable,
    CredentialsNeeded,
    EnergyTooLow,
    SpendCapReached,
    PriceUnknown,
    StateUnusable,
];
