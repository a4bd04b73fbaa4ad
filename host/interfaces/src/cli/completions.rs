//! `motor completions`: for shells.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::context::Context;
use super::{Cli, Done};
use crate::exit::CommandExit;

/// Arguments of `motor completions`.
#[derive(Debug, Args)]
#[command(after_help = "For bash: motor completions bash > ~/.local/share/bash-completion/completions/motor")]
pub(super) struct CompletionsArgs {
    /// Shell to print completions for
    shell: Shell,
}

pub(super) fn run(arguments: &CompletionsArgs, context: &Context) -> Done {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "motor", &mut script);
    context.output.print_trusted(&String::from_utf8_lossy(&script))?;
    Ok(CommandExit::Ok)
}
