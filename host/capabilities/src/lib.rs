//! What a guest may be given: workspace, requests through the network gate, credentials it cannot see, log, progress,
//! randomness, standard streams.
//!
//! Each capability is one file with its settings (`XCtx`, default = deny or a tight limit), the view that the WIT host
//! trait is implemented on (`XView`), a `HasData` marker, and its tests. Nothing here knows how a component is loaded
//! or who calls it.

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
