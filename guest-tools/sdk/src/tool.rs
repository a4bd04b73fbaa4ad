//! A tool: its description for a model, and the handler behind it.

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    Context, Effects, ToolDescription, ToolError, arguments,
    bindings::{exports::motor::host::tools::Guest, motor::host::types::ToolOutput},
    nearest::nearest,
    schema,
};

type Handler = Box<dyn Fn(&str, &Context) -> Result<String, ToolError>>;

/// One tool of a component.
pub struct Tool {
    name: String,
    description: String,
    // Functions, as a call needs only the schema of the tool called and a listing none of the handlers.
    parameters: fn() -> Value,
    output: Option<fn() -> Value>,
    effects: Option<Effects>,
    handler: Handler,
}

impl Tool {
    /// A tool that answers with text. `A` is a struct: its fields are the arguments, their doc comments the model's
    /// descriptions of them, and an `Option` is an argument that may be left out. Unknown arguments are refused.
    pub fn new<A, H>(name: impl Into<String>, description: impl Into<String>, handler: H) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        H: Fn(A, &Context) -> Result<String, ToolError> + 'static,
    {
        let name = name.into();
        let tool = name.clone();
        Self {
            name,
            description: description.into(),
            parameters: schema::of::<A>,
            output: None,
            effects: None,
            handler: Box::new(move |text, context| handler(arguments::read(&tool, &schema::of::<A>(), text)?, context)),
        }
    }

    /// A tool that answers with JSON of a type of its own; the description then carries its schema.
    pub fn json<A, O, H>(name: impl Into<String>, description: impl Into<String>, handler: H) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        O: Serialize + JsonSchema,
        H: Fn(A, &Context) -> Result<O, ToolError> + 'static,
    {
        let answer = move |arguments: A, context: &Context| {
            let output = handler(arguments, context)?;
            serde_json::to_string(&output)
                .map_err(|error| ToolError::failed(format!("the result cannot be written as JSON: {error}")))
        };
        Self { output: Some(schema::of::<O>), ..Self::new(name, description, answer) }
    }

    /// Promises that a call changes nothing anywhere and reaches nothing outside the workspace. The host may then
    /// repeat it after a crash.
    #[must_use]
    pub fn read_only(self) -> Self {
        self.effects(Effects { read_only: true, destructive: false, idempotent: true, open_world: false })
    }

    /// Declares the effects of a call. Without them the host takes the worst case.
    #[must_use]
    pub fn effects(mut self, effects: Effects) -> Self {
        self.effects = Some(effects);
        self
    }

    /// The description for the host and the model.
    #[must_use]
    pub fn describe(&self) -> ToolDescription {
        ToolDescription {
            name: self.name.clone(),
            description: self.description.clone(),
            parameters: (self.parameters)().to_string(),
            output: self.output.map(|schema| schema().to_string()),
            effects: self.effects,
        }
    }
}

/// A function that [`#[tool]`](macro@crate::tool) made a tool. The attribute implements it; [`tools!`](crate::tools) uses it.
pub trait ToolFunction {
    /// The tool that calls the function.
    fn tool() -> Tool;
}

/// The tools of a component, as [`export!`](crate::export) needs them.
pub trait Toolset {
    /// All tools of the component.
    fn tools() -> Vec<Tool>;
}

/// Calls one of several tools by name, as the host does: for unit tests of a component's logic.
///
/// # Errors
/// The tool's own error, or `missing` if there is no tool of that name.
pub fn call(tools: &[Tool], name: &str, arguments: &str, context: &Context) -> Result<String, ToolError> {
    match tools.iter().find(|tool| tool.name == name) {
        Some(tool) => (tool.handler)(arguments, context),
        None => {
            let meant = nearest(name, tools.iter().map(|tool| tool.name.as_str()));
            let meant = meant.map(|name| format!(", did you mean `{name}`?")).unwrap_or_default();
            Err(ToolError::missing(format!("this component has no such tool{meant}")))
        }
    }
}

impl<T: Toolset> Guest for T {
    fn list() -> Vec<ToolDescription> {
        T::tools().iter().map(Tool::describe).collect()
    }

    fn call(name: String, arguments: String, context: Context) -> Result<ToolOutput, ToolError> {
        call(&T::tools(), &name, &arguments, &context).map(|output| ToolOutput { output })
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize, JsonSchema)]
    struct Sum {
        numbers: Vec<i64>,
    }

    #[derive(Serialize, JsonSchema)]
    struct Total {
        total: i64,
    }

    fn sum(arguments: Sum, _context: &Context) -> Result<Total, ToolError> {
        let total = arguments.numbers.iter().try_fold(0_i64, |sum, number| sum.checked_add(*number));
        Ok(Total { total: total.ok_or_else(|| ToolError::limit("the sum does not fit 64 bits"))? })
    }

    fn tools() -> Vec<Tool> {
        vec![Tool::json("sum", "Adds numbers.", sum).read_only()]
    }

    fn context() -> Context {
        Context { run_id: String::new(), step: 0, deadline_ms: 1_000, idempotency_key: String::new() }
    }

    #[test]
    fn calls_by_name() {
        let answer = call(&tools(), "sum", r#"{"numbers":[1,2,3]}"#, &context());
        assert_eq!(answer.unwrap(), r#"{"total":6}"#);
        let refused = call(&tools(), "sum", r#"{"numbers":[9223372036854775807,1]}"#, &context());
        assert!(matches!(refused, Err(ToolError::Limit(_))), "{refused:?}");
    }

    #[test]
    fn a_wrong_name_suggests_the_right_one() {
        let refused = call(&tools(), "sums", "{}", &context()).unwrap_err();
        assert_eq!(refused.sentence(), "this component has no such tool, did you mean `sum`?");
    }

    #[test]
    fn describes_itself() {
        let description = tools()[0].describe();
        assert_eq!(
            description.parameters,
            r#"{"type":"object","properties":{"numbers":{"type":"array","items":{"type":"integer"}}},"required":["numbers"],"additionalProperties":false}"#
        );
        assert!(description.output.is_some_and(|schema| schema.contains("total")));
        assert!(description.effects.is_some_and(|effects| effects.read_only));
    }
}
