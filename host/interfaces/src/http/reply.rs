//! Requests in and refusals out, in one form: problem details (RFC 9457) with the refusal's `code`, `remedy` and `key`.

use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base::{Refusal, RefusalCode, RunId};
use consent::ConsentError;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::ApiState;

/// The body of every answer that is not a success.
///
/// JSON: `{ "type": "about:blank", "title": "Not Found", "status": 404, "detail": "there is no run `run_1`", "code":
/// "not_found", "remedy": "list the runs: `motor task list`" }`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Always `about:blank`: `code` tells the kind.
    #[serde(rename = "type")]
    kind: String,
    /// The words of the status.
    title: String,
    /// The HTTP status, as a number.
    status: u16,
    /// The reason of the refusal.
    detail: String,
    /// The code of the refusal.
    code: RefusalCode,
    /// The next step, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
    /// The idempotency key of a request whose outcome is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        let Problem { detail, code, remedy, key, .. } = problem;
        Self { code, reason: detail, remedy, key }
    }
}

/// A refusal on its way out, with its HTTP status.
#[derive(Debug)]
pub(super) struct ErrorReply {
    status: StatusCode,
    refusal: Refusal,
}

/// The result of a handler.
pub(super) type ApiResult<T> = Result<Json<T>, ErrorReply>;

impl From<Refusal> for ErrorReply {
    fn from(refusal: Refusal) -> Self {
        Self { status: status(refusal.code), refusal }
    }
}

impl From<ConsentError> for ErrorReply {
    fn from(error: ConsentError) -> Self {
        Refusal::from(error).into()
    }
}

