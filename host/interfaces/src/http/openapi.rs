//! The OpenAPI 3.1 document of the API, at `/openapi.json` (SPEC API-1).
//!
//! Nothing is written twice: a route's parameters, bodies and answers are the types of its handler ([`operation`]), their
//! schemas are derived from the same types that are read and written, and a handler whose types have no description is not
//! a route of the API ([`super::routes::ApiRoutes`]). Written by hand is only one sentence for each route, and the codes of
//! the refusals of its own.

mod operation;
mod schemas;

use std::sync::LazyLock;

use axum::http::header;
use axum::response::IntoResponse;
use bytes::Bytes;
use serde_json::{Map, Value, json};

pub(super) use operation::{Answer, Argument, Endpoint, Operation};
use schemas::{Schemas, limit_integers};

use super::routes::{ApiRoute, Route};
use super::scope::{Anyone, RouteScope};

/// Introduction of the document.
const DESCRIPTION: &str = "Delegates tasks to a Motor Cortex host, and follows them. Errors are problem documents \
    (RFC 9457) with a stable `code`. `x-scope` is the least that the caller of an operation needs: `anyone`, a token with the \
    scope `read` or `agent`, `local` (a program on the home's socket, or the owner), or `owner` (the owner's token). Streams of \
    events (`text/event-stream`) carry one JSON document in each `data`. Not described here: `/mcp`, which speaks the Model \
    Context Protocol, `/metrics`, which answers with text for Prometheus, and the owner's page, which answers with HTML.";

/// The text of the document. It depends on the program alone, so it is made once.
static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| document(&super::api_routes().described).to_string().into());

/// Answers with the document. It is for anyone: it is the same for every home, and reveals nothing about this one.
pub(super) async fn serve(_: Anyone) -> DocumentReply {
    DocumentReply
}

/// The document as an answer.
pub(super) struct DocumentReply;

impl IntoResponse for DocumentReply {
    fn into_response(self) -> axum::response::Response {
        ([(header::CONTENT_TYPE, "application/json")], DOCUMENT.clone()).into_response()
    }
}

impl Answer for DocumentReply {
    fn describe(operation: &mut Operation<'_>) {
        operation.succeeds("application/json", &json!({ "type": "object" }));
    }
}

/// The document that describes these routes.
fn document(routes: &[ApiRoute]) -> Value {
    let mut schemas = Schemas::default();
    let mut paths = Map::new();
    for route in routes {
        let operation = operation(route, &mut schemas);
        // A parameter of several segments is an ordinary one here.
        let path = paths.entry(route.route.path.replace("{*", "{")).or_insert_with(|| json!({}));
        if let Some(methods) = path.as_object_mut() {
            methods.insert(route.route.method.to_lowercase(), operation);
        }
    }
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Motor Cortex",
            "version": env!("CARGO_PKG_VERSION"),
            "description": DESCRIPTION,
            "license": { "name": env!("CARGO_PKG_LICENSE"), "identifier": env!("CARGO_PKG_LICENSE") },
        },
        "servers": [{ "url": "/" }],
        "paths": paths,
        "components": {
            "schemas": schemas.into_named(),
            "securitySchemes": { "token": {
                "type": "http",
                "scheme": "bearer",
                "description": "A token that the owner made with `motor token create`, or the owner's own.",
            } },
        },
    });
    limit_integers(&mut document);
    document
}

fn operation(route: &ApiRoute, schemas: &mut Schemas) -> Value {
    let Route { method, path, scope } = route.route;
    let mut operation = Operation::new(path, schemas);
    (route.describe)(&mut operation);
    operation.refuses(route.refusals);
    let (parameters, body, responses) = operation.finish();
    let words = format!("{method}{path}").replace("{*", "{").replace(['{', '}'], "").replace("/v1", "");
    let mut described = json!({
        "operationId": words.replace(['/', '.'], "_").to_lowercase(),
        "summary": route.about,
        "tags": [path.trim_start_matches("/v1").split('/').nth(1).unwrap_or_default()],
        "x-scope": scope,
        "security": if scope == RouteScope::Anyone { json!([]) } else { json!([{ "token": [] }]) },
        "parameters": parameters,
        "responses": responses,
    });
    if let (Some(body), Some(fields)) = (body, described.as_object_mut()) {
        fields.insert("requestBody".to_owned(), body);
    }
    described
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn text(value: &Value) -> &str {
        value.as_str().unwrap()
    }

    #[test]
    fn every_route_of_the_api_is_described() {
        let routes = super::super::api_routes();
        let document = document(&routes.described);
        let described: BTreeSet<String> = document["paths"]
            .as_object()
            .unwrap()
            .iter()
            .flat_map(|(path, methods)| {
                methods.as_object().unwrap().keys().map(move |method| format!("{} {path}", method.to_uppercase()))
            })
            .collect();
        let is_page =
            |path: &str| !path.starts_with("/v1/") && !["/healthz", "/readyz", "/openapi.json"].contains(&path);
        let routes: BTreeSet<String> = super::super::route_table()
            .into_iter()
            .filter(|route| !is_page(route.path))
            .map(|route| format!("{} {}", route.method, route.path.replace("{*", "{")))
            .collect();
        assert!(routes.len() > 40);
        assert_eq!(described, routes);
    }

    #[test]
    fn operations_have_names_sentences_answers_and_scopes() {
        let document = document(&super::super::api_routes().described);
        let mut names = BTreeSet::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                assert!(names.insert(text(&operation["operationId"])), "{operation}");
                assert!(text(&operation["summary"]).len() > 8, "{path}: {operation}");
                let responses = operation["responses"].as_object().unwrap();
                assert!(responses.contains_key("200"), "{path}: {operation}");
                let is_open = operation["security"].as_array().unwrap().is_empty();
                assert_eq!(is_open, text(&operation["x-scope"]) == "anyone", "{path}");
                assert_eq!(responses.contains_key("401"), !is_open, "{path}");
                assert_eq!(operation.get("requestBody").is_some(), responses.contains_key("415"), "{path}");
                let named = operation["parameters"].as_array().unwrap().iter();
                let of_path =
                    named.filter(|parameter| parameter["in"] == "path").map(|parameter| text(&parameter["name"]));
                let expected = path.split('{').skip(1).map(|rest| rest.split('}').next().unwrap());
                assert_eq!(of_path.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "{method} {path}");
            }
        }
    }

    #[test]
    fn references_lead_to_schemas() {
        let document = document(&super::super::api_routes().described).to_string();
        let value: Value = serde_json::from_str(&document).unwrap();
        let targets: Vec<&str> =
            document.split("\"$ref\":\"#").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        assert!(targets.len() > 50);
        for target in targets {
            assert!(value.pointer(target).is_some(), "{target}");
        }
    }
}
