//! The command line: one file for each command (SPEC CLI-0, CLI-1).

mod act;
mod answer;
mod answers;
mod attach;
mod author;
mod call;
mod chat;
mod completions;
mod config;
mod consent;
mod context;
mod cortex;
mod credential;
mod demo;
mod diff;
mod doctor;
mod documents;
mod editor;
mod energy;
mod execute;
mod explain;
mod files;
mod follow;
mod grants;
mod help;
mod input;
mod inspect;
mod interrupt;
mod land;
mod ledger;
mod live;
mod logging;
mod mcp;
mod memory;
mod network;
mod neuron;
mod newest;
mod owner;
mod parked;
mod plan;
mod receipt;
mod serve;
mod setup;
mod signals;
mod skill;
mod spend;
mod staged;
mod status;
mod task;
mod tell;
mod terminal;
mod token;
mod trace;
mod usage;
mod verify;
mod why;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::ExitCode;
use std::time::Duration;

use agent::Env;
use base::{AgentName, Refusal};
use clap::{Args, Parser, Subcommand};

use crate::exit::CommandExit;
use crate::output::{ColorChoice, Output};
use context::Context;
use interrupt::UserInterrupts;

/// How long threads may take to end after the command has: one may still wait for standard input.
const LINGER: Duration = Duration::from_millis(50);

const AFTER_HELP: &str = "\
Exit codes: 0 ok, 1 failed, 2 usage, 4 credentials needed, 5 approval needed or denied, \
6 energy too low, 7 a cap on spending, 74 storage failed under the host, 75 busy or try again later, 130 interrupted.

Begin with `motor demo`: it needs no key and no network. `motor help terms` explains the terms.";

