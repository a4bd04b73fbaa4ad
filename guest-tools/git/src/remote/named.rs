//! The remotes of the configuration, and the URLs that can be reached.

use bstr::{BStr, BString, ByteSlice as _};

use crate::error::{Fault, Result};
use crate::repository::Repository;

/// The remote that is meant where nothing else is said.
const ORIGIN: &str = "origin";

/// The form of a remote that can be reached, for messages.
const REMEDY: &str = "name a URL: `git push https://HOST/PATH BRANCH`";

/// A remote repository, by the name of the configuration or by its URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remote {
    /// The name or URL, as it was given.
    pub name: String,
    /// Where it is. Without a user.
    pub url: String,
    /// Refspecs of the configuration: from its branches to those that follow them here.
    pub fetch: Vec<BString>,
    /// Refspecs of a push that names none.
    pub push: Vec<BString>,
}

impl Remote {
    /// Finds a remote by the name or URL of a command line. `is_push` prefers `pushurl`.
    pub(crate) fn find(repository: &Repository, name: &str, is_push: bool) -> Result<Self> {
        let all = |key: &str| repository.config.all_in("remote", name.into(), key);
        if !is_configured(repository, name) {
            return Ok(Self { name: name.to_owned(), url: check_url(name)?, fetch: Vec::new(), push: Vec::new() });
        }
        if repository.config.string_in("remote", name.into(), "mirror").is_some() {
            return Err(Fault::unsupported(format_args!("the remote '{name}', which is a mirror; {REMEDY}")));
        }
        let mut urls = if is_push { all("pushurl") } else { Vec::new() };
        if urls.is_empty() {
            urls = all("url");
        }
        let [url] = urls.as_slice() else {
            return Err(Fault::unsupported(format_args!("the remote '{name}', which has several URLs; {REMEDY}")));
        };
        let url = url.to_str().map_err(|_| Fault::fatal(format_args!("the URL of '{name}' is not UTF-8")))?;
        Ok(Self { name: name.to_owned(), url: check_url(url)?, fetch: all("fetch"), push: all("push") })
    }

    /// The reference here that follows one of the remote.
    pub(crate) fn tracking(&self, name: &BStr) -> Option<BString> {
        self.fetch.iter().find_map(|spec| {
            let spec = spec.strip_prefix(b"+").unwrap_or(spec);
            let (from, to) = spec.split_once_str(":")?;
            let found = match (from.split_once_str("*"), to.split_once_str("*")) {
                (Some((before, after)), Some((start, end))) => {
                    let middle = name.strip_prefix(before)?.strip_suffix(after)?;
                    BString::from([start, middle, end].concat())
                }
                (None, None) if name == from => to.into(),
                _ => return None,
            };
            // Only below `refs/remotes/`: a configuration cannot have a push change the branches here.
            let is_remote = found.starts_with(b"refs/remotes/");
            (is_remote && gix_validate::reference::name(found.as_bstr()).is_ok()).then_some(found)
        })
    }
}

/// Whether the configuration has a remote of this name.
pub(crate) fn is_configured(repository: &Repository, name: &str) -> bool {
    ["url", "pushurl"].iter().any(|key| repository.config.string_in("remote", name.into(), key).is_some())
}

/// The remote that a branch comes from: its own, the only one, or `origin`.
pub(crate) fn default_name(repository: &Repository, branch: Option<&BStr>) -> String {
    let configured = branch.and_then(|branch| repository.config.string_in("branch", branch, "remote"));
    let name = configured.or_else(|| match repository.config.names_in("remote").as_slice() {
        [only] => Some(only.clone()),
        _ => None,
    });
    name.map_or_else(|| ORIGIN.to_owned(), |name| name.to_string())
}

/// The remote that a branch is pushed to.
pub(crate) fn push_name(repository: &Repository, branch: Option<&BStr>) -> String {
    let own = branch.and_then(|branch| repository.config.string_in("branch", branch, "pushRemote"));
    let configured = own.or_else(|| repository.config.string("remote.pushDefault"));
    configured.map_or_else(|| default_name(repository, branch), |name| name.to_string())
}

