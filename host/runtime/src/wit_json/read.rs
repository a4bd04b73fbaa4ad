//! JSON to values: each error names the position, the expected form and the form found.
//!
//! The JSON is a model's, so the text of an error repeats only names and short pieces of it.

use base::text::Foreign;
use base::text::cut_bytes;
use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value};
use wasmtime::component::Val;

use super::{Case, Field, Integer, SAFE_INTEGER, Type};

/// Standard alphabet; padding is optional, because models leave it out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Characters of an untrusted name that an error shows.
const MAX_SHOWN: usize = 40;

/// The arguments of a function, from the text of a JSON object.
///
/// # Errors
/// One sentence for the model that names the place.
pub(crate) fn from_text(parameters: &[Field], json: &str) -> Result<Vec<Val>, String> {
    let json: Value = serde_json::from_str(json).map_err(|error| format!("the arguments are not JSON: {error}"))?;
    arguments(parameters, &json)
}

/// The arguments of a function, in the order of its parameters.
///
/// # Errors
/// If an argument is invalid: one sentence for the model that names its position.
pub(crate) fn arguments(parameters: &[Field], json: &Value) -> Result<Vec<Val>, String> {
    let Value::Object(object) = json else {
        return Err(format!("the arguments should be an object, not {}", kind(json)));
    };
    let fields = fields(parameters, object, &mut Path::default())?;
    Ok(fields.into_iter().map(|(_, value)| value).collect())
}

/// Converts JSON to a value of a type.
///
/// # Errors
/// If the JSON does not fit: one sentence for the model that names the position.
#[cfg(test)]
pub(crate) fn value(ty: &Type, json: &Value) -> Result<Val, String> {
    convert(ty, json, &mut Path::default())
}

/// The position of a value in the arguments, such as `points[3].x`.
#[derive(Default)]
struct Path(Vec<PathStep>);

enum PathStep {
    Name(String),
    Index(usize),
}

impl Path {
    fn inside<T>(&mut self, step: PathStep, read: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        self.0.push(step);
        let value = read(self)?;
        // After an error the path is not used again, so it is left as it is.
        self.0.pop();
        Ok(value)
    }

    fn show(&self) -> String {
        let mut text = String::new();
        for step in &self.0 {
            match step {
                PathStep::Name(name) => {
                    if !text.is_empty() {
                        text.push('.');
                    }
                    text.push_str(&shown(name));
                }
                PathStep::Index(index) => text.push_str(&format!("[{index}]")),
            }
        }
        if text.is_empty() { "the value".to_owned() } else { format!("`{text}`") }
    }

    fn expected(&self, what: &str, found: &Value) -> String {
        format!("{} should be {what}, not {}", self.show(), kind(found))
    }
}

fn convert(ty: &Type, json: &Value, path: &mut Path) -> Result<Val, String> {
    match (ty, json) {
        (Type::Bool, Value::Bool(value)) => Ok(Val::Bool(*value)),
        (Type::Bool, _) => Err(path.expected("true or false", json)),
        (Type::Integer(integer), _) => whole(*integer, json, path),
        (Type::F32, _) => single(json, path).map(Val::Float32),
        (Type::F64, _) => number(json, path).map(Val::Float64),
        (Type::Char, Value::String(text)) => {
            let mut characters = text.chars();
            match (characters.next(), characters.next()) {
                (Some(character), None) => Ok(Val::Char(character)),
                _ => Err(format!("{} should be one character, not {}", path.show(), text.chars().count())),
            }
        }
        (Type::Char, _) => Err(path.expected("a string of one character", json)),
        (Type::String, Value::String(text)) => Ok(Val::String(text.clone())),
        (Type::String, _) => Err(path.expected("a string", json)),
        (Type::List(_), Value::String(text)) if ty.is_bytes() => match BASE64.decode(text) {
            Ok(bytes) => Ok(Val::List(bytes.into_iter().map(Val::U8).collect())),
            Err(error) => Err(format!("{} is not base64: {error}", path.show())),
        },
        (Type::List(element), Value::Array(items)) => {
            let items = items.iter().enumerate();
            let values =
                items.map(|(index, item)| path.inside(PathStep::Index(index), |path| convert(element, item, path)));
            values.collect::<Result<_, _>>().map(Val::List)
        }
        (Type::List(_), _) if ty.is_bytes() => Err(path.expected("bytes, in base64 or as an array of numbers", json)),
        (Type::List(_), _) => Err(path.expected("an array", json)),
        (Type::Record(of), Value::Object(object)) => fields(of, object, path).map(Val::Record),
        (Type::Record(_), _) => Err(path.expected("an object", json)),
        (Type::Tuple(types), Value::Array(items)) => {
            if items.len() != types.len() {
                return Err(format!("{} should have {} items, not {}", path.show(), types.len(), items.len()));
            }
            let items = types.iter().zip(items).enumerate();
            let values =
                items.map(|(index, (ty, item))| path.inside(PathStep::Index(index), |path| convert(ty, item, path)));
            values.collect::<Result<_, _>>().map(Val::Tuple)
        }
        (Type::Tuple(types), _) => Err(path.expected(&format!("an array of {} items", types.len()), json)),
        (Type::Variant(cases), _) => variant(cases, json, path),
        (Type::Enum(names), _) => member(names, json, path).map(Val::Enum),
        (Type::Flags(names), Value::Array(items)) => flags(names, items, path),
        (Type::Flags(_), _) => Err(path.expected("an array of names", json)),
        (Type::Option(_), Value::Null) => Ok(Val::Option(None)),
        (Type::Option(some), _) if some.is_option() => {
            let inner = only(json, path, &["some"])?.1;
            let value = path.inside(PathStep::Name("some".into()), |path| convert(some, inner, path))?;
            Ok(Val::Option(Some(Box::new(value))))
        }
        (Type::Option(some), _) => Ok(Val::Option(Some(Box::new(convert(some, json, path)?)))),
        (Type::Result { ok, error }, _) => {
            let (name, inner) = only(json, path, &["ok", "error"])?;
            let ty = if name == "ok" { ok } else { error };
            let value = path.inside(PathStep::Name(name.into()), |path| payload(ty.as_deref(), inner, path))?;
            Ok(Val::Result(if name == "ok" { Ok(value) } else { Err(value) }))
        }
    }
}

