//! Every ordinary way out of the workspace, tried one after the other. The answer has a line for each: `refused`, or
//! `REACHED` with the data found.

use std::{env, ffi::OsString, fs, io::Read as _, path::Path};

use crate::raw;

pub(crate) fn escape() -> String {
    let mut report = Report::default();
    report.reads();
    report.writes();
    report.links();
    report.ambient();
    for (what, outcome) in raw::attempts() {
        report.attempt(&what, outcome);
    }
    report.lines.join("\n")
}

#[derive(Default)]
struct Report {
    lines: Vec<String>,
}

impl Report {
    fn attempt<T, E: std::fmt::Display>(&mut self, what: &str, outcome: Result<T, E>) {
        self.lines.push(match outcome {
            Ok(_) => format!("REACHED {what}"),
            Err(error) => format!("refused {what}: {error}"),
        });
    }

    fn nothing(&mut self, what: &str, found: &[OsString]) {
        self.lines.push(if found.is_empty() {
            format!("nothing in {what}")
        } else {
            format!("REACHED {what}: {found:?}")
        });
    }

    fn reads(&mut self) {
        for path in [
            "/etc/passwd",
            "../etc/passwd",
            "../../../../../../etc/passwd",
            "/workspace/../etc/passwd",
            "/workspace/./../../etc/passwd",
            "/workspace//..//etc//passwd",
            "/proc/self/environ",
            "/proc/self/root/etc/passwd",
            "/dev/zero",
            "\\etc\\passwd",
            "/workspace/..%2fetc/passwd",
            "/workspace\0/../etc/passwd",
        ] {
            self.attempt(&format!("file {path:?}"), fs::read(path));
        }
        for path in ["/", "..", "/workspace/..", "/tmp", "/home", "/proc/self/fd"] {
            self.attempt(&format!("directory {path:?}"), fs::read_dir(path));
        }
    }

    fn writes(&mut self) {
        for path in ["/escaped", "/tmp/escaped", "../escaped", "/workspace/../escaped", "/workspace/a/../../escaped"] {
            self.attempt(&format!("writing {path:?}"), fs::write(path, "x"));
        }
        self.attempt("making a directory outside", fs::create_dir("/workspace/../escaped-directory"));
        self.attempt("removing the workspace", fs::remove_dir_all("/workspace/../workspace"));
        let own = "/workspace/own";
        let moved = fs::write(own, "x").and_then(|()| fs::rename(own, "/workspace/../escaped"));
        self.attempt("moving a file out", moved);
    }

    /// A link may be made; going through it must not lead out.
    fn links(&mut self) {
        for (name, target) in [
            ("absolute", "/etc/passwd"),
            ("relative", "../../../../../../../../etc/passwd"),
            ("directory", "/etc"),
            ("parent", ".."),
            ("self", "/proc/self/root"),
        ] {
            self.link(target, &format!("link-{name}"));
            let link = format!("/workspace/link-{name}");
            self.attempt(&format!("file that is a link to {target:?}"), fs::read(&link));
            self.attempt(&format!("file behind a link to {target:?}"), fs::read(format!("{link}/passwd")));
            self.attempt(&format!("listing a link to {target:?}"), fs::read_dir(&link));
            self.attempt(&format!("writing behind a link to {target:?}"), fs::write(format!("{link}/escaped"), "x"));
        }
        let hard = fs::hard_link("/etc/passwd", "/workspace/hard");
        self.attempt("a hard link to a file outside", hard);
        let out = fs::write("/workspace/own", "x").and_then(|()| fs::hard_link("/workspace/own", "/workspace/../hard"));
        self.attempt("a hard link outside", out);
        // A chain, each link of which stays inside until the last.
        drop(fs::create_dir_all("/workspace/chain/deep"));
        self.link("chain/deep", "chain-1");
        self.link("chain-1/../../..", "chain-2");
        let chain = fs::read_dir("/workspace/chain-2");
        self.attempt("a chain of links", chain);
    }

    /// Whether a link may be made is the host's choice; only its target counts.
    fn link(&mut self, target: &str, name: &str) {
        let made = if raw::symlink(target, name).is_ok() { "made" } else { "not made" };
        self.lines.push(format!("{made}: a link to {target:?}"));
    }

    fn ambient(&mut self) {
        let variables: Vec<OsString> = env::vars_os().map(|(name, _)| name).collect();
        self.nothing("the environment", &variables);
        // The first argument is a name that the host gives or not; those after it would be the host's own.
        let arguments: Vec<OsString> = env::args_os().skip(1).collect();
        self.nothing("the arguments", &arguments);
        let mut input = Vec::new();
        let read = std::io::stdin().take(1_000).read_to_end(&mut input);
        self.nothing(
            "the input",
            &if read.is_ok() && !input.is_empty() { vec![OsString::from("bytes")] } else { Vec::new() },
        );
        let current = env::current_dir().unwrap_or_default();
        let outside = current != Path::new("/") && !current.starts_with("/workspace");
        self.nothing("the current directory", &if outside { vec![current.into_os_string()] } else { Vec::new() });
        // No socket here: naming one would import the network, and the host would not load this component.
        self.attempt("a process", std::process::Command::new("/bin/sh").spawn());
        self.attempt("a thread", std::thread::Builder::new().spawn(|| ()));
    }
}
