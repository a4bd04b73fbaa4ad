//! The tools over a real directory, called by name with JSON as the host calls them.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt as _, fs::symlink},
    path::Path,
};

use motor_sdk::{
    Context, ToolError,
    serde_json::{Value, json},
};

use super::tools_over;

struct Fixture {
    directory: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn with(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    fn root(&self) -> &Path {
        self.directory.path()
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(path)).unwrap()
    }

    fn call(&self, tool: &str, arguments: &Value) -> String {
        let context = Context { run_id: String::new(), step: 0, deadline_ms: 10_000, idempotency_key: String::new() };
        let tools = tools_over(self.root().to_str().unwrap());
        let answer = match motor_sdk::call(&tools, tool, &arguments.to_string(), &context) {
            Ok(output) => output,
            Err(ToolError::Denied(reason)) => format!("denied: {reason}"),
            Err(ToolError::Missing(reason)) => format!("missing: {reason}"),
            Err(ToolError::BadInput(reason)) => format!("bad input: {reason}"),
            Err(ToolError::Limit(reason)) => format!("limit: {reason}"),
            Err(ToolError::Failed(failure)) => format!("failed: {}", failure.message),
        };
        assert!(!answer.contains(self.root().to_str().unwrap()), "a path of the host is shown: {answer}");
        assert!(answer.len() <= 30_000, "{} bytes", answer.len());
        assert!(answer.lines().count() <= 2_000, "{} lines", answer.lines().count());
        answer
    }

    #[track_caller]
    fn check(&self, tool: &str, arguments: &Value, expected: &str) {
        assert_eq!(self.call(tool, arguments), expected, "{tool} {arguments}");
    }
}

fn numbered(range: std::ops::RangeInclusive<u32>) -> String {
    range.map(|number| format!("{number}\n")).collect()
}

#[test]
fn read_numbers_lines() {
    let fixture = Fixture::new().with("a.txt", "one\ntwo\nthree");
    fixture.check("read", &json!({"path": "a.txt"}), "     1\tone\n     2\ttwo\n     3\tthree\n");
    fixture.check("read", &json!({"path": "/workspace/a.txt", "offset": 3}), "     3\tthree\n");
    let page = "     2\ttwo\n[`a.txt` goes on: continue with `offset` 3]";
    fixture.check("read", &json!({"path": "a.txt", "offset": 2, "limit": 1}), page);
    let past = "bad input: `offset` 4 is past the end: `a.txt` has 3 lines";
    fixture.check("read", &json!({"path": "a.txt", "offset": 4}), past);
    fixture.check("read", &json!({"path": "a.txt", "offset": 9}), past.replace('4', "9").as_str());
    fixture.check("read", &json!({"path": "a.txt", "limit": 0}), "bad input: `limit` is 0: ask for at least one line");
}

#[test]
fn read_pages_through_a_long_file_without_loss() {
    let fixture = Fixture::new().with("long", numbered(1..=5_000));
    let (mut offset, mut seen) = (1_u64, Vec::new());
    loop {
        let answer = fixture.call("read", &json!({"path": "long", "offset": offset}));
        seen.extend(answer.lines().filter_map(|line| Some(line.split_once('\t')?.1.to_owned())));
        let Some((_, next)) = answer.split_once("continue with `offset` ") else { break };
        offset = next.trim_end_matches(']').parse().unwrap();
    }
    assert_eq!(seen.len(), 5_000);
    assert!(seen.iter().zip(1..).all(|(line, number)| *line == number.to_string()));
}

#[test]
fn read_answers_what_is_not_plain_text() {
    let fixture = Fixture::new()
        .with("empty", "")
        .with("image.png", b"\x89PNG\r\n\x1a\n\0\0\0\r")
        .with("latin", b"caf\xe9\n")
        .with("bom", "\u{feff}x\n")
        .with("only-bom", "\u{feff}")
        .with("crlf", "a\r\nb\r\n")
        .with("late", [b"x\n".repeat(10_000).as_slice(), b"\0\x1b[2J\n"].concat())
        .with("line", "é".repeat(3_000_000));
    fixture.check("read", &json!({"path": "empty"}), "[`empty` is empty]");
    let image = "[`image.png` is not text: a PNG image, 12 bytes; `read` shows text only]";
    fixture.check("read", &json!({"path": "image.png"}), image);
    let latin = "     1\tcaf\u{fffd}\n[not valid UTF-8: bytes that are no text are shown as \u{fffd}]";
    fixture.check("read", &json!({"path": "latin"}), latin);
    fixture.check("read", &json!({"path": "bom"}), "     1\tx\n");
    fixture.check("read", &json!({"path": "only-bom"}), "[`only-bom` is empty]");
    fixture.check("read", &json!({"path": "crlf"}), "     1\ta\n     2\tb\n[lines end in CRLF]");
    fixture.check("read", &json!({"path": "late", "offset": 10_001}), " 10001\t\u{fffd}\u{fffd}[2J\n");
    let cut = format!("     1\t{}… [line cut: 6000000 bytes in all]\n", "é".repeat(2_000));
    fixture.check("read", &json!({"path": "line"}), &cut);
}

