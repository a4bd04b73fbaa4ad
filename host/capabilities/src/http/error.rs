//! Errors of the gate as error codes of `wasi:http`. Codes only: the gate's messages name addresses, and a guest reads
//! reasons from `motor:host/outbound`.

use network::{GateError, Rule};
use wasmtime_wasi_http::Error;
use wasmtime_wasi_http::p2::bindings::http::types::{DnsErrorPayload, ErrorCode};

use crate::Limit;

/// The closest code for an error of the gate.
pub(super) fn of_gate(error: &GateError) -> Error {
    match error {
        GateError::Blocked(blocked) => match blocked.rule {
            Rule::PrivateAddress => Error::DestinationIpProhibited,
            Rule::InvalidUrl | Rule::Userinfo | Rule::Scheme => Error::HttpRequestUriInvalid,
            _ => Error::HttpRequestDenied,
        },
        GateError::Unresolved { .. } => Error::DnsError { rcode: None, info_code: None },
        GateError::Connect { .. } => Error::ConnectionRefused,
        GateError::Tls { .. } => Error::TlsCertificateError,
        GateError::Protocol { .. } => Error::HttpProtocolError,
        GateError::Timeout { .. } => Error::HttpResponseTimeout,
        GateError::Limit { limit, value } => of_limit(limit, *value),
        GateError::RequestBody => Error::ConnectionTerminated,
        _ => Error::InternalError(None),
    }
}

fn of_limit(limit: &str, value: u64) -> Error {
    if limit == Limit::OutgoingRequests.as_str() {
        Error::ConnectionLimitReached
    } else if limit == Limit::RequestBytes.as_str() {
        Error::HttpRequestBodySize(Some(value))
    } else if limit == Limit::ResponseBytes.as_str() {
        Error::HttpResponseBodySize(Some(value))
    } else {
        Error::HttpResponseHeaderSectionSize(u32::try_from(value).ok())
    }
}

/// The code of an error that a stream of a body gave its guest.
pub(super) fn code_of(error: &wasmtime::Error) -> Option<ErrorCode> {
    if let Some(code) = error.downcast_ref::<ErrorCode>() {
        return Some(code.clone());
    }
    Some(match error.downcast_ref::<Error>()? {
        Error::DestinationIpProhibited => ErrorCode::DestinationIpProhibited,
        Error::HttpRequestUriInvalid => ErrorCode::HttpRequestUriInvalid,
        Error::HttpRequestDenied => ErrorCode::HttpRequestDenied,
        Error::DnsError { .. } => ErrorCode::DnsError(DnsErrorPayload { rcode: None, info_code: None }),
        Error::ConnectionRefused => ErrorCode::ConnectionRefused,
        Error::TlsCertificateError => ErrorCode::TlsCertificateError,
        Error::HttpProtocolError => ErrorCode::HttpProtocolError,
        Error::HttpResponseTimeout => ErrorCode::HttpResponseTimeout,
        Error::ConnectionLimitReached => ErrorCode::ConnectionLimitReached,
        Error::HttpRequestBodySize(size) => ErrorCode::HttpRequestBodySize(*size),
        Error::HttpResponseBodySize(size) => ErrorCode::HttpResponseBodySize(*size),
        Error::HttpResponseHeaderSectionSize(size) => ErrorCode::HttpResponseHeaderSectionSize(*size),
        Error::ConnectionTerminated => ErrorCode::ConnectionTerminated,
        _ => ErrorCode::InternalError(None),
    })
}

#[cfg(test)]
mod tests {
    use network::BlockReason;

    use super::*;

    fn blocked(rule: Rule) -> GateError {
        let words = || "canary".to_owned();
        BlockReason { rule, asked: words(), reason: words(), remedy: words() }.into()
    }

    fn limit(limit: Limit) -> GateError {
        GateError::Limit { limit: limit.as_str(), value: 7 }
    }

    #[test]
    fn every_failure_has_its_code_and_no_words_of_the_gate() {
        let (host, message) = ("canary".to_owned(), "canary".to_owned());
        let dns = ErrorCode::DnsError(DnsErrorPayload { rcode: None, info_code: None });
        for (error, expected) in [
            (blocked(Rule::PrivateAddress), ErrorCode::DestinationIpProhibited),
            (blocked(Rule::InvalidUrl), ErrorCode::HttpRequestUriInvalid),
            (blocked(Rule::Userinfo), ErrorCode::HttpRequestUriInvalid),
            (blocked(Rule::Scheme), ErrorCode::HttpRequestUriInvalid),
            (blocked(Rule::DomainNotAllowed), ErrorCode::HttpRequestDenied),
            (blocked(Rule::Header), ErrorCode::HttpRequestDenied),
            (blocked(Rule::TaintedWrite), ErrorCode::HttpRequestDenied),
            (GateError::Unresolved { host: host.clone(), message: message.clone() }, dns),
            (GateError::Connect { host: host.clone(), message: message.clone() }, ErrorCode::ConnectionRefused),
            (GateError::Tls { host: host.clone(), message: message.clone() }, ErrorCode::TlsCertificateError),
            (GateError::Protocol { host: host.clone(), message }, ErrorCode::HttpProtocolError),
            (GateError::Timeout { host, after_ms: 7 }, ErrorCode::HttpResponseTimeout),
            (limit(Limit::OutgoingRequests), ErrorCode::ConnectionLimitReached),
            (limit(Limit::RequestBytes), ErrorCode::HttpRequestBodySize(Some(7))),
            (limit(Limit::ResponseBytes), ErrorCode::HttpResponseBodySize(Some(7))),
            (
                GateError::Limit { limit: "response_header_bytes", value: 7 },
                ErrorCode::HttpResponseHeaderSectionSize(Some(7)),
            ),
            (GateError::RequestBody, ErrorCode::ConnectionTerminated),
        ] {
            let given = of_gate(&error);
            assert!(!format!("{given:?} {given}").contains("canary"), "{given:?}");
            let code = code_of(&wasmtime::Error::new(given)).unwrap();
            assert_eq!(format!("{code:?}"), format!("{expected:?}"), "{error:?}");
        }
        assert!(code_of(&wasmtime::Error::msg("of a file")).is_none());
    }
}
