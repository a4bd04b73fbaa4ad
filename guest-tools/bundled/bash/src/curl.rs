//! `curl`: its command line on top of requests through the host's network gate (SPEC NET-2).
//!
//! It must not know any policy: each request is a question to the gate, and a refusal is printed with its reason.
//! Credentials are written `<credential:NAME>` and stay that way here. It survives servers: bodies without end,
//! and any bytes; and options that would go around the gate, which are refused by name.

mod body;
mod options;
mod write_out;

use std::io::Read as _;
use std::path::PathBuf;
use std::time::Instant;

use bashkit::{Builtin, BuiltinContext, ExecResult, async_trait, normalize_path, vfs_join};
use motor_sdk::http::{self, FailureKind, HttpError, Request, Response};

use options::{Options, Target};

/// Bytes of a response's body. 8 MiB: the script holds it in memory.
const BODY_BYTES: usize = 8 << 20;

/// The user agent that curl itself sends with a request.
const USER_AGENT: &str = "curl/8.5.0";

/// The status of a transfer that a program asked about would have.
mod exit {
    pub(super) const UNSUPPORTED_PROTOCOL: i32 = 1;
    pub(super) const USAGE: i32 = 2;
    pub(super) const BAD_URL: i32 = 3;
    pub(super) const DNS: i32 = 6;
    pub(super) const CONNECT: i32 = 7;
    pub(super) const HTTP_ERROR: i32 = 22;
    pub(super) const WRITE: i32 = 23;
    pub(super) const READ: i32 = 26;
    pub(super) const TIMEOUT: i32 = 28;
    pub(super) const REDIRECTS: i32 = 47;
    pub(super) const RECEIVE: i32 = 56;
    pub(super) const TLS: i32 = 60;
    pub(super) const TOO_LARGE: i32 = 63;
}

/// How a request gets out: at most so many redirects are followed; `None` follows no redirect.
pub(crate) type Sender = fn(Request, Option<usize>) -> Result<Response, HttpError>;

/// Sends a request through the host.
pub(crate) fn through_the_host(request: Request, redirects: Option<usize>) -> Result<Response, HttpError> {
    match redirects {
        Some(most) => http::send_following(request, most),
        None => http::send(request),
    }
}

/// The command `curl` of the shell.
pub(crate) struct Curl {
    pub send: Sender,
}

/// Why a transfer did not succeed: the status and the line for standard error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    code: i32,
    message: String,
    /// Printed even where `-s` asks for silence: without the reason the script could not be mended.
    always: bool,
}

impl Fault {
    fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), always: false }
    }

    fn usage(message: impl Into<String>) -> Self {
        Self { always: true, ..Self::new(exit::USAGE, message) }
    }

    fn line(&self) -> String {
        if self.always {
            format!("curl: {}\n", self.message)
        } else {
            format!("curl: ({}) {}\n", self.code, self.message)
        }
    }
}

impl From<HttpError> for Fault {
    fn from(error: HttpError) -> Self {
        let message = error.to_string();
        match error {
            HttpError::Blocked { .. } => Self { code: exit::CONNECT, message, always: true },
            HttpError::Failed { kind, .. } => {
                let code = match kind {
                    FailureKind::Dns => exit::DNS,
                    FailureKind::Connect => exit::CONNECT,
                    FailureKind::Tls => exit::TLS,
                    FailureKind::Timeout => exit::TIMEOUT,
                    FailureKind::Limit => exit::TOO_LARGE,
                    FailureKind::Protocol if message.contains("redirect") => exit::REDIRECTS,
                    _ => exit::RECEIVE,
                };
                Self::new(code, message)
            }
            HttpError::BadRequest { .. } if message.contains("scheme") => {
                Self::new(exit::UNSUPPORTED_PROTOCOL, message)
            }
            _ => Self::new(exit::BAD_URL, message),
        }
    }
}

/// A response that was read to its end, or to where it broke off.
struct Transfer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    url: String,
    seconds: f64,
    fault: Option<Fault>,
}

#[async_trait]
impl Builtin for Curl {
    async fn execute(&self, context: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let mut printed = Printed::default();
        let code = match Options::parse(context.args) {
            Ok(options) => self.run(&options, &context, &mut printed).await,
            Err(fault) => {
                printed.stderr.push_str(&fault.line());
                fault.code
            }
        };
        let mut result = ExecResult::ok_bytes(printed.stdout);
        result.stderr = printed.stderr.into();
        result.exit_code = code;
        Ok(result)
    }
}

