//! Python with files and domains under attack: the classes that connected programs in JavaScript are tried with
//! (`fetch/programs.rs`), a row each, with its benign twin.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use runtime::{Access, CodeAccess, CodeError, CodeErrorCode, CodeReport, CodeSandbox, Limit, Limits, Program};
use serde_json::{Value, json};
use tests::block_on;
use tests::network::{Reply, Site};
use tokio_util::sync::CancellationToken;

use super::{engine, program};
use crate::fetch::{SECRET, way_to};

pub(super) fn execute(sandbox: &CodeSandbox, source: &str, given: CodeAccess, limits: &Limits) -> CodeReport {
    let patient = Program { timeout: Duration::from_secs(30), ..program(source) };
    block_on(sandbox.execute_in(&patient, given, limits, &CancellationToken::new()))
}

pub(super) fn value(sandbox: &CodeSandbox, source: &str, given: CodeAccess) -> Value {
    let report = execute(sandbox, source, given, &Limits::default());
    let value = report.outcome.unwrap_or_else(|error| panic!("{source}: {error}"));
    serde_json::from_str(&value.json).unwrap()
}

fn error(sandbox: &CodeSandbox, source: &str, given: CodeAccess) -> CodeError {
    execute(sandbox, source, given, &Limits::default()).outcome.expect_err(source)
}

fn over(workspace: &Path, access: Access) -> CodeAccess {
    CodeAccess { workspace: Some(workspace.to_owned().into()), access, ..CodeAccess::default() }
}

/// An attempt to leave the workspace or to misuse a path, its exception, a program that looks alike, and the value of that.
const PATHS: &[(&str, &str, &str, &str)] = &[
    ("open('../secret').read()", "PermissionError", "open('./full/x').read()", "\"x\""),
    ("open('/etc/passwd').read()", "FileNotFoundError", "open('/workspace/full/x').read()", "\"x\""),
    ("open('/workspace/../secret').read()", "PermissionError", "open('/workspace/full/../full/x').read()", "\"x\""),
    ("open('link').read()", "PermissionError", "open('inner-link').read()", "\"x\""),
    ("open('link', 'w').write('y')", "PermissionError", "open('new', 'w').write('y')", "1"),
    ("open('../new', 'w').write('y')", "PermissionError", "open('full/new', 'w').write('y')", "1"),
    ("import os\nos.rmdir('.')", "OSError", "import os\nos.mkdir('d')\nos.rmdir('d')", "null"),
    ("import os\nos.rmdir('full')", "OSError", "import os\nos.listdir('full')", "[\"x\"]"),
    ("open('full').read()", "IsADirectoryError", "open('full/x', 'rb').read()", "\"x\""),
    ("open('full', 'w')", "IsADirectoryError", "open('full.txt', 'w').write('')", "0"),
    ("open('nothing')", "FileNotFoundError", "import os\nos.path.exists('nothing')", "false"),
    ("import os\nos.listdir('nothing')", "FileNotFoundError", "import glob\nglob.glob('nothing/*')", "[]"),
    ("import os\nos.listdir('full/x')", "NotADirectoryError", "import os\nos.path.isdir('full/x')", "false"),
    ("open('full/x/y', 'w')", "NotADirectoryError", "open('full/y', 'w').write('')", "0"),
    ("import os\nos.stat('../secret')", "PermissionError", "import os\nos.stat('full/x').st_size", "1"),
    ("import os\nos.rename('full/x', '../x')", "PermissionError", "import os\nos.rename('full/x', 'x')", "null"),
    ("import os\nos.link('../secret', 's')", "PermissionError", "import shutil\nshutil.copy('full/x', 's')", "\"s\""),
    (
        "import os\nos.symlink('/etc', 'e')\nos.listdir('e')",
        "PermissionError",
        "import os\nos.listdir('full')",
        "[\"x\"]",
    ),
    ("import os\nos.chdir('..')\nopen('secret')", "Error", "import os\nos.chdir('full')\nopen('x').read()", "\"x\""),
    (
        "import os\nos.open('../../secret', os.O_RDONLY, dir_fd=os.open('full', os.O_RDONLY))",
        "PermissionError",
        "import os\nos.read(os.open('x', os.O_RDONLY, dir_fd=os.open('full', os.O_RDONLY)), 9)",
        "\"x\"",
    ),
    (
        "import pathlib\nsorted(pathlib.Path('..').iterdir())",
        "PermissionError",
        "import pathlib\nsorted(path.name for path in pathlib.Path('full').iterdir())",
        "[\"x\"]",
    ),
    (
        "import io, tarfile\nb = io.BytesIO()\nwith tarfile.open(fileobj=b, mode='w') as t:\n    t.addfile(tarfile.TarInfo('../new'))\n\
         b.seek(0)\ntarfile.open(fileobj=b).extractall('.')",
        "OutsideDestinationError",
        "import io, os, tarfile\nb = io.BytesIO()\nwith tarfile.open(fileobj=b, mode='w') as t:\n    t.addfile(tarfile.TarInfo('in'))\n\
         b.seek(0)\ntarfile.open(fileobj=b).extractall('.')\nos.path.exists('in')",
        "true",
    ),
    (
        "import shutil\nshutil.copytree('..', 'all')",
        "PermissionError",
        "import os, shutil\nshutil.copytree('full', 'all')\nos.listdir('all')",
        "[\"x\"]",
    ),
];

