//! Commands that write: the repository has to be the same afterwards as after git's own, sound, and readable by git.

use std::path::Path;

use super::support::{ENVIRONMENT, copy, has_git, ours, script, text, theirs, with_environment, words, workspace};

/// The start of every sequence.
const SETUP: &str = r#"
init
mkdir -p src/deep docs
printf 'one\ntwo\nthree\n' > src/a.txt
seq 1 40 > numbers
echo keep > docs/keep; echo gone > gone; echo x > src/deep/x
printf '#!/bin/sh\necho hi\n' > run.sh; chmod +x run.sh
printf '*.o\nbuild/\n' > .gitignore
ln -s numbers link
ci 'first'
echo 41 >> numbers; ci 'second'
git branch side HEAD~1
sed -i 's/two/zwei/' src/a.txt
rm gone
seq 5 45 > more; mkdir new; echo n > new/file; echo o > skip.o
echo ' leading' > 'with space'
sleep 0.02
"#;

/// Sequences of commands, a sequence on a line; `|` between commands, `!` in front of a shell command.
const SEQUENCES: &str = include_str!("rows/write.txt");

/// The facts that the two repositories are compared by afterwards.
const VIEWS: [&[&str]; 10] = [
    &["status", "--porcelain", "-b"],
    &["ls-files", "-s"],
    &["log", "--all", "--format=%H %T %an %ae %ad %cn %ce %cd %B"],
    &["for-each-ref"],
    &["symbolic-ref", "-q", "HEAD"],
    &["log", "-g", "--format=%gd %gs %H"],
    &["diff", "--cached"],
    &["diff"],
    &["fsck", "--full", "--strict"],
    &["config", "--list", "--local"],
];

#[test]
fn repositories_are_as_git_leaves_them() {
    if !has_git() {
        return;
    }
    let mut wrong = Vec::new();
    let mut rows = 0;
    let (_kept, original) = workspace();
    std::fs::create_dir(original.join("w")).unwrap();
    script(&original.join("w"), SETUP);
    for line in SEQUENCES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        rows += 1;
        let (_kept_ours, root) = workspace();
        let (_kept_theirs, other) = workspace();
        copy(&original.join("w"), &root);
        copy(&original.join("w"), &other);
        let (root, other) = (root.join("w"), other.join("w"));
        for command in line.split('|').map(str::trim) {
            if let Some(command) = command.strip_prefix('!') {
                script(&root, command);
                script(&other, command);
                continue;
            }
            let words = words(command);
            let arguments: Vec<&str> = words.iter().map(String::as_str).collect();
            let (expected, answer) = (theirs(&other, &arguments), ours(&root, &root, &arguments));
            if (&expected.stdout, expected.code) != (&answer.stdout, answer.code) {
                wrong.push(format!(
                    "=== {line}\nat: git {command}\n--- git ({})\n{}{}--- here ({})\n{}{}",
                    expected.code,
                    text(&expected.stdout),
                    text(&expected.stderr),
                    answer.code,
                    text(&answer.stdout),
                    text(&answer.stderr)
                ));
            }
        }
        for view in VIEWS {
            let (expected, answer) = (theirs(&other, view), theirs(&root, view));
            if expected != answer {
                wrong.push(format!(
                    "=== {line}\nseen by: git {}\n--- git ({})\n{}{}--- here ({})\n{}{}",
                    view.join(" "),
                    expected.code,
                    text(&expected.stdout),
                    text(&expected.stderr),
                    answer.code,
                    text(&answer.stdout),
                    text(&answer.stderr)
                ));
            }
        }
        let trees = [&other, &root].map(|place| script(place, "find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 sha1sum; find . -path ./.git -prune -o -perm /111 -type f -print | sort"));
        if trees[0] != trees[1] {
            wrong.push(format!("=== {line}\nfiles:\n--- git\n{}--- here\n{}", trees[0], trees[1]));
        }
    }
    eprintln!("{rows} sequences");
    assert!(wrong.is_empty(), "{} differences in {rows} sequences:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_new_repository_is_one_for_git() {
    if !has_git() {
        return;
    }
    let (_kept, root) = workspace();
    let call = |arguments: &[&str]| {
        let answer = ours(&root, &root, arguments);
        assert_eq!(answer.code, 0, "{arguments:?}: {}{}", text(&answer.stdout), text(&answer.stderr));
        text(&answer.stdout)
    };
    assert_eq!(call(&["init"]), format!("Initialized empty Git repository in {}/.git/\n", root.display()));
    std::fs::create_dir_all(root.join("a/b")).unwrap();
    std::fs::write(root.join("a/b/c"), "content\n").unwrap();
    std::fs::write(root.join("large"), vec![7; 20 << 20]).unwrap();
    call(&["add", "."]);
    assert!(call(&["commit", "-m", "begin"]).starts_with("[main (root-commit) "));
    assert_eq!(text(&theirs(&root, &["log", "--format=%an %s"]).stdout), "A U Thor begin\n");
    assert_eq!(text(&theirs(&root, &["fsck", "--strict"]).stderr), "");
    assert_eq!(text(&theirs(&root, &["status", "--porcelain"]).stdout), "");
    assert_eq!(text(&theirs(&root, &["show", "HEAD:a/b/c"]).stdout), "content\n");
}

