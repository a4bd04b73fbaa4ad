//! The owner's page (SPEC WEB-1): rendered here from the same facade as the API, without a script complete, with one live.
//!
//! The owner signs in with the owner's token or a link that works once; the browser is known by a cookie from then on,
//! which means nothing to the API. A form is taken from this page alone ([`session::Visitor`]). Texts of models, tools,
//! skills and web pages are escaped, and their invisible characters are written out.

mod assets;
mod form;
mod host;
mod layout;
mod live;
mod now;
mod owner;
mod run;
mod session;
mod skills;
mod staged;
mod start;
mod timeline;

use base::Timestamp;
pub(super) use layout::word;
use motor::RunTrace;

use super::routes::Routes;

/// The page of a run as one file that needs no host, as it is at its last event.
pub(crate) fn standalone(trace: &RunTrace) -> String {
    let ended = trace.completed_at.unwrap_or_else(|| {
        let began = trace.started_at.unwrap_or(trace.created_at).as_millis();
        Timestamp::from_millis(began + trace.total_duration_ms)
    });
    layout::standalone(trace.run_id.as_str(), &run::record(trace, ended))
}

/// Adds the routes of the page.
pub(super) fn add_to(routes: Routes) -> Routes {
    routes
        .get("/", now::show)
        .get("/live", live::events)
        .get("/runs/{id}", run::show)
        .get("/runs/{id}/files/{*path}", run::download)
        .get("/runs/{id}/preview/{*path}", run::preview)
        .get("/runs/{id}/receipt", run::receipt)
        .post("/runs/{id}/answer", run::answer)
        .post("/runs/{id}/approval", run::approve)
        .post("/runs/{id}/cancellation", run::cancel)
        .post("/runs/{id}/staged", staged::decide)
        .post("/runs/{id}/messages", run::tell)
        .post("/runs/{id}/retry", run::retry)
        .get("/start", start::form)
        .post("/start", start::submit)
        .get("/skills", skills::list)
        .post("/skills", skills::add)
        .get("/skills/review", skills::review)
        .post("/skills/approval", skills::approve)
        .post("/skills/rejection", skills::reject)
        .post("/skills/rollback", skills::rollback)
        .get("/credentials", owner::credentials)
        .post("/credentials", owner::set_credential)
        .post("/credentials/deletion", owner::delete_credential)
        .post("/credentials/acceptance", owner::accept_credential)
        .post("/credentials/rejection", owner::reject_credential)
        .get("/network", owner::network)
        .post("/network", owner::decide)
        .post("/network/withdrawal", owner::withdraw)
        .get("/signals", host::signals)
        .get("/health", host::health)
        .get("/settings", host::settings)
        .get("/sign-in", session::form)
        .post("/sign-in", session::sign_in)
        .post("/sign-out", session::sign_out)
        .get("/assets/page.css", assets::style)
        .get("/assets/page.js", assets::script)
}
