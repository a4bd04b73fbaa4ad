//! The two requests of smart HTTP (gitprotocol-http(5)): the list of references, and the push.

use std::io::Read as _;

use bstr::{BString, ByteSlice as _};
use gix_hash::ObjectId;

use super::packet::{FLUSH, push_line};
use super::{Advertisement, Remote, Report, Service, foreign};
use crate::error::{Fault, Result};
use crate::limits::{MAX_ADVERTISEMENT_BYTES, MAX_EXTRA_HEADERS, MAX_REPORT_BYTES};
use crate::network::{Network, Request, Response};
use crate::objects::Objects;
use crate::repository::Repository;

/// As git names itself: some servers answer only to that. The host's gate knows this value.
const USER_AGENT: &str = "git/2.47.0";

/// How a credential is given, in messages.
const AUTHORIZE: &str = "-c http.extraHeader='Authorization: Bearer <credential:NAME>'";

/// A change of one reference of the remote. A null object stands for a reference that does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Update {
    pub name: BString,
    pub old: ObjectId,
    pub new: ObjectId,
}

/// A remote repository that can be asked.
pub(crate) struct Connection<'a> {
    network: &'a Network,
    url: &'a str,
    extra: Vec<(String, String)>,
}

impl<'a> Connection<'a> {
    pub(crate) fn new(repository: &'a Repository, remote: &'a Remote) -> Result<Self> {
        let network = repository.network.as_ref().ok_or_else(|| Fault::unsupported("a network for git"))?;
        Ok(Self { network, url: remote.url.trim_end_matches('/'), extra: extra_headers(repository)? })
    }

    /// Asks for the references.
    pub(crate) fn advertisement(&self, service: Service) -> Result<Advertisement> {
        let name = service.name();
        let request = Request {
            method: "GET",
            url: format!("{}/info/refs?service={name}", self.url),
            headers: self.headers(&[("Accept", "*/*")]),
            body: Vec::new(),
        };
        let kind = format!("application/x-{name}-advertisement");
        let bytes = self.send(request, &kind, MAX_ADVERTISEMENT_BYTES)?;
        Advertisement::parse(&bytes, service)
    }

    /// Sends the updates with the objects that they need. The body is a function of these arguments alone: a consent to the
    /// request is for its bytes.
    pub(crate) fn push(
        &self,
        updates: &[Update],
        advertised: &Advertisement,
        objects: &Objects,
        needed: &[ObjectId],
    ) -> Result<Report> {
        let mut body = Vec::new();
        let mut capabilities = String::from("\0 report-status");
        let is_banded = advertised.has("side-band-64k");
        for known in ["side-band-64k", "object-format=sha1"].into_iter().filter(|known| advertised.has(known)) {
            capabilities.push(' ');
            capabilities.push_str(known);
        }
        // Several references change together or not at all, wherever the server can do that.
        if updates.len() > 1 && advertised.has("atomic") {
            capabilities.push_str(" atomic");
        }
        for Update { name, old, new } in updates {
            let line =
                [format!("{old} {new} ").as_bytes(), name, std::mem::take(&mut capabilities).as_bytes()].concat();
            push_line(&mut body, &line)?;
        }
        body.extend_from_slice(FLUSH);
        // Deletions alone come without a pack.
        if updates.iter().any(|update| !update.new.is_null()) {
            body = objects.pack(needed, body)?;
        }
        let kind = |end: &str| format!("application/x-git-receive-pack-{end}");
        let request = Request {
            method: "POST",
            url: format!("{}/git-receive-pack", self.url),
            headers: self.headers(&[("Content-Type", &kind("request")), ("Accept", &kind("result"))]),
            body,
        };
        let bytes = self.send(request, &kind("result"), MAX_REPORT_BYTES)?;
        Report::parse(&bytes, is_banded)
    }

    fn headers(&self, own: &[(&str, &str)]) -> Vec<(String, String)> {
        let own =
            [("User-Agent", USER_AGENT)].iter().chain(own).map(|(name, value)| (name.to_string(), value.to_string()));
        own.chain(self.extra.iter().cloned()).collect()
    }

    fn send(&self, request: Request, kind: &str, most: u64) -> Result<Vec<u8>> {
        let response = self.network.send(request).map_err(|reason| self.inaccessible(&reason))?;
        self.check_status(&response)?;
        let found = response.headers.get("content-type").map_or("", String::as_str);
        let essence = found.split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case(kind) {
            return Err(Fault::fatal(format_args!(
                "{}/info/refs not valid: is this a git repository? Its content type is `{}`, and not `{kind}`",
                self.url,
                foreign(found.into())
            )));
        }
        let mut bytes = Vec::new();
        let read = response.body.take(most.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|error| self.inaccessible(&error.to_string()))?;
        if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > most {
            return Err(Fault::limit(format_args!("the server answers with more than {most} bytes")));
        }
        Ok(bytes)
    }

    fn check_status(&self, response: &Response) -> Result<()> {
        let url = self.url;
        let status = response.status;
        match status {
            200 => Ok(()),
            300..=399 => {
                let location = response.headers.get("location").map_or("", String::as_str);
                let repository = location.split("/info/refs").next().unwrap_or_default();
                Err(self.inaccessible(&format!(
                    "the server redirects to '{}'; redirects are not followed: use that URL",
                    foreign(repository.into())
                )))
            }
            401 => Err(Fault::fatal(format_args!(
                "Authentication failed for '{url}/'\nhint: Send a credential of the vault: `git {AUTHORIZE} push`; ask the user \
                 for its name."
            ))),
            404 => Err(Fault::fatal(format_args!("repository '{url}/' not found"))),
            _ => Err(self.inaccessible(&format!("The requested URL returned error: {status}"))),
        }
    }

    fn inaccessible(&self, reason: &str) -> Fault {
        Fault::fatal(format_args!("unable to access '{}/': {reason}", self.url))
    }
}

/// The headers of `-c http.extraHeader`. Those of the repository's file are not read: a foreign repository could have this
/// run's credentials sent along.
fn extra_headers(repository: &Repository) -> Result<Vec<(String, String)>> {
    let mut headers = Vec::new();
    for line in repository.config.overrides("http.extraheader") {
        // As in git: an empty value takes back those in front of it.
        if line.is_empty() {
            headers.clear();
            continue;
        }
        let line = line.to_str().ok().filter(|line| !line.chars().any(char::is_control));
        let header = line.and_then(|line| line.split_once(':'));
        let (name, value) =
            header.ok_or_else(|| Fault::fatal("http.extraHeader is not of the form `NAME: VALUE` in one line"))?;
        headers.push((name.trim().to_owned(), value.trim().to_owned()));
        if headers.len() > MAX_EXTRA_HEADERS {
            return Err(Fault::limit(format_args!(
                "there are more than {MAX_EXTRA_HEADERS} values of http.extraHeader"
            )));
        }
    }
    Ok(headers)
}
