//! Puts secrets where a guest wrote placeholders, at the last moment and for their own servers only (SPEC VAULT-3).
//!
//! Survives a guest that aims a placeholder at another server, at a clear-text connection, or at the frame of the request: a
//! value never makes a header, a path or a string of JSON end early. An inserted value is not scanned again, so a secret that
//! reads like a placeholder stays unchanged. Buffers with secrets are wiped when the request has gone out.
//! Survives a body of nothing but placeholders, too: they are few, and their growth is charged before it happens.

pub(crate) mod scan;

use base::CredentialName;
use base64::Engine as _;
use base64::engine::general_purpose::{GeneralPurpose, STANDARD};
use base64::engine::{DecodePaddingMode, GeneralPurposeConfig};
use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use vault::{GrantedCredential, RunSecrets};
use zeroize::Zeroizing;

use crate::budget::CallBudget;
use crate::target::{Host, Target};
use crate::{BlockReason, GateError, Pattern, Rule};
use scan::{Encoding, Placeholder};

/// Basic credentials as guests write them, with or without padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Placeholders that a request may have, the same one counted as often as it stands there.
const MAX_PLACEHOLDERS: usize = 32;

/// The prefix of `Basic` credentials.
const BASIC: &[u8] = b"Basic ";

/// The parts of a request in which a secret may stand.
#[derive(Debug, Clone)]
pub(crate) struct RequestParts {
    pub(crate) path: PathAndQuery,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl RequestParts {
    /// The credentials that a request has placeholders of, each once.
    pub(crate) fn mentioned(&self, target: &Target) -> Result<Vec<CredentialName>, BlockReason> {
        let mut mentioned = MentionedCredentials { names: Vec::new(), left: MAX_PLACEHOLDERS, target };
        mentioned.read(Encoding::Url, self.path.as_str().as_bytes())?;
        for (name, value) in &self.headers {
            mentioned.read(Encoding::Plain, value.as_bytes())?;
            if let Some(decoded) = basic(name, value) {
                mentioned.read(Encoding::Plain, &decoded)?;
            }
        }
        mentioned.read(encoding_of(&self.headers), &self.body)?;
        Ok(mentioned.names)
    }

    /// The request with every permitted secret in its place. Its growth is taken from the budget beforehand.
    pub(crate) fn put_in(
        self,
        permitted: &PermittedCredentials<'_>,
        target: &Target,
        budget: &CallBudget,
    ) -> Result<Self, GateError> {
        let Self { path, headers, body } = self;
        let encoding = encoding_of(&headers);
        let permitted = ChargedParts { permitted, target, budget };
        let path = match permitted.replaced(path.as_str().as_bytes(), Encoding::Url)? {
            None => path,
            Some(with_secret) => PathAndQuery::from_maybe_shared(shared(with_secret))
                .map_err(|_| unusable(target, "the URL is too long with the credential in it"))?,
        };
        let mut with_secrets = HeaderMap::with_capacity(headers.len());
        for (name, value) in &headers {
            with_secrets.append(name.clone(), permitted.header_value(name, value)?);
        }
        let body = permitted.replaced(&body, encoding)?.map_or(body, shared);
        Ok(Self { path, headers: with_secrets, body })
    }
}

/// The placeholders found so far, and how many more are allowed.
struct MentionedCredentials<'a> {
    names: Vec<CredentialName>,
    left: usize,
    target: &'a Target,
}

impl MentionedCredentials<'_> {
    fn read(&mut self, encoding: Encoding, text: &[u8]) -> Result<(), BlockReason> {
        for placeholder in encoding.placeholders(text) {
            self.left = self.left.checked_sub(1).ok_or_else(|| BlockReason {
                rule: Rule::TooManyPlaceholders,
                asked: self.target.authority(),
                reason: format!("the request has more than {MAX_PLACEHOLDERS} placeholders of credentials"),
                remedy: "write each credential once, where the server expects it".to_owned(),
            })?;
            if !self.names.contains(&placeholder.name) {
                self.names.push(placeholder.name);
            }
        }
        Ok(())
    }
}