/// Refuses everything but an `http` or `https` URL without a user.
fn check_url(url: &str) -> Result<String> {
    if url.is_empty() || url.chars().any(|letter| letter.is_control() || letter.is_whitespace() || letter == '\\') {
        return Err(Fault::fatal("the URL of the remote has white space, a control character or `\\` in it"));
    }
    let Some((scheme, rest)) = url.split_once("://") else {
        let is_ssh = url.split_once(':').is_some_and(|(host, _)| !host.contains('/'));
        let kind = if is_ssh { "a remote over ssh" } else { "a remote that is a local path, or a name without a URL" };
        return Err(Fault::unsupported(format_args!("{kind} ('{url}'); {REMEDY}")));
    };
    if !matches!(scheme, "http" | "https") {
        return Err(Fault::unsupported(format_args!("a remote over `{scheme}`; {REMEDY}")));
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        // The URL is not printed: a password may be in it.
        return Err(Fault::fatal(
            "the URL of the remote has a user or a password in it: leave them out, and send a credential of the vault, which \
             the host fills in: `git -c http.extraHeader='Authorization: Bearer <credential:NAME>' push https://HOST/PATH`",
        ));
    }
    if authority.is_empty() || rest.contains(['?', '#']) {
        return Err(Fault::fatal(format_args!("'{url}' is not the URL of a repository: use `https://HOST/PATH`")));
    }
    Ok(url.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_http_without_a_user_is_reached() {
        for url in [
            "https://example.com/a.git",
            "http://127.0.0.1:8080/a b".trim_end_matches(" b"),
            "https://h/<credential:k>/a",
        ] {
            assert_eq!(check_url(url).unwrap(), url);
        }
        for (url, reason) in [
            ("ssh://git@example.com/a", "over `ssh`"),
            ("git://example.com/a", "over `git`"),
            ("file:///tmp/a", "over `file`"),
            ("HTTPS://example.com/a", "over `HTTPS`"),
            ("git@example.com:a/b.git", "over ssh"),
            ("ext::sh -c date", "white space"),
            ("ext::sh", "over ssh"),
            ("/srv/a.git", "a local path"),
            ("../a.git", "a local path"),
            ("origin", "a name without a URL"),
            ("", "white space"),
            ("https://a\nb", "white space"),
            ("https://user:secret@example.com/a", "a credential of the vault"),
            ("https://token@example.com/a", "a credential of the vault"),
            ("https:///a", "not the URL of a repository"),
            ("https://example.com/a?b", "not the URL of a repository"),
            ("https://example.com\\@evil.example/a", "`\\`"),
        ] {
            let fault = check_url(url).unwrap_err();
            assert!(fault.message.contains(reason) && !fault.message.contains("secret"), "{url}: {}", fault.message);
        }
    }

    #[test]
    fn a_branch_of_the_remote_is_followed_below_remotes_only() {
        let remote = |fetch: &str| Remote {
            name: "origin".to_owned(),
            url: String::new(),
            fetch: vec![fetch.into()],
            push: Vec::new(),
        };
        let check = |fetch: &str, name: &str| remote(fetch).tracking(name.into()).map(|name| name.to_string());
        let all = "+refs/heads/*:refs/remotes/origin/*";
        assert_eq!(check(all, "refs/heads/a/b").as_deref(), Some("refs/remotes/origin/a/b"));
        assert_eq!(check("refs/heads/a:refs/remotes/o/x", "refs/heads/a").as_deref(), Some("refs/remotes/o/x"));
        assert_eq!(check(all, "refs/tags/v1"), None);
        for hostile in ["refs/heads/*:refs/heads/*", "refs/heads/*:refs/remotes/../../*", "refs/heads/*:refs/remotes/x"]
        {
            assert_eq!(check(hostile, "refs/heads/a"), None, "{hostile}");
        }
    }
}
