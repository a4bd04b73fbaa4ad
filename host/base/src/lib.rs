//! The vocabulary every crate shares: ids, time, randomness, secrets, hashes, refusals.
//!
//! Architecture invariant: no I/O, no async, no knowledge of wasm, models or storage. It holds only values and traits
//! that inject the outside world (clock, randomness), so that everything above can be tested from outside.

pub mod canonical;
pub mod consent;
pub mod credential;
mod env;
pub mod fence;
pub mod hash;
pub mod id;
pub mod outcome;
pub mod random;
pub mod refusal;
pub mod secret;
pub mod sse;
pub mod text;
pub mod time;
pub mod whole;

pub use consent::{ConsentRecord, Door};
pub use credential::CredentialName;
pub use env::{Env, env_of_list};
pub use hash::{ContentHash, ContentHasher};
pub use id::{AgentName, RunId, TokenName};
pub use outcome::{ErrorCode, Provenance};
pub use random::Random;
pub use refusal::{Refusal, RefusalCode, excerpt};
pub use secret::Secret;
pub use time::{Clock, HostTime, SystemClock, TestClock, Timestamp};
