//! Tools derived from exported functions, by the types in the bytes (SPEC HOST-3).
//!
//! Types are hostile: a few hundred bytes can encode a type with a million parts. Each function has a budget for its
//! types and names, and all functions together have another; a function over budget is not a tool, and the reason is
//! kept. The call path uses the same types, so a model sees the types that its arguments are checked against.

use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;

use base::text::cut_bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wasmparser::component_types::{ComponentEntityType, ComponentFuncTypeId};
use wasmparser::types::TypesRef;

use super::docs::{Docs, MAX_TEXT_BYTES};
use super::name::tool_names;
use super::types::{TypeNames, TypeReader, type_names};
use super::{Capability, Export, toolchain};
use crate::tool::{Effects, MAX_SCHEMA_BYTES, MAX_TOOLS, ToolDescription, command};
use crate::wit_json::{Field, Type, fmt_fields, read, schema};

/// Budget for the types of one function, in bytes of names and parts: the schema of a type within budget is within its
/// own bound or is refused soon after.
const FUNCTION_BUDGET: usize = 2 * MAX_SCHEMA_BYTES;
/// Budget for all functions of a component together.
const COMPONENT_BUDGET: usize = 32 * FUNCTION_BUDGET;
/// Maximum number of listed functions that are not tools.
const MAX_UNMAPPED: usize = 256;
/// The longest signature or name that is shown, in bytes.
const MAX_SIGNATURE_BYTES: usize = 400;

/// An exported function that is a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionTool {
    /// The tool, as a model sees it.
    #[serde(flatten)]
    pub tool: ToolDescription,
    /// The function's exported interface, such as `shapes:flat/area@1.0.0`; empty for a function of the component
    /// itself.
    pub export: String,
    /// The function's own name in WIT.
    pub function: String,
    /// The function in WIT, cut if it is long.
    pub signature: String,
    pub(crate) shape: Shape,
}

impl FunctionTool {
    /// Checks arguments against the function's types, as a call does, without calling it.
    ///
    /// # Errors
    /// If an argument is invalid: one sentence for the model that names its position.
    pub fn check_arguments(&self, json: &str) -> Result<(), String> {
        match &self.shape {
            Shape::Function(signature) => read::from_text(&signature.parameters, json).map(drop),
            Shape::Command => read::from_text(&command::fields(), json).map(drop),
        }
    }
}

/// An exported function that is not a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnmappedFunction {
    /// Interface and function, such as `shapes:flat/area@1.0.0#scale`.
    pub export: String,
    /// The reason, such as `uses a resource`.
    pub why: String,
}

/// The way a tool is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Shape {
    /// A function from arguments to a result.
    Function(Signature),
    /// A program with a command line and standard streams.
    Command,
}

/// The types of a function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Signature {
    pub parameters: Vec<Field>,
    pub result: Option<Type>,
}

impl Signature {
    /// The type of the value that a successful call returns.
    pub fn success(&self) -> Option<&Type> {
        match &self.result {
            Some(Type::Result { ok, .. }) => ok.as_deref(),
            other => other.as_ref(),
        }
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        fmt_fields(f, &self.parameters)?;
        f.write_str(")")?;
        match &self.result {
            Some(result) => write!(f, " -> {result}"),
            None => Ok(()),
        }
    }
}

/// The tools among all functions that a component exports, except those of the host's own interfaces, and the functions
/// that are not tools.
pub(super) fn derive(
    types: TypesRef<'_>,
    exports: &[Export],
    docs: &Docs,
    capabilities: &BTreeSet<Capability>,
) -> (Vec<FunctionTool>, Vec<UnmappedFunction>) {
    let mut budget = COMPONENT_BUDGET;
    let mut found = Vec::new();
    let mut unmapped = UnlistedFunction::default();
    for (export, function, shape) in functions(types, exports) {
        let shape = match shape {
            _ if found.len() >= MAX_TOOLS => Err(format!("a component offers at most {MAX_TOOLS} tools")),
            FoundFunction::Command => Ok(Shape::Command),
            FoundFunction::Function(id, _) if toolchain::is_setup(types, export, function, id) => {
                Err("is the set-up of its toolchain, which ran when it was built".to_owned())
            }
            FoundFunction::Function(id, names) => {
                let most = FUNCTION_BUDGET.min(budget);
                let mut reader = TypeReader { types, docs, export, names, left: most };
                let signature = reader.signature(id).and_then(|signature| signature.bounded());
                budget -= most - reader.left;
                signature.map(Shape::Function)
            }
        };
        match shape {
            Ok(shape) => found.push((export, function, shape)),
            Err(why) => unmapped.push(export, function, why),
        }
    }
    let names: Vec<(&str, &str)> = found.iter().map(|(export, function, _)| (*export, *function)).collect();
    let names = tool_names(&names);
    let mut tools = Vec::new();
    for ((export, function, shape), name) in found.into_iter().zip(names) {
        match name {
            Some(name) => tools.push(describe(name, export, function, shape, docs, capabilities)),
            None => unmapped.push(export, function, "no tool can have its name, or another has it too".to_owned()),
        }
    }
    (tools, unmapped.0)
}

