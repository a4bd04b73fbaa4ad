//! The value types of WIT as JSON: their schemas, and values in both directions (SPEC HOST-3).
//!
//! One [`Type`] is behind the schema that a model reads, the check of its arguments and the text of the result, so the
//! three cannot disagree. The forms are documented in `docs/wit.md`. Types and values are hostile: both are bounded,
//! and the error for an invalid value names its position.
//!
//! It must not know components: [`crate::inspect`] reads types from bytes, [`crate::tool`] calls functions.

pub(crate) mod read;
pub(crate) mod schema;
#[cfg(test)]
mod tests;
pub(crate) mod write;

use std::fmt;

use serde::{Deserialize, Serialize};

/// The deepest nesting of a type: bounds the recursion over types.
pub(crate) const MAX_DEPTH: usize = 64;

/// The largest integer that every JSON parser reads exactly (RFC 8259, section 6).
pub(crate) const SAFE_INTEGER: u64 = 1 << 53;

/// A value type that has a form in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Type {
    Bool,
    Integer(Integer),
    F32,
    F64,
    Char,
    String,
    List(Box<Type>),
    Record(Vec<Field>),
    Tuple(Vec<Type>),
    Variant(Vec<Case>),
    Enum(Vec<String>),
    Flags(Vec<String>),
    Option(Box<Type>),
    Result { ok: Option<Box<Type>>, error: Option<Box<Type>> },
}

/// The types of whole numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Integer {
    S8,
    U8,
    S16,
    U16,
    S32,
    U32,
    S64,
    U64,
}

/// A field of a record, or a parameter of a function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Field {
    pub name: String,
    pub ty: Type,
    /// The author's documentation of the field.
    pub docs: Option<String>,
}

/// A case of a variant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Case {
    pub name: String,
    pub ty: Option<Type>,
}

impl Type {
    /// Whether this is a byte list, which has a JSON form of its own.
    pub fn is_bytes(&self) -> bool {
        matches!(self, Self::List(element) if **element == Self::Integer(Integer::U8))
    }

    /// Whether a value inside an `option` has to be wrapped: both would be `null`.
    pub fn is_option(&self) -> bool {
        matches!(self, Self::Option(_))
    }
}

impl Integer {
    pub fn name(self) -> &'static str {
        match self {
            Self::S8 => "s8",
            Self::U8 => "u8",
            Self::S16 => "s16",
            Self::U16 => "u16",
            Self::S32 => "s32",
            Self::U32 => "u32",
            Self::S64 => "s64",
            Self::U64 => "u64",
        }
    }

    /// The least and the greatest value.
    pub fn range(self) -> (i64, u64) {
        match self {
            Self::S8 => (i8::MIN.into(), i8::MAX as u64),
            Self::U8 => (0, u8::MAX.into()),
            Self::S16 => (i16::MIN.into(), i16::MAX as u64),
            Self::U16 => (0, u16::MAX.into()),
            Self::S32 => (i32::MIN.into(), i32::MAX as u64),
            Self::U32 => (0, u32::MAX.into()),
            Self::S64 => (i64::MIN, i64::MAX as u64),
            Self::U64 => (0, u64::MAX),
        }
    }

    /// Whether some of its values are written as strings.
    pub fn is_wide(self) -> bool {
        matches!(self, Self::S64 | Self::U64)
    }
}

/// As it is written in WIT, named types spelled out.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => f.write_str("bool"),
            Self::Integer(integer) => f.write_str(integer.name()),
            Self::F32 => f.write_str("f32"),
            Self::F64 => f.write_str("f64"),
            Self::Char => f.write_str("char"),
            Self::String => f.write_str("string"),
            Self::List(element) => write!(f, "list<{element}>"),
            Self::Record(fields) => {
                f.write_str("record{")?;
                fmt_fields(f, fields)?;
                f.write_str("}")
            }
            Self::Tuple(types) => {
                f.write_str("tuple<")?;
                separated(f, types, |f, ty| write!(f, "{ty}"))?;
                f.write_str(">")
            }
            Self::Variant(cases) => {
                f.write_str("variant{")?;
                separated(f, cases, |f, case| match &case.ty {
                    Some(ty) => write!(f, "{}({ty})", case.name),
                    None => f.write_str(&case.name),
                })?;
                f.write_str("}")
            }
            Self::Enum(names) => {
                f.write_str("enum{")?;
                separated(f, names, |f, name| f.write_str(name))?;
                f.write_str("}")
            }
            Self::Flags(names) => {
                f.write_str("flags{")?;
                separated(f, names, |f, name| f.write_str(name))?;
                f.write_str("}")
            }
            Self::Option(some) => write!(f, "option<{some}>"),
            Self::Result { ok: None, error: None } => f.write_str("result"),
            Self::Result { ok: Some(ok), error: None } => write!(f, "result<{ok}>"),
            Self::Result { ok: None, error: Some(error) } => write!(f, "result<_, {error}>"),
            Self::Result { ok: Some(ok), error: Some(error) } => write!(f, "result<{ok}, {error}>"),
        }
    }
}

/// Writes fields as in `x: f64, y: f64`.
pub(crate) fn fmt_fields(f: &mut fmt::Formatter<'_>, fields: &[Field]) -> fmt::Result {
    separated(f, fields, |f, field| write!(f, "{}: {}", field.name, field.ty))
}

fn separated<T>(
    f: &mut fmt::Formatter<'_>,
    items: &[T],
    write: impl Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        write(f, item)?;
    }
    Ok(())
}
