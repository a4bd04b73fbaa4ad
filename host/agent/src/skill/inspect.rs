//! The powers of a skill's components, for reviews (SPEC HOST-7, SKILL-9). They are read off the bytes, in the worker:
//! nothing is compiled, and no file of a stranger can end or stall the host.

use std::cell::Cell;

use runtime::{Origin, Runtime};
use skills::review::{ComponentFact, ToolFact};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// Components of one version that are inspected; a skill with more is reviewed without the rest, and says so.
const MAX_INSPECTED: usize = 64;

/// Inspects components from a thread that may block. Ends early when `cancel` is cancelled.
pub(crate) fn inspector(runtime: Runtime, cancel: CancellationToken) -> impl Fn(&str, &[u8]) -> ComponentFact {
    let inspected = Cell::new(0_usize);
    move |path, bytes| {
        let nothing = ComponentFact {
            path: path.to_owned(),
            hash: base::ContentHash::of(bytes),
            capabilities: Vec::new(),
            imports: Vec::new(),
            tools: Vec::new(),
            problem: None,
        };
        inspected.set(inspected.get() + 1);
        if inspected.get() > MAX_INSPECTED {
            let problem = Some(format!("not inspected: the skill has more than {MAX_INSPECTED} components"));
            return ComponentFact { problem, ..nothing };
        }
        match Handle::current().block_on(cancel.run_until_cancelled(runtime.inspect(bytes, Origin::Untrusted))) {
            Some(Ok(found)) => ComponentFact {
                capabilities: found.capabilities().into_iter().filter_map(word).collect(),
                imports: found.imports.iter().map(|import| import.name.clone()).collect(),
                ..nothing
            },
            Some(Err(error)) => ComponentFact { problem: Some(error.to_string()), ..nothing },
            None => ComponentFact { problem: Some("the inspection was cancelled".to_owned()), ..nothing },
        }
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
        C::Streams | C::Types | C::Sockets => return None,
    };
    Some(word.to_owned())
}
