//! A network namespace of a test's own, in which any address is local: public ones can be reached, and forbidden ones have
//! listeners that count.
//!
//! A thread cannot be moved into a namespace without unsafe code, so the test starts itself again inside one.

use std::process::Command;

/// Tells a child which test it is.
const INSIDE: &str = "MOTOR_TEST_NAMESPACE";
/// Set on machines that may not make namespaces, where these tests then test nothing.
const CANNOT: &str = "MOTOR_TEST_NO_NAMESPACE";
/// Seconds until a child that hangs is ended.
const MAX_SECONDS: &str = "120";

/// Runs the calling test inside a network namespace where these addresses are local, as well as `127.0.0.0/8` and `::1`.
/// There is no way out of it.
///
/// # Panics
/// If the body panics, or if the namespace cannot be made and `MOTOR_TEST_NO_NAMESPACE` is not set.
pub fn isolated<F: FnOnce()>(addresses: &[&str], body: F) {
    // `it::gate::a_test::{{closure}}`: the path of the test, as the test harness knows it, without the crate.
    let path = std::any::type_name::<F>().trim_end_matches("::{{closure}}");
    let (_, test) = path.split_once("::").expect("a test in a module");
    if std::env::var(INSIDE).is_ok_and(|inside| inside == test) {
        return body();
    }
    if let Err(why) = can_be_made() {
        let why = format!("`{test}` needs a network namespace, and this machine makes none: {why}");
        assert!(std::env::var_os(CANNOT).is_some(), "{why} (set {CANNOT}=1 to go without it)");
        println!("NOT TESTED: {why}");
        return;
    }
    let prepare = addresses.iter().map(|address| {
        let flags = if address.contains(':') { " nodad" } else { "" };
        format!("ip address add {address} dev lo{flags} && ")
    });
    let script =
        format!("ip link set lo up && {}exec timeout {MAX_SECONDS} \"$0\" \"$@\"", prepare.collect::<String>());
    let mut command = Command::new("unshare");
    command.args(flags()).args(["--", "sh", "-c", &script]);
    command.arg(std::env::current_exe().expect("this program has a path"));
    command.args([test, "--exact", "--include-ignored", "--nocapture", "--test-threads=1"]).env(INSIDE, test);
    let output = command.output().expect("`unshare` starts");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // The count: a name that matches nothing succeeds as well.
    let passed = output.status.success() && stdout.contains("1 passed");
    assert!(passed, "`{test}` failed in its namespace:\n{stdout}\n{stderr}");
    print!("{}", stdout.lines().filter(|line| line.starts_with("measured")).collect::<Vec<_>>().join("\n"));
}

/// Root makes a network namespace; others make a user namespace with it, in which they are root.
fn flags() -> &'static [&'static str] {
    if rustix::process::geteuid().is_root() { &["--net"] } else { &["--net", "--user", "--map-root-user"] }
}

fn can_be_made() -> Result<(), String> {
    let tried = Command::new("unshare").args(flags()).args(["--", "ip", "link", "set", "lo", "up"]).output();
    match tried {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(format!("cannot run `unshare` (package util-linux) with `ip` (iproute2): {error}")),
    }
}
