//! `wasi:http` for guests: every request goes through the call's [`Egress`] only.
//!
//! The types and the life of their handles are wasmtime-wasi-http's. This file gives it a `send_request` that knows
//! only an [`Egress`], and limits the memory a guest can make the host hold: header fields, and unconsumed pieces of
//! bodies. It knows no domains, addresses or secrets: the gate does. `incoming-handler` is missing on purpose: a guest
//! receives only responses to its own requests.
//!
//! Every task of a request belongs to a handle of the call and is aborted with it, so a guest that drops everything,
//! never reads, or keeps a body open leaves nothing behind.

mod error;

use http_body_util::BodyExt as _;
use network::{GateError, Timeouts};
use wasmtime::component::{Linker, Resource, ResourceTable};
use wasmtime_wasi_http::p2::bindings::LinkOptions;
use wasmtime_wasi_http::p2::bindings::http::{outgoing_handler, types};
use wasmtime_wasi_http::{Error, FieldMapError, RequestOptions, WasiBody, WasiHttp, WasiHttpCtx, WasiHttpHooks};

pub use wasmtime_wasi_http::WasiHttpCtxView as HttpView;

use crate::egress::Egress;

/// Bytes of one piece of a request's body. A guest may fill two pieces for each body it has begun, sent or not; with
/// the library's default of 1 MiB that would be hundreds of megabytes of the host's memory.
const PIECE_BYTES: usize = 64 << 10;

/// Settings and state of one call's `wasi:http`.
pub struct HttpCtx {
    wasi: WasiHttpCtx,
    sender: Sender,
}

impl HttpCtx {
    /// Sends through `egress`; a set of header fields may take `header_bytes` bytes, bookkeeping included.
    #[must_use]
    pub fn new(header_bytes: u64, egress: Egress) -> Self {
        let mut wasi = WasiHttpCtx::new();
        wasi.set_field_size_limit(usize::try_from(header_bytes).unwrap_or(usize::MAX));
        Self { wasi, sender: Sender(egress) }
    }

    /// The network access of the call.
    #[must_use]
    pub fn egress(&self) -> &Egress {
        &self.sender.0
    }

    /// The view that implements the host traits.
    pub fn view<'a>(&'a mut self, table: &'a mut ResourceTable) -> HttpView<'a> {
        HttpView { hooks: &mut self.sender, table, ctx: &mut self.wasi }
    }
}

/// Whether a guest was ended because a set of header fields became too large.
#[must_use]
pub fn exceeds_header_bytes(error: &wasmtime::Error) -> bool {
    matches!(error.downcast_ref(), Some(FieldMapError::TotalSizeTooBig | FieldMapError::TooManyFields))
}

/// Adds `wasi:http/types` and `wasi:http/outgoing-handler` to the linker.
///
/// # Errors
/// If an interface of that name is linked already.
pub fn add_to_linker<T: Send + 'static>(
    linker: &mut Linker<T>,
    view: fn(&mut T) -> HttpView<'_>,
) -> wasmtime::Result<()> {
    outgoing_handler::add_to_linker::<T, WasiHttp>(linker, view)?;
    types::add_to_linker::<T, WasiHttp>(linker, &LinkOptions::default().into(), view)?;
    // The library's own function knows only its own errors, not those of a body that fails while it is read.
    linker.allow_shadowing(true);
    linker.instance(TYPES)?.func_wrap(
        "http-error-code",
        move |mut store: wasmtime::StoreContextMut<'_, T>, (error,): (Resource<types::IoError>,)| {
            Ok((error::code_of(view(store.data_mut()).table.get(&error)?),))
        },
    )?;
    linker.allow_shadowing(false);
    Ok(())
}

/// The name under which the library links its types; a component's 0.2 version is matched to it.
const TYPES: &str = "wasi:http/types@0.2.12";

/// Sends requests for a guest.
struct Sender(Egress);

impl WasiHttpHooks for Sender {
    fn is_supported_scheme(&mut self, _: &http::uri::Scheme) -> bool {
        // The gate refuses unsupported schemes, with a reason and on record.
        true
    }

