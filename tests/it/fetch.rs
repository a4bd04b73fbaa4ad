//! `fetch` the tool, and `fetch` and `workspace` of connected programs, through the real gate and the real directory
//! (SPEC TOOL-1, TOOL-4, CODE-6, CODE-7). The gate's refusals are tested beside it; these tests are about the model's
//! results.

mod programs;

use std::fs;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base::{CredentialName, Secret};
use network::{Gate, NetworkConfig, Policy, RunNetwork, Taint, TaintedWrite};
use runtime::{
    Access, CallReport, CodeAccess, CodeError, CodeErrorCode, CodeReport, CodeSandbox, Component, ComponentOrigin,
    EngineConfig, Limit, Limits, Outcome, Program, Runtime, ToolCall, ToolComponent, ToolError, inspect,
};
use serde_json::{Value, json};
use tests::network::{Reply, Site};
use tokio_util::sync::CancellationToken;
use vault::{GrantedCredential, RunSecrets, Scrubber};

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME
        .get_or_init(|| Runtime::new(EngineConfig { cache: Some(tests::cache()), ..EngineConfig::default() }).unwrap())
}

fn tool() -> &'static ToolComponent {
    static TOOL: OnceLock<ToolComponent> = OnceLock::new();
    TOOL.get_or_init(|| {
        let component =
            tests::block_on(Component::load(runtime(), &tests::bundled("fetch"), ComponentOrigin::Bundled)).unwrap();
        ToolComponent::link(runtime(), &component).unwrap()
    })
}

fn sandbox() -> &'static CodeSandbox {
    static SANDBOX: OnceLock<CodeSandbox> = OnceLock::new();
    SANDBOX.get_or_init(|| {
        let component =
            tests::block_on(Component::load(runtime(), &tests::bundled("code-js-connected"), ComponentOrigin::Bundled))
                .unwrap();
        CodeSandbox::link_connected(runtime(), &component).unwrap()
    })
}

/// The components load first: an executor does not wait on itself.
fn test(test: impl Future<Output = ()>) {
    tool();
    sandbox();
    tests::block_on(test);
}

pub(crate) const SECRET: &str = "s3cr3t-value-of-the-key";

/// A way out to sites of this machine, with the credential `key` for them.
pub(crate) fn way_to(sites: &[&Site]) -> RunNetwork {
    let addresses: Vec<String> = sites.iter().map(|site| site.address().to_string()).collect();
    let name = CredentialName::parse("key").unwrap();
    let config = NetworkConfig { private: addresses.clone(), ..NetworkConfig::default() };
    let domains = addresses.iter().map(|address| address.parse().unwrap()).collect();
    let policy = Policy { domains, tainted_write: TaintedWrite::Allow, ..Policy::default() };
    let scrubber = Scrubber::new(vec![(name.clone(), Secret::new(SECRET.to_owned()))]);
    let granted = GrantedCredential { name, value: Secret::new(SECRET.to_owned()), domains: addresses, raw: false };
    let secrets = RunSecrets::new(vec![granted], Arc::new(scrubber));
    Gate::new(&config).unwrap().run(policy, Arc::new(secrets), Taint::default())
}

async fn fetch_in(
    arguments: Value,
    network: Option<RunNetwork>,
    workspace: Option<&Path>,
    limits: Limits,
) -> CallReport<String, ToolError> {
    let call = ToolCall {
        name: "fetch",
        arguments: &arguments.to_string(),
        run_id: "run_test",
        step: 1,
        idempotency_key: "key",
        workspace: workspace.map(|path| path.to_owned().into()),
        network,
        scripts: None,
        environment: Vec::new(),
        seeded: None,
        limits,
        notes: Arc::new(|_| ()),
        cancel: CancellationToken::new(),
    };
    tool().call(call).await
}

fn limits() -> Limits {
    Limits { deadline_ms: 30_000, ..Limits::default() }
}

