//! `git` as a command of the shell; its output is compared with git's in its own crate.

use motor_sdk::Context;
use motor_sdk::http::{HttpError, Request, Response};
use motor_sdk::serde_json::json;

use super::{run, run_alone};

#[test]
fn a_script_commits_and_looks_at_it() {
    let text = run_alone(
        "git init -q && echo one > a && git add a && git commit -qm first && echo two >> a && mkdir d && cd d && git -C .. status -s \
         && git diff --stat && cd .. && git commit -qam second && git log --format='%an: %s' && git status",
    );
    assert_eq!(
        text,
        " M a\n a | 1 +\n 1 file changed, 1 insertion(+)\nmotor run: second\nmotor run: first\nOn branch main\nnothing to commit, \
         working tree clean\n"
    );
}

#[test]
fn the_shells_own_things_are_known() {
    // Variables in front of the command, a message from a pipe or from `/tmp`, and a permission that was set in this call.
    let text = run_alone(
        "git init -q; echo x > f; echo y > g; chmod +x f; git add .; git ls-files -s | cut -c1-6\n\
         GIT_AUTHOR_NAME=Ann GIT_AUTHOR_EMAIL=a@example.com git commit -qF - <<< 'piped'\n\
         echo 'from a file' > /tmp/m; git commit -q --allow-empty -F /tmp/m; git log --format='%an %s'; git show HEAD:f | wc -l",
    );
    assert_eq!(text, "100755\n100644\nmotor run from a file\nAnn piped\n1\n");
}

#[test]
fn it_stays_in_the_workspace() {
    let text = run_alone("git clone https://example.com/x; git -C /tmp status; cd /; git status; git init /tmp/x");
    assert!(text.contains("the owner clones and fetches") && text.contains("is outside the workspace"), "{text}");
    assert!(!text.contains("[exit code: 0]"), "{text}");
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join(".motor-output")).unwrap();
    std::fs::write(root.path().join(".motor-output/1"), "x").unwrap();
    assert_eq!(run(root.path(), None, 20_000, "git init -q; git add -A; git status -s; echo end"), "end\n");
    assert_eq!(run(root.path(), Some("cat,echo"), 20_000, "git status || echo no").lines().next(), Some("no"));
    assert_eq!(run(root.path(), Some("git,echo"), 20_000, "git rev-parse --show-toplevel"), "/workspace\n");
}

/// A gate that grants nothing, and repeats the request in its reason.
fn closed(request: Request, redirects: Option<usize>) -> Result<Response, HttpError> {
    let authorization = request.header("authorization").unwrap_or("nothing");
    let reason = format!("{} {} with {authorization} {redirects:?} is not granted", request.method, request.url);
    Err(HttpError::Blocked { rule: "domain_not_allowed".to_owned(), reason, remedy: "ask the user".to_owned() })
}

#[test]
fn a_refusal_of_the_gate_has_the_words_that_curl_has() {
    let root = tempfile::tempdir().unwrap();
    let script = "git init -q; git commit -q --allow-empty -m one\n\
        git -c http.extraHeader='Authorization: Bearer <credential:key>' push https://git.example/a main; echo $?\n\
        curl -H 'Authorization: Bearer <credential:key>' 'https://git.example/a/info/refs?service=git-receive-pack'";
    let context = Context { run_id: String::new(), step: 0, deadline_ms: 60_000, idempotency_key: String::new() };
    let tools = crate::tools_over(
        root.path().to_str().unwrap(),
        None,
        crate::Host { send: closed, python: Err(String::new()) },
    );
    let text = motor_sdk::call(&tools, "bash", &json!({ "script": script }).to_string(), &context).unwrap();
    let reason = "network_blocked: GET https://git.example/a/info/refs?service=git-receive-pack with Bearer <credential:key> None is \
                  not granted; ask the user";
    assert_eq!(
        text,
        format!(
            "128\n[stderr]\nfatal: unable to access 'https://git.example/a/': {reason}\ncurl: {reason}\n[exit code: 7]"
        )
    );
}
