//! Random types and values: they survive a round trip, schemas fit, and hostile JSON is refused with its position.

use proptest::prelude::*;
use serde_json::{Value, json};
use wasmtime::component::Val;

use super::*;

const MAX_BYTES: u64 = 1 << 20;

fn kebab() -> impl Strategy<Value = String> {
    "[a-z][a-z0-9]{0,3}(-[a-z][a-z0-9]{0,3})?"
}

fn names() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::btree_set(kebab(), 1..4).prop_map(|names| names.into_iter().collect())
}

fn any_type() -> impl Strategy<Value = Type> {
    use Integer::{S8, S16, S32, S64, U8, U16, U32, U64};
    let leaf = prop_oneof![
        Just(Type::Bool),
        proptest::sample::select(vec![S8, U8, S16, U16, S32, U32, S64, U64]).prop_map(Type::Integer),
        Just(Type::F32),
        Just(Type::F64),
        Just(Type::Char),
        Just(Type::String),
        names().prop_map(Type::Enum),
        names().prop_map(Type::Flags),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let boxed = || inner.clone().prop_map(Box::new);
        let maybe = || proptest::option::of(boxed());
        prop_oneof![
            boxed().prop_map(Type::List),
            boxed().prop_map(Type::Option),
            proptest::collection::vec(inner.clone(), 1..4).prop_map(Type::Tuple),
            (maybe(), maybe()).prop_map(|(ok, error)| Type::Result { ok, error }),
            (names(), proptest::collection::vec(inner.clone(), 3)).prop_map(|(names, types)| {
                let fields = names.into_iter().zip(types);
                Type::Record(fields.map(|(name, ty)| Field { name, ty, docs: None }).collect())
            }),
            (names(), proptest::collection::vec(proptest::option::of(inner.clone()), 3)).prop_map(|(names, types)| {
                Type::Variant(names.into_iter().zip(types).map(|(name, ty)| Case { name, ty }).collect())
            }),
        ]
    })
}

fn any_value(ty: &Type) -> BoxedStrategy<Val> {
    let payload = |ty: &Option<Box<Type>>| match ty {
        Some(ty) => any_value(ty).prop_map(|value| Some(Box::new(value))).boxed(),
        None => Just(None).boxed(),
    };
    match ty {
        Type::Bool => any::<bool>().prop_map(Val::Bool).boxed(),
        Type::Integer(Integer::S8) => any::<i8>().prop_map(Val::S8).boxed(),
        Type::Integer(Integer::U8) => any::<u8>().prop_map(Val::U8).boxed(),
        Type::Integer(Integer::S16) => any::<i16>().prop_map(Val::S16).boxed(),
        Type::Integer(Integer::U16) => any::<u16>().prop_map(Val::U16).boxed(),
        Type::Integer(Integer::S32) => any::<i32>().prop_map(Val::S32).boxed(),
        Type::Integer(Integer::U32) => any::<u32>().prop_map(Val::U32).boxed(),
        Type::Integer(Integer::S64) => any::<i64>().prop_map(Val::S64).boxed(),
        Type::Integer(Integer::U64) => any::<u64>().prop_map(Val::U64).boxed(),
        Type::F32 => any::<u32>().prop_map(|bits| Val::Float32(f32::from_bits(bits))).boxed(),
        Type::F64 => any::<u64>().prop_map(|bits| Val::Float64(f64::from_bits(bits))).boxed(),
        Type::Char => any::<char>().prop_map(Val::Char).boxed(),
        Type::String => any::<String>().prop_map(Val::String).boxed(),
        Type::List(element) => proptest::collection::vec(any_value(element), 0..4).prop_map(Val::List).boxed(),
        Type::Record(fields) => {
            let names: Vec<String> = fields.iter().map(|field| field.name.clone()).collect();
            let values: Vec<_> = fields.iter().map(|field| any_value(&field.ty)).collect();
            values.prop_map(move |values| Val::Record(names.iter().cloned().zip(values).collect())).boxed()
        }
        Type::Tuple(types) => {
            let values: Vec<_> = types.iter().map(any_value).collect();
            values.prop_map(Val::Tuple).boxed()
        }
        Type::Variant(cases) => {
            let cases = cases.iter().map(|case| {
                let name = case.name.clone();
                let ty = case.ty.clone().map(Box::new);
                payload(&ty).prop_map(move |value| Val::Variant(name.clone(), value)).boxed()
            });
            proptest::strategy::Union::new(cases).boxed()
        }
        Type::Enum(names) => proptest::sample::select(names.clone()).prop_map(Val::Enum).boxed(),
        Type::Flags(names) => {
            proptest::sample::subsequence(names.clone(), 0..=names.len()).prop_map(Val::Flags).boxed()
        }
        Type::Option(some) => {
            let some = any_value(some).prop_map(|value| Val::Option(Some(Box::new(value))));
            prop_oneof![Just(Val::Option(None)), some].boxed()
        }
        Type::Result { ok, error } => {
            prop_oneof![payload(ok).prop_map(|v| Val::Result(Ok(v))), payload(error).prop_map(|v| Val::Result(Err(v)))]
                .boxed()
        }
    }
}