#[test]
fn read_says_what_is_wrong_with_a_path() {
    let fixture = Fixture::new().with("dir/notes.md", "x");
    fixture.check("read", &json!({"path": "dir"}), "bad input: `dir` is a directory: use `list`");
    let meant = "missing: `dir/note.md` does not exist, did you mean `dir/notes.md`?";
    fixture.check("read", &json!({"path": "dir/note.md"}), meant);
    fixture.check("read", &json!({"path": "other"}), "missing: `other` does not exist");
    let below = "bad input: a part of `dir/notes.md/x` is a file, so nothing can be below it";
    fixture.check("read", &json!({"path": "dir/notes.md/x"}), below);
    let outside = "denied: `/etc/passwd` is outside `/workspace`: use a path relative to the workspace";
    fixture.check("read", &json!({"path": "/etc/passwd"}), outside);
    let long = "y".repeat(300);
    let refused = fixture.call("read", &json!({"path": long}));
    assert_eq!(refused, format!("bad input: `{long}` has a name that is too long"));
}

#[test]
fn unicode_forms_of_a_name_are_different_names() {
    let fixture = Fixture::new().with("caf\u{e9}", "composed");
    fixture.check("read", &json!({"path": "caf\u{e9}"}), "     1\tcomposed\n");
    let refused = fixture.call("read", &json!({"path": "cafe\u{301}"}));
    assert!(refused.starts_with("missing: ") && refused.ends_with("did you mean `caf\u{e9}`?"), "{refused}");
}