async fn fetch(arguments: Value, sites: &[&Site]) -> Result<String, ToolError> {
    match fetch_in(arguments, Some(way_to(sites)), None, limits()).await.outcome {
        Outcome::Returned(text) => Ok(text),
        Outcome::Refused(error) => Err(error),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_page_comes_back_as_markdown() {
    test(async {
        let page =
            "<title>Prices</title><nav>menu</nav><h1>Gr&uuml;n</h1><p>see <a href='/more'>more</a><script>x()</script>";
        let site = Site::start().await.with("/page", Reply::html(page));
        let text = fetch(json!({"url": site.url("/page")}), &[&site]).await.unwrap();
        let expected = format!(
            "status: 200 OK\nurl: {}\ncontent-type: text/html; charset=utf-8\ntitle: Prices\n\n# Grün\n\nsee [more]({})",
            site.url("/page"),
            site.url("/more")
        );
        assert_eq!(text, expected);
        let request = site.last_request();
        assert_eq!((request.method.as_str(), request.header("content-length")), ("GET", None));
    });
}

#[test]
fn a_post_arrives_with_its_credential_and_the_answer_does_not_show_it() {
    test(async {
        let site = Site::start().await.with("/api", Reply::json(&json!({"you sent": SECRET})));
        let arguments = json!({
            "url": site.url("/api?k=%3Ccredential:key%3E"), "method": "POST", "headers": {"Authorization": "Bearer <credential:key>"},
            "body": {"key": "<credential:key>", "n": 1},
        });
        let text = fetch(arguments, &[&site]).await.unwrap();
        let request = site.last_request();
        assert_eq!(request.header("authorization").unwrap(), format!("Bearer {SECRET}"));
        assert_eq!(request.text(), json!({"key": SECRET, "n": 1}).to_string());
        assert_eq!(request.target, format!("/api?k={SECRET}"));
        assert!(text.contains("<credential:key>") && !text.contains(SECRET), "{text}");
    });
}

#[test]
fn redirects_are_followed_and_credentials_stay_behind() {
    test(async {
        let other = Site::start().await.with("/end", Reply::text("there"));
        let site = Site::start()
            .await
            .with("/start", Reply::redirect("/middle"))
            .with("/middle", Reply::redirect_as(307, &other.url("/end")))
            .with("/round", Reply::redirect("/round"))
            .with("/file", Reply::redirect("file:///etc/passwd"));
        let arguments = |path: &str| json!({"url": site.url(path), "headers": {"Authorization": "x", "X-Key": "<credential:key>", "X-Plain": "y"}});
        let text = fetch(arguments("/start"), &[&site, &other]).await.unwrap();
        assert!(text.contains(&format!("url: {}", other.url("/end"))) && text.ends_with("there"), "{text}");
        let (there, here) = (other.last_request(), site.last_request());
        assert_eq!(here.header("x-key").as_deref(), Some(SECRET), "the same origin gets it");
        assert_eq!((there.header("authorization"), there.header("x-key")), (None, None));
        assert_eq!(there.header("x-plain").as_deref(), Some("y"));

        let refused = fetch(arguments("/round"), &[&site]).await.unwrap_err();
        assert!(
            matches!(&refused, ToolError::Failed { message, .. } if message.contains("too many redirects")),
            "{refused:?}"
        );
        let refused = fetch(arguments("/file"), &[&site]).await.unwrap_err();
        assert!(matches!(&refused, ToolError::Failed { message, .. } if message.contains("`file`")), "{refused:?}");
        let before = other.connections();
        let refused = fetch(arguments("/start"), &[&site]).await.unwrap_err();
        assert!(matches!(&refused, ToolError::Denied(text) if text.starts_with("network_blocked: ")), "{refused:?}");
        assert_eq!(other.connections(), before, "a redirect passes the gate like any other request");
    });
}

#[test]
fn what_is_refused_says_why_and_what_to_do() {
    test(async {
        let site = Site::start().await.with("/", Reply::text("hello"));
        let refused = fetch(json!({"url": site.url("/")}), &[]).await.unwrap_err();
        assert!(matches!(&refused, ToolError::Denied(text) if text.starts_with("network_blocked: ")), "{refused:?}");
        let Outcome::Refused(refused) = fetch_in(json!({"url": site.url("/")}), None, None, limits()).await.outcome
        else {
            panic!("a call without a network fetched")
        };
        assert!(matches!(&refused, ToolError::Denied(text) if text.starts_with("network_blocked: ")), "{refused:?}");
        assert_eq!(site.connections(), 0);
        for url in ["file:///etc/passwd", "nonsense", "http://user:pass@example.com/"] {
            let refused = fetch(json!({"url": url}), &[&site]).await.unwrap_err();
            assert!(matches!(refused, ToolError::BadInput(_)), "{url}: {refused:?}");
        }
        assert!(fetch(json!({"url": site.url("/")}), &[&site]).await.unwrap().ends_with("hello"));
    });
}

#[test]
fn failures_of_the_server_are_told_apart() {
    test(async {
        let status = |status| Reply::Whole {
            status,
            headers: vec![("content-type".to_owned(), "text/html".to_owned())],
            body: b"<h1>Sorry</h1>".to_vec(),
        };
        let site = Site::start()
            .await
            .with("/busy", status(503))
            .with("/broken", status(500))
            .with("/close", Reply::Close)
            .with("/cut", Reply::Sized { said: 1_000, sent: 10 });
        for (path, retries, says) in [
            ("/busy", true, "503 Service Unavailable: Sorry"),
            ("/broken", false, "500 Internal Server Error: Sorry"),
            ("/none", false, "404"),
        ] {
            let refused = fetch(json!({"url": site.url(path)}), &[&site]).await.unwrap_err();
            let ToolError::Failed { message, retryable } = refused else { panic!("{path}: {refused:?}") };
            assert!(message.contains(says) && retryable == retries, "{path}: {message} {retryable}");
        }
        for path in ["/close", "/cut"] {
            let refused = fetch(json!({"url": site.url(path)}), &[&site]).await.unwrap_err();
            assert!(matches!(refused, ToolError::Failed { .. }), "{path}: {refused:?}");
        }
    });
}

/// A page that is meant to hurt ends in an answer or in an error that names the excess.
#[test]
fn hostile_pages_end() {
    test(async {
        let repeated = |piece: &str, bytes: usize| piece.repeat(bytes / piece.len());
        for (name, page) in [
            ("divs", repeated("<div>", 500_000)),
            ("formatting", repeated("<b><i><u>", 500_000)),
            ("lists", repeated("<ul><li><blockquote>", 500_000)),
            ("tables", repeated("<table><tr><th>", 500_000)),
            ("headings", repeated("<h1>x", 500_000)),
            ("foreign", repeated("<svg><desc><math>", 500_000)),
            ("attribute", format!("<p title='{}'>after", repeated("x", 7 << 20))),
            ("entities", repeated("&#x10ffff;&am&;&#", 500_000)),
            ("tags", repeated("<<</<!", 500_000)),
            ("paragraphs", repeated("<p>x</p>", 7 << 20)),
        ] {
            let site = Site::start().await.with("/", Reply::html(&format!("<p>start</p>{page}")));
            let text = fetch(json!({"url": site.url("/")}), &[&site]).await;
            let text = text.unwrap_or_else(|error| panic!("{name}: {error:?}"));
            assert!(text.contains("start"), "{name}");
        }
        let site =
            Site::start().await.with("/long", Reply::html(&repeated("x", 9 << 20))).with("/endless", Reply::Endless);
        for path in ["/long", "/endless"] {
            let refused = fetch(json!({"url": site.url(path)}), &[&site]).await.unwrap_err();
            assert!(matches!(&refused, ToolError::Limit(text) if text.contains("8388608")), "{path}: {refused:?}");
        }
    });
}

#[test]
fn what_is_no_text_is_saved_where_it_was_asked_to() {
    test(async {
        let bytes: Vec<u8> = (0..=255).cycle().take(3 << 20).collect();
        let headers = vec![("content-type".to_owned(), "image/png".to_owned())];
        let site = Site::start()
            .await
            .with("/picture", Reply::Whole { status: 200, headers, body: bytes.clone() })
            .with("/cut", Reply::Sized { said: 1_000_000, sent: 10 })
            .with("/endless", Reply::Endless);
        let refused = fetch(json!({"url": site.url("/picture")}), &[&site]).await.unwrap_err();
        let expected = "the body is `image/png` of 3145728 bytes, not text: give `save_to` to save it in the workspace";
        assert!(matches!(&refused, ToolError::Failed { message, .. } if message == expected), "{refused:?}");

        let workspace = tempfile::tempdir().unwrap();
        let save = async |path: &str, limits: Limits| {
            let arguments = json!({"url": site.url(path), "save_to": "pictures/a.png"});
            fetch_in(arguments, Some(way_to(&[&site])), Some(workspace.path()), limits).await.outcome
        };
        let saved = save("/picture", limits()).await;
        assert!(
            matches!(&saved, Outcome::Returned(text) if text.ends_with("saved 3145728 bytes as `pictures/a.png`")),
            "{saved:?}"
        );
        let place = workspace.path().join("pictures/a.png");
        assert_eq!(fs::read(&place).unwrap(), bytes);
        let cut = save("/cut", limits()).await;
        assert!(matches!(&cut, Outcome::Refused(ToolError::Failed { .. })), "{cut:?}");
        let endless = save("/endless", Limits { response_bytes: 1 << 20, ..limits() }).await;
        assert!(matches!(&endless, Outcome::Refused(ToolError::Limit(_))), "{endless:?}");
        assert_eq!(fs::read(&place).unwrap(), bytes, "what was there stays");
    });
}

#[test]
fn the_tool_uses_what_it_says_and_no_more() {
    let imports = inspect(&tests::bundled("fetch"), u64::MAX).unwrap().imports;
    let uses = |prefix: &str| imports.iter().any(|import| import.name.starts_with(prefix));
    assert!(uses("wasi:http/outgoing-handler") && uses("motor:host/outbound"), "{imports:?}");
    assert!(!uses("motor:host/credentials") && !uses("wasi:sockets"), "{imports:?}");
    let imports = inspect(&tests::bundled("code-js"), u64::MAX).unwrap().imports;
    assert!(imports.is_empty(), "{imports:?}");
    let imports = inspect(&tests::bundled("code-js-connected"), u64::MAX).unwrap().imports;
    // Of clocks it takes the types that files and timeouts are described with.
    let allowed = ["motor:host/outbound", "wasi:clocks/", "wasi:filesystem/", "wasi:http/", "wasi:io/"];
    let others = imports.iter().filter(|import| !allowed.iter().any(|allowed| import.name.starts_with(allowed)));
    assert_eq!(others.map(|import| import.name.as_str()).collect::<Vec<_>>(), Vec::<&str>::new());
}