#[derive(Default)]
struct UnlistedFunction(Vec<UnmappedFunction>);

impl UnlistedFunction {
    fn push(&mut self, export: &str, function: &str, why: String) {
        if self.0.len() < MAX_UNMAPPED {
            let separator = if export.is_empty() { "" } else { "#" };
            let export = cut_bytes(&format!("{export}{separator}{function}"), MAX_SIGNATURE_BYTES);
            self.0.push(UnmappedFunction { export, why });
        }
    }
}

enum FoundFunction<'a> {
    Command,
    Function(ComponentFuncTypeId, Rc<TypeNames<'a>>),
}

/// Every exported function: its interface, its name and its type.
fn functions<'a>(
    types: TypesRef<'a>,
    exports: &'a [Export],
) -> impl Iterator<Item = (&'a str, &'a str, FoundFunction<'a>)> {
    exports.iter().filter(|export| !export.name.starts_with("motor:host/")).flat_map(move |export| {
        let name = export.name.as_str();
        let mut found = Vec::new();
        match types.component_item_for_export(name).map(|item| item.ty) {
            Some(ComponentEntityType::Func(id)) => {
                found.push(("", name, FoundFunction::Function(id, Default::default())))
            }
            Some(ComponentEntityType::Instance(id)) => {
                let Some(instance) = types.get(id) else { return found };
                let names = Rc::new(type_names(types, instance));
                for (function, item) in &instance.exports {
                    if let ComponentEntityType::Func(id) = item.ty {
                        let function = function.as_str();
                        found.push(match command::is_run(name, function) {
                            true => (name, function, FoundFunction::Command),
                            false => (name, function, FoundFunction::Function(id, names.clone())),
                        });
                    }
                }
            }
            _ => (),
        }
        found
    })
}

fn describe(
    name: String,
    export: &str,
    function: &str,
    shape: Shape,
    docs: &Docs,
    capabilities: &BTreeSet<Capability>,
) -> FunctionTool {
    let (parameters, output, signature) = match &shape {
        Shape::Command => (command::parameters(), None, format!("{function}: func() -> result")),
        Shape::Function(signature) => (
            schema::object(&signature.parameters),
            Some(signature.success().map_or_else(schema::null, schema::of)),
            cut_bytes(&format!("{function}{signature}"), MAX_SIGNATURE_BYTES),
        ),
    };
    let description = docs.function(export, function).unwrap_or_else(|| match &shape {
        Shape::Command => docs.whole().unwrap_or_else(|| command::DESCRIPTION.to_owned()),
        Shape::Function(_) if export.is_empty() => format!("Calls `{signature}`."),
        Shape::Function(_) => format!("Calls `{signature}` of `{export}`."),
    });
    FunctionTool {
        tool: ToolDescription {
            name,
            description: cut_bytes(&description, MAX_TEXT_BYTES),
            parameters,
            output,
            effects: Effects::default().bounded_by(capabilities),
        },
        export: export.to_owned(),
        function: function.to_owned(),
        signature,
        shape,
    }
}

impl Signature {
    /// Returns the signature if both of its schemas are within [`MAX_SCHEMA_BYTES`].
    fn bounded(self) -> Result<Self, String> {
        let parameters = schema::object(&self.parameters).to_string().len();
        let output = self.success().map_or(0, |ty| schema::of(ty).to_string().len());
        if parameters.max(output) > MAX_SCHEMA_BYTES {
            return Err(format!("its schema is longer than {MAX_SCHEMA_BYTES} bytes"));
        }
        Ok(self)
    }
}
