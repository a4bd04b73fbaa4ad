//! A tool with a credential that it never sees: open issues of a repository. It writes the placeholder, and the host
//! inserts the secret on the way out, for the domain that its owner bound it to.

use motor_sdk::credentials::placeholder;
use motor_sdk::http::{self, Request};
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
    let answer = response.text(MAX_BYTES)?;
    match status {
        200 => lines(&answer),
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
            request.headers.push(("Authorization".into(), format!("Bearer {}", placeholder("github_token"))));
            request.headers.push(("Accept".into(), "application/vnd.github+json".into()));
            request.headers.push(("User-Agent".into(), "motor-example".into()));
            Ok(request)
        }
        _ => Err(ToolError::bad_input("`repository` is `OWNER/NAME`, such as `rust-lang/rust`")),
    }
}

fn lines(answer: &str) -> Result<String, ToolError> {
    let issues: Vec<Issue> = serde_json::from_str(answer)
        .map_err(|error| ToolError::failed(format!("GitHub's answer is not as documented: {error}")))?;
    let lines: Vec<String> = issues.iter().map(|issue| format!("#{} {}", issue.number, issue.title)).collect();
    Ok(if lines.is_empty() { "no open issues".to_owned() } else { lines.join("\n") })
}

motor_sdk::export!([open_issues]);

#[cfg(test)]
mod tests {
    use motor_sdk::serde_json::json;
    use motor_sdk::testing::{Sandbox, call};
    use motor_sdk::tools;

    use super::*;

    const URL: &str = "https://api.github.com/repos/rust-lang/rust/issues?state=open";

    fn issues(repository: &str) -> Result<String, ToolError> {
        call(&tools![open_issues], "open_issues", json!({ "repository": repository }))
    }

    #[test]
    fn an_answer_becomes_lines_and_the_secret_is_a_placeholder() {
        let answer = r#"[{"number":7,"title":"Mend it","body":null},{"number":3,"title":"b"}]"#;
        let sandbox = Sandbox::new().with_credential("github_token");
        let sandbox = sandbox.with_response("GET", URL, (200, answer)).with_response("GET", URL, (200, "[]"));
        assert_eq!(issues("rust-lang/rust").unwrap(), "#7 Mend it\n#3 b");
        assert_eq!(issues("rust-lang/rust").unwrap(), "no open issues");
        assert_eq!(sandbox.requests()[0].header("authorization"), Some("Bearer <credential:github_token>"));
    }

    #[test]
    fn each_refusal_has_its_kind() {
        let sandbox = Sandbox::new();
        assert!(matches!(issues("rust-lang/rust"), Err(ToolError::Denied(text)) if text.contains("`github_token`")));
        let sandbox = sandbox.with_credential("github_token").with_response("GET", URL, (200, "{}"));
        assert!(matches!(issues("rust-lang/rust"), Err(ToolError::Failed(_))));
        let before = sandbox.requests().len();
        for text in ["rust", "a/b/c", "../x", "a/..", "a/b?c", "/", "a/b c"] {
            assert!(matches!(issues(text), Err(ToolError::BadInput(_))), "{text}");
        }
        assert_eq!(sandbox.requests().len(), before, "only a repository reaches the URL");
    }
}