impl IntoResponse for ErrorReply {
    fn into_response(self) -> Response {
        let Self { status, refusal: Refusal { code, reason, remedy, key } } = self;
        let title = status.canonical_reason().unwrap_or_default().to_owned();
        let kind = "about:blank".to_owned();
        let body = Problem { kind, title, status: status.as_u16(), detail: reason, code, remedy, key };
        let mut response = (status, Json(body)).into_response();
        // For the count of refusals.
        response.extensions_mut().insert(code);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl ErrorReply {
    pub(super) fn into_refusal(self) -> Refusal {
        self.refusal
    }

    /// A request that the framework or a handler's reader turned away, with its status.
    pub(super) fn rejected(status: StatusCode, reason: impl Into<String>) -> Self {
        Self { status, refusal: Refusal::new(RefusalCode::InvalidRequest, reason) }
    }
}

/// The status for a code.
pub(super) fn status(code: RefusalCode) -> StatusCode {
    match code {
        RefusalCode::InvalidRequest | RefusalCode::UnknownTool | RefusalCode::InvalidComponent => {
            StatusCode::BAD_REQUEST
        }
        RefusalCode::Unauthorized => StatusCode::UNAUTHORIZED,
        RefusalCode::ConsentNeeded | RefusalCode::SkillUntrusted | RefusalCode::Forbidden => StatusCode::FORBIDDEN,
        RefusalCode::NotFound => StatusCode::NOT_FOUND,
        RefusalCode::Busy | RefusalCode::HomeInUse | RefusalCode::IllegalState => StatusCode::CONFLICT,
        RefusalCode::ModelUnavailable | RefusalCode::CredentialsNeeded | RefusalCode::PriceUnknown => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        RefusalCode::EnergyTooLow | RefusalCode::SpendCapReached => StatusCode::TOO_MANY_REQUESTS,
        RefusalCode::TryLater | RefusalCode::OutcomeUnknown => StatusCode::SERVICE_UNAVAILABLE,
        RefusalCode::StorageFailed => StatusCode::INSUFFICIENT_STORAGE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// A request's JSON body.
#[derive(Debug)]
pub(super) struct Body<T>(pub(super) T);

/// How long the whole body of a request may take to arrive. It has at most 4 MiB, and comes from this machine.
const BODY: Duration = Duration::from_secs(30);

impl<T: DeserializeOwned> FromRequest<ApiState> for Body<T> {
    type Rejection = ErrorReply;

    async fn from_request(request: Request, _: &ApiState) -> Result<Self, ErrorReply> {
        let Json(body) = json(request).await??;
        Ok(Self(body))
    }
}

/// A request's JSON body that may hold a secret: a refusal quotes nothing of it.
pub(super) struct SecretBody<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<ApiState> for SecretBody<T> {
    type Rejection = ErrorReply;

    async fn from_request(request: Request, _: &ApiState) -> Result<Self, ErrorReply> {
        match json(request).await? {
            Ok(Json(body)) => Ok(Self(body)),
            Err(JsonRejection::JsonDataError(_) | JsonRejection::JsonSyntaxError(_)) => {
                let reason = "the body is refused, and not quoted because it may hold a secret";
                let refusal = Refusal::new(RefusalCode::InvalidRequest, reason);
                Err(refusal.with_remedy("compare it with the schema of this endpoint in `/openapi.json`").into())
            }
            Err(rejection) => Err(rejection.into()),
        }
    }
}

/// The bytes of a body, for a handler that quotes nothing of it.
#[derive(Debug)]
pub(super) struct RawBody(pub(super) Bytes);

impl<S: Send + Sync> FromRequest<S> for RawBody {
    type Rejection = ErrorReply;

    async fn from_request(request: Request, state: &S) -> Result<Self, ErrorReply> {
        let body = in_time(Bytes::from_request(request, state)).await?;
        body.map(Self).map_err(|rejection| ErrorReply::rejected(rejection.status(), "the body cannot be read"))
    }
}

/// Reads a body. Without the state: for each type of body the compiler would walk through the whole host, to prove it `Send`.
async fn json<T: DeserializeOwned>(request: Request) -> Result<Result<Json<T>, JsonRejection>, ErrorReply> {
    in_time(Json::from_request(request, &())).await
}

pub(super) async fn in_time<T>(reading: impl Future<Output = T>) -> Result<T, ErrorReply> {
    tokio::time::timeout(BODY, reading).await.map_err(|_| {
        let reason = format!("the body is refused: it did not arrive within {} s", BODY.as_secs());
        ErrorReply::from(Refusal::new(RefusalCode::InvalidRequest, reason))
    })
}

impl From<JsonRejection> for ErrorReply {
    fn from(rejection: JsonRejection) -> Self {
        let status = match rejection {
            // A body with a wrong field is as invalid as one that is no JSON; 422 is for requests that are understood.
            JsonRejection::JsonDataError(_) => StatusCode::BAD_REQUEST,
            _ => rejection.status(),
        };
        Self::rejected(status, format!("the body is refused: {}", lower_first(&rejection.body_text())))
    }
}

impl From<PathRejection> for ErrorReply {
    fn from(rejection: PathRejection) -> Self {
        let text = rejection.body_text();
        let reason = text.strip_prefix("Invalid URL: ").unwrap_or(&text);
        let Self { status, refusal } =
            Self::rejected(rejection.status(), format!("the path is refused: {}", lower_first(reason)));
        let remedy = "list what there is to see its ids and names: `motor task list`, `motor token list`, `motor credential list`";
        Self { status, refusal: refusal.with_remedy(remedy) }
    }
}

/// The parameters in the path of a request.
#[derive(Debug)]
pub(super) struct Path<T>(pub(super) T);

impl<T: DeserializeOwned + Send> FromRequestParts<ApiState> for Path<T> {
    type Rejection = ErrorReply;

    async fn from_request_parts(parts: &mut Parts, _: &ApiState) -> Result<Self, ErrorReply> {
        let axum::extract::Path(value) = axum::extract::Path::from_request_parts(parts, &()).await?;
        Ok(Self(value))
    }
}

/// The query parameters after `?`.
#[derive(Debug)]
pub(super) struct Query<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequestParts<ApiState> for Query<T> {
    type Rejection = ErrorReply;

    async fn from_request_parts(parts: &mut Parts, _: &ApiState) -> Result<Self, ErrorReply> {
        let axum::extract::Query(value) = axum::extract::Query::from_request_parts(parts, &()).await?;
        Ok(Self(value))
    }
}

impl From<QueryRejection> for ErrorReply {
    fn from(rejection: QueryRejection) -> Self {
        Self::rejected(rejection.status(), format!("the query is refused: {}", lower_first(&rejection.body_text())))
    }
}

/// Messages begin in lower case here; those of the framework do not.
fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(characters).collect()
}

/// A run named in a path.
pub(super) fn run_id(text: &str) -> Result<RunId, ErrorReply> {
    RunId::parse(text).map_err(|error| {
        let refusal = Refusal::new(RefusalCode::InvalidRequest, error.to_string());
        ErrorReply::from(refusal.with_remedy("list the runs to see their ids: `motor task list`"))
    })
}

/// The answer to a method that an endpoint does not have.
pub(super) async fn method_not_allowed() -> ErrorReply {
    ErrorReply::rejected(StatusCode::METHOD_NOT_ALLOWED, "this endpoint does not have that method")
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    #[test]
    fn refusals_have_fitting_statuses() {
        for (code, expected) in [
            (RefusalCode::InvalidRequest, 400),
            (RefusalCode::ConsentNeeded, 403),
            (RefusalCode::NotFound, 404),
            (RefusalCode::Busy, 409),
            (RefusalCode::CredentialsNeeded, 422),
            (RefusalCode::EnergyTooLow, 429),
            (RefusalCode::SpendCapReached, 429),
            (RefusalCode::PriceUnknown, 422),
            (RefusalCode::Failed, 500),
            (RefusalCode::TryLater, 503),
            (RefusalCode::OutcomeUnknown, 503),
            (RefusalCode::StorageFailed, 507),
        ] {
            assert_eq!(status(code), expected, "{code:?}");
        }
    }

    #[test]
    fn a_path_that_names_no_run_is_refused_with_the_way_on() {
        assert!(run_id("run_0123").is_ok());
        let refused = run_id("../etc").unwrap_err().refusal;
        assert_eq!(refused.code, RefusalCode::InvalidRequest);
        assert!(refused.remedy.unwrap().contains("motor task list"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_arrive_is_refused() {
        let request = |body| Request::builder().header("content-type", "application/json").body(body).unwrap();
        let stalled = || axum::body::Body::from_stream(stream::pending::<std::io::Result<Bytes>>());
        let refusals = [
            json::<serde_json::Value>(request(stalled())).await.map(drop),
            RawBody::from_request(request(stalled()), &()).await.map(drop),
        ];
        for refused in refusals {
            assert!(refused.unwrap_err().refusal.reason.contains("did not arrive within 30 s"));
        }
        let whole = RawBody::from_request(request("{}".into()), &()).await.unwrap();
        assert_eq!(&whole.0[..], b"{}");
    }
}
