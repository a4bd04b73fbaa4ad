//! Logs: on stderr, never on stdout (SPEC OBS-2).

use base::Refusal;
use tracing_subscriber::EnvFilter;

use super::context::usage;
use crate::output::Output;

/// The form of logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum LogFormat {
    /// A line for people.
    Human,
    /// A JSON object on a line.
    Json,
}

/// Starts logging: `MOTOR_LOG`, else warnings, with `-v` more.
pub(super) fn start(
    format: LogFormat,
    verbose: u8,
    output: &Output,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<(), Refusal> {
    let filter = EnvFilter::builder()
        .parse(directives(verbose, env("MOTOR_LOG")))
        .map_err(|error| usage(format!("`MOTOR_LOG` is no filter: {error}"), "write `info`, or `warn,motor=debug`"))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let colours = output.err.enabled();
    // An error means that an embedding program has set a subscriber already: then that one is used.
    match format {
        LogFormat::Human => builder.with_ansi(colours).with_target(verbose > 0).try_init().ok(),
        LogFormat::Json => builder.json().with_ansi(false).try_init().ok(),
    };
    Ok(())
}

fn directives(verbose: u8, env: Option<String>) -> String {
    let wanted = env.unwrap_or_else(|| {
        // Libraries are quieter than we are.
        match verbose {
            0 => "warn,rmcp=error",
            1 => "info,rmcp=warn,wasmtime=warn,cranelift_codegen=warn",
            _ => {
                "debug,wasmtime=info,wasmtime_internal_cranelift=info,cranelift_codegen=info,hyper=info,hyper_util=info"
            }
        }
        .to_owned()
    });
    // A guest can make `wasmtime_wasi_http` warn with every request that it gets wrong, of which it may make a million.
    // The last directive counts.
    format!("{wanted},wasmtime_wasi_http=off")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_wins() {
        assert_eq!(directives(0, None), "warn,rmcp=error,wasmtime_wasi_http=off");
        assert_eq!(directives(2, Some("motor=trace".to_owned())), "motor=trace,wasmtime_wasi_http=off");
        assert!(directives(1, None).starts_with("info"));
        for verbose in 0..3 {
            assert!(EnvFilter::builder().parse(directives(verbose, None)).is_ok());
        }
        assert!(EnvFilter::builder().parse(directives(0, Some("x=y=z".to_owned()))).is_err());
    }
}
