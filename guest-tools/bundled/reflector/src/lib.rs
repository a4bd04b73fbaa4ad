//! The bundled reflector: `reflection` behind the world `guiding-reflector`. It imports nothing.

use bindings::exports::motor::host::guidance::{self, Closing, Commitment, Directive, Promiser};
use bindings::exports::motor::host::reflection::{Assessment, Belief, Guest, Prompt, Proposals};

/// Generated from the WIT world.
#[allow(missing_docs, unsafe_code, clippy::all, clippy::restriction)]
mod bindings {
    wit_bindgen::generate!({ path: "../../../wit", world: "guiding-reflector" });
    use super::Reflector;
    export!(Reflector with_types_in self);
}

struct Reflector;

impl Guest for Reflector {
    fn compose(facts: String) -> Result<Prompt, String> {
        let reflection::Prompt { system, user } = reflection::compose(&facts);
        Ok(Prompt { system, user })
    }

    fn interpret(reply: String) -> Result<Proposals, String> {
        let reflection::Proposals { assessments, beliefs, summary } = reflection::interpret(&reply)?;
        let assessment = |reflection::Assessment { peer, trust, rationale }| Assessment { peer, trust, rationale };
        let belief = |reflection::Belief { key, value, rationale, peer }| Belief { key, value, rationale, peer };
        Ok(Proposals {
            assessments: assessments.into_iter().map(assessment).collect(),
            beliefs: beliefs.into_iter().map(belief).collect(),
            summary,
        })
    }
}

impl guidance::Guest for Reflector {
    fn guide(reply: String) -> Result<guidance::Proposals, String> {
        let reflection::Guidance { commitments, closings, directives, drift } = reflection::guide(&reply)?;
        let commitment = |reflection::Commitment { key, text, by_peer, peer, due_in_minutes }| {
            let by = if by_peer { Promiser::Peer } else { Promiser::Agent };
            Commitment { key, text, by, peer, due_in_minutes }
        };
        let closing = |reflection::Closing { key, kept }| Closing { key, kept };
        let directive = |reflection::Directive { key, text, peer }| Directive { key, text, peer };
        Ok(guidance::Proposals {
            commitments: commitments.into_iter().map(commitment).collect(),
            closings: closings.into_iter().map(closing).collect(),
            directives: directives.into_iter().map(directive).collect(),
            drift,
        })
    }
}
