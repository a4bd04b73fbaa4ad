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

/// The lines of standard error that have to be equal. Hints, and the sentences behind the first of a fatal error, name the
/// remedies that there are.
fn lines(answer: &Answer, url: &str) -> String {
    let text = text(&answer.stderr).replace(url, "<remote>");
    let kept = text.lines().map(str::trim_end).filter(|line| !line.starts_with("hint:") && !line.is_empty());
    let most = if answer.code == 128 { 1 } else { usize::MAX };
    kept.take(most).collect::<Vec<_>>().join("\n")
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

/// A working tree and its remote, with a server; the requests that reach it.
struct World {
    _kept: tempfile::TempDir,
    root: PathBuf,
    network: Network,
    requests: Rc<RefCell<Vec<Request>>>,
}

impl World {
    fn new() -> Self {
        let (kept, root) = workspace();
        script(&root, SETUP);
        script(&root, &format!("git -C w config remote.origin.url {URL}"));
        let (network, requests) = server(&root.join("bare.git"));
        Self { _kept: kept, root, network, requests }
    }

    fn git(&self, line: &str) -> Answer {
        let words = words(line);
        let arguments: Vec<&str> = words.iter().map(String::as_str).collect();
        ours_over(&self.network, &self.root, &self.root.join("w"), &arguments)
    }

    /// The bodies that were posted.
    fn posted(&self) -> Vec<Vec<u8>> {
        let requests = self.requests.borrow();
        requests.iter().filter(|request| request.method == "POST").map(|request| request.body.clone()).collect()
    }

    /// The number of objects in the pack of a body.
    fn objects(body: &[u8]) -> u32 {
        let at = body.windows(8).position(|window| window == b"PACK\0\0\0\x02").unwrap();
        u32::from_be_bytes(body[at + 8..at + 12].try_into().unwrap())
    }
}

#[track_caller]
fn refused(answer: &Answer, reason: &str) {
    assert!(answer.code != 0 && text(&answer.stderr).contains(reason), "{reason}: {}", text(&answer.stderr));
}

#[test]
fn a_push_is_one_write_of_the_same_bytes_each_time() {
    if !has_git() {
        return;
    }
    let worlds = [World::new(), World::new()];
    let bodies = worlds.each_ref().map(|world| {
        assert_eq!(world.git("push origin main topic v2").code, 0);
        assert_eq!(world.requests.borrow().len(), 2, "one read and one write");
        world.posted().remove(0)
    });
    assert_eq!(bodies[0], bodies[1]);
    // A commit, three trees and two files; on the topic a commit, a tree and a file; and the tag.
    assert_eq!(World::objects(&bodies[0]), 6 + 3 + 1, "only objects that the remote does not have");
    // Pushes that change nothing, or cannot be sent, are not sent.
    let world = &worlds[0];
    for line in ["push origin main", "push -n origin main:new", "push origin topic:main", "push origin none"] {
        world.git(line);
    }
    assert_eq!(world.posted().len(), 1);
}

#[test]
fn objects_that_the_remote_has_by_other_names_are_not_sent() {
    if !has_git() {
        return;
    }
    let world = World::new();
    script(&world.root.join("w"), "git tag -am x v3 HEAD~1; git rev-parse HEAD^{tree} > /dev/null");
    assert_eq!(world.git("push origin main~1:refs/heads/same").code, 0);
    assert_eq!(world.git("push origin v3").code, 0);
    assert_eq!(world.git("push origin :old").code, 0);
    let posted = world.posted();
    assert_eq!((World::objects(&posted[0]), World::objects(&posted[1])), (0, 1));
    assert!(posted[2].ends_with(b"0000"), "a deletion has no pack");
    script(&world.root, "git -C bare.git fsck --full --strict");
}

#[test]
fn a_shallow_history_is_pushed_onto_what_the_remote_has() {
    if !has_git() {
        return;
    }
    let world = World::new();
    script(
        &world.root,
        "rm -rf w; git clone -q --depth 1 file://$PWD/bare.git w; cd w; echo new > new; ci new; git config remote.origin.url \
         https://git.example/team/bare.git",
    );
    let answer = world.git("push origin main");
    assert_eq!(answer.code, 0, "{}", text(&answer.stderr));
    assert_eq!(World::objects(&world.posted()[0]), 3);
    script(&world.root, "git -C bare.git fsck --full --strict");
}

#[test]
fn several_references_change_together() {
    if !has_git() {
        return;
    }
    for (only, expected) in [("refs/heads/topic", 0), (".*", 2)] {
        let world = World::new();
        let hook =
            format!("printf '#!/bin/sh\\necho $1 | grep -qx \"{only}\"\\n' > hooks/update; chmod +x hooks/update");
        script(&world.root.join("bare.git"), &hook);
        let answer = world.git("push origin main topic");
        let heads = script(&world.root, "git -C bare.git rev-parse main topic 2>/dev/null || true");
        let ours = script(&world.root, "git -C w rev-parse main topic");
        assert_eq!(answer.code == 0, expected == 2);
        assert_eq!(heads == ours, expected == 2, "{heads}");
    }
    // With `--atomic` also refusals that are made here.
    let world = World::new();
    let answer = world.git("push --atomic origin topic:main topic:new");
    refused(
        &answer,
        " ! [rejected]        topic -> main (non-fast-forward)\n ! [rejected]        topic -> new (atomic push failed)",
    );
    assert_eq!(world.posted().len(), 0);
}

#[test]
fn headers_of_the_command_line_are_sent_and_those_of_the_repository_are_not() {
    if !has_git() {
        return;
    }
    let world = World::new();
    script(&world.root.join("w"), "git config http.extraHeader 'X-Own: of the repository'");
    let line = "-c http.extraHeader=dropped:x -c http.extraHeader= -c 'http.extraHeader=Authorization: Bearer <credential:key>' -c \
                'http.extraheader=X-More: 1' push origin main";
    assert_eq!(world.git(line).code, 0);
    for request in world.requests.borrow().iter() {
        let own: Vec<(&str, &str)> =
            request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert!(own.ends_with(&[("Authorization", "Bearer <credential:key>"), ("X-More", "1")]), "{own:?}");
        assert!(own.iter().all(|(name, _)| !name.contains("Own") && *name != "dropped"), "{own:?}");
    }
    refused(&world.git("-c http.extraHeader=nonsense push origin main"), "not of the form");
    let many = "-c http.extraHeader=A:b ".repeat(17);
    refused(&world.git(&format!("{many} push origin main")), "more than 16 values");
}

#[test]
fn only_http_is_spoken_and_no_password_is_in_a_url() {
    if !has_git() {
        return;
    }
    let world = World::new();
    for (url, reason) in [
        ("ssh://git@git.example/a", "over `ssh`"),
        ("git@git.example:a", "over ssh"),
        ("../bare.git", "a local path"),
        ("file:///tmp/bare.git", "over `file`"),
        ("https://user:hunter2@git.example/a", "a credential of the vault"),
    ] {
        for command in ["push", "ls-remote"] {
            let answer = world.git(&format!("{command} {url} main"));
            refused(&answer, reason);
            assert!(!text(&answer.stderr).contains("hunter2"));
        }
        script(&world.root.join("w"), &format!("git config remote.other.url {url}"));
        refused(&world.git("push other main"), reason);
    }
    assert!(world.requests.borrow().is_empty());
    script(&world.root.join("w"), "git remote remove other; git remote remove origin");
    refused(&world.git("push"), "No configured push destination");
    assert_eq!(world.git(&format!("push {URL} main")).code, 0);
}

#[test]
fn large_pushes_have_limits() {
    if !has_git() {
        return;
    }
    let world = World::new();
    script(
        &world.root.join("w"),
        "head -c 6000000 /dev/urandom > one; ci one; head -c 6000000 /dev/urandom > two; ci two",
    );
    refused(&world.git("push origin main"), "take more than 10485760 bytes; push fewer commits at a time");
    assert_eq!(world.posted().len(), 0);
    // The twin, as the message says.
    assert_eq!(world.git("push origin main~1:refs/heads/main").code, 0);
    assert_eq!(world.git("push origin main").code, 0);
    script(&world.root, "git -C bare.git fsck --full --strict");
}

/// The first line of an advertisement, and its end.
fn advertised(lines: &[&str]) -> Vec<u8> {
    let mut body = b"001f# service=git-receive-pack\n0000".to_vec();
    for line in lines {
        body.extend_from_slice(format!("{:04x}{line}", line.len() + 4).as_bytes());
    }
    [&body[..], b"0000"].concat()
}

#[test]
fn servers_that_answer_wrongly_end_with_a_message() {
    if !has_git() {
        return;
    }
    let world = World::new();
    const KIND: &str = "application/x-git-receive-pack-advertisement";
    const RESULT: &str = "application/x-git-receive-pack-result";
    let good = "0000000000000000000000000000000000000000 capabilities^{}\0report-status delete-refs";
    let endless = || std::io::Read::take(std::io::repeat(b'x'), 1 << 40);
    type Reply = Box<dyn Fn() -> Result<Response, String>>;
    let say = |status, kind: &'static str, body: Vec<u8>| -> Reply {
        Box::new(move || Ok(answer(status, kind, body.clone())))
    };
    let many: Vec<String> = (0..50_001).map(|number| format!("{} refs/heads/{number}", "1".repeat(40))).collect();
    let many: Vec<&str> = [good].into_iter().chain(many.iter().map(String::as_str)).collect();
    let firsts: Vec<(Reply, &str)> = vec![
        (
            Box::new(|| Err("network_blocked: `git.example` was not granted; ask the user".to_owned())),
            "fatal: unable to access 'https://git.example/team/bare.git/': network_blocked: `git.example` was not granted; ask the user",
        ),
        (say(200, "text/html", b"<html>".to_vec()), "is this a git repository?"),
        (say(200, "\u{1b}[2J", b"<html>".to_vec()), "`?[2J`"),
        (say(401, "text/plain", Vec::new()), "-c http.extraHeader='Authorization: Bearer <credential:NAME>'"),
        (say(403, "text/plain", Vec::new()), "returned error: 403"),
        (say(404, "text/plain", Vec::new()), "repository 'https://git.example/team/bare.git/' not found"),
        (say(301, "text/plain", Vec::new()), "redirects are not followed"),
        (say(200, KIND, Vec::new()), "the answer is empty"),
        (say(200, KIND, b"garbage".to_vec()), "does not begin with its length"),
        (say(200, KIND, advertised(&["ERR go away\n"])), "remote error: go away"),
        (say(200, KIND, advertised(&many)), "more than 50000 references"),
        (
            Box::new(move || Ok(Response { body: Box::new(endless()), ..answer(200, KIND, Vec::new()) })),
            "more than 8388608 bytes",
        ),
    ];
    for (reply, reason) in firsts {
        let network = Network::new(move |_| reply());
        refused(&ours_over(&network, &world.root, &world.root.join("w"), &["push", "origin", "main"]), reason);
    }
    let lines = |lines: &[&str]| {
        let lines: Vec<String> = lines.iter().map(|line| format!("{:04x}{line}", line.len() + 4)).collect();
        format!("{}0000", lines.concat()).into_bytes()
    };
    let seconds: Vec<(Reply, &str)> = vec![
        (Box::new(|| Err("broken".to_owned())), "broken"),
        (say(500, "text/plain", Vec::new()), "returned error: 500"),
        (say(200, RESULT, Vec::new()), "the report is empty"),
        (say(200, RESULT, b"0006".to_vec()), "a line breaks off"),
        (say(200, RESULT, lines(&["unpack ok\n"])), "(remote failed to report status)"),
        (say(200, RESULT, lines(&["unpack ok\n", "ok refs/heads/other\n"])), "(remote failed to report status)"),
        (say(200, RESULT, lines(&["unpack full\n", "ok refs/heads/main\n"])), "error: remote unpack failed: full"),
        (say(200, RESULT, lines(&["unpack ok\n", "ng refs/heads/main \u{1b}[2J\n"])), "main -> main (?[2J)"),
        (
            Box::new(move || Ok(Response { body: Box::new(endless()), ..answer(200, RESULT, Vec::new()) })),
            "more than 1048576 bytes",
        ),
    ];
    let before = script(&world.root, "git -C w for-each-ref");
    for (reply, reason) in seconds {
        let network = Network::new(move |request: Request| match request.method {
            "GET" => Ok(answer(200, KIND, advertised(&[good]))),
            _ => reply(),
        });
        refused(&ours_over(&network, &world.root, &world.root.join("w"), &["push", "-u", "origin", "main"]), reason);
    }
    assert_eq!(script(&world.root, "git -C w for-each-ref"), before, "nothing follows a push that failed");
    assert_eq!(script(&world.root, "git -C w config --get branch.main.remote || true"), "");
    // The twin.
    let network = Network::new(move |request: Request| {
        Ok(match request.method {
            "GET" => answer(200, KIND, advertised(&[good])),
            _ => answer(200, RESULT, b"000eunpack ok\n0017ok refs/heads/main\n0000".to_vec()),
        })
    });
    let answer = ours_over(&network, &world.root, &world.root.join("w"), &["push", "-u", "origin", "main"]);
    assert_eq!(answer.code, 0, "{}", text(&answer.stderr));
}
