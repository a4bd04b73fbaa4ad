//! `-w`: the text printed about a transfer after it.

use super::Transfer;

/// Puts a transfer's figures into a format.
pub(super) fn render(format: &str, transfer: &Transfer, method: &str, code: i32) -> String {
    let mut text = String::new();
    let mut rest = format;
    while let Some(index) = rest.find(['%', '\\']) {
        let (before, special) = rest.split_at(index);
        text.push_str(before);
        rest = if let Some((name, after)) = special.strip_prefix("%{").and_then(|inner| inner.split_once('}')) {
            text.push_str(&variable(name, transfer, method, code));
            after
        } else {
            let mut pair = special.chars();
            match (pair.next(), pair.next()) {
                (Some('%'), Some('%')) => text.push('%'),
                (Some('\\'), Some('n')) => text.push('\n'),
                (Some('\\'), Some('t')) => text.push('\t'),
                (Some('\\'), Some('r')) => text.push('\r'),
                (first, second) => text.extend(first.into_iter().chain(second)),
            }
            pair.as_str()
        };
    }
    text.push_str(rest);
    text
}

fn variable(name: &str, transfer: &Transfer, method: &str, code: i32) -> String {
    let header = |name: &str| {
        let found = transfer.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    match name {
        "http_code" | "response_code" => format!("{:03}", transfer.status),
        "size_download" => transfer.body.len().to_string(),
        "content_type" => header("content-type"),
        "redirect_url" => header("location"),
        "url_effective" | "url" => transfer.url.clone(),
        "scheme" => transfer.url.split("://").next().unwrap_or_default().to_owned(),
        "method" => method.to_owned(),
        "exitcode" => code.to_string(),
        "num_headers" => transfer.headers.len().to_string(),
        "time_total" => format!("{:.6}", transfer.seconds),
        other => other.strip_prefix("header{").map(header).unwrap_or_default(),
    }
}
