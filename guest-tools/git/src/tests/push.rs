//! `git push` and `git ls-remote` to git's own server side, against git's own client; and servers that answer wrongly.

use std::cell::RefCell;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;

use super::support::{ENVIRONMENT, copy, has_git, ours_over, script, text, theirs, words, workspace};
use crate::{Answer, Network, Request, Response};

/// Where the repository is for this crate.
const URL: &str = "https://git.example/team/bare.git";

/// A branch and a tag that the remote has, and commits that it does not have.
const SETUP: &str = r#"
git init -q -b main --bare bare.git
git -C bare.git config receive.denyDeleteCurrent ignore
git init -q -b main w; cd w
mkdir -p src/deep; echo one > src/a; echo deep > src/deep/b; seq 1 500 > numbers
ci first; git tag v1; git branch old
echo two > src/a; ci second
git remote add origin ../bare.git
git push -q origin main old v1
echo three > src/a; mkdir new; seq 7 900 > new/numbers; ci third
git switch -qc topic HEAD~2; echo topic > topic; ci topic; git switch -q main
git tag -am 'an annotated tag' v2
"#;

/// Pushes one after the other, a line for each sequence: `|` between commands, `!` in front of a shell command in the
/// working tree, `^` in front of one in the remote repository.
const SEQUENCES: &str = include_str!("rows/push.txt");

/// A server over git's own `receive-pack` and `upload-pack`, which keeps the requests.
fn server(bare: &Path) -> (Network, Rc<RefCell<Vec<Request>>>) {
    let (bare, requests) = (bare.to_owned(), Rc::new(RefCell::new(Vec::new())));
    let kept = requests.clone();
    let network = Network::new(move |request| {
        kept.borrow_mut().push(request.clone());
        let path = request.url.strip_prefix(URL).ok_or("another place")?;
        let (service, advertise) = match path.split_once("?service=") {
            Some(("/info/refs", service)) => (service.to_owned(), true),
            _ => (path.trim_start_matches('/').to_owned(), false),
        };
        let mut command = Command::new("git");
        command.arg(service.strip_prefix("git-").ok_or("another service")?).arg("--stateless-rpc");
        if advertise {
            command.arg("--http-backend-info-refs");
        }
        let mut body = Vec::new();
        if advertise {
            let line = format!("# service={service}\n");
            body = format!("{:04x}{line}0000", line.len() + 4).into_bytes();
        }
        body.extend(feed(command.arg(&bare), &request.body));
        let kind = if advertise { "advertisement" } else { "result" };
        Ok(answer(200, &format!("application/x-{service}-{kind}"), body))
    });
    (network, requests)
}

fn answer(status: u16, kind: &str, body: Vec<u8>) -> Response {
    let headers = [("content-type".to_owned(), kind.to_owned())].into();
    Response { status, headers, body: Box::new(std::io::Cursor::new(body)) }
}

fn feed(command: &mut Command, input: &[u8]) -> Vec<u8> {
    let mut child = command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .envs(ENVIRONMENT)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap().stdout
}

/// The two copies of the set-up: in one, the remote is reached over the network of this crate.
fn copies(original: &Path) -> [(tempfile::TempDir, PathBuf); 2] {
    [(); 2].map(|()| {
        let (kept, root) = workspace();
        copy(&original.join("bare.git"), &root);
        copy(&original.join("w"), &root);
        (kept, root)
    })
}

/// The lines of standard error that have to be equal. Hints name the remedies that there are.
fn lines(answer: &Answer, url: &str) -> String {
    let text = text(&answer.stderr).replace(url, "<remote>");
    let kept = text.lines().map(str::trim_end).filter(|line| !line.starts_with("hint:") && !line.is_empty());
    kept.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_push_does_what_gits_own_does() {
    if !has_git() {
        return;
    }
    let (_kept, original) = workspace();
    script(&original, SETUP);
    let (mut wrong, mut rows) = (Vec::new(), 0);
    for line in SEQUENCES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        rows += 1;
        let [(_one, root), (_other, there)] = copies(&original);
        script(&root, &format!("git -C w config remote.origin.url {URL}"));
        let (network, _) = server(&root.join("bare.git"));
        for command in line.split(" | ") {
            if let Some((directory, command)) =
                command.strip_prefix('!').map(|c| ("w", c)).or(command.strip_prefix('^').map(|c| ("bare.git", c)))
            {
                script(&root.join(directory), command);
                script(&there.join(directory), command);
                continue;
            }
            let words = words(command);
            let arguments: Vec<&str> = words.iter().map(String::as_str).collect();
            let local: Vec<&str> =
                arguments.iter().map(|word| if *word == URL { "../bare.git" } else { word }).collect();
            let expected = theirs(&there.join("w"), &local);
            let found = ours_over(&network, &root, &root.join("w"), &arguments);
            let (expected_lines, found_lines) = (lines(&expected, "../bare.git"), lines(&found, URL));
            let stdout = [&expected, &found].map(|answer| text(&answer.stdout));
            if (expected_lines != found_lines) || expected.code != found.code || stdout[0] != stdout[1] {
                wrong.push(format!(
                    "=== {line}\nat: git {command}\n--- git ({})\n{}{expected_lines}\n--- here ({})\n{}{found_lines}",
                    expected.code, stdout[0], found.code, stdout[1]
                ));
            }
        }
        let views = [
            "git -C bare.git for-each-ref",
            "git -C w for-each-ref",
            "git -C w config --list --local | grep ^branch || true",
        ];
        for view in views {
            let (expected, found) = (script(&there, view), script(&root, view));
            if expected != found {
                wrong.push(format!("=== {line}\nseen by: {view}\n--- git\n{expected}--- here\n{found}"));
            }
        }
        script(&root, "git -C bare.git fsck --full --strict");
    }
    eprintln!("{rows} sequences");
    assert!(wrong.is_empty(), "{} differences in {rows} sequences:\n{}", wrong.len(), wrong.join("\n"));
}
