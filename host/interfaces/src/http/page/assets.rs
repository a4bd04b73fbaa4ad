//! The style and the script of the page, built into the program.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, X_CONTENT_TYPE_OPTIONS};

use super::super::scope::Anyone;

/// The style of every page.
pub(super) const STYLE: &str = include_str!("assets/page.css");

type Asset = ([(HeaderName, &'static str); 3], &'static str);

pub(super) async fn style(_: Anyone) -> Asset {
    asset("text/css; charset=utf-8", STYLE)
}

pub(super) async fn script(_: Anyone) -> Asset {
    asset("text/javascript; charset=utf-8", include_str!("assets/page.js"))
}

/// Asked for again each time: the next host may bring other ones.
fn asset(kind: &'static str, text: &'static str) -> Asset {
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-cache"), (X_CONTENT_TYPE_OPTIONS, "nosniff")], text)
}
