//! Tools made of exported functions, read off the types in the bytes (SPEC HOST-3).
//!
//! Types are hostile: a few hundred bytes can spell a type with a million parts. Each function has a budget for what its
//! types and names take, all of them together another; what does not fit is no tool, and says why. The call path uses
//! what is made here, so a model is told the types that its arguments are checked against.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use serde::Serialize;
use wasmparser::PrimitiveValType;
use wasmparser::component_types::{
    ComponentAnyTypeId, ComponentDefinedType, ComponentDefinedTypeId, ComponentEntityType, ComponentFuncTypeId,
    ComponentInstanceType, ComponentValType,
};
use wasmparser::types::TypesRef;

use super::docs::{Docs, MOST_TEXT_BYTES};
use super::name::tool_names;
use super::{Capability, Export};
use crate::tool::{Effects, MOST_SCHEMA_BYTES, MOST_TOOLS, ToolDescription, command};
use crate::wit_json::{Case, Field, Integer, MOST_DEPTH, Type, fmt_fields, schema};

/// What the types of one function may take, in bytes of names and parts: a schema of what fits is within its own bound or
/// is refused soon after.
const FUNCTION_BUDGET: usize = 2 * MOST_SCHEMA_BYTES;
/// What all functions of a component may take together.
const COMPONENT_BUDGET: usize = 32 * FUNCTION_BUDGET;
/// What one part of a type takes beside its name.
const PART: usize = 8;
/// Functions that are no tools and are listed.
const MOST_UNMAPPED: usize = 256;
/// The longest signature that is shown, in bytes.
const MOST_SIGNATURE_BYTES: usize = 400;

/// An exported function that is a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FunctionTool {
    /// The tool, as a model sees it.
    #[serde(flatten)]
    pub tool: ToolDescription,
    /// The exported interface it is of, such as `shapes:flat/area@1.0.0`; empty for a function of the component itself.
    pub export: String,
    /// The function's own name.
    pub function: String,
    /// The function in WIT, cut when it is long.
    pub signature: String,
    #[serde(skip)]
    pub(crate) shape: Shape,
}

/// An exported function that is not a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unmapped {
    /// Interface and function, such as `shapes:flat/area@1.0.0#scale`.
    pub export: String,
    /// Why not, such as `uses a resource`.
    pub why: String,
}

/// How a tool is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Arguments in, the result out.
    Function(Signature),
    /// A program with a command line and standard streams.
    Command,
}

/// The types of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Signature {
    pub parameters: Vec<Field>,
    pub result: Option<Type>,
}

