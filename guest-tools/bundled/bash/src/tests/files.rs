//! The files that a script sees, and those that it does not.

use std::os::unix::fs::symlink;

use super::{run, run_alone};

#[test]
fn nothing_outside_is_there() {
    let outside = tempfile::tempdir().unwrap();
    let root = outside.path().join("workspace");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(outside.path().join("secret"), "canary").unwrap();
    symlink(outside.path().join("secret"), root.join("absolute")).unwrap();
    symlink("../secret", root.join("relative")).unwrap();
    symlink("..", root.join("up")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    let real = outside.path().display();
    for script in [
        "cat ../secret".to_owned(),
        "cat /secret /etc/passwd /proc/self/environ /workspace/../../etc/passwd".to_owned(),
        "cat absolute".to_owned(),
        "cat relative".to_owned(),
        "cat up/secret".to_owned(),
        "cat loop".to_owned(),
        format!("cat {real}/secret"),
        "cd up && cat secret".to_owned(),
        "cd ..; cat secret; ls".to_owned(),
        "cp absolute x; cat x".to_owned(),
        "source absolute".to_owned(),
        "while read -r x; do echo \"$x\"; done < relative".to_owned(),
        "grep -r canary / .".to_owned(),
        "find / -L -name secret -exec cat {} +".to_owned(),
        "tar cf a.tar -h . ; tar xOf a.tar".to_owned(),
        "ln -s ../secret l; cat l".to_owned(),
        "jq -R . absolute; awk 1 relative; sed p up/secret".to_owned(),
    ] {
        let text = run(&root, None, 20_000, &script);
        assert!(!text.contains("canary"), "{script}: {text}");
        assert!(
            !text.contains(&outside.path().display().to_string()) || script.contains(&real.to_string()),
            "{script}: {text}"
        );
    }
    for script in [
        "echo x > absolute",
        "echo x > up/secret",
        "echo x >> relative",
        "rm -rf up/secret",
        "mv absolute/ y",
        "echo x > ../new",
        "tee relative <<< x",
        "rm -rf ../*",
        "rm -rf /workspace",
    ] {
        run(&root, None, 20_000, script);
        assert_eq!(std::fs::read_to_string(outside.path().join("secret")).unwrap(), "canary", "{script}");
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 2, "{script}");
    }
    // The twin: files inside are in reach.
    std::fs::write(root.join("inside"), "here\n").unwrap();
    symlink("inside", root.join("link")).unwrap();
    assert_eq!(run(&root, None, 20_000, "cat link ../workspace/inside /workspace/./inside"), "here\nhere\nhere\n");
}

#[test]
fn writing_elsewhere_is_refused_and_not_lost() {
    let text = run_alone("echo x > /x; echo $?; mkdir /home; echo x > /bin/cat; echo x > /usr/bin/new; ls /");
    assert!(text.starts_with("1\nbin\ndev\ntmp\nworkspace\n[stderr]\n"), "{text}");
    assert!(text.contains("write in `/workspace` or `/tmp`"), "{text}");
    assert_eq!(
        run_alone("echo x > /tmp/f; mkdir -p /tmp/d/e; mv /tmp/f /tmp/d/e; cat /tmp/d/e/f; cp /tmp/d/e/f .; cat f"),
        "x\nx\n"
    );
}

#[test]
fn files_that_are_too_big_are_refused_before_they_are_read() {
    let root = tempfile::tempdir().unwrap();
    std::fs::File::create(root.path().join("big")).unwrap().set_len(1 << 40).unwrap();
    let text = run(
        root.path(),
        None,
        20_000,
        "cat big; head -1 big; ls -l big | cut -c1-10; stat -c %s big; mv big big2; rm big2; ls",
    );
    assert!(text.contains("File too large") && text.contains("1099511627776\n"), "{text}");
    assert!(!root.path().join("big").exists() && !root.path().join("big2").exists());
}

#[test]
fn the_hosts_directory_can_be_read_only() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join(".motor-output")).unwrap();
    std::fs::write(root.path().join(".motor-output/1.txt"), "kept\n").unwrap();
    let text = run(
        root.path(),
        None,
        20_000,
        "cat .motor-output/1.txt; echo x > .motor-output/1.txt; rm -rf .motor-output; mv .motor-output x",
    );
    assert!(text.starts_with("kept\n[stderr]\n"), "{text}");
    assert_eq!(std::fs::read_to_string(root.path().join(".motor-output/1.txt")).unwrap(), "kept\n");
}

#[test]
fn permissions_hold_for_the_call() {
    assert_eq!(
        run_alone("echo 'echo ran' > s; ./s; echo $?; chmod +x s; ./s; [ -x s ] && echo x; chmod 600 s; stat -c %a s"),
        "126\nran\nx\n600\n[stderr]\nbash: line 1: ./s: Permission denied\n"
    );
}

#[test]
fn listing_is_as_people_know_it() {
    let script = "mkdir d; echo abc > b; touch -d '2020-01-02 03:04:05 UTC' b; : > a; : > .h; ls; ls -a; ls -r; ls -p; ls -d d; ls -R; ls -l b; ls -lh d; ls x; ls -Z";
    let text = run_alone(script);
    assert_eq!(
        text,
        "a\nb\nd\n.\n..\n.h\na\nb\nd\nd\nb\na\na\nb\nd/\nd\n.:\na\nb\nd\n\n./d:\n-rw-r--r-- 1 agent agent 4 2020-01-02 03:04 b\ntotal 0\n[stderr]\nls: \
         cannot access 'x': No such file or directory\nls: invalid option -- 'Z'\n[exit code: 2]"
    );
}

#[test]
fn a_pattern_matches_every_file_however_many() {
    let root = tempfile::tempdir().unwrap();
    for number in 0..1_500 {
        std::fs::write(root.path().join(format!("{number}.txt")), "").unwrap();
    }
    assert_eq!(run(root.path(), None, 20_000, "set -- *.txt; echo $#"), "1500\n");
}