fn json_of(ty: &Type, value: &Val) -> Value {
    serde_json::from_str(&write::value(Some((ty, value)), MAX_BYTES).unwrap()).unwrap()
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z\"\u{202e}]{0,5}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::hash_map("(ok|some|[a-z]{0,2})", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_goes_out_comes_back_and_fits_its_schema(
        (ty, value) in any_type().prop_flat_map(|ty| { let values = any_value(&ty); (Just(ty), values) }),
    ) {
        let json = json_of(&ty, &value);
        prop_assert_eq!(read::value(&ty, &json).unwrap(), value);
        let schema = schema::of(&ty);
        prop_assert!(jsonschema::draft202012::meta::is_valid(&schema), "{}", schema);
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        let errors: Vec<String> = validator.iter_errors(&json).map(|error| error.to_string()).collect();
        prop_assert!(errors.is_empty(), "{ty}: {json} against {schema}: {errors:?}");
    }

    #[test]
    fn any_json_is_a_value_or_refused(ty in any_type(), json in any_json()) {
        match read::value(&ty, &json) {
            // Accepted JSON has one canonical form.
            Ok(value) => prop_assert_eq!(read::value(&ty, &json_of(&ty, &value)).unwrap(), value),
            Err(message) => prop_assert!(!message.is_empty() && !message.contains('\u{202e}'), "{}", message),
        }
    }
}

fn integer(integer: Integer) -> Type {
    Type::Integer(integer)
}

fn list(element: Type) -> Type {
    Type::List(Box::new(element))
}

fn option(some: Type) -> Type {
    Type::Option(Box::new(some))
}

fn field(name: &str, ty: Type) -> Field {
    Field { name: name.into(), ty, docs: None }
}

fn point() -> Type {
    Type::Record(vec![field("x", Type::F64), field("y", Type::F64), field("label", option(Type::String))])
}

fn shape() -> Type {
    let case = |name: &str, ty| Case { name: name.into(), ty };
    Type::Variant(vec![case("circle", Some(Type::F64)), case("nothing", None)])
}

#[test]
fn the_canonical_forms() {
    let check = |ty: Type, value: Val, expected: Value| assert_eq!(json_of(&ty, &value), expected, "{ty}");
    let some = |value: Val| Val::Option(Some(Box::new(value)));
    let bytes = Val::List([0, 255, 16].map(Val::U8).to_vec());
    check(list(integer(Integer::U8)), bytes, json!("AP8Q"));
    check(integer(Integer::U64), Val::U64(1 << 53), json!(9_007_199_254_740_992_u64));
    check(integer(Integer::U64), Val::U64(u64::MAX), json!("18446744073709551615"));
    check(integer(Integer::S64), Val::S64(i64::MIN), json!("-9223372036854775808"));
    check(Type::F32, Val::Float32(0.1), json!(0.1));
    check(Type::F64, Val::Float64(f64::NEG_INFINITY), json!("-Infinity"));
    check(shape(), Val::Variant("nothing".into(), None), json!("nothing"));
    check(shape(), Val::Variant("circle".into(), Some(Box::new(Val::Float64(1.5)))), json!({ "circle": 1.5 }));
    let twice = || option(option(Type::Bool));
    check(twice(), Val::Option(None), json!(null));
    check(twice(), some(Val::Option(None)), json!({ "some": null }));
    check(twice(), some(some(Val::Bool(true))), json!({ "some": true }));
    let result = Type::Result { ok: None, error: Some(Box::new(Type::String)) };
    check(result, Val::Result(Ok(None)), json!({ "ok": null }));
}

#[test]
fn what_models_send_is_taken() {
    let check = |ty: Type, json: Value, expected: Value| {
        let value = read::value(&ty, &json).unwrap_or_else(|error| panic!("{ty}: {error}"));
        assert_eq!(json_of(&ty, &value), expected, "{ty}");
    };
    check(list(integer(Integer::U8)), json!([0, 255, 16]), json!("AP8Q"));
    check(list(integer(Integer::U8)), json!("AP8"), json!("AP8="));
    check(integer(Integer::U64), json!("7"), json!(7));
    check(integer(Integer::S8), json!(-3.0), json!(-3));
    check(point(), json!({ "y": 2, "x": 1 }), json!({ "x": 1.0, "y": 2.0, "label": null }));
    let flags = Type::Flags(vec!["a".into(), "b".into()]);
    check(flags, json!(["b", "a"]), json!(["a", "b"]));
}

