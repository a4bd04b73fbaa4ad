//! A guest's standard output and error: captured up to a limit, never the host's own, which may carry a protocol.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use parking_lot::Mutex;
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError};

use crate::{Limit, LimitExceeded};

/// A bounded buffer that both standard streams of a guest write to. A write beyond the limit ends the guest.
#[derive(Clone)]
pub struct BoundedOutput {
    name: Limit,
    limit: usize,
    buffer: Arc<Mutex<Vec<u8>>>,
}

impl BoundedOutput {
    /// Keeps at most `limit` bytes of standard streams.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self::of(Limit::StdioBytes, limit)
    }

    /// Keeps at most `limit` bytes; `name` is the limit that longer output exceeds.
    #[must_use]
    pub fn of(name: Limit, limit: u64) -> Self {
        Self { name, limit: usize::try_from(limit).unwrap_or(usize::MAX), buffer: Arc::default() }
    }

    /// The output so far; bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.buffer.lock()).into_owned()
    }

    /// The output so far, byte for byte.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.buffer.lock().clone()
    }

    fn append(&self, bytes: &[u8]) -> Result<(), LimitExceeded> {
        let mut buffer = self.buffer.lock();
        if bytes.len() > self.limit.saturating_sub(buffer.len()) {
            return Err(LimitExceeded { limit: self.name, value: self.limit as u64 });
        }
        buffer.extend_from_slice(bytes);
        Ok(())
    }
}

impl IsTerminal for BoundedOutput {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for BoundedOutput {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl OutputStream for BoundedOutput {
    fn write(&mut self, bytes: bytes::Bytes) -> Result<(), StreamError> {
        self.append(&bytes).map_err(|error| StreamError::Trap(error.into()))
    }

    fn flush(&mut self) -> Result<(), StreamError> {
        Ok(())
    }

    fn check_write(&mut self) -> Result<usize, StreamError> {
        // A permit is never zero: the write beyond the limit must happen to end the guest, or a guest that waits for a
        // permit would hang until its deadline.
        Ok(64 * 1024)
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for BoundedOutput {
    async fn ready(&mut self) {}
}

impl AsyncWrite for BoundedOutput {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(self.append(bytes).map(|()| bytes.len()).map_err(io::Error::other))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_fits_and_names_the_limit() {
        let mut output = BoundedOutput::new(5);
        output.write("hello".into()).unwrap();
        assert!(matches!(output.write("!".into()), Err(StreamError::Trap(error)) if error.is::<LimitExceeded>()));
        assert_eq!(output.text(), "hello");
    }
}
