//! `motor inspect`: what a component is and could do, without a home and without running a tool (SPEC HOST-7).

use std::fmt::Write as _;
use std::path::PathBuf;

use agent::Home;
use agent::components::{ComponentReport, Workbench, is_bundled};
use base::Refusal;
use clap::Args;
use runtime::ToolDescription;
use runtime::inspect::Capability;

use super::Done;
use super::context::{Context, compile_worker};
use crate::exit::CommandExit;
use crate::output::{Palette, text};
use crate::words::facts::parameters;

/// Arguments of a tool that are shown, a line each.
const MAX_ARGUMENTS: usize = 32;

/// Arguments of `motor inspect`.
#[derive(Debug, Args)]
pub(super) struct InspectArgs {
    /// A component's file, or one that comes with `motor`: `code-js`, `code-js-connected`, `files`, `fetch`, `bash`
    component: PathBuf,
}

pub(super) async fn run(arguments: InspectArgs, context: &Context) -> Done {
    let bench = workbench(context)?;
    let component = &arguments.component;
    // An existing file of that name takes precedence.
    let bundled = component.to_str().filter(|name| !component.exists() && is_bundled(name));
    let report = match bundled {
        Some(name) => at(&bench, context, bench.inspect_bundled(name)).await?,
        None => at(&bench, context, bench.inspect_file(component)).await?,
    };
    context.answer(&report, || render(&report, context.output.columns, context.output.out))?;
    Ok(CommandExit::Ok)
}

/// Runs components here, under the limits in force.
pub(super) fn workbench(context: &Context) -> Result<Workbench, Refusal> {
    let place = context.place()?;
    let loaded = place.load()?;
    // The home's cache of compiled code, if there is a home: looking at a component does not make one.
    let cache = match place.home.existing_cache()? {
        Some(cache) => Some(cache),
        None => Home::user_cache(&*context.env)?,
    };
    Workbench::new(&loaded.config, cache, compile_worker())
}

/// Runs work at a workbench and announces the component that is compiled for it.
pub(super) async fn at<T>(bench: &Workbench, context: &Context, work: impl Future<Output = T>) -> T {
    let mut preparing = bench.preparations().subscribe();
    tokio::pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => {
                context.output.notice(None);
                return done;
            }
            Ok(()) = preparing.changed() => {
                let once = if bench.keeps_code() { ", once" } else { "; there is no cache directory to keep it in" };
                let component = preparing.borrow_and_update().as_ref().map(|preparing| text::quoted(&preparing.component));
                context.output.notice(component.map(|name| format!("compiling `{name}`{once}")).as_deref());
            }
        }
    }
}

fn render(report: &ComponentReport, columns: usize, palette: Palette) -> String {
    let mut page = String::new();
    writeln!(page, "{}", report.hash).ok();
    let what = match report.world {
        "command" => "a `wasi:cli` command".to_owned(),
        "functions" => "functions of its own".to_owned(),
        world => format!("world `{world}`"),
    };
    writeln!(page, "{}, {what}", text::bytes(report.size_bytes)).ok();

    let heading = |page: &mut String, name: &str| writeln!(page, "\n{}", palette.bold(name)).ok();
    if let Some(about) = &report.about {
        heading(&mut page, "says of itself");
        writeln!(page, "  {}", text::brief(&about.name, 80)).ok();
        writeln!(page, "  {}", text::brief(&about.description, columns.saturating_sub(2))).ok();
        writeln!(page, "  {} of instructions", text::bytes(about.instructions.len() as u64)).ok();
    }
    heading(&mut page, "can use");
    if report.capabilities.is_empty() {
        writeln!(page, "  nothing: it is granted nothing that has any power").ok();
    }
    for capability in &report.capabilities {
        writeln!(page, "  {capability}").ok();
    }
    if !report.cannot.is_empty() {
        writeln!(page, "  no {}", report.cannot.join(", no ")).ok();
    }
    writeln!(page, "{}", palette.dim("  What it does not import it cannot do.")).ok();
    if !report.imports.is_empty() {
        heading(&mut page, "imports");
        for import in &report.imports {
            let unused = if import.capability == Capability::Unused { " (never granted)" } else { "" };
            writeln!(page, "  {}{unused}", text::brief(&import.name, columns.saturating_sub(2 + unused.len()))).ok();
        }
    }
    heading(&mut page, "exports");
    for export in &report.exports {
        writeln!(page, "  {}", text::brief(&export.name, columns.saturating_sub(2))).ok();
        for function in &export.functions {
            writeln!(page, "    {}", text::brief(function, columns.saturating_sub(4))).ok();
        }
    }
    if let Some(error) = &report.tools_error {
        heading(&mut page, "tools");
        writeln!(page, "  cannot be listed: {}", text::one_line(error)).ok();
    } else if !report.tools.is_empty() {
        heading(&mut page, "tools");
        for tool in &report.tools {
            page.push_str(&tools(std::slice::from_ref(tool), columns));
            for line in arguments(&tool.parameters) {
                writeln!(page, "      {}", text::brief(&line, columns.saturating_sub(6))).ok();
            }
        }
    }
    if !report.unmapped.is_empty() {
        heading(&mut page, "no tools");
        for function in &report.unmapped {
            let line = format!("{}: {}", function.export, function.why);
            writeln!(page, "  {}", text::brief(&line, columns.saturating_sub(2))).ok();
        }
    }
    page
}

