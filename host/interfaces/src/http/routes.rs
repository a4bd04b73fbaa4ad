//! The table of routes: a router that knows the scope of each of its routes, and for those of the API their description.

use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::handler::Handler;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use base::RefusalCode;
use serde::Serialize;

use super::ApiState;
use super::openapi::{Endpoint, Operation};
use super::reply::ErrorReply;
use super::scope::{RouteScope, Scope};

/// One route of the API.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Route {
    /// The HTTP method, in capitals.
    pub method: &'static str,
    /// The path, with parameters in braces.
    pub path: &'static str,
    /// The scope that a caller needs.
    pub scope: RouteScope,
}

/// Arguments of a handler that begin with a [`Scope`].
pub(super) trait Scoped {
    /// The scope that the handler demands.
    const SCOPE: RouteScope;
}

// The first type is axum's marker for the way in which the arguments are read.
macro_rules! scoped {
    ($($argument:ident)*) => {
        impl<M, S: Scope, $($argument),*> Scoped for (M, S, $($argument,)*) {
            const SCOPE: RouteScope = S::SCOPE;
        }
    };
}
scoped!();
scoped!(A);
scoped!(A B);
scoped!(A B C);
scoped!(A B C D);
scoped!(A B C D E);

/// A handler, of one type for all routes. The code that axum makes of a handler is then compiled once, and not for each route. For
/// each of its parts the compiler also walks through everything that the handler's future holds, to prove it `Send`.
#[derive(Clone)]
struct AnyHandler(Arc<dyn Fn(Request, ApiState) -> Answering + Send + Sync>);

/// An answer in the making.
type Answering = Pin<Box<dyn Future<Output = Response> + Send>>;

impl AnyHandler {
    fn new<H: Handler<T, ApiState>, T: 'static>(handler: H) -> Self {
        Self(Arc::new(move |request, api| Box::pin(handler.clone().call(request, api))))
    }
}

impl Handler<(), ApiState> for AnyHandler {
    type Future = Answering;

    fn call(self, request: Request, api: ApiState) -> Answering {
        (self.0)(request, api)
    }
}

/// A router under construction.
pub(super) struct Routes {
    pub(super) router: Router<ApiState>,
    pub(super) table: Vec<Route>,
}

impl Routes {
    /// Adds a route for `GET`.
    pub(super) fn get<H, T>(self, path: &'static str, handler: H) -> Self
    where
        H: Handler<T, ApiState>,
        T: Scoped + 'static,
    {
        let route = Route { method: "GET", path, scope: T::SCOPE };
        self.add(route, on(MethodFilter::GET, AnyHandler::new(handler)))
    }

    /// Adds a route for `POST`.
    pub(super) fn post<H, T>(self, path: &'static str, handler: H) -> Self
    where
        H: Handler<T, ApiState>,
        T: Scoped + 'static,
    {
        let route = Route { method: "POST", path, scope: T::SCOPE };
        self.add(route, on(MethodFilter::POST, AnyHandler::new(handler)))
    }

    /// Adds a route for `DELETE`.
    pub(super) fn delete<H, T>(self, path: &'static str, handler: H) -> Self
    where
        H: Handler<T, ApiState>,
        T: Scoped + 'static,
    {
        let route = Route { method: "DELETE", path, scope: T::SCOPE };
        self.add(route, on(MethodFilter::DELETE, AnyHandler::new(handler)))
    }

    fn add(mut self, route: Route, method: MethodRouter<ApiState>) -> Self {
        self.table.push(route);
        self.router = self.router.route(route.path, method);
        self
    }
}

/// A route with its description.
pub(super) struct ApiRoute {
    pub(super) route: Route,
    /// One sentence, without the final period.
    pub(super) about: &'static str,
    /// Adds the parts of the request, and the answers.
    pub(super) describe: fn(&mut Operation<'_>),
    /// Refusals of the handler itself, beside those that follow from the parts of the request.
    pub(super) refusals: &'static [RefusalCode],
}

/// The routes of the API under construction. Each is described, from the types of its handler and one sentence.
pub(super) struct ApiRoutes {
    pub(super) routes: Routes,
    pub(super) described: Vec<ApiRoute>,
}

impl ApiRoutes {
    pub(super) fn new() -> Self {
        Self { routes: Routes { router: Router::new(), table: Vec::new() }, described: Vec::new() }
    }

    /// Adds a route for `GET`.
    pub(super) fn get<H, T>(self, path: &'static str, about: &'static str, handler: H) -> Self
    where
        H: Endpoint<T>,
        T: Scoped + 'static,
    {
        let route = Route { method: "GET", path, scope: T::SCOPE };
        self.add::<H, T>(route, about, on(MethodFilter::GET, AnyHandler::new(handler)))
    }

    /// Adds a route for `POST`.
    pub(super) fn post<H, T>(self, path: &'static str, about: &'static str, handler: H) -> Self
    where
        H: Endpoint<T>,
        T: Scoped + 'static,
    {
        let route = Route { method: "POST", path, scope: T::SCOPE };
        self.add::<H, T>(route, about, on(MethodFilter::POST, AnyHandler::new(handler)))
    }

    /// Adds a route for `DELETE`.
    pub(super) fn delete<H, T>(self, path: &'static str, about: &'static str, handler: H) -> Self
    where
        H: Endpoint<T>,
        T: Scoped + 'static,
    {
        let route = Route { method: "DELETE", path, scope: T::SCOPE };
        self.add::<H, T>(route, about, on(MethodFilter::DELETE, AnyHandler::new(handler)))
    }

    /// Adds codes of refusals to the route that was added last.
    pub(super) fn refusing(mut self, refusals: &'static [RefusalCode]) -> Self {
        if let Some(last) = self.described.last_mut() {
            last.refusals = refusals;
        }
        self
    }

    fn add<H: Endpoint<T>, T>(mut self, route: Route, about: &'static str, method: MethodRouter<ApiState>) -> Self {
        let method = if H::READS_QUERY { method } else { method.layer(from_fn(without_query)) };
        self.described.push(ApiRoute { route, about, describe: H::describe, refusals: &[] });
        self.routes = self.routes.add(route, method);
        self
    }
}

/// Refuses a query where none is read: a misspelt parameter would pass unnoticed, as it does in no other place.
async fn without_query(request: Request, next: Next) -> Response {
    match request.uri().query() {
        None | Some("") => next.run(request).await,
        Some(_) => {
            ErrorReply::rejected(StatusCode::BAD_REQUEST, "this endpoint takes no query parameters").into_response()
        }
    }
}
