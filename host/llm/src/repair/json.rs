//! A whole reply as calls in JSON.

use super::scan::scan;
use super::value::call;
use super::{CallForm, markers, means_tool, names_tool};
use crate::ToolSpec;

/// The whole of `text` as calls. JSON in a call's form by chance, like `{"name": "Ada", "input": {}}`, counts only if
/// it names a granted tool or nearly does.
pub(super) fn whole(text: &str, tools: &[ToolSpec]) -> Option<CallForm> {
    let text = text.trim();
    if !text.starts_with(['{', '[']) || text.starts_with("[TOOL_CALLS]") {
        let (found, _) = scan(text);
        let mut end = 0;
        let mut calls = Vec::new();
        for found in found {
            if !markers::without_wrappers(text.get(end..found.start)?).trim().is_empty() {
                return None;
            }
            end = found.end;
            match found.form {
                Ok(some) => calls.extend(some),
                Err(reason) => return names_tool(text, tools).then_some(Err(reason)),
            }
        }
        let rest = markers::without_wrappers(text.get(end..)?);
        let is_meant = calls.iter().any(|call| means_tool(&call.name, tools));
        return (is_meant && rest.trim().is_empty()).then_some(Ok(calls));
    }
    let calls = call(&serde_json::from_str(text).ok()?)?;
    calls.iter().all(|call| means_tool(&call.name, tools)).then_some(Ok(calls))
}
