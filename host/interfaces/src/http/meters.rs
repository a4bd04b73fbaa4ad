//! Counts of the HTTP API: requests by route and status, refusals by code, open connections.
//!
//! Nothing that a caller chooses becomes a key: routes are those of the table, and unknown paths and methods are one.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use base::RefusalCode;
use parking_lot::Mutex;

use super::slots::Slots;

/// The route of a request that has none.
const NO_ROUTE: &str = "none";

/// Requests of one route, by method and status.
type CountsOfRoute = BTreeMap<(&'static str, u16), u64>;

/// The counts of a host's listeners since it started.
#[derive(Debug, Default)]
pub(super) struct Meters {
    /// By route, then by method and status.
    requests: Mutex<HashMap<String, CountsOfRoute>>,
    refusals: Mutex<HashMap<RefusalCode, u64>>,
    listeners: Mutex<Vec<(&'static str, Arc<Slots>)>>,
}

/// How many requests there were of a route.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RequestCount {
    pub(super) route: String,
    pub(super) method: &'static str,
    pub(super) status: u16,
    pub(super) count: u64,
}

/// Connections of the listeners of one kind.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ConnectionCount {
    /// Connections that ask something, and their maximum.
    pub(super) asking: (usize, usize),
    /// Connections that watch, and their maximum.
    pub(super) watching: (usize, usize),
}

impl Meters {
    /// Adds a listener, `socket` or `port`.
    pub(super) fn add_listener(&self, kind: &'static str, slots: Arc<Slots>) {
        self.listeners.lock().push((kind, slots));
    }

    /// The requests so far, in the order of their routes.
    pub(super) fn requests(&self) -> Vec<RequestCount> {
        let requests = self.requests.lock();
        let mut counts: Vec<_> = requests
            .iter()
            .flat_map(|(route, counts)| {
                counts.iter().map(|((method, status), count)| RequestCount {
                    route: route.clone(),
                    method,
                    status: *status,
                    count: *count,
                })
            })
            .collect();
        counts.sort();
        counts
    }

    /// The refusals so far.
    pub(super) fn refusals(&self) -> HashMap<RefusalCode, u64> {
        self.refusals.lock().clone()
    }

    /// The connections now, by the kind of their listener.
    pub(super) fn connections(&self) -> BTreeMap<&'static str, ConnectionCount> {
        let mut counts = BTreeMap::<_, ConnectionCount>::new();
        for (kind, slots) in self.listeners.lock().iter() {
            let (asking, watching) = slots.open();
            let count = counts.entry(*kind).or_default();
            count.asking = (count.asking.0 + asking, count.asking.1 + slots.limits.served);
            count.watching = (count.watching.0 + watching, count.watching.1 + slots.limits.watching);
        }
        counts
    }

    fn count(&self, route: Option<&MatchedPath>, method: &'static str, response: &Response) {
        let (route, key) = (route.map_or(NO_ROUTE, MatchedPath::as_str), (method, response.status().as_u16()));
        {
            let mut requests = self.requests.lock();
            // Only the first request of a route pays for its name.
            match requests.get_mut(route) {
                Some(counts) => *counts.entry(key).or_default() += 1,
                None => {
                    requests.insert(route.to_owned(), BTreeMap::from([(key, 1)]));
                }
            }
        }
        if let Some(code) = response.extensions().get::<RefusalCode>() {
            *self.refusals.lock().entry(*code).or_default() += 1;
        }
    }
}

/// Counts a request and its answer. A stream counts when it begins.
pub(super) async fn count(State(meters): State<Arc<Meters>>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let method = match *request.method() {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::DELETE => "DELETE",
        _ => "other",
    };
    let response = next.run(request).await;
    meters.count(route.as_ref(), method, &response);
    response
}
