//! The table of routes: a router that knows the scope of each of its routes.

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodFilter, on};
use serde::Serialize;

use super::ApiState;
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

/// A router under construction.
pub(super) struct Routes {
    pub(super) router: Router<ApiState>,
    pub(super) table: Vec<Route>,
}

impl Routes {
    pub(super) fn new() -> Self {
        Self { router: Router::new(), table: Vec::new() }
    }

    /// Adds a route for `GET`.
    pub(super) fn get<H, T>(self, path: &'static str, handler: H) -> Self
    where
        H: Handler<T, ApiState>,
        T: Scoped + 'static,
    {
        self.add("GET", MethodFilter::GET, path, handler)
    }

    /// Adds a route for `POST`.
    pub(super) fn post<H, T>(self, path: &'static str, handler: H) -> Self
    where
        H: Handler<T, ApiState>,
        T: Scoped + 'static,
    {
        self.add("POST", MethodFilter::POST, path, handler)
    }

    /// Adds a route for `DELETE`.
    pub(super) fn delete<H, T>(self, path: &'static str, handler: H) -> Self
    where
        H: Handler<T, ApiState>,
        T: Scoped + 'static,
    {
        self.add("DELETE", MethodFilter::DELETE, path, handler)
    }

    fn add<H, T>(mut self, method: &'static str, filter: MethodFilter, path: &'static str, handler: H) -> Self
    where
        H: Handler<T, ApiState>,
        T: Scoped + 'static,
    {
        self.table.push(Route { method, path, scope: T::SCOPE });
        self.router = self.router.route(path, on(filter, handler));
        self
    }
}
