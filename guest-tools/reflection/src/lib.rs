//! The bundled reflector's logic (SPEC CX-3, CX-4): the facts of a cycle become a prompt, the model's reply becomes proposals.
//!
//! Pure functions of text, without the component around them, so that the host's tests can call them without an engine. It must
//! not know the host's limits beyond the words of the prompt: the host enforces them, with any reflector.

mod guidance;
mod prompt;
mod reply;

pub use guidance::{Closing, Commitment, Directive, Guidance, guide};
pub use prompt::{Prompt, compose};
pub use reply::interpret;

/// The proposals of a reply.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Proposals {
    /// Judgements of peers that the model proposes.
    pub assessments: Vec<Assessment>,
    /// Beliefs to form, keep or revise.
    pub beliefs: Vec<Belief>,
    /// One paragraph for the next cycle.
    pub summary: String,
}

/// A judgement of a peer.
#[derive(Debug, Clone, PartialEq)]
pub struct Assessment {
    /// The id of the peer.
    pub peer: String,
    /// The proposed trust: any finite number.
    pub trust: f64,
    /// The behaviour that the judgement rests on.
    pub rationale: String,
}

/// A belief as it is proposed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Belief {
    /// The key that names it.
    pub key: String,
    /// The value for the prompt.
    pub value: String,
    /// The reasons for it.
    pub rationale: String,
    /// The peer that it is about, if it is about one.
    pub peer: Option<String>,
}