/// The payload of a `result`: `null` if it has no type.
fn payload(ty: Option<&Type>, json: &Value, path: &mut Path) -> Result<Option<Box<Val>>, String> {
    match (ty, json) {
        (Some(ty), _) => Ok(Some(Box::new(convert(ty, json, path)?))),
        (None, Value::Null) => Ok(None),
        (None, _) => Err(path.expected("null", json)),
    }
}

fn fields(fields: &[Field], object: &Map<String, Value>, path: &mut Path) -> Result<Vec<(String, Val)>, String> {
    if let Some(unknown) = object.keys().find(|key| !fields.iter().any(|field| field.name == **key)) {
        let known = list(fields.iter().map(|field| field.name.as_str()));
        let place = if path.0.is_empty() { String::new() } else { format!(" in {}", path.show()) };
        return Err(format!("`{}` is unknown{place}; {known}", shown(unknown)));
    }
    let read = |field: &Field, path: &mut Path| match object.get(&field.name) {
        Some(json) => convert(&field.ty, json, path),
        None if field.ty.is_option() => Ok(Val::Option(None)),
        None => Err(format!("{} is missing; it should be {}", path.show(), cut_bytes(&field.ty.to_string(), 200))),
    };
    let values = fields.iter().map(|field| {
        let value = path.inside(PathStep::Name(field.name.clone()), |path| read(field, path))?;
        Ok((field.name.clone(), value))
    });
    values.collect()
}

/// The only entry of an object, which must have one of these names.
fn only<'a>(json: &'a Value, path: &Path, names: &[&'static str]) -> Result<(&'static str, &'a Value), String> {
    let entry = json.as_object().filter(|object| object.len() == 1).and_then(|object| object.iter().next());
    let found = entry.and_then(|(key, value)| Some((*names.iter().find(|name| *name == key)?, value)));
    found.ok_or_else(|| {
        let forms: Vec<String> = names.iter().map(|name| format!("{{\"{name}\": …}}")).collect();
        format!("{} should be `{}`, not {}", path.show(), forms.join("` or `"), kind(json))
    })
}

fn variant(cases: &[Case], json: &Value, path: &mut Path) -> Result<Val, String> {
    let (name, inner) = match json {
        Value::String(name) => (name, None),
        Value::Object(object) if object.len() == 1 => match object.iter().next() {
            Some((name, inner)) => (name, Some(inner)),
            None => return Err(path.expected("a case", json)),
        },
        _ => return Err(path.expected("the name of a case, or an object with one case", json)),
    };
    let Some(case) = cases.iter().find(|case| case.name == *name) else {
        let known = list(cases.iter().map(|case| case.name.as_str()));
        return Err(format!("{} has no case `{}`; {known}", path.show(), shown(name)));
    };
    match (&case.ty, inner) {
        (None, None) => Ok(Val::Variant(name.clone(), None)),
        (Some(ty), Some(inner)) => {
            let value = path.inside(PathStep::Name(name.clone()), |path| convert(ty, inner, path))?;
            Ok(Val::Variant(name.clone(), Some(Box::new(value))))
        }
        (Some(_), None) => Err(format!("{} should be `{{\"{name}\": …}}`: that case has a value", path.show())),
        (None, Some(_)) => Err(format!("{} should be `\"{name}\"`: that case has no value", path.show())),
    }
}