impl Signature {
    /// The type of what a call that went well gives back.
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

/// The tools and what is none, of all functions that a component exports beside the host's own interfaces.
pub(super) fn derive(
    types: TypesRef<'_>,
    exports: &[Export],
    docs: &Docs,
    capabilities: &BTreeSet<Capability>,
) -> (Vec<FunctionTool>, Vec<Unmapped>) {
    let mut budget = COMPONENT_BUDGET;
    let mut found = Vec::new();
    let mut unmapped = Unlisted::default();
    for (export, function, shape) in functions(types, exports) {
        let shape = match shape {
            _ if found.len() >= MOST_TOOLS => Err(format!("a component offers at most {MOST_TOOLS} tools")),
            Found::Command => Ok(Shape::Command),
            Found::Function(id, names) => {
                let most = FUNCTION_BUDGET.min(budget);
                let mut reader = Reader { types, docs, export, names, left: most };
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
struct Unlisted(Vec<Unmapped>);

impl Unlisted {
    fn push(&mut self, export: &str, function: &str, why: String) {
        if self.0.len() < MOST_UNMAPPED {
            let separator = if export.is_empty() { "" } else { "#" };
            self.0.push(Unmapped { export: format!("{export}{separator}{function}"), why });
        }
    }
}

type TypeNames<'a> = HashMap<ComponentDefinedTypeId, &'a str>;

enum Found<'a> {
    Command,
    Function(ComponentFuncTypeId, std::rc::Rc<TypeNames<'a>>),
}

/// Every exported function: its interface, its name and its type.
fn functions<'a>(types: TypesRef<'a>, exports: &'a [Export]) -> impl Iterator<Item = (&'a str, &'a str, Found<'a>)> {
    exports.iter().filter(|export| !export.name.starts_with("motor:host/")).flat_map(move |export| {
        let name = export.name.as_str();
        let mut found = Vec::new();
        match types.component_item_for_export(name).map(|item| item.ty) {
            Some(ComponentEntityType::Func(id)) => found.push(("", name, Found::Function(id, Default::default()))),
            Some(ComponentEntityType::Instance(id)) => {
                let Some(instance) = types.get(id) else { return found };
                let names = std::rc::Rc::new(type_names(types, instance));
                for (function, item) in &instance.exports {
                    if let ComponentEntityType::Func(id) = item.ty {
                        let function = function.as_str();
                        found.push(match command::is_run(name, function) {
                            true => (name, function, Found::Command),
                            false => (name, function, Found::Function(id, names.clone())),
                        });
                    }
                }
            }
            _ => (),
        }
        found
    })
}

/// What an interface calls its types.
fn type_names<'a>(types: TypesRef<'a>, instance: &'a ComponentInstanceType) -> TypeNames<'a> {
    let mut names = TypeNames::new();
    for (name, item) in &instance.exports {
        if let ComponentEntityType::Type { referenced, created } = item.ty {
            for id in [created, referenced] {
                if let ComponentAnyTypeId::Defined(id) = id {
                    names.insert(origin(types, id), name);
                }
            }
        }
    }
    names
}

/// The type that others are only other names for.
fn origin(types: TypesRef<'_>, mut id: ComponentDefinedTypeId) -> ComponentDefinedTypeId {
    while let Some(earlier) = types.peel_alias(id) {
        id = earlier;
    }
    id
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
            cut(format!("{function}{signature}"), MOST_SIGNATURE_BYTES),
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
            description: cut(description, MOST_TEXT_BYTES),
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

fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.push('…');
    }
    text
}

impl Signature {
    /// Itself, when both of its schemas are small enough to be read.
    fn bounded(self) -> Result<Self, String> {
        let parameters = schema::object(&self.parameters).to_string().len();
        let output = self.success().map_or(0, |ty| schema::of(ty).to_string().len());
        if parameters.max(output) > MOST_SCHEMA_BYTES {
            return Err(format!("its schema is longer than {MOST_SCHEMA_BYTES} bytes"));
        }
        Ok(self)
    }
}

/// Reads types off a component within a budget.
struct Reader<'a> {
    types: TypesRef<'a>,
    docs: &'a Docs,
    export: &'a str,
    names: std::rc::Rc<TypeNames<'a>>,
    left: usize,
}

impl Reader<'_> {
    fn signature(&mut self, id: ComponentFuncTypeId) -> Result<Signature, String> {
        let types = self.types;
        let function = &types[id];
        if function.async_ {
            return Err("is asynchronous".to_owned());
        }
        let mut parameters = Vec::new();
        for (name, ty) in &function.params {
            parameters.push(Field { name: self.name(name.as_str())?, ty: self.value(*ty, 1)?, docs: None });
        }
        let result = function.result.map(|ty| self.value(ty, 1)).transpose()?;
        Ok(Signature { parameters, result })
    }

    fn spend(&mut self, amount: usize) -> Result<(), String> {
        self.left = self.left.checked_sub(amount).ok_or("its types are too large")?;
        Ok(())
    }

    fn name(&mut self, name: &str) -> Result<String, String> {
        self.spend(name.len() + PART)?;
        Ok(name.to_owned())
    }

    fn names<'n>(&mut self, names: impl Iterator<Item = &'n str>) -> Result<Vec<String>, String> {
        names.map(|name| self.name(name)).collect()
    }