/// Credentials that may be sent to a target. There is no other way to a value.
pub(crate) struct PermittedCredentials<'a> {
    secrets: &'a RunSecrets,
    names: Vec<CredentialName>,
}

impl PermittedCredentials<'_> {
    pub(crate) fn names(&self) -> &[CredentialName] {
        &self.names
    }

    /// None, too, when it was revoked since it was permitted.
    fn value(&self, name: &CredentialName) -> Option<&str> {
        if !self.names.contains(name) {
            return None;
        }
        self.secrets.get(name.as_str()).map(|granted| granted.value.expose().as_str())
    }
}

/// Whether every credential may be sent to a target.
pub(crate) fn permit<'a>(
    names: Vec<CredentialName>,
    secrets: &'a RunSecrets,
    target: &Target,
) -> Result<PermittedCredentials<'a>, BlockReason> {
    let asked = target.authority();
    for name in &names {
        let Some(granted) = secrets.get(name.as_str()) else {
            return Err(not_granted(name, target));
        };
        if !may_be_sent(granted, target) {
            let domains = granted.domains.join("`, `");
            let bound =
                if domains.is_empty() { "bound to no domain".to_owned() } else { format!("bound to `{domains}`") };
            return Err(BlockReason {
                rule: Rule::CredentialNotForDomain,
                reason: format!("the credential `{name}` is {bound} and may not be sent to `{asked}`"),
                remedy: format!("ask the user to bind the credential `{name}` to `{asked}`"),
                asked,
            });
        }
    }
    Ok(PermittedCredentials { secrets, names })
}

/// Whether a credential is bound to a target.
#[must_use]
pub fn may_be_sent(granted: &GrantedCredential, target: &Target) -> bool {
    // A pattern that cannot be read grants nothing.
    let mut patterns = granted.domains.iter().filter_map(|text| text.parse::<Pattern>().ok());
    patterns.any(|pattern| pattern.covers(target))
}

fn not_granted(name: &CredentialName, target: &Target) -> BlockReason {
    BlockReason {
        rule: Rule::CredentialNotGranted,
        asked: target.authority(),
        reason: format!("the credential `{name}` is not set, or this run was not granted it"),
        remedy: format!("ask the user for the credential `{name}`"),
    }
}

/// The refusal of a credential in clear text to a public address.
pub(crate) fn in_clear_text(names: &[CredentialName], target: &Target) -> BlockReason {
    let names: Vec<&str> = names.iter().map(CredentialName::as_str).collect();
    BlockReason {
        rule: Rule::CredentialNotForDomain,
        asked: target.authority(),
        reason: format!(
            "the credential `{}` would go over `http`, where everybody on the way can read it",
            names.join("`, `")
        ),
        remedy: match target.host() {
            Host::Name(name) => format!("use `https://{name}`"),
            Host::Address(_) => "use `https`".to_owned(),
        },
    }
}

fn unusable(target: &Target, reason: &str) -> BlockReason {
    BlockReason {
        rule: Rule::Header,
        asked: target.authority(),
        reason: reason.to_owned(),
        remedy: "ask the user to set the credential again, without a line break at its end".to_owned(),
    }
}

/// Inserts permitted secrets, and charges the growth of the text.
struct ChargedParts<'a> {
    permitted: &'a PermittedCredentials<'a>,
    target: &'a Target,
    budget: &'a CallBudget,
}