/// The names and contents of everything below a directory. Links are not followed.
fn tree(directory: &Path) -> BTreeSet<(String, Vec<u8>)> {
    let mut seen = BTreeSet::new();
    for entry in fs::read_dir(directory).unwrap() {
        let (path, kind) = entry.map(|entry| (entry.path(), entry.file_type().unwrap())).unwrap();
        let content = if kind.is_file() { fs::read(&path).unwrap() } else { format!("{kind:?}").into_bytes() };
        seen.insert((path.display().to_string(), content));
        if kind.is_dir() {
            seen.extend(tree(&path));
        }
    }
    seen
}

/// A directory with the secret, and the workspace in it.
fn workspace() -> tempfile::TempDir {
    let outer = tempfile::tempdir().unwrap();
    let inner = outer.path().join("inner");
    fs::create_dir_all(inner.join("full")).unwrap();
    fs::write(inner.join("full/x"), "x").unwrap();
    fs::write(outer.path().join("secret"), "s3cret").unwrap();
    std::os::unix::fs::symlink("../secret", inner.join("link")).unwrap();
    std::os::unix::fs::symlink("full/x", inner.join("inner-link")).unwrap();
    outer
}

#[test]
fn programs_do_not_leave_the_workspace() {
    let Some(sandbox) = engine(true) else { return };
    for (attack, exception, twin, expected) in PATHS {
        let outer = workspace();
        let inner = outer.path().join("inner");
        let before = tree(&inner.join("full"));
        let error = error(sandbox, attack, over(&inner, Access::ReadWrite));
        assert_eq!(error.code, CodeErrorCode::Error, "{attack}: {error}");
        let class = error.message.split(':').next().unwrap_or_default();
        assert!(class.ends_with(exception), "{attack}: {error}");
        assert!(!error.message.contains("s3cret"), "{attack}: {error}");
        assert_eq!(tree(&inner.join("full")), before, "{attack}");
        assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 2, "{attack}");
        assert_eq!(fs::read_to_string(outer.path().join("secret")).unwrap(), "s3cret", "{attack}");
        let seen = execute(sandbox, twin, over(&inner, Access::ReadWrite), &Limits::default()).outcome;
        assert_eq!(seen.unwrap_or_else(|error| panic!("{twin}: {error}")).json, *expected, "{twin}");
    }
}

/// Changes of files, each by itself.
const CHANGES: &[&str] = &[
    "open('full/x', 'w').write('y')",
    "open('full/x', 'a').write('y')",
    "open('full/x', 'r+').write('y')",
    "open('new', 'x').write('y')",
    "import os\nos.remove('full/x')",
    "import os\nos.rename('full/x', 'x')",
    "import os\nos.mkdir('new')",
    "import os\nos.truncate('full/x', 0)",
    "import shutil\nshutil.rmtree('full')",
    "import pathlib\npathlib.Path('full/x').write_text('y')",
    "import zipfile\nzipfile.ZipFile('new.zip', 'w').writestr('a', 'b')",
];

#[test]
fn files_that_were_granted_for_reading_do_not_change() {
    let Some(sandbox) = engine(true) else { return };
    for change in CHANGES {
        let outer = workspace();
        let inner = outer.path().join("inner");
        let before = tree(outer.path());
        let error = error(sandbox, change, over(&inner, Access::ReadOnly));
        assert_eq!(error.code, CodeErrorCode::Error, "{change}: {error}");
        assert_eq!(tree(outer.path()), before, "{change}");
        assert_eq!(value(sandbox, "open('full/x').read()", over(&inner, Access::ReadOnly)), json!("x"));
        // The same change where it was granted.
        value(sandbox, change, over(&inner, Access::ReadWrite));
        assert_ne!(tree(outer.path()), before, "{change}");
    }
}

