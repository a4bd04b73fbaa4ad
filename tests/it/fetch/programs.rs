//! `fetch` and `workspace` in programs: the grants, the errors, and that nothing outside is reached (SPEC CODE-6,
//! CODE-7).

use super::*;

async fn execute(source: &str, surroundings: CodeAccess) -> CodeReport {
    let program = Program {
        source: source.to_owned(),
        timeout: Duration::from_secs(30),
        guard: false,
        seed: 7,
        now_ms: 1_000_000,
    };
    sandbox().execute_in(&program, surroundings, &Limits::default(), &CancellationToken::new()).await
}

async fn value(source: &str, surroundings: CodeAccess) -> Value {
    let report = execute(source, surroundings).await;
    let value = report.outcome.unwrap_or_else(|error| panic!("{source}: {error}"));
    serde_json::from_str(&value.json).unwrap()
}

async fn error(source: &str, surroundings: CodeAccess) -> CodeError {
    execute(source, surroundings).await.outcome.expect_err(source)
}

fn connected(site: &Site) -> CodeAccess {
    CodeAccess { network: Some(way_to(&[site])), ..CodeAccess::default() }
}

fn over(workspace: &Path) -> CodeAccess {
    CodeAccess { workspace: Some(workspace.to_owned().into()), access: Access::ReadWrite, ..CodeAccess::default() }
}

#[test]
fn programs_see_what_was_granted() {
    test(async {
        let site = Site::start().await;
        let workspace = tempfile::tempdir().unwrap();
        let seen = "return [typeof fetch, typeof workspace]";
        assert_eq!(value(seen, CodeAccess::default()).await, json!(["undefined", "undefined"]));
        assert_eq!(value(seen, connected(&site)).await, json!(["function", "undefined"]));
        assert_eq!(value(seen, over(workspace.path())).await, json!(["undefined", "object"]));
    });
}

#[test]
fn programs_fetch() {
    test(async {
        let site = Site::start()
            .await
            .with("/json", Reply::json(&json!({"a": ["ü", 1]})))
            .with("/text", Reply::text("täxt"))
            .with("/there", Reply::redirect("/text"))
            .with("/long", Reply::Sized { said: 20 << 20, sent: 20 << 20 });
        let with = |source: &str| format!("const site = {:?}; {source}", site.url(""));
        let source = with(
            "const r = await fetch(site + '/json', {headers: {'X-Key': '<credential:key>'}}); \
             return [r.ok, r.status, r.statusText, r.redirected, r.headers.get('Content-Type'), r.headers.has('x'), (await r.json()).a]",
        );
        let expected = json!([true, 200, "OK", false, "application/json", false, ["ü", 1]]);
        assert_eq!(value(&source, connected(&site)).await, expected);
        assert_eq!(site.last_request().header("x-key").as_deref(), Some(SECRET));

        let source = with(
            "const all = await Promise.all(['/text', '/there', '/none'].map((path) => fetch(site + path))); \
             return await Promise.all(all.map(async (r) => [r.status, r.ok, r.redirected, r.url.slice(site.length), await r.text()]))",
        );
        let expected = json!([
            [200, true, false, "/text", "täxt"],
            [200, true, true, "/text", "täxt"],
            [404, false, false, "/none", ""],
        ]);
        assert_eq!(value(&source, connected(&site)).await, expected);

        let source = with(
            "const r = await fetch(site + '/text', {method: 'post', body: new Uint8Array([1, 2, 255]).subarray(1)}); \
             const b = await r.bytes(); return [b.length, b[1], await r.text().catch((e) => e.name)]",
        );
        assert_eq!(value(&source, connected(&site)).await, json!([5, 0xc3, "TypeError"]));
        assert_eq!((site.last_request().method.as_str(), site.last_request().body.as_slice()), ("POST", &[2, 255][..]));

        let source = with(
            "return [(await fetch(site + '/there', {redirect: 'manual'})).status, await fetch(site + '/there', {redirect: 'error'}).catch((e) => e.code)]",
        );
        assert_eq!(value(&source, connected(&site)).await, json!([302, "redirect"]));
        let source = with("return await fetch(site + '/long').catch((e) => [e.name, e.code])");
        assert_eq!(value(&source, connected(&site)).await, json!(["TypeError", "limit"]));
    });
}

#[test]
fn a_program_can_tell_that_it_was_refused() {
    test(async {
        let (site, other) = (Site::start().await, Site::start().await);
        let source = format!(
            "try {{ await fetch({:?}) }} catch (e) {{ return [e instanceof TypeError, e.code, e.message] }}",
            other.url("/")
        );
        let caught = value(&source, connected(&site)).await;
        assert_eq!((&caught[0], &caught[1]), (&json!(true), &json!("network_blocked")));
        assert!(caught[2].as_str().unwrap().starts_with("network_blocked: "), "{caught}");
        let report = execute(&format!("await fetch({:?})", other.url("/")), connected(&site)).await;
        let uncaught = report.outcome.unwrap_err();
        assert_eq!(uncaught.code, CodeErrorCode::Error);
        assert!(uncaught.message.starts_with("TypeError: network_blocked: "), "{uncaught}");
        assert!(report.last_refusal.is_some());
        assert_eq!(other.connections(), 0);
    });
}

