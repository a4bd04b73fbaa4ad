//! Scripts that would not end, or would fill memory: each ends with a limit, and the shell answers.

use super::{run, run_alone};

/// Scripts without an end of their own; the first output of each must come back.
const ENDLESS: [&str; 14] = [
    "while :; do :; done",
    "while true; do x=$((x + 1)); done",
    "for ((;;)); do :; done",
    "until false; do :; done",
    "awk 'BEGIN { while (1) i++ }'",
    "awk 'BEGIN { for (;;) x = x \"y\" }'",
    "echo x | sed ':a; ba'",
    "echo x | sed ':a; s/x/xx/; ta'",
    "jq -n 'def f: f; f'",
    "jq -n '[repeat(1)]'",
    "f() { f; }; f",
    "sleep 50",
    "yes | while read -r x; do :; done",
    "x=$(yes); echo ${#x}",
];

/// Scripts that ask for more than there is.
const GREEDY: [&str; 22] = [
    ":(){ :|:& };:",
    "f() { f & f & wait; }; f",
    "yes > /dev/null",
    "yes | head -n 1000000000 | tail -1",
    "echo {1..1000000000}",
    "echo {1..100}{1..100}{1..100}{1..100}{1..100}",
    "printf '%999999999d' 1",
    "printf '%.999999999f' 1",
    "printf \"%0999999999d\" 1",
    "x=x; while :; do x=$x$x; done; echo ${#x}",
    "a=(); for ((i = 0; i < 10000000; i++)); do a+=(xxxxxxxxxxxxxxxxxxxx); done",
    "seq 1000000000",
    "seq 1000000000 | sort -n | tail -1",
    "head -c 1000000000 /dev/zero | wc -c",
    "cat /dev/zero",
    "dd if=/dev/zero of=/tmp/x bs=1M count=1000",
    "truncate -s 100G /tmp/x; cat /tmp/x",
    "while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx >> /tmp/f; cat /tmp/f /tmp/f > /tmp/g; mv /tmp/g /tmp/f; done",
    "eval \"$(printf 'eval %.0s' {1..5000}) echo hi\"",
    "awk 'BEGIN { printf \"%999999999d\", 1 }'",
    "awk 'BEGIN { s = \"x\"; while (length(s) < 1e9) s = s s; print length(s) }'",
    "jq -n '\"x\" * 1000000000 | length'",
];

#[test]
fn endless_scripts_end_and_what_they_printed_comes_back() {
    for script in ENDLESS {
        let root = tempfile::tempdir().unwrap();
        let text = run(root.path(), None, 1_500, &format!("echo first; {script}; echo never"));
        assert!(text.starts_with("first\n"), "{script}: {text:.300}");
        assert!(text.contains("[stderr]\n"), "{script}: {text:.300}");
    }
}

#[test]
fn a_script_that_runs_out_of_time_says_so() {
    let root = tempfile::tempdir().unwrap();
    let text = run(root.path(), None, 300, "echo first; while :; do :; done");
    assert_eq!(text, "first\n[stderr]\nbash: timed out after 300 ms\n[exit code: 124]");
}

#[test]
fn greedy_scripts_run_into_a_limit() {
    for script in GREEDY {
        let root = tempfile::tempdir().unwrap();
        let text = run(root.path(), None, 3_000, &format!("{script}; echo \"after $?\""));
        assert!(text.len() < 3 << 20, "{script}: {}", text.len());
    }
}

#[test]
fn deep_nesting_is_refused() {
    let many = |text: &str, times: usize| text.repeat(times);
    for script in [
        format!("{}echo hi{}", many("(", 5_000), many(")", 5_000)),
        format!("{}echo hi{}", many("{ ", 5_000), many("; }", 5_000)),
        format!("echo {}hi{}", many("$(echo ", 2_000), many(")", 2_000)),
        format!("{}:{}", many("if ", 5_000), many("; then :; fi", 5_000)),
        format!("echo $(({}1{}))", many("(", 20_000), many(")", 20_000)),
        format!("echo {}a{}", many("{b,", 5_000), many("}", 5_000)),
        format!("echo {}x{}", many("${a:-", 5_000), many("}", 5_000)),
        format!("[[ {}a == a{} ]]", many("( ", 5_000), many(" )", 5_000)),
        format!("echo '{}' | jq .", many("[", 200_000)),
        format!("jq -n '{}1{}'", many("(", 20_000), many(")", 20_000)),
        format!("awk 'BEGIN {{ print {}1{} }}'", many("(", 20_000), many(")", 20_000)),
        format!("echo x | grep -E '{}x{}'", many("(", 20_000), many(")", 20_000)),
        format!("echo x | sed -E 's/{}x{}/y/'", many("(", 20_000), many(")", 20_000)),
        format!("find . {} -name x {}", many("'(' ", 5_000), many("')' ", 5_000)),
        format!("expr {} 1 {}", many("'(' ", 5_000), many("')' ", 5_000)),
        format!("cat <<X\n{}\nX", many("y", 900_000)),
        many("x", 2 << 20),
    ] {
        let text = run_alone(&format!("{script}\necho after"));
        assert!(text.len() < 2 << 20, "{script:.80}: {}", text.len());
    }
}

#[test]
fn expressions_that_explode_are_matched_in_time() {
    for script in [
        "echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa! | grep -E '^(a+)+$'",
        "echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa! | grep -P '^(a+)+$'",
        "echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa! | sed -E 's/^(a|a)*$/x/'",
        "echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa! | grep -E '^(a+)\\1+$'",
        "[[ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa! =~ ^(a+)+$ ]]",
        "shopt -s extglob; [[ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa! == +(+(a)) ]]",
        "[[ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa == *a*a*a*a*a*a*a*a*a*a*b ]]",
        "grep -E '(x{1000}){1000}' <<< x",
        "jq -n '\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\" | test(\"^(a+)+$\")'",
    ] {
        let root = tempfile::tempdir().unwrap();
        let text = run(root.path(), None, 5_000, script);
        assert!(!text.contains("timed out"), "{script}: {text}");
    }
}

#[test]
fn the_twin_of_them_all_works() {
    assert_eq!(
        run_alone("for i in {1..1000}; do x=$((x + i)); done; seq 1000 | awk '{ s += $1 } END { print s }'; echo $x"),
        "500500\n500500\n"
    );
}
