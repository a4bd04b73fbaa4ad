//! A tool that reads from one domain: rates of currencies. Its policy proposes the domain, and its owner grants it.

use std::collections::BTreeMap;
use std::io::Read as _;

use motor_sdk::http::{self, HttpError, Request};
use motor_sdk::{ToolError, serde, serde_json, tool};

/// The longest answer that is read: the real ones are below 1 KiB.
const MAX_BYTES: u64 = 64 * 1024;

/// The part of the service's answer that is used.
#[derive(serde::Deserialize)]
#[serde(crate = "motor_sdk::serde")]
struct Latest {
    date: String,
    rates: BTreeMap<String, f64>,
}

/// Gives the latest reference rate of the European Central Bank between two currencies.
#[tool(effects = "read, open-world")]
fn exchange_rate(
    /// The currency that one unit is taken of: three letters such as `EUR`.
    from: String,
    /// The currency that is wanted.
    to: String,
) -> Result<String, ToolError> {
    let (from, to) = (code(&from)?, code(&to)?);
    let request = Request::get(format!("https://api.frankfurter.dev/v1/latest?base={from}&symbols={to}"));
    let response = http::send_following(request, 3)?;
    let status = response.status;
    let mut text = String::new();
    response.body.take(MAX_BYTES).read_to_string(&mut text).map_err(|error| HttpError::of_read(&error))?;
    match status {
        200 => rate(&text, &from, &to),
        404 | 422 => Err(ToolError::missing(format!("there is no rate from `{from}` to `{to}`: check both codes"))),
        _ => Err(ToolError::failed_for_now(format!("the service answered with status {status}"))),
    }
}

/// A code in capitals. Other text never becomes a part of the URL.
fn code(text: &str) -> Result<String, ToolError> {
    let code = text.trim().to_ascii_uppercase();
    if code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Ok(code);
    }
    Err(ToolError::bad_input("a currency is three letters, such as `EUR`"))
}

fn rate(text: &str, from: &str, to: &str) -> Result<String, ToolError> {
    let latest: Latest = serde_json::from_str(text)
        .map_err(|error| ToolError::failed(format!("the service's answer is not as documented: {error}")))?;
    match latest.rates.get(to) {
        Some(rate) => Ok(format!("1 {from} = {rate} {to} ({})", latest.date)),
        None => Err(ToolError::missing(format!("there is no rate from `{from}` to `{to}`: check both codes"))),
    }
}

motor_sdk::export!([exchange_rate]);

#[cfg(test)]
mod tests {
    use motor_sdk::serde_json::json;
    use motor_sdk::testing::call;
    use motor_sdk::tools;

    use super::*;

    #[test]
    fn an_answer_becomes_a_line() {
        let text = r#"{"amount":1.0,"base":"EUR","date":"2026-11-26","rates":{"USD":1.25}}"#;
        assert_eq!(rate(text, "EUR", "USD").unwrap(), "1 EUR = 1.25 USD (2026-11-26)");
        assert!(matches!(rate(text, "EUR", "JPY"), Err(ToolError::Missing(_))));
        assert!(matches!(rate("<html>", "EUR", "USD"), Err(ToolError::Failed(_))));
    }

    #[test]
    fn nothing_but_a_code_reaches_the_url() {
        let refused = call(&tools![exchange_rate], "exchange_rate", json!({ "from": "EUR&x=", "to": "USD" }));
        assert!(matches!(refused, Err(ToolError::BadInput(_))), "{refused:?}");
        assert_eq!(code(" usd ").unwrap(), "USD");
    }
}
