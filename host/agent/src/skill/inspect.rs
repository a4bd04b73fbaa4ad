//! The powers of a skill's components, for reviews (SPEC HOST-7, SKILL-9). They are read from the bytes, in the worker:
//! nothing is compiled, and an untrusted file cannot end or stall the host.

use std::cell::Cell;
use std::sync::{Arc, OnceLock};

use runtime::{ComponentOrigin, Runtime};
use skills::review::{ComponentFact, ToolFact};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// Files that begin like a component without its file name, and are inspected: they are never loaded, so the rest of
/// them is only counted.
const MAX_DISGUISED: usize = 64;

/// The first failure of a review that does not concern the component: without a verdict there is no review.
pub(crate) type InspectFailure = Arc<OnceLock<String>>;

/// Inspects components from a thread that may block. Ends early when `cancel` is cancelled.
pub(crate) fn inspector(
    runtime: Runtime,
    cancel: CancellationToken,
    failure: InspectFailure,
) -> impl Fn(&str, &[u8]) -> ComponentFact {
    let disguised = Cell::new(0_usize);
    move |path, bytes| {
        let nothing = ComponentFact {
            path: path.to_owned(),
            hash: base::ContentHash::of(bytes),
            capabilities: Vec::new(),
            imports: Vec::new(),
            tools: Vec::new(),
            problem: None,
        };
        if !skills::snapshot::is_component(path) {
            disguised.set(disguised.get() + 1);
            if disguised.get() > MAX_DISGUISED {
                let problem = Some(format!("not inspected: more than {MAX_DISGUISED} files begin like components"));
                return ComponentFact { problem, ..nothing };
            }
        }
        if failure.get().is_some() {
            return nothing;
        }
        match Handle::current().block_on(cancel.run_until_cancelled(runtime.inspect(bytes, ComponentOrigin::Untrusted)))
        {
            Some(Ok(found)) => ComponentFact {
                capabilities: found.abilities().map(|ability| ability.as_str().to_owned()).collect(),
                imports: found.imports.iter().map(|import| import.name.clone()).collect(),
                ..nothing
            },
            Some(Err(error)) if error.is_about_the_bytes() => {
                ComponentFact { problem: Some(error.to_string()), ..nothing }
            }
            Some(Err(error)) => {
                failure.get_or_init(|| format!("`{path}` cannot be inspected: {error}"));
                nothing
            }
            None => {
                failure.get_or_init(|| "the inspection was cancelled".to_owned());
                nothing
            }
        }
    }
}

/// A tool, for a review.
pub(crate) fn tool(tool: &runtime::ToolDescription) -> ToolFact {
    ToolFact { name: tool.name.clone(), description: tool.description.clone(), parameters: tool.parameters.clone() }
}