#[test]
fn programs_use_files() {
    test(async {
        let workspace = tempfile::tempdir().unwrap();
        fs::write(workspace.path().join("given.csv"), "a,b\n1,ü\n").unwrap();
        fs::create_dir(workspace.path().join(".motor-output")).unwrap();
        let source = "
            const rows = (await workspace.readText('/workspace/given.csv')).trim().split('\\n').map((line) => line.split(','));
            await workspace.writeText('out/deep/rows.json', JSON.stringify(rows));
            await workspace.appendText('out/deep/rows.json', '\\n');
            await workspace.writeBytes('bytes', new Uint8Array([0, 255, 7]).subarray(1));
            await workspace.makeDirectory('out/empty');
            const part = await workspace.readBytes('given.csv', { offset: 2, length: 3 });
            const listed = (await workspace.list('out')).map((entry) => [entry.name, entry.type, entry.size]);
            const seen = [await workspace.exists('bytes'), await workspace.exists('nothing'), await workspace.stat('bytes')];
            await workspace.remove('out/empty'); await workspace.remove('bytes');
            return [rows, [...part], listed, seen, (await workspace.list()).map((entry) => entry.name)]";
        let expected = json!([
            [["a", "b"], ["1", "ü"]],
            [98, 10, 49],
            [["deep", "directory", 0], ["empty", "directory", 0]],
            [true, false, {"name": "bytes", "type": "file", "size": 2}],
            [".motor-output", "given.csv", "out"],
        ]);
        assert_eq!(value(source, over(workspace.path())).await, expected);
        let written = fs::read_to_string(workspace.path().join("out/deep/rows.json")).unwrap();
        assert_eq!(written, "[[\"a\",\"b\"],[\"1\",\"ü\"]]\n");
    });
}

#[test]
fn programs_do_not_leave_the_workspace() {
    test(async {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("inner");
        fs::create_dir_all(inner.join("full")).unwrap();
        fs::write(inner.join("full/x"), "x").unwrap();
        fs::write(outer.path().join("secret"), "secret").unwrap();
        std::os::unix::fs::symlink("../secret", inner.join("link")).unwrap();
        for (call, code) in [
            ("readText('../secret')", "denied"),
            ("readText('/etc/passwd')", "denied"),
            ("readText('link')", "denied"),
            ("writeText('link', 'x')", "denied"),
            ("writeText('../new', 'x')", "denied"),
            ("writeText('.motor-output/x', 'x')", "denied"),
            ("remove('.')", "bad_input"),
            ("remove('full')", "bad_input"),
            ("readText('full')", "bad_input"),
            ("readText('nothing')", "missing"),
            ("list('nothing')", "missing"),
            ("list('full/x')", "bad_input"),
            ("writeText('full/x/y', 'x')", "bad_input"),
            ("writeText('full', 'x')", "bad_input"),
        ] {
            let source = format!("return await workspace.{call}.then(() => 'done', (error) => error.code)");
            assert_eq!(value(&source, over(&inner)).await, json!(code), "{call}");
        }
        assert_eq!(fs::read_to_string(outer.path().join("secret")).unwrap(), "secret");
        assert!(!outer.path().join("new").exists() && inner.join("full/x").exists());
        let looks = CodeAccess { access: Access::default(), ..over(&inner) };
        let source = "return [await workspace.readText('full/x'), await workspace.writeText('full/x', 'y').catch((e) => e.code)]";
        assert_eq!(value(source, looks).await, json!(["x", "denied"]));
    });
}

#[test]
fn files_larger_than_a_programs_memory_are_refused_with_the_way_out() {
    test(async {
        let workspace = tempfile::tempdir().unwrap();
        fs::File::create(workspace.path().join("large")).unwrap().set_len(200 << 20).unwrap();
        let source = "return await workspace.readText('large').catch((error) => [error.code, error.message])";
        let refused = value(source, over(workspace.path())).await;
        assert_eq!(refused[0], json!("limit"));
        assert!(refused[1].as_str().unwrap().contains("209715200 bytes"), "{refused}");
        let source = "return (await workspace.readBytes('large', { offset: 199 * 1024 * 1024, length: 5e6 })).length";
        assert_eq!(value(source, over(workspace.path())).await, json!(1 << 20));
    });
}

#[test]
fn a_full_workspace_is_an_error_that_can_be_caught() {
    test(async {
        let workspace = tempfile::tempdir().unwrap();
        let program = Program {
            source: "const piece = 'x'.repeat(4 << 20); try { for (let i = 0; i < 200; i++) await workspace.appendText('large', piece) } catch (error) { return error.code }".to_owned(),
            timeout: Duration::from_secs(30),
            guard: false,
            seed: 7,
            now_ms: 0,
        };
        let limits = Limits { workspace_bytes: 16 << 20, ..Limits::default() };
        let report = sandbox().execute_in(&program, over(workspace.path()), &limits, &CancellationToken::new()).await;
        // The host may also end the program: either way nothing more is written.
        match report.outcome {
            Ok(value) => assert_eq!(value.json, "\"limit\""),
            Err(error) => assert!(error.message.contains(Limit::WorkspaceBytes.as_str()), "{error}"),
        }
        assert!(fs::metadata(workspace.path().join("large")).unwrap().len() <= 16 << 20);
    });
}

#[test]
fn a_server_that_says_nothing_ends_with_the_programs_time() {
    test(async {
        let site = Site::start().await.with("/", Reply::Silence);
        let program = Program {
            source: format!("await fetch({:?})", site.url("/")),
            timeout: Duration::from_millis(300),
            guard: false,
            seed: 7,
            now_ms: 0,
        };
        let report =
            sandbox().execute_in(&program, connected(&site), &Limits::default(), &CancellationToken::new()).await;
        assert_eq!(report.outcome.unwrap_err().code, CodeErrorCode::Timeout);
        site.wait_closed().await;
        assert_eq!(error("return fetch('x', 1)", connected(&site)).await.code, CodeErrorCode::Error);
    });
}
