//! The description of one operation, from the types of its handler.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::handler::Handler;
use axum::http::StatusCode;
use base::RefusalCode;
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::schemas::Schemas;
use crate::http::ApiState;
use crate::http::reply::{Body, ErrorReply, Path, Problem, Query, SecretBody, status};
use crate::http::scope::{RouteScope, Scope};

/// An operation under description.
pub(crate) struct Operation<'a> {
    path: &'static str,
    schemas: &'a mut Schemas,
    parameters: Vec<Value>,
    body: Option<Value>,
    success: Value,
    /// The codes of refusals by status.
    refusals: BTreeMap<u16, Vec<Value>>,
}

/// An argument of a handler: a part of the request.
pub(crate) trait Argument {
    /// Whether it reads the query.
    const READS_QUERY: bool = false;

    /// Adds the part and the refusals of reading it.
    fn describe(operation: &mut Operation<'_>);
}

/// The answer of a handler.
pub(crate) trait Answer {
    /// Adds the success, and the refusals of any such handler.
    fn describe(operation: &mut Operation<'_>);
}

/// A handler that can be described: a scope first, then parts of the request, and an answer.
pub(crate) trait Endpoint<T>: Handler<T, ApiState> {
    /// Whether it reads the query.
    const READS_QUERY: bool;

    /// Adds the parts and the answers.
    fn describe(operation: &mut Operation<'_>);
}

// The first type is axum's marker for the way in which the arguments are read.
macro_rules! endpoint {
    ($($argument:ident)*) => {
        impl<H, F, M, S, R, $($argument),*> Endpoint<(M, S, $($argument,)*)> for H
        where
            H: Handler<(M, S, $($argument,)*), ApiState> + FnOnce(S, $($argument),*) -> F,
            F: Future<Output = R>,
            S: Scope,
            R: Answer,
            $($argument: Argument,)*
        {
            const READS_QUERY: bool = false $(|| $argument::READS_QUERY)*;

            fn describe(operation: &mut Operation<'_>) {
                operation.demands(S::SCOPE);
                $($argument::describe(operation);)*
                R::describe(operation);
            }
        }
    };
}
endpoint!();
endpoint!(A);
endpoint!(A B);
endpoint!(A B C);
endpoint!(A B C D);
endpoint!(A B C D E);

impl<'a> Operation<'a> {
    pub(super) fn new(path: &'static str, schemas: &'a mut Schemas) -> Self {
        let (parameters, refusals) = (Vec::new(), BTreeMap::new());
        let mut operation = Self { path, schemas, parameters, body: None, success: Value::Null, refusals };
        // Pages of other origins, and more connections than the host takes.
        operation.refuses(&[RefusalCode::Forbidden, RefusalCode::TryLater]);
        operation
    }

    /// The parameters, the body and the responses.
    pub(super) fn finish(self) -> (Vec<Value>, Option<Value>, Value) {
        let problem = self.schemas.answer::<Problem>();
        let mut responses = json!({ "200": self.success });
        for (status, codes) in self.refusals {
            let title = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
            let mut schema = problem.clone();
            schema.insert("properties".to_owned(), json!({ "code": { "enum": codes }, "status": { "const": status } }));
            if let Some(responses) = responses.as_object_mut() {
                let content = json!({ "application/problem+json": { "schema": schema } });
                responses.insert(status.to_string(), json!({ "description": title, "content": content }));
            }
        }
        (self.parameters, self.body, responses)
    }

    /// The success: its media type, and the schema of its content.
    pub(crate) fn succeeds(&mut self, media_type: &str, schema: &Value) {
        self.success = json!({ "description": "Success", "content": { media_type: { "schema": schema } } });
    }

    /// The success with one of our types in it.
    pub(crate) fn succeeds_with<T: JsonSchema>(&mut self, media_type: &str) {
        let schema = self.schemas.answer::<T>().to_value();
        self.succeeds(media_type, &schema);
    }

    /// A stream of events whose data are of this type.
    pub(crate) fn streams<T: JsonSchema>(&mut self) {
        let data = self.schemas.answer::<T>().to_value();
        // The schema of one event, which later versions call `itemSchema`.
        let data = json!({ "type": "string", "contentMediaType": "application/json", "contentSchema": data });
        let event = json!({ "type": "object", "properties": { "id": { "type": "string" }, "data": data } });
        let content = json!({ "text/event-stream": { "schema": event } });
        self.success = json!({ "description": "Server-sent events", "content": content });
    }

