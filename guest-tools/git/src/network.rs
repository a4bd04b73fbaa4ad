//! The port to the network: the caller sends requests, and this crate knows no sockets, no policy and no credentials.

use std::collections::HashMap;
use std::fmt;
use std::io::Read;
use std::rc::Rc;

/// A request that the caller is to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The method: `GET` or `POST`.
    pub method: &'static str,
    /// An absolute `http` or `https` URL without a user.
    pub url: String,
    /// Names and values, in order. Placeholders of credentials are left for the caller to fill in.
    pub headers: Vec<(String, String)>,
    /// The bytes of the body; empty for `GET`.
    pub body: Vec<u8>,
}

/// The answer of a server. Redirects are not followed.
pub struct Response {
    /// The HTTP status code.
    pub status: u16,
    /// The headers, by their names in lower case.
    pub headers: HashMap<String, String>,
    /// The body. It is read up to a limit.
    pub body: Box<dyn Read>,
}

/// Sends one request. The error is a sentence for the one who called the command, with the remedy.
type Send = dyn Fn(Request) -> Result<Response, String>;

/// The caller's way of sending requests.
#[derive(Clone)]
pub struct Network(Rc<Send>);

impl Network {
    /// A network that sends with this function.
    pub fn new(send: impl Fn(Request) -> Result<Response, String> + 'static) -> Self {
        Self(Rc::new(send))
    }

    pub(crate) fn send(&self, request: Request) -> Result<Response, String> {
        (self.0)(request)
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Network")
    }
}
