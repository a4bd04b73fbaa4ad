//! What a skill's components can do, for reviews (SPEC HOST-7, SKILL-9). Read off their bytes; nothing is compiled.

use runtime::inspect;
use skills::review::{ComponentFact, ToolFact};

/// What one component can do.
pub(crate) fn fact(path: &str, bytes: &[u8], most_bytes: u64) -> ComponentFact {
    let nothing = ComponentFact {
        path: path.to_owned(),
        hash: base::ContentHash::of(bytes),
        capabilities: Vec::new(),
        imports: Vec::new(),
        tools: Vec::new(),
        problem: None,
    };
    match inspect(bytes, most_bytes) {
        Ok(found) => ComponentFact {
            capabilities: found.capabilities().into_iter().filter_map(word).collect(),
            imports: found.imports.iter().map(|import| import.name.clone()).collect(),
            ..nothing
        },
        Err(error) => ComponentFact { problem: Some(error.to_string()), ..nothing },
    }
}

/// A tool, for a review.
pub(crate) fn tool(tool: &runtime::ToolDescription) -> ToolFact {
    ToolFact { name: tool.name.clone(), description: tool.description.clone(), parameters: tool.parameters.clone() }
}

/// The stable word of a capability; what has no power of its own has none.
fn word(capability: runtime::inspect::Capability) -> Option<String> {
    use runtime::inspect::Capability as C;
    let word = match capability {
        C::CommandLine => "command_line",
        C::Clock => "clock",
        C::Random => "random",
        C::Workspace => "workspace",
        C::Network => "network",
        C::Credentials => "credentials",
        C::Log => "log",
        C::Streams | C::Types => return None,
    };
    Some(word.to_owned())
}