#[test]
fn the_directory_of_the_host_is_read_and_not_changed() {
    let Some(sandbox) = engine(true) else { return };
    for change in [
        "open('.motor-output/1.txt', 'w')",
        "open('.motor-output/1.txt', 'r+')",
        "open('.motor-output/2.txt', 'x')",
        "open('full/../.motor-output/2.txt', 'x')",
        "import os\nos.chdir('.motor-output')\nopen('1.txt', 'w')",
        "import os\nos.open('1.txt', os.O_WRONLY, dir_fd=os.open('.motor-output', os.O_RDONLY))",
        "import os\nos.open('.motor-output/1.txt', os.O_WRONLY, dir_fd=os.open('.', os.O_RDONLY))",
        "import os\nos.remove('.motor-output/1.txt')",
        "import os\nos.rename('.motor-output/1.txt', 'moved')",
        "import os\nos.utime('.motor-output/1.txt', (0, 0))",
        "import os\nos.rename('.motor-output', 'moved')",
        "import os\nos.replace('full/x', '.motor-output/1.txt')",
        "import os\nos.mkdir('.motor-output/d')",
    ] {
        let outer = workspace();
        let inner = outer.path().join("inner");
        fs::create_dir(inner.join(".motor-output")).unwrap();
        fs::write(inner.join(".motor-output/1.txt"), "long").unwrap();
        let before = tree(outer.path());
        let error = error(sandbox, change, over(&inner, Access::ReadWrite));
        assert!(error.message.starts_with("PermissionError"), "{change}: {error}");
        assert_eq!(tree(outer.path()), before, "{change}");
        let read = "import os\n[open('.motor-output/1.txt').read(), os.listdir('.motor-output')]";
        assert_eq!(value(sandbox, read, over(&inner, Access::ReadWrite)), json!(["long", ["1.txt"]]));
    }
}

#[test]
fn a_file_larger_than_a_programs_memory_is_read_in_parts() {
    let Some(sandbox) = engine(true) else { return };
    let workspace = tempfile::tempdir().unwrap();
    fs::File::create(workspace.path().join("large")).unwrap().set_len(200 << 20).unwrap();
    for attack in
        ["open('large').read()", "open('large', 'rb').read()", "import pathlib\npathlib.Path('large').read_bytes()"]
    {
        let given = over(workspace.path(), Access::ReadOnly);
        let report = execute(sandbox, attack, given, &Limits::default());
        let error = report.outcome.expect_err(attack);
        let is_memory = error.message.contains("MemoryError") || error.message.contains(Limit::MemoryBytes.as_str());
        assert!(is_memory, "{attack}: {error}");
        assert!(report.usage.peak_memory_bytes <= Limits::default().memory_bytes, "{attack}");
    }
    let part = "with open('large', 'rb') as f:\n    f.seek(199 * 1024 * 1024)\n    size = len(f.read(5_000_000))\nsize";
    assert_eq!(value(sandbox, part, over(workspace.path(), Access::ReadOnly)), json!(1 << 20));
    let whole = "sum(len(part) for part in iter(lambda f=open('large', 'rb'): f.read(1 << 20), b''))";
    assert_eq!(value(sandbox, whole, over(workspace.path(), Access::ReadOnly)), json!(200 << 20));
}

#[test]
fn a_full_workspace_takes_no_more() {
    let Some(sandbox) = engine(true) else { return };
    let fill = "piece = 'x' * (1 << 20)\ntry:\n    with open('large', 'w') as f:\n        for _ in range(TIMES):\n            f.write(piece)\n\
                except OSError as error:\n    result = error.errno\nelse:\n    result = 'fits'\nresult";
    let limits = Limits { workspace_bytes: 16 << 20, ..Limits::default() };
    let fill = |times: &str| {
        let workspace = tempfile::tempdir().unwrap();
        let given = over(workspace.path(), Access::ReadWrite);
        let outcome = execute(sandbox, &fill.replace("TIMES", times), given, &limits).outcome;
        (outcome, fs::metadata(workspace.path().join("large")).unwrap().len())
    };
    let (outcome, size) = fill("200");
    // The host may also end the program: either way nothing more is written.
    match outcome {
        Ok(value) => assert_ne!(value.json, "\"fits\""),
        Err(error) => assert!(error.message.contains(Limit::WorkspaceBytes.as_str()), "{error}"),
    }
    assert!(size <= 16 << 20, "{size}");
    let (outcome, size) = fill("9");
    assert_eq!((outcome.unwrap().json.as_str(), size), ("\"fits\"", 9 << 20));
}

