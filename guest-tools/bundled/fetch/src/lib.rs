//! `fetch`: one page or API call, as text a model can read (SPEC TOOL-1, TOOL-4).
//!
//! It must not know the reach of the run: the host's network gate decides about each request, redirects included. It
//! survives the responses: bodies without end, tags nested by the hundred thousand, attributes of megabytes, broken
//! character sets, binary data called text. Memory and depth are bounded by count, and omissions are reported.

mod answer;
mod body;
mod charset;
mod page;
mod request;
mod save;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use motor_sdk::http::{self, HttpError, Request, Response};
use motor_sdk::{Context, Effects, Tool, ToolError};

/// Where the host opens the workspace.
const ROOT: &str = "/workspace";

/// The number of redirects that are followed.
const MAX_REDIRECTS: usize = 10;

/// A POST may do anything to the other side, and a tool has one set of effects for all of its calls.
const EFFECTS: Effects = Effects { read_only: false, destructive: false, idempotent: false, open_world: true };

motor_sdk::arguments! {
    struct Fetch {
        url: String,
        method: Option<Method>,
        headers: Option<BTreeMap<String, String>>,
        /// Sent as JSON unless it is a string.
        body: Option<motor_sdk::serde_json::Value>,
        /// Of HTML. Default `markdown`; `text` lacks links.
        format: Option<Format>,
        /// File for a body that is binary or large, instead of showing it.
        save_to: Option<String>,
    }

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[serde(rename_all = "UPPERCASE")]
    #[schemars(inline)]
    enum Method {
        #[serde(alias = "get")]
        Get,
        #[serde(alias = "post")]
        Post,
        #[serde(alias = "head")]
        Head,
    }

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[serde(rename_all = "lowercase")]
    #[schemars(inline)]
    enum Format {
        Markdown,
        Text,
        Raw,
    }
}

fn tools() -> Vec<Tool> {
    vec![tool(Path::new(ROOT), |request| http::send_following(request, MAX_REDIRECTS))]
}

/// The tool over a workspace and a way to send.
fn tool(workspace: &Path, send: impl Fn(Request) -> Result<Response, HttpError> + 'static) -> Tool {
    let workspace = workspace.to_owned();
    Tool::new(
        "fetch",
        "Fetches a URL: status, final URL and content type, then HTML as Markdown or other text as it is.",
        move |arguments: Fetch, context: &Context| fetch(&workspace, &send, arguments, context),
    )
    .effects(EFFECTS)
}

fn fetch(
    workspace: &Path,
    send: &impl Fn(Request) -> Result<Response, HttpError>,
    arguments: Fetch,
    context: &Context,
) -> Result<String, ToolError> {
    let format = arguments.format.unwrap_or(Format::Markdown);
    let target = arguments.save_to.as_deref().map(save::Target::parse).transpose()?;
    let is_head = arguments.method == Some(Method::Head);
    let response = send(request::of(arguments, context)?)?;
    if response.status >= 400 {
        return Err(answer::failure(response, is_head));
    }
    match target {
        _ if is_head => Ok(answer::head(&response)),
        Some(target) => save::save(response, workspace, &target),
        None => answer::show(response, format),
    }
}

motor_sdk::export!(tools);
