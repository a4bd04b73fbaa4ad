//! A tool that reads from one domain: rates of currencies. Its policy proposes the domain, and its owner grants it.

use std::collections::BTreeMap;

use motor_sdk::http::{self, Request};
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
    let answer = response.text(MAX_BYTES)?;
    match status {
        200 => rate(&answer, &from, &to),
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

fn rate(answer: &str, from: &str, to: &str) -> Result<String, ToolError> {
    let latest: Latest = serde_json::from_str(answer)
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
    use motor_sdk::testing::{Sandbox, call};
    use motor_sdk::tools;

    use super::*;

    const URL: &str = "https://api.frankfurter.dev/v1/latest?base=EUR&symbols=USD";

    #[track_caller]
    fn check(status: u16, answer: &str, expected: Result<&str, fn(&ToolError) -> bool>) {
        let _sandbox = Sandbox::new().with_response("GET", URL, (status, answer));
        match (call(&tools![exchange_rate], "exchange_rate", json!({ "from": "EUR", "to": " usd " })), expected) {
            (Ok(output), Ok(expected)) => assert_eq!(output, expected),
            (Err(error), Err(is_expected)) => assert!(is_expected(&error), "{error:?}"),
            (result, _) => panic!("{result:?}"),
        }
    }

    #[test]
    fn an_answer_becomes_a_line() {
        let rates = r#"{"amount":1.0,"base":"EUR","date":"2026-11-26","rates":{"USD":1.25}}"#;
        check(200, rates, Ok("1 EUR = 1.25 USD (2026-11-26)"));
        check(200, &rates.replace("USD", "JPY"), Err(|error| matches!(error, ToolError::Missing(_))));
        check(200, "<html>", Err(|error| matches!(error, ToolError::Failed(failure) if !failure.retryable)));
        check(404, "", Err(|error| matches!(error, ToolError::Missing(_))));
        check(503, "", Err(|error| matches!(error, ToolError::Failed(failure) if failure.retryable)));
    }

    #[test]
    fn nothing_but_a_code_reaches_the_url() {
        let sandbox = Sandbox::new();
        let refused = call(&tools![exchange_rate], "exchange_rate", json!({ "from": "EUR&x=", "to": "USD" }));
        assert!(matches!(refused, Err(ToolError::BadInput(_))), "{refused:?}");
        assert!(sandbox.requests().is_empty());
    }
}
