//! Reads the types of functions from a validated component, within a budget: they are untrusted, and can be shared so
//! often that spelling them out would never end.

use std::collections::HashMap;
use std::rc::Rc;

use wasmparser::PrimitiveValType;
use wasmparser::component_types::{
    ComponentAnyTypeId, ComponentDefinedType, ComponentDefinedTypeId, ComponentEntityType, ComponentFuncTypeId,
    ComponentInstanceType, ComponentValType,
};
use wasmparser::types::TypesRef;

use super::docs::Docs;
use super::functions::Signature;
use crate::wit_json::{Case, Field, Integer, MAX_DEPTH, Type};

/// Budget that one part of a type takes in addition to its name.
const PART: usize = 8;

/// The names that an interface gives to types.
pub(super) type TypeNames<'a> = HashMap<ComponentDefinedTypeId, &'a str>;

/// The names that an interface gives to its types.
pub(super) fn type_names<'a>(types: TypesRef<'a>, instance: &'a ComponentInstanceType) -> TypeNames<'a> {
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

/// The type behind a chain of aliases.
fn origin(types: TypesRef<'_>, mut id: ComponentDefinedTypeId) -> ComponentDefinedTypeId {
    while let Some(earlier) = types.peel_alias(id) {
        id = earlier;
    }
    id
}

/// Reads types from a component within a budget.
pub(super) struct TypeReader<'a> {
    pub types: TypesRef<'a>,
    pub docs: &'a Docs,
    /// The interface of the function.
    pub export: &'a str,
    /// The interface's names of its types.
    pub names: Rc<TypeNames<'a>>,
    /// The remaining budget, in bytes.
    pub left: usize,
}

impl TypeReader<'_> {
    pub fn signature(&mut self, id: ComponentFuncTypeId) -> Result<Signature, String> {
        let types = self.types;
        let function = types.get(id).ok_or("has a type that is not there")?;
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
        if depth > MAX_DEPTH {
            return Err(format!("its types are nested deeper than {MAX_DEPTH}"));
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
        let defined = types.get(id).ok_or("has a type that is not there")?;
        Ok(match defined {
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
