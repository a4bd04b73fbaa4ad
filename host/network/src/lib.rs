//! The one gate through which every outgoing byte of every guest passes (SPEC NET-1 to NET-4).
//!
//! A request is checked by name, its host is resolved once, the addresses are checked, and the connection goes to an address
//! that was checked. Placeholders become secrets here, at the last moment, and secrets become placeholders again in
//! every response.
//!
//! After a run has read from the web, a request that writes, carries a credential or carries data needs the owner's consent: the
//! policy's, for all requests of a shape, or a lease on this very request. In a staged run a write never leaves: it is held, and
//! sent later if the owner says so.
//!
//! Architecture invariant: nothing here knows wasm, runs, tools or models, and no other code of the host makes a connection
//! on a guest's behalf. The default is nothing, and every branch that does not know refuses.
#![cfg_attr(test, allow(clippy::disallowed_types, reason = "tests"))]

mod address;
mod admit;
mod blocked;
mod body;
mod budget;
mod call;
mod carried;
mod config;
mod connect;
mod consent;
mod gate;
mod get;
mod headers;
mod leak;
mod pattern;
mod policy;
mod recorded;
mod resolve;
mod run;
mod send;
mod shape;
mod stage;
mod substitute;
mod taint;
mod target;
mod trace;
mod unit;
mod values;
mod webhook;

pub use blocked::{BlockReason, GateError, Rule};
pub use call::{CallLimits, CallNetwork, RequestBody, ResponseBody, Timeouts};
pub use carried::Excess;
pub use config::{NetworkConfig, TaintedWrite};
pub use consent::{AllowedShape, AskedRequest, CallConsents};
pub use gate::Gate;
pub use get::{GetError, Got, get};
pub use headers::reads;
pub use pattern::{InvalidPattern, Pattern};
pub use policy::{Asks, Grant, Needed, Policy, Seen};
pub use recorded::{RecordedSite, Recorder};
pub use run::{RunExchange, RunNetwork, WeakRunNetwork};
pub use shape::{InvalidShape, Shape};
pub use stage::{Delivered, Delivery, HeldHeader, HeldWrite, MAX_KEPT_RESPONSE_BYTES, NotHeld, Stage, deliver};
pub use substitute::may_be_sent;
pub use taint::{Taint, WebSource};
pub use target::{Host, Scheme, Target};
pub use trace::RequestTrace;
pub use unit::{Nature, Unit};
pub use values::{Field, GivenValues, Origin};
pub use webhook::Webhook;
