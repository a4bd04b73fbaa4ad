//! Signing in, and the browser that did (SPEC WEB-1).

use axum::extract::{FromRequestParts, RawQuery, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::{AppendHeaders, IntoResponse, Redirect, Response};
use base::{Refusal, RefusalCode, Secret};
use consent::{Consent, ConsentError};
use maud::html;

use super::super::ApiState;
use super::super::reply::{ErrorReply, status};
use super::super::scope::{Anyone, Owner, RouteScope, Scope};
use super::form::Form;
use super::layout::{Page, PageError, problem};

/// The owner in a browser, or a program with the owner's token.
///
/// Other pages cannot make a browser submit a form here: the cookie goes with requests of this site alone, which
/// includes other ports of the machine, and browsers name the origin of every form, which has to be this one.
#[derive(Debug)]
pub(super) struct Visitor(pub(super) Consent);

impl Scope for Visitor {
    const SCOPE: RouteScope = RouteScope::Owner;
}

impl FromRequestParts<ApiState> for Visitor {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, api: &ApiState) -> Result<Self, PageError> {
        if parts.headers.contains_key(header::AUTHORIZATION) {
            let Owner(consent) = Owner::from_request_parts(parts, api).await.map_err(PageError::Refused)?;
            return Ok(Self(consent));
        }
        if let Some(consent) = session(&parts.headers).and_then(|session| api.host.consent.signed_in(session)) {
            if parts.method != Method::GET {
                from_this_page(&parts.headers)?;
            }
            return Ok(Self(consent));
        }
        let accepts = parts.headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
        match accepts.contains("text/html") {
            true if parts.method == Method::GET => Err(PageError::SignIn(parts.uri.to_string())),
            true => Err(PageError::SignIn("/".to_owned())),
            false => match Owner::from_request_parts(parts, api).await {
                Ok(Owner(consent)) => Ok(Self(consent)),
                Err(reply) => Err(PageError::Refused(reply)),
            },
        }
    }
}

/// Whether the browser says where a form comes from. That it is no other page was checked before, as for every route.
fn from_this_page(headers: &HeaderMap) -> Result<(), PageError> {
    if headers.contains_key(header::ORIGIN) {
        return Ok(());
    }
    let reason = "the request does not say which page it comes from";
    Err(ErrorReply::from(Refusal::new(RefusalCode::Forbidden, reason)).into())
}

/// The cookie's name. Cookies know no ports, and several hosts may serve one machine.
fn cookie_name(headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let port = host.rsplit_once(':').map_or("80", |(_, port)| port);
    let digits: String = port.chars().filter(char::is_ascii_digit).collect();
    format!("motor-session-{digits}")
}

fn session(headers: &HeaderMap) -> Option<&str> {
    let name = cookie_name(headers);
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
    let mut pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(cookie, _)| *cookie == name).map(|(_, value)| value)
}

fn cookie(headers: &HeaderMap, value: &str, more: &str) -> AppendHeaders<[(header::HeaderName, String); 1]> {
    let cookie = format!("{}={value}; Path=/; HttpOnly; SameSite=Strict{more}", cookie_name(headers));
    AppendHeaders([(header::SET_COOKIE, cookie)])
}

/// The form to sign in. A link's code in the query is taken at once, and is in no address from then on.
pub(super) async fn form(
    _: Anyone,
    State(api): State<ApiState>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response {
    let query = Form::of_query(&query.unwrap_or_default());
    if !query.is_set("code") {
        return page(query.text("next"), None).into_response();
    }
    match api.host.consent.follow_link(query.text("code")).await {
        Ok(session) => entered(&headers, &session, "/"),
        Err(_) => {
            let reason = "the link was used before, or is too old";
            let refusal = Refusal::new(RefusalCode::Unauthorized, reason);
            page("/", Some(&refusal.with_remedy("sign in with the token, or start with `motor serve --open` again")))
                .into_response()
        }
    }
}

fn page(next: &str, refused: Option<&Refusal>) -> Page {
    let body = html! {
        div.narrow {
            h1 { "Sign in" }
            @if let Some(refusal) = refused { (problem(refusal)) }
            p { "This page acts in the owner's name. " code { "motor owner token" } " prints the owner's token; " code { "motor serve --open" } " signs in by itself." }
            form method="post" action="/sign-in" {
                input type="hidden" name="next" value=(next);
                label for="token" { "Owner's token" }
                input id="token" name="token" type="password" autocomplete="current-password" required autofocus;
                button.primary { "Sign in" }
            }
        }
    };
    let page = Page::new("Sign in", "", body);
    match refused {
        Some(refusal) => page.with_status(status(refusal.code)),
        None => page,
    }
}

pub(super) async fn sign_in(
    _: Anyone,
    State(api): State<ApiState>,
    headers: HeaderMap,
    form: Form,
) -> Result<Response, PageError> {
    from_this_page(&headers)?;
    let next = Some(form.text("next")).filter(|next| is_local(next)).unwrap_or("/");
    match api.host.consent.sign_in(Secret::new(form.text("token").to_owned())).await {
        Ok(session) => Ok(entered(&headers, &session, next)),
        Err(error) => {
            tracing::warn!("a sign-in on the page was refused");
            Ok(page(next, Some(&refused(error))).into_response())
        }
    }
}

fn refused(error: ConsentError) -> Refusal {
    match error {
        ConsentError::Wrong => Refusal::new(RefusalCode::ConsentNeeded, "this is not the owner's token")
            .with_remedy("`motor owner token` prints it"),
        other => other.into(),
    }
}

/// Whether a path stays on this page.
fn is_local(path: &str) -> bool {
    path.starts_with('/') && !path.starts_with("//") && !path.contains(['\\', '\r', '\n', '\t'])
}

fn entered(headers: &HeaderMap, session: &Secret<String>, next: &str) -> Response {
    let next = HeaderValue::try_from(next).map_or("/", |_| next);
    (cookie(headers, session.expose(), ""), Redirect::to(next)).into_response()
}

pub(super) async fn sign_out(
    _: Anyone,
    State(api): State<ApiState>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, PageError> {
    if let Some(session) = session(&headers) {
        from_this_page(&headers)?;
        api.host.consent.sign_out(session);
    }
    Ok((cookie(&headers, "", "; Max-Age=0"), Redirect::to("/sign-in")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_is_known_by_the_cookie_of_its_port() {
        let headers = |host: &str, cookies: &str| {
            HeaderMap::from_iter([(header::HOST, host.parse().unwrap()), (header::COOKIE, cookies.parse().unwrap())])
        };
        assert_eq!(session(&headers("127.0.0.1:7777", "a=b; motor-session-7777=x; c=d")), Some("x"));
        assert_eq!(session(&headers("127.0.0.1:7777", "motor-session-7778=x")), None);
        assert_eq!(session(&headers("localhost", "motor-session-80=x")), Some("x"));
        assert_eq!(session(&HeaderMap::new()), None);
    }

    #[test]
    fn signing_in_leads_nowhere_else() {
        for path in ["/", "/runs/run_1?x=1"] {
            assert!(is_local(path));
        }
        for path in ["", "//evil.example", "https://evil.example", "/\\evil.example", "/\t/evil.example", "x"] {
            assert!(!is_local(path), "{path}");
        }
    }
}
