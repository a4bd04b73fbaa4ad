//! Values to JSON text, in the one canonical form, within a length limit.
//!
//! The values are a guest's. Names of a type are repeated with each value, so a small result can be a large text: it is
//! written into a bounded buffer and abandoned when that is full.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::ser::{Error as _, Serialize, SerializeMap as _, SerializeSeq as _, Serializer};
use wasmtime::component::Val;

use super::{SAFE_INTEGER, Type};

/// The reason a value was not written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WriteError {
    /// The text exceeds the length limit.
    TooLong,
    /// It is not of its type: the engine and the host disagree about a component.
    Mismatch(String),
}

/// The JSON of a value; `null` if there is no value.
///
/// # Errors
/// If it is longer than `most_bytes`, or not a value of the type.
pub(crate) fn value(typed: Option<(&Type, &Val)>, most_bytes: u64) -> Result<String, WriteError> {
    let Some((ty, value)) = typed else { return Ok("null".to_owned()) };
    let mut text = BoundedText { bytes: Vec::new(), most: usize::try_from(most_bytes).unwrap_or(usize::MAX) };
    match serde_json::to_writer(&mut text, &TypedValue(ty, value)) {
        // JSON text of strings and numbers is UTF-8.
        Ok(()) => String::from_utf8(text.bytes).map_err(|error| WriteError::Mismatch(error.to_string())),
        Err(error) if error.is_io() => Err(WriteError::TooLong),
        Err(error) => Err(WriteError::Mismatch(error.to_string())),
    }
}

struct BoundedText {
    bytes: Vec<u8>,
    most: usize,
}

impl io::Write for BoundedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.most.saturating_sub(self.bytes.len()) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct TypedValue<'a>(&'a Type, &'a Val);

impl Serialize for TypedValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.0, self.1) {
            (Type::Bool, Val::Bool(value)) => serializer.serialize_bool(*value),
            (Type::Integer(_), Val::S8(value)) => serializer.serialize_i8(*value),
            (Type::Integer(_), Val::U8(value)) => serializer.serialize_u8(*value),
            (Type::Integer(_), Val::S16(value)) => serializer.serialize_i16(*value),
            (Type::Integer(_), Val::U16(value)) => serializer.serialize_u16(*value),
            (Type::Integer(_), Val::S32(value)) => serializer.serialize_i32(*value),
            (Type::Integer(_), Val::U32(value)) => serializer.serialize_u32(*value),
            (Type::Integer(_), Val::S64(value)) if value.unsigned_abs() <= SAFE_INTEGER => {
                serializer.serialize_i64(*value)
            }
            (Type::Integer(_), Val::S64(value)) => serializer.collect_str(value),
            (Type::Integer(_), Val::U64(value)) if *value <= SAFE_INTEGER => serializer.serialize_u64(*value),
            (Type::Integer(_), Val::U64(value)) => serializer.collect_str(value),
            (Type::F32, Val::Float32(value)) => single(*value, serializer),
            (Type::F64, Val::Float64(value)) => number(*value, serializer),
            (Type::Char, Val::Char(value)) => serializer.serialize_char(*value),
            (Type::String, Val::String(value)) => serializer.serialize_str(value),
            (Type::List(_), Val::List(values)) if self.0.is_bytes() => bytes(values, serializer),
            (Type::List(element), Val::List(values)) => {
                serializer.collect_seq(values.iter().map(|value| TypedValue(element, value)))
            }
            (Type::Record(fields), Val::Record(values)) if fields.len() == values.len() => {
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for (field, (name, value)) in fields.iter().zip(values) {
                    if field.name != *name {
                        return Err(S::Error::custom(format!("the field `{name}` is not `{}`", field.name)));
                    }
                    map.serialize_entry(name, &TypedValue(&field.ty, value))?;
                }
                map.end()
            }
            (Type::Tuple(types), Val::Tuple(values)) if types.len() == values.len() => {
                let mut items = serializer.serialize_seq(Some(types.len()))?;
                for (ty, value) in types.iter().zip(values) {
                    items.serialize_element(&TypedValue(ty, value))?;
                }
                items.end()
            }
            (Type::Variant(cases), Val::Variant(name, value)) => {
                let ty = cases.iter().find(|case| case.name == *name).and_then(|case| case.ty.as_ref());
                match (ty, value) {
                    (Some(ty), Some(value)) => single_entry(serializer, name, &TypedValue(ty, value)),
                    (None, None) => serializer.serialize_str(name),
                    _ => Err(mismatch(self.0, self.1)),
                }
            }
            (Type::Enum(_), Val::Enum(name)) => serializer.serialize_str(name),
            (Type::Flags(_), Val::Flags(names)) => serializer.collect_seq(names),
            (Type::Option(_), Val::Option(None)) => serializer.serialize_unit(),
            (Type::Option(ty), Val::Option(Some(value))) if ty.is_option() => {
                single_entry(serializer, "some", &TypedValue(ty, value))
            }
            (Type::Option(ty), Val::Option(Some(value))) => TypedValue(ty, value).serialize(serializer),
            (Type::Result { ok, error }, Val::Result(result)) => {
                let (name, ty, value) = match result {
                    Ok(value) => ("ok", ok, value),
                    Err(value) => ("error", error, value),
                };
                match (ty, value) {
                    (Some(ty), Some(value)) => single_entry(serializer, name, &TypedValue(ty, value)),
                    (None, None) => single_entry(serializer, name, &()),
                    _ => Err(mismatch(self.0, self.1)),
                }
            }
            (ty, value) => Err(mismatch(ty, value)),
        }
    }
}

fn mismatch<E: serde::ser::Error>(ty: &Type, value: &Val) -> E {
    let shown: String = ty.to_string().chars().take(100).collect();
    E::custom(format!("a value of another type than `{shown}`: {:?}", std::mem::discriminant(value)))
}

fn single_entry<S: Serializer>(serializer: S, name: &str, value: &impl Serialize) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry(name, value)?;
    map.end()
}

fn bytes<S: Serializer>(values: &[Val], serializer: S) -> Result<S::Ok, S::Error> {
    let bytes: Option<Vec<u8>> =
        values.iter().map(|value| if let Val::U8(byte) = value { Some(*byte) } else { None }).collect();
    match bytes {
        Some(bytes) => serializer.serialize_str(&STANDARD.encode(bytes)),
        None => Err(S::Error::custom("a list of bytes with something else in it")),
    }
}

/// The string for a number that is not finite, which JSON cannot represent.
fn beyond(value: f64) -> &'static str {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

fn number<S: Serializer>(value: f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.is_finite() { serializer.serialize_f64(value) } else { serializer.serialize_str(beyond(value)) }
}

/// The shortest digits that give this number when parsed as 64 bits, like JSON numbers.
#[expect(clippy::cast_possible_truncation, reason = "it is the question whether that gives the number back")]
fn single<S: Serializer>(value: f32, serializer: S) -> Result<S::Ok, S::Error> {
    if !value.is_finite() {
        return serializer.serialize_str(beyond(value.into()));
    }
    let read: f64 = value.to_string().parse().unwrap_or(f64::NAN);
    if read as f32 == value { serializer.serialize_f32(value) } else { serializer.serialize_f64(value.into()) }
}
