//! `model-server SCRIPT.json [--port N]`: the scripted model endpoint for use from a shell. It prints its base URL,
//! which for `OPENAI_BASE_URL`, and serves until it is killed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "support of tests"
)]

use anyhow::Context as _;
use tests::model_server::{ModelServer, Script};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let usage = "usage: model-server SCRIPT.json [--port N]";
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (file, port) = match arguments.as_slice() {
        [file] => (file, 0),
        [file, flag, port] if flag == "--port" => (file, port.parse().context(usage)?),
        _ => anyhow::bail!(usage),
    };
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read `{file}`"))?;
    let script: Script = serde_json::from_str(&text).with_context(|| format!("`{file}` is not a script"))?;
    let server = ModelServer::start_on(script, port).await;
    println!("{}", server.base_url());
    server.serve().await;
    Ok(())
}