fn member(names: &[String], json: &Value, path: &Path) -> Result<String, String> {
    let Value::String(name) = json else { return Err(path.expected("a string", json)) };
    if names.contains(name) {
        return Ok(name.clone());
    }
    Err(format!("{} cannot be `{}`; {}", path.show(), shown(name), list(names.iter().map(String::as_str))))
}

/// The flags that are set, in the order of their type.
fn flags(names: &[String], items: &[Value], path: &mut Path) -> Result<Val, String> {
    let mut set: Vec<String> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let name = path.inside(PathStep::Index(index), |path| member(names, item, path))?;
        if set.contains(&name) {
            return Err(format!("{} has `{}` twice", path.show(), shown(&name)));
        }
        set.push(name);
    }
    Ok(Val::Flags(names.iter().filter(|name| set.contains(name)).cloned().collect()))
}

fn whole(integer: Integer, json: &Value, path: &Path) -> Result<Val, String> {
    let (least, greatest) = integer.range();
    let expected = || format!("a whole number from {least} to {greatest}");
    let value: i128 = match json {
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(value), _, _) => value.into(),
            (_, Some(value), _) => value.into(),
            // `1.0` is the number 1. Above this bound a float no longer identifies the intended integer.
            #[expect(clippy::cast_possible_truncation, reason = "it is whole and small")]
            (_, _, Some(value)) if value.fract() == 0.0 && value.abs() <= SAFE_INTEGER as f64 => value as i128,
            _ => {
                return Err(format!(
                    "{} should be {}, not {}",
                    path.show(),
                    expected(),
                    cut_bytes(&number.to_string(), 40)
                ));
            }
        },
        Value::String(digits) if integer.is_wide() => match digits.parse() {
            Ok(value) => value,
            Err(_) => return Err(format!("{} should be {}, not `{}`", path.show(), expected(), shown(digits))),
        },
        _ => return Err(path.expected(&expected(), json)),
    };
    let outside = |_| format!("{} should be {}, not {value}", path.show(), expected());
    match integer {
        Integer::S8 => value.try_into().map(Val::S8).map_err(outside),
        Integer::U8 => value.try_into().map(Val::U8).map_err(outside),
        Integer::S16 => value.try_into().map(Val::S16).map_err(outside),
        Integer::U16 => value.try_into().map(Val::U16).map_err(outside),
        Integer::S32 => value.try_into().map(Val::S32).map_err(outside),
        Integer::U32 => value.try_into().map(Val::U32).map_err(outside),
        Integer::S64 => value.try_into().map(Val::S64).map_err(outside),
        Integer::U64 => value.try_into().map(Val::U64).map_err(outside),
    }
}

fn number(json: &Value, path: &Path) -> Result<f64, String> {
    match json {
        Value::Number(number) => number.as_f64().ok_or_else(|| path.expected("a number", json)),
        Value::String(name) => match name.as_str() {
            "NaN" => Ok(f64::NAN),
            "Infinity" => Ok(f64::INFINITY),
            "-Infinity" => Ok(f64::NEG_INFINITY),
            _ => Err(path.expected("a number, or `NaN`, `Infinity` or `-Infinity`", json)),
        },
        _ => Err(path.expected("a number", json)),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "rounding to 32 bits is what the type means; overflow is refused")]
fn single(json: &Value, path: &Path) -> Result<f32, String> {
    let wide = number(json, path)?;
    let value = wide as f32;
    if value.is_infinite() && wide.is_finite() {
        return Err(format!("{} should be a number of 32 bits, at most {:e}", path.show(), f32::MAX));
    }
    Ok(value)
}

/// The kind of a JSON value in words.
fn kind(json: &Value) -> &'static str {
    match json {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    if names.is_empty() {
        "there are none".to_owned()
    } else {
        format!("there are {}", cut_bytes(&names.join(", "), 400))
    }
}

/// Cuts a hostile name for an error.
fn shown(name: &str) -> String {
    Foreign(name).escaped(MAX_SHOWN)
}
