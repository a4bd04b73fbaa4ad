//! The list of allowed commands: each way to run a command, with the command forbidden and with it allowed.

use super::run;

/// Ways to run `cat secret`, which prints `canary`. The other commands they use are allowed both times.
const WAYS: [&str; 54] = [
    "cat secret",
    "cat < secret",
    "echo x | cat secret",
    "cat secret | sort",
    "echo x | sort | cat - secret",
    "echo \"$(cat secret)\"",
    "echo `cat secret`",
    "echo \"$(echo \"$(cat secret)\")\"",
    "true && cat secret",
    "false || cat secret",
    "true; cat secret",
    "(cat secret)",
    "{ cat secret; }",
    "if cat secret; then :; fi",
    "if true; then cat secret; fi",
    "while cat secret; do break; done",
    "for x in 1; do cat secret; done",
    "for ((i = 0; i < 1; i++)); do cat secret; done",
    "case x in x) cat secret;; esac",
    "! cat secret",
    "echo() { cat secret; }; echo",
    "f() { cat secret; }; f",
    "f() { g; }; g() { cat secret; }; f",
    "shopt -s expand_aliases\nalias echo='cat secret'\necho",
    "x=cat; $x secret",
    "x='cat secret'; $x",
    "a=(cat secret); \"${a[@]}\"",
    "x=ca; \"${x}t\" secret",
    "\\cat secret",
    "'cat' secret",
    "c'a't secret",
    "c\"a\"t secret",
    "$'\\x63at' secret",
    "/bin/cat secret",
    "/usr/bin/cat secret",
    "../bin/cat secret",
    "eval 'cat secret'",
    "eval eval cat secret",
    "command cat secret",
    "exec cat secret",
    "bash -c 'cat secret'",
    "sh -c \"sh -c 'cat secret'\"",
    "echo 'cat secret' > s; source ./s",
    "echo 'cat secret' > s; . ./s",
    "echo 'cat secret' > s; bash s",
    "echo 'cat secret' > s; bash < s",
    "echo 'cat secret' | bash",
    "trap 'cat secret' EXIT",
    "trap 'cat secret' ERR; false",
    "sort <<< \"$(cat secret)\"",
    "sort <<END\n$(cat secret)\nEND",
    "time cat secret",
    "cat secret & wait",
    "coproc cat secret; read -r x <&\"${COPROC[0]}\"; echo \"$x\"",
];

/// The same through commands that run commands, which have to be allowed themselves.
const THROUGH: [(&str, &str); 16] = [
    ("xargs", "echo secret | xargs cat"),
    ("xargs", "echo secret | xargs -I{} sh -c 'cat {}'"),
    ("find", "find . -name secret -exec cat {} \\;"),
    ("find", "find . -name secret -exec cat {} +"),
    ("find", "find . -name secret -execdir cat {} \\;"),
    ("find", "find . -name secret -exec sh -c 'cat {}' \\;"),
    ("env", "env cat secret"),
    ("env", "env -i X=1 cat secret"),
    ("timeout", "timeout 5 cat secret"),
    ("nohup", "nohup cat secret"),
    ("nice", "nice -n 5 cat secret"),
    ("awk", "awk 'BEGIN { system(\"cat secret\") }'"),
    ("awk", "awk 'BEGIN { \"cat secret\" | getline x; print x }'"),
    ("awk", "awk 'BEGIN { print \"x\" | \"cat - secret\"; close(\"cat - secret\") }'"),
    ("timeout", "timeout 5 sh -c 'cat secret'"),
    ("tee", "echo 'cat secret' | tee s > /dev/null; bash s"),
];

fn attack(allowed: &str, script: &str) -> String {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("secret"), "canary\n").unwrap();
    run(root.path(), Some(allowed), 20_000, script)
}

#[test]
fn a_forbidden_command_never_runs() {
    let ways = WAYS.iter().map(|way| ("true", *way)).chain(THROUGH);
    let mut wrong = String::new();
    for (through, script) in ways {
        let hostile = attack(&format!("echo,sort,xargs,{through}"), script);
        if hostile.contains("canary") || !hostile.contains("bash: cat: not allowed in this run: allowed are ") {
            wrong.push_str(&format!("forbidden: {script}: {hostile}\n"));
        }
        // The twin: allowed, it runs.
        let benign = attack(&format!("echo,sort,xargs,cat,{through}"), script);
        if !benign.contains("canary") || benign.contains("not allowed") {
            wrong.push_str(&format!("allowed: {script}: {benign}\n"));
        }
    }
    assert_eq!(wrong, "");
}

#[test]
fn a_forbidden_command_has_an_exit_code_of_its_own() {
    assert_eq!(
        attack("jq,curl,nonsense", "cat secret; echo $?"),
        "[stderr]\nbash: cat: not allowed in this run: allowed are curl, jq\nbash: echo: not allowed in this run: allowed are \
         curl, jq\n[exit code: 126]"
    );
    assert_eq!(
        attack("", "cat secret"),
        "[stderr]\nbash: cat: not allowed in this run: allowed is only what the shell does itself\n[exit code: 126]"
    );
}

#[test]
fn a_process_substitution_is_no_way_out() {
    // The standard error of a substitution is not shown; its exit code is told on standard output.
    let script = "sort <(cat secret; echo $?)";
    assert_eq!(attack("echo,sort", script), "126\n");
    assert_eq!(attack("echo,sort,cat", script), "0\ncanary\n");
}

#[test]
fn what_runs_commands_needs_to_be_allowed_itself() {
    for (script, name) in [
        ("echo secret | xargs cat", "xargs"),
        ("find . -exec cat secret \\;", "find"),
        ("env cat secret", "env"),
        ("timeout 1 cat secret", "timeout"),
        ("nohup cat secret", "nohup"),
        ("awk 'BEGIN{system(\"cat secret\")}'", "awk"),
    ] {
        let text = attack("echo,cat", script);
        assert!(text.contains(&format!("bash: {name}: not allowed")), "{script}: {text}");
    }
}

#[test]
fn the_list_is_out_of_reach_of_the_script() {
    for script in [
        "MOTOR_COMMANDS=cat; cat secret",
        "export MOTOR_COMMANDS=cat; cat secret",
        "MOTOR_COMMANDS=cat bash -c 'cat secret'",
        "unset MOTOR_COMMANDS; cat secret",
        "enable cat; cat secret",
        "enable -f /bin/cat cat; cat secret",
        "builtin cat secret",
        "hash -p /bin/cat x; x secret",
        "BASH_CMDS[x]=/bin/cat; x secret",
        "PATH=/bin:/usr/bin; cat secret",
        "printf() { cat secret; }; printf",
        "busybox cat secret; sudo cat secret; cat secret",
        "echo '#!/bin/cat' > s; chmod +x s; ./s; cat secret",
        "declare -f cat; cat secret",
        "function cat { command cat \"$@\"; }; cat secret",
        "unalias -a; cat secret",
        "set -o posix; cat secret",
    ] {
        let text = attack("echo,chmod", script);
        assert!(!text.contains("canary"), "{script}: {text}");
        let refused = ["not allowed in this run", "not a shell builtin", "command not found"];
        assert!(refused.iter().any(|words| text.contains(words)), "{script}: {text}");
    }
}

#[test]
fn the_shell_itself_needs_no_permission() {
    let script = "x=(1 2); for i in \"${x[@]}\"; do ((s += i)); done; [[ $s == 3 ]] && [ -f secret ] && test -r secret; f() { local y=$1; return 4; }; f a";
    assert_eq!(attack("", script), "[exit code: 4]");
}
