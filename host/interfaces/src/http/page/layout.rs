//! The frame of every page, and a refusal as a page.

use std::borrow::Cow;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use base::{Refusal, Timestamp};
use consent::ConsentError;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Serialize;

use super::super::reply::{ErrorReply, status};
use super::assets::STYLE;
use crate::output::text;

/// The places of the page: path, name.
const PLACES: [(&str, &str); 8] = [
    ("/", "Now"),
    ("/start", "Start"),
    ("/skills", "Skills"),
    ("/credentials", "Credentials"),
    ("/network", "Network"),
    ("/signals", "Signals"),
    ("/health", "Health"),
    ("/settings", "Settings"),
];

/// The scripts and styles are this host's own files; nothing else is loaded, and no other page may frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// A page within the frame.
pub(super) struct Page {
    title: String,
    place: &'static str,
    body: Markup,
    status: StatusCode,
    /// Where its live changes come from.
    live: Option<String>,
}

impl Page {
    pub(super) fn new(title: impl Into<String>, place: &'static str, body: Markup) -> Self {
        Self { title: title.into(), place, body, status: StatusCode::OK, live: None }
    }

    /// Follows the events at this path.
    pub(super) fn live(self, path: impl Into<String>) -> Self {
        Self { live: Some(path.into()), ..self }
    }

    pub(super) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    fn markup(&self) -> Markup {
        let signed_in = !self.place.is_empty();
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (shown(&self.title)) " · Motor Cortex" }
                    link rel="icon" href="data:,";
                    link rel="stylesheet" href="/assets/page.css";
                    script src="/assets/page.js" defer {}
                    @if self.live.is_some() {
                        noscript { meta http-equiv="refresh" content="5"; }
                    }
                }
                body data-live=[self.live.as_deref()] {
                    a.skip href="#main" { "Skip to content" }
                    header.top {
                        a.brand href="/" { span.mark aria-hidden="true" {} "Motor Cortex" }
                        @if signed_in {
                            nav aria-label="Places" {
                                @for (path, name) in PLACES {
                                    a href=(path) aria-current=[(path == self.place).then_some("page")] { (name) }
                                }
                            }
                            form method="post" action="/sign-out" { button.quiet { "Sign out" } }
                        }
                    }
                    main id="main" tabindex="-1" { (self.body) }
                }
            }
        }
    }
}

/// A page as one file, its style within it.
pub(super) fn standalone(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="content-security-policy" content="default-src 'none'; style-src 'unsafe-inline'";
                title { (shown(title)) }
                style { (PreEscaped(STYLE)) }
            }
            body { main { (body) } }
        }
    };
    page.into_string()
}

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.markup().into_string()).into_response();
        let headers = response.headers_mut();
        for (name, value) in [
            (header::CONTENT_TYPE, "text/html; charset=utf-8"),
            (header::CACHE_CONTROL, "no-store"),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::X_FRAME_OPTIONS, "DENY"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            // With `no-referrer` browsers would not name the origin of a form.
            (header::REFERRER_POLICY, "same-origin"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

/// A request that no page answers.
#[derive(Debug)]
pub(super) enum PageError {
    /// The browser has no session: after signing in it comes back to this path.
    SignIn(String),
    /// For a program: a problem document.
    Refused(ErrorReply),
    /// For a person: a page with the reason and the way on.
    Shown(Refusal),
}

impl From<Refusal> for PageError {
    fn from(refusal: Refusal) -> Self {
        Self::Shown(refusal)
    }
}

impl From<ConsentError> for PageError {
    fn from(error: ConsentError) -> Self {
        Self::Shown(error.into())
    }
}

impl From<ErrorReply> for PageError {
    fn from(reply: ErrorReply) -> Self {
        Self::Shown(reply.into_refusal())
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        match self {
            Self::SignIn(path) => {
                let query = form_urlencoded::Serializer::new(String::new()).append_pair("next", &path).finish();
                Redirect::to(&format!("/sign-in?{query}")).into_response()
            }
            Self::Refused(reply) => reply.into_response(),
            Self::Shown(refusal) => {
                let body = html! {
                    h1 { "That did not work" }
                    (problem(&refusal))
                    p { a href="/" { "Back to the runs" } }
                };
                let mut response = Page::new("Refused", " ", body).with_status(status(refusal.code)).into_response();
                // For the count of refusals.
                response.extensions_mut().insert(refusal.code);
                response
            }
        }
    }
}

/// A refusal within a page: its reason and its remedy.
pub(super) fn problem(refusal: &Refusal) -> Markup {
    html! {
        div.notice.alarm role="alert" {
            p { strong { (shown(&refusal.reason)) } }
            @if let Some(remedy) = &refusal.remedy { p { (shown(remedy)) } }
            p.faint { code { (word(&refusal.code)) } }
        }
    }
}

/// The word that stands for a value in JSON.
pub(in super::super) fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// A text in which nothing is hidden. Escaping is the template's.
pub(super) fn shown(text: &str) -> Cow<'_, str> {
    text::revealed(text)
}

/// A time as both a machine and a person read it.
pub(super) fn time(at: Timestamp) -> Markup {
    html! { time datetime=(at.to_string()) { (text::seconds(at)) } }
}

/// A card's title and fields; text of strangers stands in a frame that only this page draws.
pub(super) fn card(card: &crate::words::card::Card) -> Markup {
    html! {
        dl.card {
            @for (label, text, tone) in card.fields() {
                @if !label.is_empty() { dt { (label) } }
                dd class=(tone.name()) { (shown(text.trim_end_matches('\n'))) }
            }
        }
    }
}