/// Delegates tasks to a model whose every tool call runs in a WebAssembly sandbox.
#[derive(Debug, Parser)]
#[command(name = "motor", version, max_term_width = 100, after_help = AFTER_HELP, subcommand_required = true)]
#[command(disable_help_subcommand = true)]
struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
struct Globals {
    /// Home directory [default: $MOTOR_HOME, else `motor` in the XDG data directory]
    #[arg(long, global = true, value_name = "DIR")]
    home: Option<PathBuf>,
    /// Configuration file [default: `config/motor.toml` in the home]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Directory that new skills go to [default: `skills` in the home]
    #[arg(long, global = true, value_name = "DIR")]
    skills_dir: Option<PathBuf>,
    /// Set a configuration key for this command, such as `limits.fuel=1000000`
    #[arg(long = "set", global = true, value_name = "KEY=VALUE", value_parser = input::setting)]
    settings: Vec<(String, String)>,
    /// Agent that owns the runs and their energy [default: main]
    #[arg(long, global = true, value_name = "NAME")]
    agent: Option<AgentName>,
    /// Print JSON on stdout (JSON Lines for streams)
    #[arg(long, global = true)]
    json: bool,
    /// Log more on stderr (twice: even more); `MOTOR_LOG` sets a filter
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Form of the logs on stderr: `human` or `json`
    #[arg(long, global = true, value_name = "FORM", default_value = "human", hide_possible_values = true)]
    log_format: logging::LogFormat,
    /// Colours: `auto`, `always` or `never`; `NO_COLOR` is respected
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_possible_values = true)]
    color: ColorChoice,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Delegate a task and follow its steps; the answer goes to stdout
    Act(act::ActArgs),
    /// Talk with the agent: it delegates work to runs, and puts their questions to you
    Chat(chat::ChatArgs),
    /// Show the powers of a run, without starting it
    Explain(explain::ExplainArgs),
    /// Let a model draft the access for a task, agree to it once, and start it
    Plan(plan::PlanArgs),
    /// Show the changes of a run in your directories, file by file and step by step
    Diff(diff::DiffArgs),
    /// Apply the changes of a run to your directories, all or nothing
    Land(land::LandArgs),
    /// Take a landing back, and keep your later edits
    Undo(land::UndoArgs),
    /// Run JavaScript in the sandbox and print its value
    Execute(execute::ExecuteArgs),
    /// List, show, answer, retry and cancel runs
    #[command(subcommand)]
    Task(task::TaskCommand),
    /// Show where a file, a line, a request or the answer of a run came from, from its record
    Why(why::WhyArgs),
    /// Watch a run that another process drives; Ctrl-C detaches and leaves it alone
    Attach(attach::AttachArgs),
    /// Export the trace of a run
    #[command(subcommand)]
    Trace(trace::TraceCommand),
    /// Show or verify the signed record of a run's result
    #[command(subcommand)]
    Receipt(receipt::ReceiptCommand),
    /// Manage credentials: runs can use them, nothing displays them
    #[command(subcommand)]
    Credential(credential::CredentialCommand),
    /// List, review, approve and change skills
    #[command(subcommand)]
    Skill(skill::SkillCommand),
    /// Allow or refuse domains: for a run, for the session, always
    #[command(subcommand)]
    Network(network::NetworkCommand),
    /// Manage the owner's token
    #[command(subcommand)]
    Owner(owner::OwnerCommand),
    /// Make, list and revoke tokens for other programs
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Print the signals of runs
    Signals(signals::SignalsArgs),
    /// List a component's tools, or call one under the real limits
    Call(call::CallArgs),
    /// Show the tools of a component and its possible powers, without running it
    Inspect(inspect::InspectArgs),
    /// Make a project of a tool, a skill or a reflector that builds as it is
    New(author::NewArgs),
    /// Build a project with its language's own toolchain
    Build(author::ProjectArgs),
    /// Run the cases of a project under the real limits
    Test(author::TestArgs),
    /// Rebuild a project whenever a file is saved, call it, and show the cost
    Dev(author::DevArgs),
    /// Pack a built project into a `.skill` archive, the same bytes each time
    Pack(author::ProjectArgs),
    /// Print the interfaces of components as a WIT package that other projects depend on
    Wit(author::WitArgs),
    /// List, show, note, assess and forget the peers of an agent
    #[command(subcommand)]
    Ledger(ledger::LedgerCommand),
    /// List, search, show and delete the memories of an agent
    #[command(subcommand)]
    Memory(memory::MemoryCommand),
    /// Show how an agent reflects on its acts and peers, make it reflect, or switch that on and off
    #[command(subcommand)]
    Cortex(cortex::CortexCommand),
    /// List, show, approve and stop code of an agent that reacts to signals without a model
    #[command(subcommand)]
    Neuron(neuron::NeuronCommand),
    /// Show an agent's energy
    Energy,
    /// Show the money spent on models, by day
    Spend(spend::SpendArgs),
    /// Examine home, state, token, skills, credentials, models and machine, and name the command that mends each problem
    Doctor(doctor::DoctorArgs),
    /// Verify the home and every skill in it, byte by byte, without a request; the exit code is by severity
    Verify(verify::VerifyArgs),
    /// Choose a model, try it, and keep its name, its address and its key
    Setup(setup::SetupArgs),
    /// Show and change the configuration
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Run a host in the foreground for other commands and detached runs
    Serve(serve::ServeArgs),
    /// Serve an MCP client on standard input and output
    Mcp(mcp::McpArgs),
    /// Show a whole run without a key and without a network
    Demo,
    /// Print completions for a shell
    Completions(completions::CompletionsArgs),
    /// Explain a command, or a term such as `energy` or `grant`
    Help(help::HelpArgs),
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
enum CliError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("cannot write to stdout: {0}")]
    Output(#[from] io::Error),
}

/// The result of a command.
type Done = Result<CommandExit, CliError>;

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    // Before anything else: the worker's streams and memory are all the compiler's.
    if arguments.nth(1).is_some_and(|argument| argument == runtime::worker::ARGUMENT) {
        return compile_worker(arguments);
    }
    let env = agent::env::of_process();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse_usage(&error, &*env),
    };
    let output = Output::of_process(cli.globals.json, cli.globals.color, &*env);
    let exit = match logging::start(cli.globals.log_format, cli.globals.verbose, &output, &*env) {
        Ok(()) => run(cli, env, &output),
        Err(refusal) => Err(refusal.into()),
    };
    report(exit, &output).into()
}

/// Reports a usage error, or prints the help or the version that was asked for.
fn refuse_usage(error: &clap::Error, env: &dyn Fn(&str) -> Option<String>) -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    match usage::refusal(error).filter(|_| usage::wants_json(arguments.iter().map(OsString::as_os_str))) {
        Some(refusal) => report(Err(refusal.into()), &Output::of_process(true, ColorChoice::Auto, env)).into(),
        None => error.exit(),
    }
}