    fn set_host_header(&mut self) -> bool {
        // The gate writes it, from the host that it checked.
        false
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        PIECE_BYTES
    }

    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        options: Option<RequestOptions>,
        _: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Sending {
        let egress = self.0.clone();
        let held = self.0.token();
        let options = options.unwrap_or_default();
        let timeouts = Timeouts {
            connect: options.connect_timeout,
            first_byte: options.first_byte_timeout,
            between_bytes: options.between_bytes_timeout,
        };
        let request = request.map(|body| body.map_err(|_| GateError::RequestBody).boxed_unsync());
        let tracked = self.0.track(async move {
            let response = egress.send(request, timeouts).await.map_err(|error| error::of_gate(&error))?;
            let response = response.map(|body| {
                let to_guest = move |error| {
                    // The call is not settled before the body is dropped: its trace includes the bytes read.
                    let _held = &held;
                    error::of_gate(&error)
                };
                body.map_err(to_guest).boxed_unsync()
            });
            // The library wants to know when the connection ends; the gate manages its connections itself.
            let connection: Connection = Box::new(std::future::ready(Ok(())));
            Ok((response, connection))
        });
        Box::new(tracked)
    }
}

type Connection = Box<dyn Future<Output = Result<(), Error>> + Send>;
type Sending = Box<dyn Future<Output = Result<(http::Response<WasiBody>, Connection), Error>> + Send>;

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use http_body_util::Empty;
    use types::{HostFields as _, HostOutgoingRequest as _};

    use super::*;

    fn request(uri: &str) -> http::Request<WasiBody> {
        let body = Empty::new().map_err(|never| match never {}).boxed_unsync();
        http::Request::get(uri).body(body).unwrap()
    }

    #[tokio::test]
    async fn without_a_network_every_request_is_denied_and_on_record() {
        let mut ctx = HttpCtx::new(1_000, Egress::closed(10));
        let sent =
            Pin::from(ctx.sender.send_request(request("https://example.com/"), None, Box::new(async { Ok(()) })));
        assert!(matches!(sent.await.map(|_| ()), Err(Error::HttpRequestDenied)));
        assert_eq!(ctx.egress().traces().len(), 1);
    }

    #[test]
    fn header_fields_are_limited_together() {
        let mut ctx = HttpCtx::new(1_000, Egress::closed(10));
        let mut table = ResourceTable::new();
        let mut view = ctx.view(&mut table);
        let fields = types::HostFields::new(&mut view).unwrap();
        let mut add = |length| view.append(Resource::new_borrow(fields.rep()), "x".into(), vec![b'a'; length]);
        add(500).unwrap();
        let error = add(500).unwrap_err();
        assert!(error.downcast().is_err_and(|error| exceeds_header_bytes(&error)));
        assert!(!exceeds_header_bytes(&wasmtime::Error::msg("another")));
    }

    #[test]
    fn headers_of_the_connection_are_not_a_guests() {
        let mut ctx = HttpCtx::new(10_000, Egress::closed(10));
        let mut table = ResourceTable::new();
        let mut view = ctx.view(&mut table);
        let fields = types::HostFields::new(&mut view).unwrap();
        let mut add = |name: &str| view.append(Resource::new_borrow(fields.rep()), name.into(), b"a.example".to_vec());
        for name in
            ["host", "Host", "connection", "transfer-encoding", "upgrade", "proxy-authorization", "a b", "a\r\nb"]
        {
            assert!(add(name).is_err(), "{name}");
        }
        for name in ["accept", "authorization", "x-host"] {
            add(name).unwrap();
        }
    }

    #[test]
    fn bodies_that_are_not_sent_hold_little() {
        let mut ctx = HttpCtx::new(10_000, Egress::closed(10));
        let mut table = ResourceTable::new();
        let mut view = ctx.view(&mut table);
        let fields = types::HostFields::new(&mut view).unwrap();
        let request = types::HostOutgoingRequest::new(&mut view, fields).unwrap();
        let body = view.body(request).unwrap().unwrap();
        let mut stream = view.table.get_mut(&body).unwrap().take_output_stream().unwrap();
        let mut held = 0;
        while let permit @ 1.. = stream.check_write().unwrap() {
            stream.write(vec![0; permit].into()).unwrap();
            held += permit;
        }
        assert_eq!(held, 2 * PIECE_BYTES);
    }
}