impl ChargedParts<'_> {
    fn header_value(&self, name: &HeaderName, value: &HeaderValue) -> Result<HeaderValue, GateError> {
        let with_secret = match self.in_basic(name, value)? {
            None => self.replaced(value.as_bytes(), Encoding::Plain)?,
            in_basic => in_basic,
        };
        let Some(with_secret) = with_secret else { return Ok(value.clone()) };
        let mut value = HeaderValue::from_maybe_shared(shared(with_secret)).map_err(|_| {
            let reason = format!("the credential in `{name}` holds what no header may, such as a line break");
            unusable(self.target, &reason)
        })?;
        value.set_sensitive(true);
        Ok(value)
    }

    fn in_basic(&self, name: &HeaderName, value: &HeaderValue) -> Result<Option<Zeroizing<Vec<u8>>>, GateError> {
        let Some(decoded) = basic(name, value) else { return Ok(None) };
        let Some(with_secret) = self.replaced(&decoded, Encoding::Plain)? else { return Ok(None) };
        let encoded = Zeroizing::new(STANDARD.encode(with_secret.as_slice()));
        // The third by which it grows once more when it is encoded.
        let charged = value.len() + with_secret.len().saturating_sub(decoded.len());
        self.budget.take((BASIC.len() + encoded.len()).saturating_sub(charged) as u64)?;
        Ok(Some(Zeroizing::new([BASIC, encoded.as_bytes()].concat())))
    }

    /// A text with its placeholders replaced; none when there are none.
    fn replaced(&self, text: &[u8], encoding: Encoding) -> Result<Option<Zeroizing<Vec<u8>>>, GateError> {
        let mut values = Vec::new();
        let mut length = text.len();
        for Placeholder { range, name } in encoding.placeholders(text) {
            let value = self.permitted.value(&name).ok_or_else(|| not_granted(&name, self.target))?;
            let value = encoding.encode(value);
            self.budget.take(value.len().saturating_sub(range.len()) as u64)?;
            length = length - range.len() + value.len();
            values.push((range, value));
        }
        if values.is_empty() {
            return Ok(None);
        }
        // Of its final size at once: a buffer that grows leaves copies behind.
        let mut whole = Zeroizing::new(Vec::with_capacity(length));
        let mut done = 0;
        for (range, value) in values {
            whole.extend_from_slice(text.get(done..range.start).unwrap_or_default());
            whole.extend_from_slice(&value);
            done = range.end;
        }
        whole.extend_from_slice(text.get(done..).unwrap_or_default());
        Ok(Some(whole))
    }
}

/// The decoded text of `Basic` credentials (RFC 7617).
pub(crate) fn basic(name: &HeaderName, value: &HeaderValue) -> Option<Zeroizing<Vec<u8>>> {
    if name != header::AUTHORIZATION {
        return None;
    }
    let (scheme, encoded) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("basic").then(|| LENIENT.decode(encoded.trim()).ok())?.map(Zeroizing::new)
}

/// The encoding of the body, as the guest declares it.
pub(crate) fn encoding_of(headers: &HeaderMap) -> Encoding {
    let of_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = of_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if essence == "application/x-www-form-urlencoded" {
        Encoding::Form
    } else if essence.ends_with("/json") || essence.ends_with("+json") {
        Encoding::Json
    } else {
        Encoding::Plain
    }
}

/// Bytes that are wiped when the last user drops them.
fn shared(bytes: Zeroizing<Vec<u8>>) -> Bytes {
    Bytes::from_owner(WipedBuffer(bytes))
}

struct WipedBuffer(Zeroizing<Vec<u8>>);

