//! The benign twins: requests, credentials, and saying things, each through the interface as it is meant.

use motor_sdk::bindings::motor::host::credentials::{self, CredentialError, SignatureAlgorithm};
use motor_sdk::bindings::motor::host::outbound;
use motor_sdk::serde_json::{Value, json};
use motor_sdk::{Context, Tool, ToolError, log, progress};
use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{Fields, OutgoingBody};

use crate::{Answer, wire};

motor_sdk::arguments! {
    struct Request {
        /// The method.
        method: String,
        /// The URL.
        url: String,
        /// Header fields, name and value each.
        headers: Option<Vec<[String; 2]>>,
        /// The body.
        body: Option<String>,
    }

    struct Compute {
        /// `exists`, `hmac`, `ed25519`, `es256`, `rs256` or `reveal`.
        what: String,
        /// The credential.
        name: String,
        /// What to compute over.
        data: Option<String>,
        /// How often; the last result counts.
        times: Option<u32>,
    }

    struct Say {
        /// What.
        text: String,
        /// `output`, `error`, `log`, `progress`, `stdout` or `panic`.
        how: String,
    }

    struct Nothing {}
}

/// Sends one request and tells everything of the answer.
fn request(arguments: Request, _: &Context) -> Answer {
    let answer = exchange(&arguments).unwrap_or_else(|error| json!({"error": error}));
    let refusal = outbound::last_refusal()
        .map(|refusal| json!({"rule": refusal.rule, "reason": refusal.reason, "remedy": refusal.remedy}));
    Ok(json!({"answer": answer, "refusal": refusal}).to_string())
}

fn exchange(arguments: &Request) -> Result<Value, String> {
    let fields = Fields::new();
    for [name, value] in arguments.headers.iter().flatten() {
        fields.append(name, value.as_bytes()).map_err(|error| format!("{error:?}"))?;
    }
    let request = wire::request(&arguments.method, &arguments.url, fields)?;
    let body = request.body().map_err(|()| "no body")?;
    let future = handle(request, None).map_err(|code| wire::name(&code))?;
    if let Some(text) = &arguments.body {
        let stream = body.write().map_err(|()| "no stream")?;
        wire::write_all(&stream, text.as_bytes())?;
    }
    OutgoingBody::finish(body, None).map_err(|code| wire::name(&code))?;
    wire::read(&wire::finish(&future)?, 64 * 1024)
}

fn compute(arguments: Compute, _: &Context) -> Answer {
    let data = arguments.data.unwrap_or_default().into_bytes();
    let name = &arguments.name;
    let mut result = json!(null);
    for _ in 0..arguments.times.unwrap_or(1) {
        result = match arguments.what.as_str() {
            "exists" => json!(credentials::exists(name)),
            "hmac" => told(credentials::hmac_sha256(name, &data)),
            "ed25519" => told(credentials::sign(name, SignatureAlgorithm::Ed25519, &data)),
            "es256" => told(credentials::sign(name, SignatureAlgorithm::EcdsaP256Sha256, &data)),
            "rs256" => told(credentials::sign(name, SignatureAlgorithm::RsaPkcs1Sha256, &data)),
            "reveal" => told(credentials::reveal(name).map(String::into_bytes)),
            _ => return Err(ToolError::bad_input("`what` is none of those")),
        };
    }
    Ok(result.to_string())
}

fn told(result: Result<Vec<u8>, CredentialError>) -> Value {
    match result {
        Ok(bytes) => json!({"hex": bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()}),
        Err(CredentialError::Missing(message)) => json!({"missing": message}),
        Err(CredentialError::Denied(message)) => json!({"denied": message}),
        Err(CredentialError::Unusable(message)) => json!({"unusable": message}),
    }
}

fn say(arguments: Say, _: &Context) -> Answer {
    let text = arguments.text;
    match arguments.how.as_str() {
        "output" => return Ok(text),
        "error" => return Err(ToolError::failed(text)),
        "log" => log::info(&text),
        "progress" => progress::report(&text, None),
        "stdout" => println!("{text}"),
        "panic" => panic!("{text}"),
        _ => return Err(ToolError::bad_input("`how` is none of those")),
    }
    Ok("said".to_owned())
}

/// Says a credential's value, if it gets it.
fn blurt(arguments: Say, context: &Context) -> Answer {
    let text = credentials::reveal(&arguments.text).map_err(|_| ToolError::denied("not revealed"))?;
    say(Say { text, how: arguments.how }, context)
}

fn environment(_: Nothing, _: &Context) -> Answer {
    let variables: Vec<(String, String)> = std::env::vars().collect();
    Ok(json!(variables).to_string())
}

pub(crate) fn tools() -> Vec<Tool> {
    vec![
        Tool::new("request", "Sends a request.", request),
        Tool::new("compute", "Computes with a credential.", compute).read_only(),
        Tool::new("say", "Says something.", say).read_only(),
        Tool::new("blurt", "Says the value of a credential.", blurt).read_only(),
        Tool::new("environment", "Tells its environment.", environment).read_only(),
    ]
}