#[test]
fn without_an_identity_commits_are_the_runs_own() {
    let (_kept, root) = workspace();
    let call = |arguments: &[&str]| with_environment(&root, &root, arguments, std::iter::empty());
    assert_eq!(call(&["init", "-q"]).code, 0);
    std::fs::write(root.join("f"), "x").unwrap();
    assert_eq!(call(&["add", "f"]).code, 0);
    assert_eq!(call(&["commit", "-qm", "one"]).code, 0);
    assert_eq!(
        text(&call(&["log", "--format=%an <%ae> %cd"]).stdout),
        "motor run <run@motor.invalid> Fri Jan 15 08:00:00 2027 +0000\n"
    );
    // Its twin: one that is configured is taken.
    assert_eq!(call(&["config", "user.name", "Somebody Else"]).code, 0);
    assert_eq!(call(&["config", "user.email", "else@example.com"]).code, 0);
    assert_eq!(call(&["commit", "--allow-empty", "-qm", "two"]).code, 0);
    assert_eq!(text(&call(&["log", "-1", "--format=%an <%ae>"]).stdout), "Somebody Else <else@example.com>\n");
}

#[test]
fn programs_of_the_configuration_never_run() {
    if !has_git() {
        return;
    }
    let (_kept, root) = workspace();
    script(&root, "init; echo a > f; echo b > g.txt; ci one");
    let marker = root.join("ran");
    let program = format!("#!/bin/sh\ntouch {}\n", marker.display());
    for hook in
        ["pre-commit", "commit-msg", "prepare-commit-msg", "post-commit", "post-index-change", "reference-transaction"]
    {
        let place = root.join(".git/hooks").join(hook);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(&place, &program).unwrap();
        script(&root, &format!("chmod +x '{}'", place.display()));
    }
    let run = root.join(".git/hooks/pre-commit").display().to_string();
    for (key, value) in [
        ("core.fsmonitor", run.as_str()),
        ("core.hooksPath", ".git/hooks"),
        ("core.pager", &run),
        ("core.editor", &run),
        ("core.sshCommand", &run),
        ("core.askPass", &run),
        ("credential.helper", &run),
        ("diff.external", &run),
        ("diff.bad.textconv", &run),
        ("diff.bad.command", &run),
        ("gpg.program", &run),
        ("commit.gpgSign", "true"),
        ("log.showSignature", "true"),
        ("alias.status", &format!("!{run}")),
        ("include.path", "/etc/passwd"),
    ] {
        script(&root, &format!("git config '{key}' '{value}'"));
    }
    std::fs::write(root.join(".git/info/attributes"), "*.txt diff=bad merge=bad\n").unwrap();
    std::fs::write(root.join("g.txt"), "changed\n").unwrap();
    for arguments in [
        &["status"][..],
        &["diff"],
        &["log", "-p"],
        &["show"],
        &["add", "."],
        &["commit", "-m", "two"],
        &["branch", "new"],
        &["switch", "new"],
    ] {
        let answer = ours(&root, &root, arguments);
        assert_eq!(answer.code, 0, "{arguments:?}: {}", text(&answer.stderr));
    }
    assert!(!marker.exists());
    assert!(text(&ours(&root, &root, &["log", "--oneline"]).stdout).ends_with(" one\n"));
}

