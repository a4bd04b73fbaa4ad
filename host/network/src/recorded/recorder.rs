//! Recording: the responses of real servers, for the file of a recorded site.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method, StatusCode, header};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::OWN_HEADERS;
use crate::target::Target;

/// Headers that differ each time, or belong to the person who records.
const DROPPED_HEADERS: [HeaderName; 2] = [header::DATE, header::SET_COOKIE];

/// Collects the exchanges with real servers that a recorded site lacked. Cheap to clone; clones share.
#[derive(Debug, Clone, Default)]
pub struct Recorder(Arc<Mutex<Vec<Result<Value, String>>>>);

impl Recorder {
    /// Adds the collected exchanges to the JSON of a site; the number of them and the new text, or none if there are none.
    ///
    /// # Errors
    /// If the JSON is not an array, or an exchange is not text and cannot be recorded.
    pub fn added_to(&self, json: &str) -> Result<Option<(usize, String)>, String> {
        let new = self.0.lock().iter().cloned().collect::<Result<Vec<_>, _>>()?;
        if new.is_empty() {
            return Ok(None);
        }
        let count = new.len();
        let mut site: Vec<Value> = serde_json::from_str(json).map_err(|error| error.to_string())?;
        site.extend(new);
        let mut text = serde_json::to_string_pretty(&site).map_err(|error| error.to_string())?;
        text.push('\n');
        Ok(Some((count, text)))
    }

    fn push(&self, exchange: Result<Value, String>) {
        let mut exchanges = self.0.lock();
        let request = |exchange: &Value| exchange.get("request").cloned();
        let is_known = |new: &Value| exchanges.iter().flatten().any(|known| request(known) == request(new));
        if !exchange.as_ref().is_ok_and(is_known) {
            exchanges.push(exchange);
        }
    }
}

/// One exchange that is being recorded. Dropped before its end, it is not recorded.
#[derive(Debug)]
pub(crate) struct Recording {
    recorder: Recorder,
    method: Method,
    url: String,
    sent: Bytes,
    status: StatusCode,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

impl Recording {
    pub(super) fn start(recorder: Recorder, method: &Method, target: &Target, body: &Bytes) -> Self {
        Self {
            recorder,
            method: method.clone(),
            url: target.to_string(),
            sent: body.clone(),
            status: StatusCode::OK,
            headers: BTreeMap::new(),
            body: Vec::new(),
        }
    }

    /// The head of the response, as the guest is given it.
    pub(crate) fn answered(&mut self, status: StatusCode, headers: &HeaderMap) {
        self.status = status;
        for name in headers.keys().filter(|name| !OWN_HEADERS.contains(name) && !DROPPED_HEADERS.contains(name)) {
            let values: Vec<_> = headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
            if !values.is_empty() {
                self.headers.insert(name.to_string(), values.join(", "));
            }
        }
    }

    pub(crate) fn piece(&mut self, piece: &[u8]) {
        self.body.extend_from_slice(piece);
    }

    pub(crate) fn end(self) {
        let recorder = self.recorder.clone();
        recorder.push(self.exchange());
    }

    fn exchange(self) -> Result<Value, String> {
        let Self { method, url, sent, status, headers, body, .. } = self;
        let text = |whose: &str, bytes: &[u8]| {
            recorded(bytes).ok_or_else(|| format!("{whose} of `{method}` `{url}` is not text, and cannot be recorded"))
        };
        let mut request = Map::new();
        if method != Method::GET {
            request.insert("method".to_owned(), method.as_str().into());
        }
        request.insert("url".to_owned(), url.as_str().into());
        if !sent.is_empty() {
            request.insert("body".to_owned(), text("the body", &sent)?);
        }
        let mut response = Map::new();
        response.insert("status".to_owned(), status.as_u16().into());
        if !headers.is_empty() {
            response.insert("headers".to_owned(), json!(headers));
        }
        if !body.is_empty() {
            response.insert("body".to_owned(), text("the response", &body)?);
        }
        Ok(json!({ "request": request, "response": response }))
    }
}

/// A body as it stands in the file: as JSON if that gives the same bytes again, otherwise as text.
fn recorded(body: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(body).ok()?;
    let json = serde_json::from_str::<Value>(text).ok();
    let is_same = |value: &Value| serde_json::to_string(value).is_ok_and(|again| again == text);
    let json = json.filter(|value| (value.is_object() || value.is_array()) && is_same(value));
    Some(json.unwrap_or_else(|| text.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RecordedSite;

    fn record(recorder: &Recorder, method: Method, url: &str, sent: &'static [u8], body: &[u8]) {
        let target = Target::parse(url).unwrap();
        let mut recording = Recording::start(recorder.clone(), &method, &target, &Bytes::from_static(sent));
        let headers = [
            (header::CONTENT_TYPE, "text/plain"),
            (header::LINK, "</2>"),
            (header::LINK, "</3>"),
            (header::SET_COOKIE, "id=1"),
            (header::CONTENT_LENGTH, "9"),
        ];
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name, value.parse().unwrap());
        }
        recording.answered(StatusCode::CREATED, &map);
        body.chunks(2).for_each(|piece| recording.piece(piece));
        recording.end();
    }

    #[test]
    fn a_recording_is_a_site() {
        let recorder = Recorder::default();
        assert_eq!(recorder.added_to("[]"), Ok(None));
        record(&recorder, Method::POST, "https://a.example/x?q=%20", br#"{"b":1,"a":1.50}"#, br#"{"z":1,"a":[]}"#);
        record(&recorder, Method::GET, "https://a.example/", b"", b"");
        record(&recorder, Method::GET, "https://a.example/", b"", b"again");
        let (count, text) = recorder.added_to("[]").unwrap().unwrap();
        assert_eq!(count, 2, "a request is recorded once: {text}");
        RecordedSite::parse(&text).unwrap();
        let site: Value = serde_json::from_str(&text).unwrap();
        // A body whose numbers would change is text.
        let request = json!({ "method": "POST", "url": "https://a.example/x?q=%20", "body": r#"{"b":1,"a":1.50}"# });
        assert_eq!(site[0]["request"], request);
        let headers = json!({ "content-type": "text/plain", "link": "</2>, </3>" });
        let response = json!({ "status": 201, "headers": headers, "body": { "z": 1, "a": [] } });
        assert_eq!(site[0]["response"], response);
        assert_eq!(site[1]["request"], json!({ "url": "https://a.example/" }));
        let (_, longer) = recorder.added_to(&text).unwrap().unwrap();
        assert!(longer.starts_with(text.trim_end_matches("\n]\n")), "{longer}");
        assert!(recorder.added_to("{}").is_err());
    }

    #[test]
    fn bytes_that_are_no_text_are_an_error() {
        let recorder = Recorder::default();
        record(&recorder, Method::GET, "https://a.example/picture", b"", &[0xff, 0xd8]);
        let error = recorder.added_to("[]").unwrap_err();
        assert!(error.contains("`GET` `https://a.example/picture` is not text"), "{error}");
    }
}
