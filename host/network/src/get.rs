//! Getting one thing for the owner, through the gate like everything else: a skill that the owner named by its URL.
//!
//! Redirects are followed, each as a new request under the same policy, which refuses other hosts by name.

use http_body_util::{BodyExt as _, Empty};

use crate::call::CallLimits;
use crate::{GateError, RunNetwork, Target, Timeouts};

/// Redirects that are followed.
const MAX_HOPS: u64 = 5;

/// A response that was fetched.
#[derive(Debug)]
pub struct Got {
    /// The content of the response.
    pub bytes: Vec<u8>,
    /// The last part of the path it came from.
    pub name: String,
}

/// Why nothing was got.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GetError {
    /// The gate refused it, or it failed.
    #[error(transparent)]
    Gate(#[from] GateError),
    /// The server said no.
    #[error("`{host}` answered {status}")]
    Status {
        /// Name of the host that answered.
        host: String,
        /// HTTP status of the answer.
        status: u16,
    },
    /// It leads somewhere that is no URL, or on and on.
    #[error("`{host}` redirects without end, or to what is no URL")]
    Redirect {
        /// Name of the host that answered.
        host: String,
    },
}

/// Fetches a URL: at most `most_bytes`.
///
/// # Errors
/// If the policy does not grant it, the server does not answer with it, or it is larger.
pub async fn get(network: &RunNetwork, url: &str, most_bytes: u64) -> Result<Got, GetError> {
    let limits = CallLimits {
        requests: MAX_HOPS + 1,
        request_bytes: 64 << 10,
        response_bytes: most_bytes,
        idempotency_key: None,
    };
    let call = network.call(limits);
    let mut target = Target::parse(url).map_err(GateError::from)?;
    for _ in 0..=MAX_HOPS {
        let host = target.authority();
        let uri = format!("{}://{host}{}", target.scheme().as_str(), target.path_and_query());
        let body = Empty::new().map_err(|never| match never {}).boxed_unsync();
        let request = http::Request::get(uri.as_str()).body(body);
        let request = request.map_err(|_| GetError::Redirect { host: host.clone() })?;
        let response = call.send(request, Timeouts::default()).await?;
        let status = response.status();
        if status.is_redirection() {
            let location = response.headers().get(http::header::LOCATION).and_then(|value| value.to_str().ok());
            let next = location.and_then(|location| url::Url::parse(&uri).ok()?.join(location).ok());
            let next = next.ok_or_else(|| GetError::Redirect { host: host.clone() })?;
            target = Target::parse(next.as_str()).map_err(GateError::from)?;
            continue;
        }
        if !status.is_success() {
            return Err(GetError::Status { host, status: status.as_u16() });
        }
        let bytes = response.into_body().collect().await?.to_bytes().to_vec();
        let name = target.path_and_query().path().rsplit('/').next().unwrap_or_default().to_owned();
        return Ok(Got { bytes, name });
    }
    Err(GetError::Redirect { host: target.authority() })
}