#[test]
fn a_server_that_says_nothing_ends_with_the_programs_time() {
    let Some(sandbox) = engine(true) else { return };
    let site = block_on(Site::start()).with("/silent", Reply::Silence).with("/text", Reply::text("hi"));
    let given = || CodeAccess { network: Some(way_to(&[&site])), ..CodeAccess::default() };
    for asks in ["requests.get('URL').text", "urllib.request.urlopen('URL').read()"] {
        let asks = format!("import requests, urllib.request\n{asks}");
        let source = asks.replace("URL", &site.url("/silent"));
        let brief = Program { timeout: Duration::from_millis(500), ..program(&source) };
        let report = block_on(sandbox.execute_in(&brief, given(), &Limits::default(), &CancellationToken::new()));
        assert_eq!(report.outcome.unwrap_err().code, CodeErrorCode::Timeout, "{asks}");
        block_on(site.wait_closed());
        assert_eq!(value(sandbox, &asks.replace("URL", &site.url("/text")), given()), json!("hi"), "{asks}");
    }
}

/// An attempt to reach another server, or to send more than one request says, its exception, a program that looks alike, and the value
/// of that. `SITE` was granted, `OTHER` was not.
const REACHES: &[(&str, &str, &str, &str)] = &[
    ("requests.get('OTHER/')", "Refused", "requests.get('SITE/').text", "\"hi\""),
    ("requests.get('http://HOST@OTHER_HOST/')", "Refused", "requests.get('SITE/', auth=('a', 'b')).text", "\"hi\""),
    ("requests.get('http://OTHER_HOST#@HOST/')", "Refused", "requests.get('SITE/#@OTHER_HOST').text", "\"hi\""),
    (
        "requests.get('http://OTHER_HOST\\\\@HOST/')",
        "InvalidURL",
        "requests.get('SITE/?a=\\\\@OTHER_HOST').text",
        "\"hi\"",
    ),
    ("requests.get('SITE/away')", "Refused", "requests.get('SITE/there').text", "\"hi\""),
    (
        "requests.get('SITE/', headers={'Host': 'OTHER_HOST'})\nrequests.get('OTHER/')",
        "Refused",
        "requests.get('SITE/', headers={'Host': 'OTHER_HOST'}).text",
        "\"hi\"",
    ),
    (
        "requests.get('SITE/file')",
        "InvalidURL",
        "requests.get('SITE/file', allow_redirects=False).headers['Location']",
        "\"file:///etc/passwd\"",
    ),
    (
        "requests.get('SITE/strange')",
        "InvalidURL",
        "requests.get('SITE/strange', allow_redirects=False).status_code",
        "302",
    ),
    ("requests.get('SITE/loop')", "TooManyRedirects", "requests.get('SITE/loop', allow_redirects=False).ok", "true"),
    (
        "requests.get('SITE/', headers={'X-A': 'a\\r\\nX-Evil: 1'})",
        "InvalidHeader",
        "requests.get('SITE/', headers={'X-A': 'a X-Evil: 1'}).text",
        "\"hi\"",
    ),
    (
        "requests.request('GET / HTTP/1.1\\r\\nX-Evil: 1\\r\\n\\r\\nGET', 'SITE/')",
        "InvalidMethod",
        "requests.request('GET', 'SITE/').text",
        "\"hi\"",
    ),
    ("requests.get('file:///etc/passwd')", "InvalidURL", "requests.get('SITE/etc/passwd').status_code", "404"),
    (
        "urllib.request.urlopen('file:///etc/passwd')",
        "InvalidURL",
        "urllib.request.urlopen('SITE/?file:///etc/passwd').read()",
        "\"hi\"",
    ),
    ("urllib.request.urlopen('OTHER/')", "Refused", "urllib.request.urlopen('SITE/').status", "200"),
    (
        "urllib.request.build_opener().open('OTHER/')",
        "Error",
        "urllib.request.build_opener().open('data:text/plain,hi').read()",
        "\"hi\"",
    ),
    (
        "import http.client\nhttp.client.HTTPConnection('OTHER_HOST').request('GET', '/')",
        "Error",
        "import http.client\nhttp.client.responses[404]",
        "\"Not Found\"",
    ),
    (
        "import socket\nsocket.create_connection(('127.0.0.1', 1))",
        "Error",
        "import socket\nsocket.inet_aton('127.0.0.1').hex()",
        "\"7f000001\"",
    ),
    (
        "import ftplib\nftplib.FTP('127.0.0.1')",
        "Error",
        "import ftplib\nftplib.parse227('227 ok (127,0,0,1,0,21)')",
        "[\"127.0.0.1\",21]",
    ),
    ("requests.get('SITE/endless')", "RequestException", "requests.get('SITE/whole').ok", "true"),
    ("requests.get('SITE/short')", "Disconnected", "len(requests.get('SITE/whole').content)", "20"),
];