    fn value(&mut self, ty: ComponentValType, depth: usize) -> Result<Type, String> {
        self.spend(PART)?;
        if depth > MOST_DEPTH {
            return Err(format!("its types are nested deeper than {MOST_DEPTH}"));
        }
        match ty {
            ComponentValType::Primitive(primitive) => primitive_type(primitive),
            ComponentValType::Type(id) => self.defined(id, depth + 1),
        }
    }

    fn boxed(&mut self, ty: ComponentValType, depth: usize) -> Result<Box<Type>, String> {
        self.value(ty, depth).map(Box::new)
    }

    fn defined(&mut self, id: ComponentDefinedTypeId, depth: usize) -> Result<Type, String> {
        let types = self.types;
        Ok(match &types[id] {
            ComponentDefinedType::Primitive(primitive) => primitive_type(*primitive)?,
            ComponentDefinedType::Record(record) => {
                let ty_name = self.names.get(&origin(types, id)).copied();
                let mut fields = Vec::new();
                for (name, ty) in &record.fields {
                    let docs = ty_name.and_then(|ty| self.docs.field(self.export, ty, name.as_str()));
                    self.spend(docs.as_ref().map_or(0, String::len))?;
                    fields.push(Field { name: self.name(name.as_str())?, ty: self.value(*ty, depth)?, docs });
                }
                Type::Record(fields)
            }
            ComponentDefinedType::Variant(variant) => {
                let mut cases = Vec::new();
                for (name, case) in &variant.cases {
                    let ty = case.ty.map(|ty| self.value(ty, depth)).transpose()?;
                    cases.push(Case { name: self.name(name.as_str())?, ty });
                }
                Type::Variant(cases)
            }
            ComponentDefinedType::List { element, .. } => Type::List(self.boxed(*element, depth)?),
            ComponentDefinedType::Tuple(tuple) => {
                Type::Tuple(tuple.types.iter().map(|ty| self.value(*ty, depth)).collect::<Result<_, _>>()?)
            }
            ComponentDefinedType::Flags(names) => Type::Flags(self.names(names.iter().map(|name| name.as_str()))?),
            ComponentDefinedType::Enum(names) => Type::Enum(self.names(names.iter().map(|name| name.as_str()))?),
            ComponentDefinedType::Option { ty, .. } => Type::Option(self.boxed(*ty, depth)?),
            ComponentDefinedType::Result { ok, err, .. } => Type::Result {
                ok: ok.map(|ty| self.boxed(ty, depth)).transpose()?,
                error: err.map(|ty| self.boxed(ty, depth)).transpose()?,
            },
            ComponentDefinedType::Own(_) | ComponentDefinedType::Borrow(_) => return Err("uses a resource".to_owned()),
            ComponentDefinedType::Future { .. } => return Err("uses a future".to_owned()),
            ComponentDefinedType::Stream { .. } => return Err("uses a stream".to_owned()),
            ComponentDefinedType::Map { .. } => return Err("uses a map".to_owned()),
            ComponentDefinedType::FixedLengthList { .. } => return Err("uses a list of fixed length".to_owned()),
        })
    }
}

fn primitive_type(primitive: PrimitiveValType) -> Result<Type, String> {
    Ok(match primitive {
        PrimitiveValType::Bool => Type::Bool,
        PrimitiveValType::S8 => Type::Integer(Integer::S8),
        PrimitiveValType::U8 => Type::Integer(Integer::U8),
        PrimitiveValType::S16 => Type::Integer(Integer::S16),
        PrimitiveValType::U16 => Type::Integer(Integer::U16),
        PrimitiveValType::S32 => Type::Integer(Integer::S32),
        PrimitiveValType::U32 => Type::Integer(Integer::U32),
        PrimitiveValType::S64 => Type::Integer(Integer::S64),
        PrimitiveValType::U64 => Type::Integer(Integer::U64),
        PrimitiveValType::F32 => Type::F32,
        PrimitiveValType::F64 => Type::F64,
        PrimitiveValType::Char => Type::Char,
        PrimitiveValType::String => Type::String,
        PrimitiveValType::ErrorContext => return Err("uses an error context".to_owned()),
    })
}