#[test]
fn what_is_not_here_is_refused_clearly() {
    if !has_git() {
        return;
    }
    let (_kept, root) = workspace();
    script(
        &root,
        "init plain; (cd plain; echo a > f; ci one; git worktree add -q ../linked)\ngit init -q --object-format=sha256 wide\ninit super; \
         (cd super; git -c protocol.file.allow=always submodule -q add ../plain sub; ci sub)\ninit large; (cd large; echo '*.bin \
         filter=lfs diff=lfs -text' > .gitattributes; ci one; echo x > f.bin; echo y > f.txt)\ngit clone -q --mirror plain bare.git\n\
         git clone -q plain split; git -C split update-index --split-index\ngit init -q --ref-format=reftable tables",
    );
    let check = |directory: &str, line: &str, expected: &str| {
        let words = words(line);
        let arguments: Vec<&str> = words.iter().map(String::as_str).collect();
        let answer = ours(&root, &root.join(directory), &arguments);
        assert!(answer.code != 0 && text(&answer.stderr).contains(expected), "{directory}: {line}: {answer:?}");
    };
    for command in ["fetch", "pull", "clone https://example.com/x"] {
        check("plain", command, "only `push` and `ls-remote` reach a remote repository");
    }
    check("plain", "push https://example.com/x main", "a network for git");
    check("plain", "merge other", "only commits on the current branch");
    check("plain", "rebase -i HEAD~2", "only commits on the current branch");
    check("plain", "frobnicate", "'frobnicate' is not a git command");
    check("plain", "commit -S -m x", "signed commits");
    check("plain", "commit --allow-empty", "there is no editor here");
    check("plain", "log --graph", "--graph");
    check("plain", "config core.hooksPath x", "setting `core.hooksPath`");
    check("plain", "--git-dir=/x status", "--git-dir");
    check("linked", "status", "a submodule or a linked working tree");
    check("super/sub", "status", "a submodule or a linked working tree");
    check("wide", "status", "object format `sha256`");
    check("tables", "status", "reference storage `reftable`");
    check("bare.git", "log", "not a git repository");
    check("split", "status", "split index");
    check("large", "add f.bin", "the filter `lfs`");
    check(".", "status", "not a git repository");
    // The twins.
    assert_eq!(ours(&root, &root.join("large"), &["add", "f.txt"]).code, 0);
    assert_eq!(text(&ours(&root, &root.join("super"), &["status", "--porcelain"]).stdout), "");
    assert_eq!(text(&ours(&root, &root.join("super"), &["ls-files"]).stdout), ".gitmodules\nsub\n");
    assert_eq!(ours(&root, &root.join("plain"), &["status"]).code, 0);
}

#[test]
fn a_file_changed_with_the_index_is_seen() {
    if !has_git() {
        return;
    }
    for _ in 0..20 {
        let (_kept, root) = workspace();
        let call = |arguments: &[&str]| assert_eq!(ours(&root, &root, arguments).code, 0, "{arguments:?}");
        call(&["init", "-q"]);
        std::fs::write(root.join("f"), "aaaa").unwrap();
        call(&["add", "f"]);
        // Of the same size, perhaps in the same moment; then the index is written again.
        std::fs::write(root.join("f"), "bbbb").unwrap();
        std::fs::write(root.join("g"), "x").unwrap();
        call(&["add", "g"]);
        for seen in [ours(&root, &root, &["status", "--porcelain"]), theirs(&root, &["status", "--porcelain"])] {
            assert_eq!(text(&seen.stdout), "AM f\nA  g\n");
        }
    }
}

#[test]
fn a_lock_of_another_call_is_respected() {
    let (_kept, root) = workspace();
    let call = |arguments: &[&str]| ours(&root, &root, arguments);
    assert_eq!(call(&["init", "-q"]).code, 0);
    std::fs::write(root.join("f"), "x").unwrap();
    std::fs::write(root.join(".git/index.lock"), "").unwrap();
    let answer = call(&["add", "f"]);
    assert!(answer.code == 128 && text(&answer.stderr).contains("index.lock': File exists"), "{answer:?}");
    assert!(!Path::new(&root).join(".git/index").exists());
    std::fs::remove_file(root.join(".git/index.lock")).unwrap();
    assert_eq!(call(&["add", "f"]).code, 0);
    std::fs::create_dir_all(root.join(".git/refs/heads")).unwrap();
    std::fs::write(root.join(".git/refs/heads/main.lock"), "").unwrap();
    assert_eq!(call(&["commit", "-m", "x"]).code, 128);
    std::fs::remove_file(root.join(".git/refs/heads/main.lock")).unwrap();
    assert_eq!(call(&["commit", "-m", "x"]).code, 0);
    let _ = ENVIRONMENT;
}
