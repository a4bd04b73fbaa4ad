//! The tools of a skill: its components, each loaded from the verified bytes (SPEC SKILL-8, HOST-8).

use std::collections::BTreeMap;

use base::{Refusal, RefusalCode};
use runtime::inspect::Capability;
use runtime::{Effects, ToolDescription};
use skills::Snapshot;

use toolbox::catalogue;
use toolbox::{CompileTurn, SandboxPool, SkillTool, Toolset};

/// Maximum number of components with tools in a skill: each is compiled and asked.
const MAX_COMPONENTS: usize = 16;
/// Maximum characters of a tool's name.
const MAX_NAME_CHARACTERS: usize = 64;

/// Loads the components of a skill, and returns their tools by the names that a model uses: their own, and if that is
/// taken, `COMPONENT_NAME`. Bundled tools and tools of the host keep their names.
///
/// # Errors
/// If a component cannot be used. A skill is used whole or not at all.
pub(crate) async fn of(sandboxes: &SandboxPool, snapshot: &Snapshot) -> Result<BTreeMap<String, SkillTool>, Refusal> {
    let components: Vec<_> = snapshot.files.iter().filter(|(path, _)| skills::snapshot::is_component(path)).collect();
    if components.len() > MAX_COMPONENTS {
        let reason = format!("the skill has {} components: at most {MAX_COMPONENTS} are loaded", components.len());
        return Err(Refusal::new(RefusalCode::InvalidComponent, reason));
    }
    let mut tools = BTreeMap::new();
    let of = components.len();
    for (index, (path, file)) in components.into_iter().enumerate() {
        let toolset = sandboxes
            .component(file.hash, &file.bytes, path, CompileTurn { number: index + 1, of })
            .await
            .map_err(|refusal| Refusal { reason: format!("`{path}` of the skill: {}", refusal.reason), ..refusal })?;
        for tool in &toolset.tools {
            let name = name(path, &tool.name, &tools).ok_or_else(|| {
                let reason =
                    format!("`{path}` of the skill offers a tool `{}`, and there is another of that name", tool.name);
                Refusal::new(RefusalCode::InvalidComponent, reason).with_remedy("rename one of them")
            })?;
            tools.insert(name, SkillTool { toolset: toolset.clone(), tool: bounded(tool, &toolset) });
        }
    }
    Ok(tools)
}

/// A tool with its trusted effects. The claims of a component with network access could make the host send a request
/// twice, or without asking: they are believed only if it cannot send anything.
fn bounded(tool: &ToolDescription, toolset: &Toolset) -> ToolDescription {
    let mut tool = tool.clone();
    if toolset.component.component().inspection().capabilities().contains(&Capability::Network) {
        tool.effects = Effects::default();
    }
    tool
}

fn name(path: &str, own: &str, taken: &BTreeMap<String, SkillTool>) -> Option<String> {
    let is_free = |name: &str| !catalogue::is_reserved(name) && !taken.contains_key(name);
    if is_free(own) {
        return Some(own.to_owned());
    }
    let stem = path.rsplit('/').next().unwrap_or(path).trim_end_matches(".wasm");
    let stem: String =
        stem.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    let long = format!("{stem}_{own}");
    let fits = long.len() <= MAX_NAME_CHARACTERS && long.starts_with(|c: char| c.is_ascii_lowercase());
    (fits && is_free(&long)).then_some(long)
}