/// The text for the two standard streams.
#[derive(Default)]
struct Printed {
    stdout: Vec<u8>,
    stderr: String,
}

impl Curl {
    async fn run(&self, options: &Options, context: &BuiltinContext<'_>, printed: &mut Printed) -> i32 {
        let mut code = 0;
        for target in &options.targets {
            if let Err(fault) = self.transfer(options, target, context, printed).await {
                if fault.always || !options.silent || options.show_error {
                    printed.stderr.push_str(&fault.line());
                }
                code = fault.code;
            }
        }
        code
    }

    async fn transfer(
        &self,
        options: &Options,
        target: &Target,
        context: &BuiltinContext<'_>,
        printed: &mut Printed,
    ) -> Result<(), Fault> {
        let request = body::request(options, target, context).await?;
        let method = request.method.clone();
        if options.verbose {
            printed.stderr.push_str(&format!("> {method} {}\n", request.url));
            for (name, value) in &request.headers {
                printed.stderr.push_str(&format!("> {name}: {value}\n"));
            }
        }
        let transfer = self.fetch(request, options.redirects)?;
        if options.verbose {
            printed.stderr.push_str(&format!("< HTTP/1.1 {}\n", transfer.status));
            for (name, value) in &transfer.headers {
                printed.stderr.push_str(&format!("< {name}: {value}\n"));
            }
        }
        let failed = transfer.status >= 400 && (options.fail || options.fail_with_body);
        let mut output = Vec::new();
        if options.include || options.head {
            output.extend_from_slice(head(&transfer).as_bytes());
        }
        if !options.head && (!failed || options.fail_with_body) {
            output.extend_from_slice(&transfer.body);
        }
        if let Some(path) = &options.dump_header {
            write(path, head(&transfer).into_bytes(), false, context, printed).await?;
        }
        match &target.output {
            // As curl: a failed request does not touch the file.
            Some(_) if failed && !options.fail_with_body => {}
            Some(path) => write(path, output, options.create_dirs, context, printed).await?,
            None => printed.stdout.append(&mut output),
        }
        let fault = transfer.fault.clone().or_else(|| {
            let message = format!("The requested URL returned error: {}", transfer.status);
            failed.then(|| Fault::new(exit::HTTP_ERROR, message))
        });
        if let Some(format) = &options.write_out {
            let code = fault.as_ref().map_or(0, |fault| fault.code);
            printed.stdout.extend(write_out::render(format, &transfer, &method, code).bytes());
        }
        fault.map_or(Ok(()), Err)
    }

    /// Sends a request and reads the response, which does not wait for anything but the host.
    fn fetch(&self, request: Request, redirects: Option<usize>) -> Result<Transfer, Fault> {
        let begun = Instant::now();
        let http::Response { status, headers, body, url } = (self.send)(request, redirects)?;
        let mut bytes = Vec::new();
        let most = u64::try_from(BODY_BYTES).unwrap_or(u64::MAX);
        let mut fault = match body.take(most.saturating_add(1)).read_to_end(&mut bytes) {
            Ok(_) => None,
            Err(error) => Some(Fault::from(HttpError::of_read(&error))),
        };
        if bytes.len() > BODY_BYTES {
            bytes.truncate(BODY_BYTES);
            let message = format!("the response is longer than {BODY_BYTES} bytes: ask for a part of it with `-r`");
            fault = Some(Fault::new(exit::TOO_LARGE, message));
        }
        Ok(Transfer { status, headers, body: bytes, url, seconds: begun.elapsed().as_secs_f64(), fault })
    }
}

/// A response's head as HTTP/1.1 writes it.
fn head(transfer: &Transfer) -> String {
    let mut text = format!("HTTP/1.1 {}\r\n", transfer.status);
    for (name, value) in &transfer.headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    text
}

fn place(path: &str, context: &BuiltinContext<'_>) -> PathBuf {
    normalize_path(&vfs_join(context.cwd, path))
}

async fn write(
    path: &str,
    content: Vec<u8>,
    create_dirs: bool,
    context: &BuiltinContext<'_>,
    printed: &mut Printed,
) -> Result<(), Fault> {
    if path == "-" {
        printed.stdout.extend(content);
        return Ok(());
    }
    let place = place(path, context);
    let cannot_write = |error: bashkit::Error| Fault::new(exit::WRITE, format!("cannot write `{path}`: {error}"));
    if create_dirs && let Some(parent) = place.parent() {
        context.fs.mkdir(parent, true).await.map_err(cannot_write)?;
    }
    context.fs.write_file(&place, &content).await.map_err(cannot_write)
}

#[cfg(test)]
mod tests;