#[test]
fn hostile_json_is_refused_with_its_place() {
    let parameters = vec![
        field("points", list(point())),
        field("shape", option(shape())),
        field("size", option(integer(Integer::U8))),
        field("wide", option(integer(Integer::S64))),
        field("mode", option(Type::Enum(vec!["fast".into(), "safe".into()]))),
        field("data", option(list(integer(Integer::U8)))),
        field("pair", option(Type::Tuple(vec![Type::Char, Type::Bool]))),
        field("set", option(Type::Flags(vec!["a".into()]))),
        field("deep", option(option(Type::Bool))),
        field("done", option(Type::Result { ok: None, error: Some(Box::new(Type::F32)) })),
    ];
    let refused = |json: Value| read::arguments(&parameters, &json).unwrap_err();
    for (json, says) in [
        (json!([]), "should be an object, not an array"),
        (json!({}), "`points` is missing; it should be list<record{x: f64"),
        (json!({ "points": [], "poinst": 1 }), "`poinst` is unknown; there are `points`, `shape`"),
        (json!({ "points": [], "a\u{202e}b": 1 }), "\\u{202e}"),
        (json!({ "points": [{ "x": 1, "y": 2 }, { "x": 1 }] }), "`points[1].y` is missing"),
        (json!({ "points": [{ "x": 1, "y": "2" }] }), "`points[0].y` should be a number"),
        (json!({ "points": [{ "x": 1, "y": 2, "z": 3 }] }), "`z` is unknown in `points[0]`"),
        (json!({ "points": [], "shape": "square" }), "`shape` has no case `square`; there are `circle`, `nothing`"),
        (json!({ "points": [], "shape": "circle" }), "that case has a value"),
        (json!({ "points": [], "shape": { "nothing": 1 } }), "that case has no value"),
        (json!({ "points": [], "shape": { "circle": 1, "nothing": 1 } }), "`shape` should be the name of a case"),
        (json!({ "points": [], "shape": { "circle": [] } }), "`shape.circle` should be a number"),
        (json!({ "points": [], "size": 256 }), "`size` should be a whole number from 0 to 255, not 256"),
        (json!({ "points": [], "size": "7" }), "`size` should be a whole number"),
        (json!({ "points": [], "size": 1.5 }), "not 1.5"),
        (json!({ "points": [], "wide": 1e300 }), "`wide` should be a whole number"),
        (json!({ "points": [], "wide": "9223372036854775808" }), "not 9223372036854775808"),
        (json!({ "points": [], "wide": "seven" }), "not `seven`"),
        (json!({ "points": [], "mode": "slow" }), "`mode` cannot be `slow`; there are `fast`, `safe`"),
        (json!({ "points": [], "data": "%%" }), "`data` is not base64"),
        (json!({ "points": [], "data": [1, 256] }), "`data[1]`"),
        (json!({ "points": [], "pair": ["ab", true] }), "`pair[0]` should be one character, not 2"),
        (json!({ "points": [], "pair": ["a"] }), "`pair` should have 2 items, not 1"),
        (json!({ "points": [], "set": ["a", "a"] }), "`set` has `a` twice"),
        (json!({ "points": [], "deep": true }), "`deep` should be `{\"some\": …}`"),
        (json!({ "points": [], "done": { "ok": 1 } }), "`done.ok` should be null"),
        (json!({ "points": [], "done": { "error": 1e39 } }), "`done.error` should be a number of 32 bits"),
        (json!({ "points": [], "done": { "error": 1, "ok": null } }), "`{\"ok\": …}` or `{\"error\": …}`"),
    ] {
        let error = refused(json.clone());
        assert!(error.contains(says), "{json}: {error}");
        assert!(error.len() < 700, "{error}");
    }
    // Counter-check: the same arguments without the error are accepted.
    let json = json!({ "points": [{ "x": 1, "y": 2 }], "shape": "nothing", "size": 255, "wide": "-1", "mode": "fast",
        "data": "AA==", "pair": ["é", true], "set": ["a"], "deep": { "some": null }, "done": { "ok": null } });
    assert_eq!(read::arguments(&parameters, &json).unwrap().len(), parameters.len());
}

#[test]
fn a_small_value_with_long_names_does_not_become_a_long_text() {
    let long = "n".repeat(1_000);
    let ty = list(Type::Record(vec![field(&long, Type::Bool)]));
    let value = Val::List(vec![Val::Record(vec![(long, Val::Bool(true))]); 100]);
    assert_eq!(write::value(Some((&ty, &value)), 50_000), Err(write::WriteError::TooLong));
    assert!(write::value(Some((&ty, &value)), 200_000).is_ok());
}

#[test]
fn a_value_of_another_type_is_a_fault() {
    for (ty, value) in [
        (Type::Bool, Val::U8(1)),
        (shape(), Val::Variant("square".into(), Some(Box::new(Val::Bool(true))))),
        (point(), Val::Record(vec![("y".into(), Val::Float64(1.0))])),
    ] {
        assert!(matches!(write::value(Some((&ty, &value)), 1_000), Err(write::WriteError::Mismatch(_))), "{ty}");
    }
}

#[test]
fn types_read_like_wit() {
    let ty = Type::Result { ok: Some(Box::new(list(point()))), error: Some(Box::new(shape())) };
    assert_eq!(
        ty.to_string(),
        "result<list<record{x: f64, y: f64, label: option<string>}>, variant{circle(f64), nothing}>"
    );
}