#[test]
fn write_creates_and_overwrites_whole_files() {
    let fixture = Fixture::new().with("file", "before");
    fixture.check("write", &json!({"path": "a/b/c", "content": "ü"}), "created `a/b/c`: 2 bytes");
    fixture.check("write", &json!({"path": "a/b/c", "content": ""}), "overwrote `a/b/c`: 0 bytes, before 2");
    assert_eq!(fixture.text("a/b/c"), "");
    let below = "bad input: a part of `file/x` is a file, so nothing can be below it";
    fixture.check("write", &json!({"path": "file/x", "content": ""}), below);
    fixture.check(
        "write",
        &json!({"path": "a", "content": ""}),
        "bad input: `a` is a directory: add the name of a file",
    );
    fixture.check(
        "write",
        &json!({"path": "n/", "content": ""}),
        "bad input: `n/` ends in `/`, but `path` must name a file",
    );
    fixture.check("write", &json!({"path": ".", "content": ""}), "bad input: `path` must name a file in the workspace");
    let name = "x".repeat(255);
    assert_eq!(fixture.call("write", &json!({"path": name, "content": "1"})), format!("created `{name}`: 1 bytes"));
    let unfinished = fs::read_dir(fixture.root()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(unfinished.into_iter().all(|name| !name.to_str().unwrap().contains("unfinished")));
}

#[test]
fn a_write_never_follows_a_link_out() {
    let outer = Fixture::new().with("secret", "s");
    let fixture = Fixture::new();
    symlink(outer.root().join("secret"), fixture.root().join("link")).unwrap();
    symlink(outer.root(), fixture.root().join("directory")).unwrap();
    for (tool, path) in [("write", "link"), ("append", "link"), ("write", "directory/new"), ("append", "directory/new")]
    {
        let answer = fixture.call(tool, &json!({"path": path, "content": "x"}));
        assert_eq!(answer, format!("denied: `{path}` is a symbolic link that leads out of `/workspace`"));
    }
    assert_eq!(outer.text("secret"), "s");
    assert_eq!(fs::read_dir(outer.root()).unwrap().count(), 1);

    fs::create_dir(fixture.root().join("real")).unwrap();
    symlink("real/target", fixture.root().join("inside")).unwrap();
    fixture.check("write", &json!({"path": "inside", "content": "x"}), "created `real/target`: 1 bytes");
    assert_eq!(fixture.text("real/target"), "x");
}

#[test]
fn append_adds_at_the_end() {
    let fixture = Fixture::new().with("log", "a\n");
    fixture.check("append", &json!({"path": "log", "content": "b\n"}), "added 2 bytes to `log`: now 4");
    fixture.check("append", &json!({"path": "new/log", "content": "c"}), "created `new/log`: 1 bytes");
    assert_eq!(fixture.text("log"), "a\nb\n");
}

#[test]
fn only_the_host_writes_to_its_directory() {
    let fixture = Fixture::new().with(".motor-output/1.txt", "x\n");
    fixture.check("read", &json!({"path": ".motor-output/1.txt"}), "     1\tx\n");
    let denied = "denied: `.motor-output` is written by the host only: choose another path";
    for tool in ["write", "append"] {
        fixture.check(tool, &json!({"path": ".motor-output/1.txt", "content": ""}), denied);
    }
    fixture.check("patch", &json!({"path": ".motor-output/1.txt", "find": "x", "replace": "y"}), denied);
    assert_eq!(fixture.text(".motor-output/1.txt"), "x\n");
}

#[test]
fn patch_changes_one_place() {
    let fixture = Fixture::new().with("a.py", "x = 1\ny = 2\n").with("bin", b"\xff").with("big", vec![b'x'; 9_000_000]);
    let done = "replaced 1 occurrence in `a.py` at line 2";
    fixture.check("patch", &json!({"path": "a.py", "find": "y = 2", "replace": "y = 3"}), done);
    let loose = "replaced 1 occurrence in `a.py` at line 1, overlooking differences in whitespace";
    fixture.check("patch", &json!({"path": "a.py", "find": "x  =  1\n", "replace": "x = 0\n"}), loose);
    assert_eq!(fixture.text("a.py"), "x = 0\ny = 3\n");
    let binary = "bad input: `bin` is not valid UTF-8: `patch` changes text only";
    fixture.check("patch", &json!({"path": "bin", "find": "a", "replace": "b"}), binary);
    let big = "limit: `big` has 9000000 bytes, and `patch` takes 8388608";
    fixture.check("patch", &json!({"path": "big", "find": "a", "replace": "b"}), big);
    fixture.check("patch", &json!({"path": "none", "find": "a", "replace": "b"}), "missing: `none` does not exist");
    fixture.check(
        "patch",
        &json!({"path": ".", "find": "a", "replace": "b"}),
        "bad input: `path` must name a file in the workspace",
    );
}

#[test]
fn list_is_sorted_with_the_hosts_directory_last() {
    let fixture = Fixture::new().with("b.txt", "12").with("a/deep/x", "").with(".motor-output/1", "").with("Z", "1");
    fs::create_dir(fixture.root().join("empty")).unwrap();
    symlink("b.txt", fixture.root().join("link")).unwrap();
    let flat = "Z  1\na/\nb.txt  2\nempty/\nlink  (symbolic link)\n.motor-output/\n";
    fixture.check("list", &json!({}), flat);
    let tree = "Z  1\na/\na/deep/\na/deep/x  0\nb.txt  2\nempty/\nlink  (symbolic link)\n.motor-output/\n";
    fixture.check("list", &json!({"recursive": true}), tree);
    fixture.check("list", &json!({"path": "a", "recursive": true}), "deep/\ndeep/x  0\n");
    fixture.check("list", &json!({"path": ".motor-output"}), "1  0\n");
    fixture.check("list", &json!({"path": "empty"}), "[`empty` is an empty directory]");
    fixture.check("list", &json!({"path": "Z"}), "bad input: `Z` is a file: use `read`");
    fixture.check("list", &json!({"path": "none"}), "missing: `none` does not exist");
}

#[test]
fn hostile_names_neither_forge_lines_nor_hide_others() {
    let fixture = Fixture::new().with("a", "").with("x\nforged", "").with("\x1b[2J", "");
    fs::write(fixture.root().join(OsStr::from_bytes(b"bad\xff")), "").unwrap();
    let expected = "\\u{1b}[2J  0\na  0\nx\\nforged  0\n[left out: 1 entries whose names are not UTF-8]";
    fixture.check("list", &json!({}), expected);
}

#[test]
fn links_in_circles_end() {
    let fixture = Fixture::new().with("d/x", "needle\n");
    symlink("..", fixture.root().join("d/up")).unwrap();
    symlink("loop", fixture.root().join("loop")).unwrap();
    fixture.check(
        "list",
        &json!({"recursive": true}),
        "d/\nd/up  (symbolic link)\nd/x  0\nloop  (symbolic link)\n".replace("x  0", "x  7").as_str(),
    );
    fixture.check("grep", &json!({"pattern": "needle"}), "d/x:1:needle\n");
}

#[test]
fn long_listings_are_cut_and_say_so() {
    let mut fixture = Fixture::new();
    for number in 0..1_200 {
        fixture = fixture.with(&format!("d/{number:04}"), "x\n");
    }
    let listed = fixture.call("list", &json!({"path": "d"}));
    assert!(listed.ends_with("0999  2\n[more than 1000 entries: choose a smaller `path`, or use `glob`]"), "{listed}");
    let found = fixture.call("glob", &json!({"pattern": "*"}));
    assert!(found.ends_with("d/0999\n[more than 1000 files match: narrow `pattern` or `path`]"), "{found}");
    let matched = fixture.call("grep", &json!({"pattern": "x"}));
    let note = "d/0099:1:x\n[the first 100 matches; there are more: narrow `pattern`, `path` or `glob`]";
    assert!(matched.ends_with(note), "{matched}");
}

#[test]
fn a_deep_tree_is_walked_to_a_bound() {
    let fixture = Fixture::new().with(&format!("{}x", "d/".repeat(100)), "needle\n");
    let answer = fixture.call("grep", &json!({"pattern": "needle"}));
    assert_eq!(answer, "[no matches; left out: 1 directories deeper than 64]");
}

#[test]
fn glob_finds_files() {
    let fixture =
        Fixture::new().with("a.csv", "").with("d/b.csv", "").with("d/e/c.tsv", "").with(".motor-output/o.csv", "");
    fixture.check("glob", &json!({"pattern": "*.csv"}), "a.csv\nd/b.csv\n");
    fixture.check("glob", &json!({"pattern": "d/**/*.{csv,tsv}"}), "d/b.csv\nd/e/c.tsv\n");
    fixture.check("glob", &json!({"pattern": "*/c.*", "path": "d"}), "d/e/c.tsv\n");
    fixture.check("glob", &json!({"pattern": "*", "path": ".motor-output"}), ".motor-output/o.csv\n");
    fixture.check("glob", &json!({"pattern": "*.md"}), "[no file in `.` matches]");
}

#[test]
fn grep_searches_lines() {
    let fixture = Fixture::new()
        .with("a.txt", "one\nTwo\nthree\r\nfour\nfive\nsix\nseven")
        .with("b.rs", "fn two() {}\n")
        .with("c.bin", b"two\0");
    fixture.check("grep", &json!({"pattern": "^two", "glob": "*.rs"}), "[no matches]");
    let binary = "b.rs:1:fn two() {}\n[not searched: 1 binary file]";
    fixture.check("grep", &json!({"pattern": "two"}), binary);
    fixture.check("grep", &json!({"pattern": "two", "path": "a.txt", "case_insensitive": true}), "a.txt:2:Two\n");
    fixture.check("grep", &json!({"pattern": "three$", "path": "a.txt"}), "a.txt:3:three\n");
    let context = "a.txt-1-one\na.txt:2:Two\na.txt-3-three\n--\na.txt-6-six\na.txt:7:seven\n";
    fixture.check("grep", &json!({"pattern": "Two|seven", "path": "a.txt", "context": 1}), context);
    let touching = "a.txt-2-Two\na.txt:3:three\na.txt:4:four\na.txt-5-five\n";
    fixture.check("grep", &json!({"pattern": "three|four", "path": "a.txt", "context": 1}), touching);
    fixture.check("grep", &json!({"pattern": "x", "path": "none"}), "missing: `none` does not exist");
}

#[test]
fn grep_refuses_hostile_patterns_and_takes_their_twins() {
    let fixture = Fixture::new().with("a", "a".repeat(100_000));
    let open = fixture.call("grep", &json!({"pattern": "(a"}));
    assert_eq!(open, "bad input: `pattern` is not a regular expression: unclosed group");
    let around = fixture.call("grep", &json!({"pattern": "(?=a)"}));
    assert!(around.starts_with("bad input: `pattern` is not a regular expression: look-around"), "{around}");
    let huge = fixture.call("grep", &json!({"pattern": "((\\w{100}){100}){100}"}));
    assert!(huge.starts_with("limit: `pattern` needs more than 2097152 bytes"), "{huge}");
    fixture.check("grep", &json!({"pattern": "(a+)+b"}), "[no matches]");
    assert!(fixture.call("grep", &json!({"pattern": "(a+)+"})).starts_with("a:1:aaaa"));
}

#[test]
fn grep_shows_the_part_of_a_huge_line_that_matches() {
    let line = format!("{}needle{}", "é".repeat(100_000), "y".repeat(2_000_000));
    let fixture = Fixture::new().with("a", line);
    let answer = fixture.call("grep", &json!({"pattern": "needle"}));
    assert!(answer.starts_with("a:1:…é") && answer.contains("needle"), "{answer}");
    assert!(answer.ends_with("…\n[1 line searched in the first 1048576 bytes only]"), "{answer}");
}

#[test]
fn the_host_may_repeat_only_what_does_no_harm() {
    let repeatable: Vec<String> = tools_over("/workspace")
        .iter()
        .map(motor_sdk::Tool::describe)
        .filter(|tool| tool.effects.is_some_and(|effects| effects.read_only || effects.idempotent))
        .map(|tool| tool.name)
        .collect();
    assert_eq!(repeatable, ["read", "write", "list", "glob", "grep"]);
}
