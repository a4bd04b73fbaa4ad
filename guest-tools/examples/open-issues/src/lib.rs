//! A tool with a credential that it never sees: open issues of a repository. It writes the placeholder, and the host
//! inserts the secret on the way out, for the domain that its owner bound it to.

use std::io::Read as _;

use motor_sdk::http::{self, HttpError, Request};
use motor_sdk::{ToolError, serde, serde_json, tool};

/// The longest answer that is read: 30 issues with long texts.
const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// The part of an issue that is used.
#[derive(serde::Deserialize)]
#[serde(crate = "motor_sdk::serde")]
struct Issue {
    number: u64,
    title: String,
}

/// Lists the newest 30 open issues of a repository on GitHub, with their numbers.
#[tool(effects = "read, open-world")]
fn open_issues(
    /// Owner and name, such as `rust-lang/rust`.
    repository: String,
) -> Result<String, ToolError> {
    let response = http::send_following(request(&repository)?, 3)?;
    let status = response.status;
    let mut text = String::new();
    response.body.take(MAX_BYTES).read_to_string(&mut text).map_err(|error| HttpError::of_read(&error))?;
    match status {
        200 => lines(&text),
        401 => Err(ToolError::denied("GitHub refuses the credential: its owner sets `github_token` again")),
        404 => Err(ToolError::missing("there is no such repository, or the credential may not read it")),
        _ => Err(ToolError::failed_for_now(format!("GitHub answered with status {status}"))),
    }
}

fn request(repository: &str) -> Result<Request, ToolError> {
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    match repository.split_once('/') {
        Some((owner, name)) if is_part(owner) && is_part(name) => {
            let mut request = Request::get(format!("https://api.github.com/repos/{owner}/{name}/issues?state=open"));
            request.headers.push(("Authorization".into(), "Bearer <credential:github_token>".into()));
            request.headers.push(("Accept".into(), "application/vnd.github+json".into()));
            request.headers.push(("User-Agent".into(), "motor-example".into()));
            Ok(request)
        }
        _ => Err(ToolError::bad_input("`repository` is `OWNER/NAME`, such as `rust-lang/rust`")),
    }
}

fn lines(text: &str) -> Result<String, ToolError> {
    let issues: Vec<Issue> = serde_json::from_str(text)
        .map_err(|error| ToolError::failed(format!("GitHub's answer is not as documented: {error}")))?;
    let lines: Vec<String> = issues.iter().map(|issue| format!("#{} {}", issue.number, issue.title)).collect();
    Ok(if lines.is_empty() { "no open issues".to_owned() } else { lines.join("\n") })
}

motor_sdk::export!([open_issues]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_is_a_placeholder() {
        let request = request("rust-lang/rust").unwrap();
        assert_eq!(request.url, "https://api.github.com/repos/rust-lang/rust/issues?state=open");
        assert_eq!(request.header("authorization"), Some("Bearer <credential:github_token>"));
    }

    #[test]
    fn only_a_repository_reaches_the_url() {
        for text in ["rust", "a/b/c", "../x", "a/..", "a/b?c", "/", "a/b c"] {
            assert!(matches!(request(text), Err(ToolError::BadInput(_))), "{text}");
        }
    }

    #[test]
    fn an_answer_becomes_lines() {
        assert_eq!(
            lines(r#"[{"number":7,"title":"Mend it","body":null},{"number":3,"title":"b"}]"#).unwrap(),
            "#7 Mend it\n#3 b"
        );
        assert_eq!(lines("[]").unwrap(), "no open issues");
        assert!(matches!(lines("{}"), Err(ToolError::Failed(_))));
    }
}