fn compile_worker(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments = arguments.map(|argument| argument.to_string_lossy().into_owned());
    match agent::run_compile_worker(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Bytes of a worker's stack. Futures that a compiler does not optimise are moved by value, and fill the two megabytes of the default.
const STACK_BYTES: usize = 8 << 20;

fn run(cli: Cli, env: Env, output: &Output) -> Done {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(STACK_BYTES)
        .build()
        .map_err(|error| Refusal::new(base::RefusalCode::Failed, format!("the runtime does not start: {error}")))?;
    let done = runtime.block_on(dispatch(cli, env, output));
    runtime.shutdown_timeout(LINGER);
    done
}

async fn dispatch(cli: Cli, env: Env, output: &Output) -> Done {
    let context = Context { globals: cli.globals, env, output: output.clone(), wishes: UserInterrupts::default() };
    let context = &context;
    let command: Pin<Box<dyn Future<Output = Done> + '_>> = match cli.command {
        Command::Act(arguments) => on_heap(|| act::run(arguments, context)),
        Command::Chat(arguments) => on_heap(|| chat::run(arguments, context)),
        Command::Attach(arguments) => on_heap(|| attach::run(arguments, context)),
        Command::Trace(command) => on_heap(|| trace::run(command, context)),
        Command::Why(arguments) => on_heap(|| why::run(arguments, context)),
        Command::Plan(arguments) => on_heap(|| plan::run(arguments, context)),
        Command::Diff(arguments) => on_heap(|| diff::run(arguments, context)),
        Command::Land(arguments) => on_heap(|| land::land(arguments, context)),
        Command::Undo(arguments) => on_heap(|| land::undo(arguments, context)),
        Command::Explain(arguments) => on_heap(|| explain::run(arguments, context)),
        Command::Credential(command) => on_heap(|| credential::run(command, context)),
        Command::Skill(command) => on_heap(|| skill::run(command, context)),
        Command::Network(command) => on_heap(|| network::run(command, context)),
        Command::Receipt(command) => on_heap(|| receipt::run(command, context)),
        Command::Owner(command) => on_heap(|| owner::run(command, context)),
        Command::Token(command) => on_heap(|| token::run(command, context)),
        Command::Execute(arguments) => on_heap(|| execute::run(arguments, context)),
        Command::Task(command) => on_heap(|| task::run(command, context)),
        Command::Signals(arguments) => on_heap(|| signals::run(arguments, context)),
        Command::Call(arguments) => on_heap(|| call::run(arguments, context)),
        Command::Inspect(arguments) => on_heap(|| inspect::run(arguments, context)),
        Command::New(arguments) => on_heap(|| author::new(arguments, context)),
        Command::Build(arguments) => on_heap(|| author::build(arguments, context)),
        Command::Test(arguments) => on_heap(|| author::test(arguments, context)),
        Command::Dev(arguments) => on_heap(|| author::dev(arguments, context)),
        Command::Pack(arguments) => on_heap(|| author::pack(arguments, context)),
        Command::Wit(arguments) => return author::wit(&arguments, context),
        Command::Ledger(command) => on_heap(|| ledger::run(command, context)),
        Command::Memory(command) => on_heap(|| memory::run(command, context)),
        Command::Cortex(command) => on_heap(|| cortex::run(command, context)),
        Command::Neuron(command) => on_heap(|| neuron::run(command, context)),
        Command::Energy => on_heap(|| energy::run(context)),
        Command::Spend(arguments) => on_heap(|| spend::run(arguments, context)),
        Command::Doctor(arguments) => on_heap(move || async move { doctor::run(&arguments, context).await }),
        Command::Verify(arguments) => on_heap(move || async move { verify::run(&arguments, context).await }),
        Command::Setup(arguments) => on_heap(|| setup::run(arguments, context)),
        Command::Config(command) => on_heap(|| config::run(command, context)),
        Command::Serve(arguments) => on_heap(move || async move { serve::run(&arguments, context).await }),
        Command::Mcp(arguments) => on_heap(move || async move { mcp::run(&arguments, context).await }),
        Command::Demo => on_heap(|| demo::run(context)),
        Command::Completions(arguments) => return completions::run(&arguments, context),
        Command::Help(arguments) => return help::run(&arguments, context),
    };
    command.await
}

/// Makes the future of a command on the heap: without optimisation `dispatch` has room on its stack for each of them.
fn on_heap<'a, F: Future<Output = Done> + 'a>(make: impl FnOnce() -> F) -> Pin<Box<dyn Future<Output = Done> + 'a>> {
    Box::pin(make())
}

