//! Exported functions of any WIT as tools: JSON in, values through, JSON out (SPEC HOST-3).
//!
//! The types are those of the inspection, the same that the schemas were made of. The engine checks the values against
//! the component's own types once more.

use capabilities::{Limit, LimitExceeded};
use wasmtime::Store;
use wasmtime::component::{Func, InstancePre, Val};

use crate::inspect::{FunctionTool, Signature};
use crate::outcome::{Outcome, ToolError};
use crate::state::CallState;
use crate::wit_json::write::WriteError;
use crate::wit_json::{Type, write};

/// Calls the function in a fresh instance. Returns `None` if it has no result.
pub(super) async fn call(
    pre: &InstancePre<CallState>,
    tool: &FunctionTool,
    arguments: &[Val],
    results: usize,
    store: &mut Store<CallState>,
) -> wasmtime::Result<Option<Val>> {
    let instance = pre.instantiate_async(&mut *store).await?;
    let mut values = vec![Val::Bool(false); results];
    find(&instance, tool, store)?.call_async(&mut *store, arguments, &mut values).await?;
    Ok(values.pop())
}

fn find(
    instance: &wasmtime::component::Instance,
    tool: &FunctionTool,
    store: &mut Store<CallState>,
) -> wasmtime::Result<Func> {
    let missing = || wasmtime::Error::msg(format!("the component has no function `{}`", tool.function));
    let interface = match tool.export.as_str() {
        "" => None,
        export => Some(instance.get_export_index(&mut *store, None, export).ok_or_else(missing)?),
    };
    let function = instance.get_export_index(&mut *store, interface.as_ref(), &tool.function).ok_or_else(missing)?;
    instance.get_func(&mut *store, function).ok_or_else(missing)
}

/// Converts the result of a call: the function's own error becomes a failure of the tool, as JSON.
pub(super) fn settle(signature: &Signature, value: Option<Val>, most_bytes: u64) -> Outcome<String, ToolError> {
    let (typed, failed) = match (&signature.result, &value) {
        (Some(Type::Result { ok, .. }), Some(Val::Result(Ok(value)))) => (pair(ok.as_deref(), value.as_deref()), false),
        (Some(Type::Result { error, .. }), Some(Val::Result(Err(value)))) => {
            (pair(error.as_deref(), value.as_deref()), true)
        }
        (ty, value) => (pair(ty.as_ref(), value.as_ref()), false),
    };
    let text = match typed.map(|typed| write::value(typed, most_bytes)) {
        Ok(Ok(text)) => text,
        Ok(Err(WriteError::TooLong)) => {
            return Outcome::Exceeded(LimitExceeded { limit: Limit::OutputBytes, value: most_bytes });
        }
        Ok(Err(WriteError::Mismatch(message))) | Err(message) => return Outcome::HostFault(message),
    };
    if failed {
        return Outcome::Refused(ToolError::Failed { message: text, retryable: false });
    }
    Outcome::Returned(text)
}

/// A type and its value, or neither.
fn pair<'a>(ty: Option<&'a Type>, value: Option<&'a Val>) -> Result<Option<(&'a Type, &'a Val)>, String> {
    match (ty, value) {
        (Some(ty), Some(value)) => Ok(Some((ty, value))),
        (None, None) => Ok(None),
        _ => Err("the component's function gave back something else than its type says".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wit_json::Integer;

    #[test]
    fn an_error_of_the_function_is_a_failure() {
        let boxed = |ty| Some(Box::new(ty));
        let settled =
            |result: Option<Type>, value: Option<Val>| settle(&Signature { parameters: Vec::new(), result }, value, 20);
        let result = || Some(Type::Result { ok: boxed(Type::Integer(Integer::U8)), error: boxed(Type::String) });
        let ok = settled(result(), Some(Val::Result(Ok(Some(Box::new(Val::U8(7)))))));
        assert_eq!(ok, Outcome::Returned("7".into()));
        let error = settled(result(), Some(Val::Result(Err(Some(Box::new(Val::String("no".into())))))));
        assert_eq!(error, Outcome::Refused(ToolError::Failed { message: "\"no\"".into(), retryable: false }));
        assert_eq!(settled(None, None), Outcome::Returned("null".into()));
        let long = settled(Some(Type::String), Some(Val::String("x".repeat(19))));
        assert_eq!(long, Outcome::Exceeded(LimitExceeded { limit: Limit::OutputBytes, value: 20 }));
        assert!(matches!(settled(None, Some(Val::Bool(true))), Outcome::HostFault(_)));
        assert!(matches!(settled(Some(Type::Bool), Some(Val::U8(1))), Outcome::HostFault(_)));
    }
}