    /// Refusals with these codes.
    pub(crate) fn refuses(&mut self, codes: &[RefusalCode]) {
        codes.iter().for_each(|&code| self.refuses_with(status(code), code));
    }

    fn refuses_with(&mut self, status: StatusCode, code: RefusalCode) {
        let codes = self.refusals.entry(status.as_u16()).or_default();
        let code = json!(code);
        if !codes.contains(&code) {
            codes.push(code);
        }
    }

    fn demands(&mut self, scope: RouteScope) {
        if scope > RouteScope::Anyone {
            self.refuses(&[RefusalCode::Unauthorized]);
        }
        if scope > RouteScope::Read {
            self.refuses(&[RefusalCode::ConsentNeeded]);
        }
    }

    /// A header that is read.
    pub(crate) fn header(&mut self, name: &str, about: &str, schema: &Value) {
        self.refuses(&[RefusalCode::InvalidRequest]);
        self.parameters.push(json!({ "name": name, "in": "header", "description": about, "schema": schema }));
    }

    fn takes<T: JsonSchema>(&mut self) {
        let schema = self.schemas.request::<T>();
        self.body = Some(json!({ "required": true, "content": { "application/json": { "schema": schema } } }));
        self.refuses(&[RefusalCode::InvalidRequest]);
        for status in [StatusCode::PAYLOAD_TOO_LARGE, StatusCode::UNSUPPORTED_MEDIA_TYPE] {
            self.refuses_with(status, RefusalCode::InvalidRequest);
        }
    }
}

impl Argument for State<ApiState> {
    fn describe(_: &mut Operation<'_>) {}
}

impl<T: JsonSchema> Argument for Body<T> {
    fn describe(operation: &mut Operation<'_>) {
        operation.takes::<T>();
    }
}

impl<T: JsonSchema> Argument for SecretBody<T> {
    fn describe(operation: &mut Operation<'_>) {
        operation.takes::<T>();
    }
}

impl<T: JsonSchema> Argument for Path<T> {
    fn describe(operation: &mut Operation<'_>) {
        let schema = operation.schemas.request::<T>();
        // Several parameters are a tuple.
        let one = [schema.clone()];
        let schemas = schema.get("prefixItems").and_then(Value::as_array).map_or(&one[..], Vec::as_slice);
        let names = operation.path.split('{').skip(1).filter_map(|rest| rest.split('}').next());
        let parameters = names.zip(schemas).map(|(name, schema)| {
            json!({ "name": name.trim_start_matches('*'), "in": "path", "required": true, "schema": schema })
        });
        operation.parameters.extend(parameters);
        operation.refuses(&[RefusalCode::InvalidRequest, RefusalCode::NotFound]);
    }
}

impl<T: JsonSchema> Argument for Query<T> {
    const READS_QUERY: bool = true;

    fn describe(operation: &mut Operation<'_>) {
        let schema = operation.schemas.request::<T>();
        let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let parameters = properties.map(|(name, schema)| {
            let mut schema = schema.clone();
            remove_null(&mut schema);
            let about = schema.get("description").cloned().unwrap_or_default();
            let required = required.contains(&json!(name));
            json!({ "name": name, "in": "query", "required": required, "description": about, "schema": schema })
        });
        operation.parameters.extend(parameters);
        operation.refuses(&[RefusalCode::InvalidRequest]);
    }
}

/// A value that may be absent is `null` in a body; in a query it is only absent.
fn remove_null(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    if let Some(Value::Array(types)) = fields.get_mut("type") {
        types.retain(|one| one != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            fields.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = fields.get_mut("enum") {
        values.retain(|one| !one.is_null());
    }
    if let Some(Value::Array(schemas)) = fields.get_mut("anyOf") {
        schemas.retain(|one| one.get("type").is_none_or(|kind| kind != "null"));
    }
    if fields.get("default").is_some_and(Value::is_null) {
        fields.remove("default");
    }
}

impl<T: JsonSchema> Answer for Json<T> {
    fn describe(operation: &mut Operation<'_>) {
        operation.succeeds_with::<T>("application/json");
    }
}

impl<R: Answer> Answer for Result<R, ErrorReply> {
    fn describe(operation: &mut Operation<'_>) {
        R::describe(operation);
        // The state cannot be read or written, or the host ends.
        operation.refuses(&[
            RefusalCode::Failed,
            RefusalCode::StateUnusable,
            RefusalCode::StorageFailed,
            RefusalCode::TryLater,
        ]);
    }
}