/// Reports a failure, and gives the exit code of the process.
fn report(done: Done, output: &Output) -> CommandExit {
    let refusal = match done {
        Ok(exit) => return exit,
        // A closed pipe: the reader has read enough.
        Err(CliError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => return CommandExit::Ok,
        Err(CliError::Output(error)) => {
            output.fail(&format!("cannot write to stdout: {error}"), None);
            return CommandExit::Failed;
        }
        Err(CliError::Refused(refusal)) => refusal,
    };
    // That stdout cannot be written is beside the point now.
    output.refuse(&refusal).ok();
    refusal.code.into()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_commands_are_consistent() {
        Cli::command().debug_assert();
    }

    fn parse(line: &str) -> Result<Cli, clap::error::ErrorKind> {
        Cli::try_parse_from(line.split(' ')).map_err(|error| error.kind())
    }

    #[test]
    fn what_people_type() {
        for line in [
            "motor act",
            "motor setup",
            "motor config set limits.fuel 7",
            "motor act task --tools code,filesystem --file data.csv --timeout 10m --model openai/x",
            "motor act task --tools fetch,bash --domains api.example.com,*.example.org:8443 --credentials key --commands curl,jq",
            "motor explain --domains api.example.com --tools fetch,bash",
            "motor explain task --file data.csv --json",
            "motor plan task --tools fetch --domains api.example.com --print",
            "motor act --plan plan.toml --detach",
            "motor credential set api_key --domain api.example.com,example.org",
            "motor credential set signing --no-domain",
            "motor credential list",
            "motor credential delete api_key --skill x",
            "motor skill list --json",
            "motor skill list --skills-dir ./skills",
            "motor skill review csv-analyst --advisory",
            "motor skill review /mnt/skills/csv.zip",
            "motor skill approve csv --domains a.example,*.b.example:8443 --tools code,fetch --writes a.example --limit fuel=7",
            "motor skill approve csv --proposed --inputs schema.json --credentials key",
            "motor skill update csv --add-domain a.example --remove-domain b.example",
            "motor skill update csv --domains= --tools code",
            "motor skill update csv",
            "motor skill update csv --check",
            "motor skill update --all --check",
            "motor skill reject csv --reason no",
            "motor skill delete csv",
            "motor skill add https://skills.example/csv.zip",
            "motor skill versions csv",
            "motor skill diff csv --from 0123 --to 4567",
            "motor skill rollback csv --to 0123",
            "motor skill verify",
            "motor doctor --offline --fix --json",
            "motor verify --json",
            "motor act task --skill csv --input rows=7 --input path=a.csv",
            "motor explain task --skill csv --inputs {}",
            "motor network allow api.example.com --writes --run run_1",
            "motor network deny *.example.com --session",
            "motor network forget * --always",
            "motor network list",
            "motor execute 1 --tier network",
            "motor act --resume",
            "motor act --resume run_1 --json",
            "motor --json act task --detach",
            "motor execute 1+1 --timeout 100",
            "motor execute -1",
            "motor execute -",
            "motor execute --file a.js --no-guard",
            "motor task status",
            "motor task cancel run_1",
            "motor task delete run_1 run_2",
            "motor attach run_1 --json",
            "motor trace export --format otlp --out run.json",
            "motor serve --open",
            "motor receipt show --json",
            "motor receipt show run_1 --out receipt.json",
            "motor receipt verify receipt.json --key receipt.pub --artifacts out --skill sums --component a.wasm --component b.wasm",
            "motor act task --approval",
            "motor task list --waiting",
            "motor task respond run_1",
            "motor task respond run_1 yes",
            "motor task approve run_1",
            "motor task approve run_1 --for always --reason fine",
            "motor task approve run_1 --deny --id apr_1",
            "motor task retry run_1 --guidance slower --domains a.example.com --writes a.example.com --max-iterations 5",
            "motor owner status",
            "motor owner seal",
            "motor owner unseal",
            "motor owner rotate",
            "motor owner token --json",
            "motor token create --name claude-code --scope agent --agent main --expires 30d",
            "motor token list --json",
            "motor token revoke claude-code",
            "motor serve --listen 127.0.0.1:7777",
            "motor serve --listen 0.0.0.0:7777 --allow-remote",
            "motor signals --follow --since 3",
            "motor call a.wasm",
            "motor call a.wasm greet {}",
            "motor new tool weather --lang rust",
            "motor new skill weather --lang python --dir /tmp/weather",
            "motor new reflector careful --lang js",
            "motor build weather",
            "motor test weather --only greets --bless",
            "motor dev weather greet {} --once",
            "motor pack",
            "motor wit --binary motor-host.wasm",
            "motor ledger list --limit 5 --after npub1 --json",
            "motor chat",
            "motor chat --history 0 --channel work --json",
            "motor chat list --channel matrix --peer mai --json",
            "motor chat list --forgotten",
            "motor chat forget work",
            "motor chat forget matrix --peer @mai:example.org",
            "motor ledger list --forgotten",
            "motor ledger show npub1",
            "motor ledger note npub1 hello --outgoing --channel phone",
            "motor ledger assess npub1 -3 --why late",
            "motor ledger forget npub1",
            "motor memory list --source example.com --limit 5 --json",
            "motor memory search birthday",
            "motor memory show mem_0123456789abcdef",
            "motor memory forget mem_0123456789abcdef",
            "motor memory forget --source example.com",
            "motor cortex status --json",
            "motor cortex beliefs --agent other",
            "motor cortex history --limit 3",
            "motor cortex reflect --peer npub1 --peer @mai:example.org",
            "motor cortex commitments",
            "motor cortex done ben-table",
            "motor cortex drop ben-table",
            "motor cortex directives --json",
            "motor cortex dismiss ask-ben",
            "motor cortex signals --limit 3",
            "motor cortex on",
            "motor cortex off",
            "motor cortex reflector list",
            "motor cortex reflector approve careful",
            "motor cortex reflector revoke careful",
            "motor neuron list --agent other --json",
            "motor neuron show bitcoin",
            "motor neuron signals bitcoin --limit 5",
            "motor neuron propose a a.wasm --purpose p --inputs run.completed,a.b --outputs c --scenarios s.json --energy 100",
            "motor neuron approve bitcoin",
            "motor neuron reject bitcoin",
            "motor neuron off",
            "motor neuron on bitcoin",
            "motor neuron forget bitcoin",
            "motor config show limits.fuel --set limits.fuel=1",
            "motor spend --days 7 --agent other --json",
            "motor spend --all",
            "motor act task --budget-usd 0.50",
            "motor task retry run_1 --budget-usd 2",
            "motor completions bash",
            "motor help",
            "motor help task list",
            "motor help energy",
        ] {
            assert!(parse(line).is_ok(), "{line}: {:?}", parse(line).err());
        }
    }

    #[test]
    fn what_they_should_not() {
        for line in [
            "motor",
            "motor act task --resume run_1",
            "motor act task --plan plan.toml",
            "motor act --plan plan.toml --approval",
            "motor plan",
            "motor act task --timeout soon",
            "motor act task --agent Main",
            "motor act --detach --resume",
            "motor execute",
            "motor execute 1 --file a.js",
            "motor task status ../etc",
            "motor task delete",
            "motor task delete ../etc",
            "motor attach ../etc",
            "motor trace export --format pdf",
            "motor receipt",
            "motor receipt show ../etc",
            "motor receipt verify",
            "motor credential set api_key",
            "motor credential set api_key secret --domain x.org",
            "motor credential set <key> --domain x.org",
            "motor skill",
            "motor skill approve",
            "motor skill approve csv --yes",
            "motor skill approve csv --limit fuel",
            "motor skill update csv --domains a.example --add-domain b.example",
            "motor skill update",
            "motor skill update csv --all",
            "motor skill review",
            "motor skill add",
            "motor act task --input rows=7",
            "motor act task --skill csv --input rows",
            "motor network allow *.com --always",
            "motor network allow x.org --always --session",
            "motor network allow",
            "motor atc task",
            "motor task list --waiting --status failed",
            "motor task approve run_1 --for ever",
            "motor task approve run_1 --deny --for once",
            "motor task approve run_1 --yes",
            "motor owner",
            "motor owner token x",
            "motor token",
            "motor token create --name x",
            "motor token create --name x --scope owner",
            "motor token create --name X --scope read",
            "motor serve --allow-remote",
            "motor serve --listen 7777",
            "motor signals --set x",
            "motor cortex",
            "motor cortex off now",
            "motor cortex done",
            "motor cortex commitments ben-table",
            "motor doctor --accept-loss --fix",
            "motor verify csv",
            "motor cortex reflector approve ../careful",
            "motor cortex reflect npub1",
            "motor neuron approve",
            "motor neuron propose a a.js --purpose p --outputs c --scenarios s.json",
            "motor neuron propose a a.js --purpose p --inputs run.completed --outputs run.completed --scenarios s.json",
            "motor neuron propose a a.js --purpose p --inputs motor_result --outputs c --scenarios s.json",
            "motor neuron show ../x",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
