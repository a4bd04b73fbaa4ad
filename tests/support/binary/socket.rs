//! The host's socket as any program of the same user has it: one request for each connection, and the host may be killed in
//! the middle of it.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use base::sse::Decoder;
use serde_json::Value;

use super::Motor;
use crate::MAX_WAIT;

impl Motor {
    /// Asks the host that listens, with these headers; with a body it is a POST. The status, and the answer as JSON.
    ///
    /// # Errors
    /// If no host listens, or the host went away before it had answered.
    pub fn ask(&self, path: &str, body: Option<&Value>, headers: &[(&str, &str)]) -> io::Result<(u16, Value)> {
        answer(self.connect(path, body, headers)?)
    }

    /// Gets the answer of the host that listens, if it comes in time.
    ///
    /// # Errors
    /// As [`Motor::ask`], and if the host is silent for that long.
    pub fn ask_within(&self, path: &str, longest: Duration) -> io::Result<(u16, Value)> {
        let socket = self.connect(path, None, &[])?;
        socket.set_read_timeout(Some(longest))?;
        answer(socket)
    }

    /// Asks as the owner, who has the token.
    ///
    /// # Errors
    /// As [`Motor::ask`].
    pub fn ask_as_owner(&self, path: &str, body: &Value) -> io::Result<(u16, Value)> {
        let token = std::fs::read_to_string(self.home().join("config/owner.token"))?;
        let bearer = format!("Bearer {}", token.trim());
        self.ask(path, Some(body), &[("authorization", &bearer), ("motor-door", "token")])
    }

    /// The durable events of a stream behind the id `after`, each with its id, until it ends or the host goes away.
    ///
    /// # Errors
    /// If no host listens.
    pub fn events(&self, path: &str, after: u64) -> io::Result<impl Iterator<Item = (u64, Value)> + use<>> {
        Ok(self.all_events(path, after)?.filter_map(|(id, event)| Some((id?, event))))
    }

    /// The same events with the hints, which have no id.
    ///
    /// # Errors
    /// If no host listens.
    pub fn all_events(&self, path: &str, after: u64) -> io::Result<impl Iterator<Item = (Option<u64>, Value)> + use<>> {
        let stream = self.connect(path, None, &[("last-event-id", &after.to_string())])?;
        let mut decoder = Decoder::default();
        let lines = BufReader::new(stream).lines().map_while(Result::ok);
        let events = lines.flat_map(move |line| decoder.push(format!("{line}\n").as_bytes()));
        Ok(events.filter_map(|event| Some((event.id, serde_json::from_str(&event.data).ok()?))))
    }

    fn connect(&self, path: &str, body: Option<&Value>, headers: &[(&str, &str)]) -> io::Result<UnixStream> {
        let mut socket = UnixStream::connect(self.home().join("host.sock"))?;
        socket.set_read_timeout(Some(MAX_WAIT))?;
        // The older version has no chunks: an answer ends with its connection.
        let mut request = match body {
            Some(_) => format!("POST {path} HTTP/1.0\r\ncontent-type: application/json\r\n"),
            None => format!("GET {path} HTTP/1.0\r\n"),
        };
        let body = body.map(Value::to_string).unwrap_or_default();
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        socket.write_all(format!("{request}content-length: {}\r\n\r\n{body}", body.len()).as_bytes())?;
        Ok(socket)
    }
}

/// The status, and the answer as JSON.
fn answer(mut socket: UnixStream) -> io::Result<(u16, Value)> {
    let mut answer = String::new();
    socket.read_to_string(&mut answer)?;
    let broken = || io::Error::new(io::ErrorKind::UnexpectedEof, format!("half an answer: {answer:?}"));
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(broken)?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(broken)?;
    Ok((status, serde_json::from_str(body).map_err(|_| broken())?))
}
