//! `motor:host/outbound`: the reason of a refusal by the gate, for guests that want to report more than an error code.

use bindings::outbound::{Host, Refusal};
use wasmtime::component::HasData;

use crate::egress::Egress;

/// The view that implements the host trait.
pub struct OutboundView<'a>(pub &'a Egress);

/// Marks stores that have an [`Egress`].
pub struct HasOutbound;

impl HasData for HasOutbound {
    type Data<'a> = OutboundView<'a>;
}

impl Host for OutboundView<'_> {
    fn last_refusal(&mut self) -> wasmtime::Result<Option<Refusal>> {
        Ok(self.0.last_refusal().map(|blocked| Refusal {
            rule: blocked.rule.to_string(),
            reason: blocked.reason,
            remedy: blocked.remedy,
        }))
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn the_last_refusal_is_told() {
        let egress = Egress::closed(9);
        assert!(OutboundView(&egress).last_refusal().unwrap().is_none());
        for host in ["first", "second"] {
            let body = http_body_util::Empty::new().map_err(|never| match never {}).boxed_unsync();
            let request = http::Request::get(format!("https://{host}.example/")).body(body).unwrap();
            assert!(egress.send(request, network::Timeouts::default()).await.is_err());
        }
        let refusal = OutboundView(&egress).last_refusal().unwrap().unwrap();
        assert_eq!(refusal.rule, "domain_not_allowed");
        assert!(refusal.reason.contains("second.example") && refusal.remedy.contains("second.example"));
    }
}