#[test]
fn programs_reach_no_other_server() {
    let Some(sandbox) = engine(true) else { return };
    let other = block_on(Site::start());
    let site = block_on(Site::start())
        .with("/", Reply::text("hi"))
        .with("/away", Reply::redirect(&other.url("/")))
        .with("/file", Reply::redirect("file:///etc/passwd"))
        .with("/strange", Reply::redirect("http://[::1/"))
        .with("/loop", Reply::redirect("/loop"))
        .with("/endless", Reply::Endless)
        .with("/short", Reply::Sized { said: 20, sent: 5 })
        .with("/there", Reply::redirect("/"))
        .with("/whole", Reply::Sized { said: 20, sent: 20 });
    let given = || CodeAccess { network: Some(way_to(&[&site])), ..CodeAccess::default() };
    let at_the_sites = |source: &str| {
        let source = source
            .replace("OTHER_HOST", &other.address().to_string())
            .replace("OTHER", other.url("").trim_end_matches('/'))
            .replace("SITE", site.url("").trim_end_matches('/'))
            .replace("HOST", &site.address().to_string());
        format!("import requests, urllib.request\n{source}")
    };
    for (attack, exception, twin, expected) in REACHES {
        let error = error(sandbox, &at_the_sites(attack), given());
        assert_eq!(error.code, CodeErrorCode::Error, "{attack}: {error}");
        let class = error.message.split(':').next().unwrap_or_default();
        assert!(class.ends_with(exception), "{attack}: {error}");
        assert_eq!(value(sandbox, &at_the_sites(twin), given()).to_string(), *expected, "{twin}");
        assert_eq!(other.connections(), 0, "{attack}");
        assert!(site.requests().iter().all(|request| request.header("x-evil").is_none()), "{attack}");
        assert!(site.requests().iter().all(|request| request.method == "GET"), "{attack}");
    }
    // Without a domain there is nothing to ask with.
    let without = error(sandbox, &at_the_sites("requests.get('SITE/').text"), CodeAccess::default());
    assert!(without.message.contains("No module named 'requests'"), "{without}");
}

#[test]
fn a_credential_goes_to_its_server_and_is_not_seen() {
    let Some(sandbox) = engine(true) else { return };
    let other = block_on(Site::start()).with("/end", Reply::text("end"));
    let site = block_on(Site::start())
        .with("/echo", Reply::echo("x-key", tests::network::Encoding::Plain))
        .with("/away", Reply::redirect(&other.url("/end")))
        .with("/away307", Reply::redirect_as(307, &other.url("/end")))
        .with("/there", Reply::redirect("/echo"));
    let given = || CodeAccess { network: Some(way_to(&[&site, &other])), ..CodeAccess::default() };
    let ask = |ask: &str| {
        let ask = ask.replace("SITE", site.url("").trim_end_matches('/'));
        format!(
            "import requests\ntry:\n    result = {ask}\nexcept requests.RequestException as error:\n    result = str(error)\nresult"
        )
    };
    let key = "headers={'X-Key': '<credential:key>', 'X-A': 'a'}";
    for path in ["/echo", "/there"] {
        let seen = value(sandbox, &ask(&format!("requests.get('SITE{path}', {key}).text")), given());
        assert_eq!(seen, json!("<credential:key>"), "{path}");
        assert_eq!(site.last_request().header("x-key").as_deref(), Some(SECRET), "{path}");
    }
    assert_eq!(
        value(sandbox, &ask(&format!("requests.get('SITE/away', {key}, auth=('a', 'b')).text")), given()),
        json!("end")
    );
    let followed = other.last_request();
    assert_eq!((followed.header("x-key"), followed.header("authorization")), (None, None));
    assert_eq!(followed.header("x-a").as_deref(), Some("a"));
    let refused = value(sandbox, &ask("requests.post('SITE/away307', json={'key': '<credential:key>'}).text"), given());
    assert!(refused.as_str().unwrap().contains("does not follow to another origin"), "{refused}");
    assert_eq!(other.requests().len(), 1);
    // The twin: a body without a credential follows.
    assert_eq!(value(sandbox, &ask("requests.post('SITE/away307', json={'key': 1}).text"), given()), json!("end"));
    assert_eq!(other.last_request().text(), r#"{"key": 1}"#);
}
