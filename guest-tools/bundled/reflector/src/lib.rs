//! The bundled reflector: `reflection` behind the world `reflector`. It imports nothing.

use bindings::exports::motor::host::reflection::{Assessment, Belief, Guest, Prompt, Proposals};

/// Generated from the WIT world.
#[allow(missing_docs, unsafe_code, clippy::all, clippy::restriction)]
mod bindings {
    wit_bindgen::generate!({ path: "../../../wit", world: "reflector" });
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
