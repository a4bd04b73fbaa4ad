//! The capabilities of guests: workspace, requests through the network gate, credentials they cannot see, log,
//! progress, randomness, standard streams.
//!
//! Each capability is one file with its settings (`XCtx`, default = deny or a tight limit), the view that implements
//! the WIT host trait (`XView`), a `HasData` marker, and its tests. Nothing here knows how a component is loaded or
//! called.

pub mod credentials;
pub mod egress;
pub mod http;
pub mod limit;
pub mod log;
pub mod note;
pub mod outbound;
pub mod progress;
pub mod random;
pub mod stdio;
pub mod workspace;

pub use egress::Egress;
pub use limit::{Limit, LimitExceeded};
pub use note::{Note, NoteSink};