impl AsRef<[u8]> for WipedBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use base::Secret;
    use vault::Scrubber;

    use super::*;

    fn secrets(granted: &[(&str, &str, &[&str])]) -> RunSecrets {
        let granted = granted.iter().map(|(name, value, domains)| GrantedCredential {
            name: CredentialName::parse(name).unwrap(),
            value: Secret::new((*value).to_owned()),
            domains: domains.iter().map(|domain| (*domain).to_owned()).collect(),
            raw: false,
        });
        RunSecrets::new(granted.collect(), Arc::new(Scrubber::default()))
    }

    fn parts(path: &str, headers: &[(&'static str, &str)], body: &str) -> RequestParts {
        let headers = headers
            .iter()
            .map(|(name, value)| (header::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()));
        let path = path.parse().unwrap();
        RequestParts { path, headers: headers.collect(), body: Bytes::copy_from_slice(body.as_bytes()) }
    }

    fn target() -> Target {
        Target::parse("https://api.example.com/").unwrap()
    }

    fn fill(parts: RequestParts, secrets: &RunSecrets) -> Result<RequestParts, BlockReason> {
        fill_within(u64::MAX, parts, secrets).map_err(|error| match error {
            GateError::Blocked(blocked) => blocked,
            other => panic!("{other:?}"),
        })
    }

    fn fill_within(most: u64, parts: RequestParts, secrets: &RunSecrets) -> Result<RequestParts, GateError> {
        let permitted = permit(parts.mentioned(&target())?, secrets, &target())?;
        parts.put_in(&permitted, &target(), &CallBudget::new("request_bytes", most))
    }

    const VALUE: &str = "s&c\"r <credential:b>";

    #[test]
    fn a_secret_is_put_in_wherever_its_placeholder_stands() {
        let secrets = secrets(&[("a", VALUE, &["*"]), ("b", "beta", &["*"])]);
        for (path, headers, body, expected) in [
            ("/p/%3Ccredential%3Aa%3E?q=%3Ccredential:b%3E", &[][..], "", "/p/s%26c%22r%20%3Ccredential%3Ab%3E?q=beta"),
            ("/", &[("x-key", "k=<credential:b>;")], "", "k=beta;"),
            ("/", &[("authorization", "Bearer <credential:b>")], "", "Bearer beta"),
            ("/", &[], "x <credential:a> y <credential:b>", "x s&c\"r <credential:b> y beta"),
            (
                "/",
                &[("content-type", "application/json; charset=utf-8")],
                r#"{"k":"<credential:a>"}"#,
                r#"s&c\"r <credential:b>""#,
            ),
            (
                "/",
                &[("content-type", "application/vnd.x+json")],
                r#"{"k":"\u003ccredential:b\u003e"}"#,
                r#"{"k":"beta"}"#,
            ),
            (
                "/",
                &[("content-type", "application/x-www-form-urlencoded")],
                "k=%3Ccredential%3Aa%3E",
                "k=s%26c%22r+%3Ccredential%3Ab%3E",
            ),
        ] {
            let filled = fill(parts(path, headers, body), &secrets).unwrap();
            let all = format!("{} {:?} {}", filled.path, plain(&filled.headers), String::from_utf8_lossy(&filled.body));
            assert!(all.contains(expected), "{all} lacks {expected}");
        }
    }

    fn plain(headers: &HeaderMap) -> String {
        headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn basic_credentials_are_looked_into() {
        let secrets = secrets(&[("a", "hunter2", &["*"])]);
        for encoded in [STANDARD.encode("me:<credential:a>"), STANDARD.encode("me:<credential:a>").replace('=', "")] {
            let request = parts("/", &[("authorization", &format!("basic {encoded}"))], "");
            assert_eq!(request.mentioned(&target()).unwrap().len(), 1);
            let filled = fill(request, &secrets).unwrap();
            assert_eq!(plain(&filled.headers), format!("authorization: Basic {}", STANDARD.encode("me:hunter2")));
        }
        let mut two = parts("/", &[("authorization", "Basic bWU6aHVudGVy")], "");
        two.headers.append("authorization", format!("Basic {}", STANDARD.encode("x:<credential:b>")).parse().unwrap());
        assert_eq!(fill(two, &secrets).unwrap_err().rule, Rule::CredentialNotGranted);
        let without = parts("/", &[("authorization", "Basic bWU6aHVudGVy")], "");
        assert_eq!(plain(&fill(without, &secrets).unwrap().headers), "authorization: Basic bWU6aHVudGVy");
    }

    #[test]
    fn values_that_break_a_header_do_not_go_out() {
        for value in ["two\nlines", "two\r\nEvil: yes", "nul\0", "end\n"] {
            let secrets = secrets(&[("a", value, &["*"])]);
            let blocked = fill(parts("/", &[("x-key", "<credential:a>")], ""), &secrets).unwrap_err();
            assert_eq!(blocked.rule, Rule::Header);
            assert!(!format!("{blocked:?}").contains("lines"));
            let filled = fill(parts("/%3Ccredential:a%3E", &[], ""), &secrets).unwrap();
            assert!(!filled.path.as_str().contains(['\n', '\r', '\0']));
        }
    }

    #[test]
    fn what_is_put_in_is_charged_and_never_more_than_there_is() {
        let secrets = secrets(&[("a", &"&".repeat(100), &["*"]), ("b", "x", &["*"])]);
        let basic = format!("Basic {}", STANDARD.encode("me:<credential:a>"));
        let form = ("content-type", "application/x-www-form-urlencoded");
        // A placeholder of `a` has 14 bytes, or 20 when its three signs are written with percent signs.
        for (path, headers, body, grows) in [
            ("/%3Ccredential%3Aa%3E", &[][..], "", 300 - 20),
            ("/", &[("x-key", "<credential:a>")], "", 100 - 14),
            ("/", &[("authorization", basic.as_str())], "", (3 + 100_usize).div_ceil(3) * 4 - 24),
            ("/", &[], "<credential:a> <credential:b> <credential:a>", 2 * (100 - 14)),
            ("/", &[form], "<credential:a>", 300 - 14),
            ("/", &[], "<credential:b>", 0),
        ] {
            let grows = grows as u64;
            let filled = fill_within(grows, parts(path, headers, body), &secrets);
            assert!(filled.is_ok(), "{path} {headers:?} {body}: {filled:?}");
            if grows > 0 {
                let error = fill_within(grows - 1, parts(path, headers, body), &secrets).unwrap_err();
                assert_eq!(error, GateError::Limit { limit: "request_bytes", value: grows - 1 }, "{path} {body}");
            }
        }
    }

    #[test]
    fn a_request_has_few_placeholders() {
        let secrets = secrets(&[("a", "alpha", &["*"])]);
        let most = "<credential:a>".repeat(MAX_PLACEHOLDERS - 2);
        let request = |body: &str| parts("/%3Ccredential:a%3E", &[("x-key", "<credential:a>")], body);
        let filled = fill(request(&most), &secrets).unwrap();
        assert_eq!(filled.body.len(), "alpha".len() * (MAX_PLACEHOLDERS - 2));
        for body in [format!("{most}<credential:a>"), "<credential:a>\n".repeat(700_000)] {
            let blocked = fill(request(&body), &secrets).unwrap_err();
            assert_eq!(blocked.rule, Rule::TooManyPlaceholders);
            assert!(blocked.reason.contains("more than 32"), "{}", blocked.reason);
        }
    }

    #[test]
    fn a_credential_that_is_revoked_on_the_way_does_not_go_out() {
        let secrets = secrets(&[("a", "alpha", &["*"])]);
        let request = parts("/", &[], "<credential:a>");
        let permitted = permit(request.mentioned(&target()).unwrap(), &secrets, &target()).unwrap();
        secrets.revoke(&CredentialName::parse("a").unwrap());
        let outcome = request.put_in(&permitted, &target(), &CallBudget::new("request_bytes", u64::MAX));
        assert!(matches!(outcome, Err(GateError::Blocked(BlockReason { rule: Rule::CredentialNotGranted, .. }))));
        assert_eq!(fill(parts("/", &[], "<credential:a>"), &secrets).unwrap_err().rule, Rule::CredentialNotGranted);
    }

    #[test]
    fn credentials_go_where_they_are_bound_to() {
        let secrets = secrets(&[
            ("bound", "v", &["api.example.com"]),
            ("below", "v", &["*.example.com"]),
            ("other", "v", &["api.example.org", "api.example.com:8443"]),
            ("nowhere", "v", &[]),
            ("broken", "v", &["*.com", "https://api.example.com"]),
        ]);
        let permit = |name: &str| permit(vec![CredentialName::parse(name).unwrap()], &secrets, &target());
        for good in ["bound", "below"] {
            assert_eq!(permit(good).unwrap().names().len(), 1, "{good}");
        }
        for (bad, rule) in [
            ("other", Rule::CredentialNotForDomain),
            ("nowhere", Rule::CredentialNotForDomain),
            ("broken", Rule::CredentialNotForDomain),
            ("unknown", Rule::CredentialNotGranted),
        ] {
            let blocked = permit(bad).err().unwrap();
            assert_eq!(blocked.rule, rule, "{bad}");
            assert!(blocked.reason.contains(bad) && blocked.remedy.contains(bad), "{blocked:?}");
        }
    }
}