/// Tools with their arguments, a few lines each. Everything here is the component's own word.
pub(super) fn tools(tools: &[ToolDescription], columns: usize) -> String {
    let mut page = String::new();
    for tool in tools {
        let effects = tool.effects;
        let effects = match (effects.read_only, effects.destructive) {
            (true, _) => "read only",
            (false, true) => "may destroy",
            (false, false) => "adds",
        };
        writeln!(page, "  {}({})  [{effects}]", text::brief(&tool.name, 40), parameters(&tool.parameters)).ok();
        writeln!(page, "    {}", text::brief(&tool.description, columns.saturating_sub(4))).ok();
    }
    page
}

/// Each argument with its type and description, a line each: `path (string): where it is`.
fn arguments(schema: &serde_json::Value) -> Vec<String> {
    let properties = schema.get("properties").and_then(|properties| properties.as_object());
    let line = |(name, schema): (&String, &serde_json::Value)| {
        let description = schema.get("description").and_then(|text| text.as_str()).unwrap_or_default();
        let separator = if description.is_empty() { "" } else { ": " };
        format!("{name} ({}){separator}{description}", type_of(schema))
    };
    properties.into_iter().flatten().take(MAX_ARGUMENTS).map(line).collect()
}

/// A schema in a few words.
fn type_of(schema: &serde_json::Value) -> String {
    let words = |values: &[serde_json::Value]| {
        let words: Vec<_> =
            values.iter().take(8).map(|value| value.as_str().map_or("…".into(), str::to_owned)).collect();
        words.join(" | ")
    };
    let list = |key: &str| schema.get(key).and_then(|value| value.as_array());
    let ty = match schema.get("type") {
        Some(serde_json::Value::String(ty)) => ty.clone(),
        Some(serde_json::Value::Array(types)) => words(types),
        _ => match (list("enum"), list("oneOf").or(list("anyOf"))) {
            (Some(values), _) => words(values),
            (_, Some(forms)) => format!("one of {} forms", forms.len()),
            _ => "any".to_owned(),
        },
    };
    match schema.get("items").filter(|_| ty == "array") {
        Some(items) if items.get("items").is_none() => format!("array of {}", type_of(items)),
        _ => ty,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_have_a_line_each() {
        let schema = json!({ "properties": {
            "points": { "type": "array", "items": { "type": "object" }, "description": "Where." },
            "mode": { "enum": ["fast", "safe"] },
            "shape": { "oneOf": [{}, {}] },
            "name": { "type": ["string", "null"] },
            "odd": true,
        } });
        let lines = [
            "points (array of object): Where.",
            "mode (fast | safe)",
            "shape (one of 2 forms)",
            "name (string | null)",
        ];
        assert_eq!(arguments(&schema)[..4], lines);
        assert_eq!(arguments(&schema)[4], "odd (any)");
        assert!(arguments(&json!({ "properties": [7] })).is_empty());
    }
}
