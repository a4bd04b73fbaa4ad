//! `motor setup`: chooses a model, tries it, and keeps the choice: the name and the address in the configuration file, the
//! key in the vault (SPEC CONF-3).

use agent::config::{ConfigEntry, edit};
use agent::{EndpointAddress, LocalServer, ModelAnswer, ModelSetup, SetCredential};
use base::{CredentialName, Refusal, RefusalCode, Secret};
use clap::Args;
use llm::{ModelRef, Provider, Role};
use network::{Pattern, Target};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use vault::CredentialInfo;

use super::Done;
use super::config::reload;
use super::consent::{confirm, gone, yes};
use super::context::{Context, usage};
use super::terminal::Terminal;
use crate::client::Call;
use crate::exit::CommandExit;
use crate::http::AskModelRequest;
use crate::output::text;
use crate::session::Session;
use crate::words::card::Card;

/// Models that are listed at most, for one server.
const SHOWN: usize = 12;
/// How often a wrong answer is asked for again.
const TRIES: usize = 3;
/// Providers that take a key, in the order they are offered.
const WITH_KEY: [(Provider, &str); 4] = [
    (Provider::OpenAi, "OpenAI"),
    (Provider::Anthropic, "Anthropic"),
    (Provider::Gemini, "Google Gemini"),
    (Provider::OpenRouter, "OpenRouter, a gateway to many models"),
];

/// Options of `motor setup`.
#[derive(Debug, Default, Args)]
pub(super) struct SetupArgs {
    /// Model as `provider/model` [default: asked on the terminal]
    #[arg(long, value_name = "MODEL")]
    model: Option<ModelRef>,
    /// Address of the model's server, such as `http://127.0.0.1:8080/v1` [default: the provider's own]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Keep the settings without asking the model for one word
    #[arg(long)]
    no_try: bool,
}

/// The settings that were kept.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetupReport {
    /// The model as `provider/model`.
    model: String,
    /// The keys that were written, with their values and sources.
    settings: Vec<ConfigEntry>,
    /// The reply to the test request; absent if none was made or it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<ModelAnswer>,
}

/// A model that was chosen.
struct ModelChoice {
    model: ModelRef,
    /// The address, if it is to be written.
    url: Option<String>,
    /// Whether an address in the file is to be taken out: the provider is meant, and not another server.
    is_own: bool,
    key: ModelKey,
}

/// The key of a model that was chosen.
enum ModelKey {
    /// It takes none, or the environment has it.
    Known,
    /// The vault has it. This process does not read it.
    Stored,
    /// The owner typed it.
    Typed(TypedKey),
}

/// A key that was typed, and where it may be sent.
struct TypedKey {
    variable: &'static str,
    domain: String,
    value: Secret<String>,
}

/// Runs the command `motor setup`.
pub(super) async fn run(arguments: SetupArgs, context: &Context) -> Done {
    let report = set_up(arguments, context).await?;
    context.answer(&report, || {
        let model = text::one_line(&report.model);
        format!(
            "`{model}` does the work from now on: try `motor act \"Count the words of this sentence\" --tools code`"
        )
    })?;
    Ok(CommandExit::Ok)
}

/// Offers to set a model up where none of these roles has one.
///
/// # Errors
/// If the configuration does not load, or the set-up is begun and not finished.
pub(super) async fn offer(terminal: &Terminal, roles: &[Role], context: &Context) -> Result<(), Refusal> {
    let models = context.place()?.load()?.config.models.roles();
    if roles.iter().any(|role| models.resolve(*role).is_ok()) {
        return Ok(());
    }
    if yes(terminal, "no model is set up yet. Do it now? [y/N] ").await? {
        set_up(SetupArgs::default(), context).await?;
    }
    Ok(())
}

/// Chooses a model, tries it, and keeps it.
///
/// # Errors
/// If nothing was chosen, the model does not answer, or the choice cannot be kept.
async fn set_up(arguments: SetupArgs, context: &Context) -> Result<SetupReport, Refusal> {
    let place = context.place()?;
    let mut setup = ModelSetup::new(&place.load()?, &place.env);
    let terminal = Terminal::open();
    let choice = match (arguments.model, &terminal) {
        (Some(model), _) => named(model, arguments.url, &mut setup, terminal.as_ref(), context).await?,
        (None, Some(terminal)) if arguments.url.is_none() => asked(&mut setup, terminal, context).await?,
        _ => {
            let remedy = "`motor setup --model provider/model`, with `--url` for a server of your own";
            return Err(usage("a model is to be named: there is no terminal to ask on", remedy));
        }
    };
    let stored = matches!(choice.key, ModelKey::Stored);
    let mut tried = None;
    if !arguments.no_try && !stored {
        tried = tried_or_kept(setup.ask(&choice.model), &choice, terminal.as_ref(), context).await?;
    }
    keep(&choice, context).await?;
    if !arguments.no_try && stored {
        let request = AskModelRequest { model: Some(choice.model.to_string()) };
        let mut session = Session::open(place).await?;
        let asking = session.ask::<ModelAnswer>(&Call::post("/v1/host/model", &request)?).await;
        session.close().await;
        tried = Some(asking.inspect(|answer| told(answer, context))?);
    }
    let file = context.place()?.load()?;
    let settings: Vec<_> = file.entries().into_iter().filter(|entry| is_written(&entry.key, &choice)).collect();
    Ok(SetupReport { model: choice.model.to_string(), settings, answer: tried })
}

fn is_written(key: &str, choice: &ModelChoice) -> bool {
    key == "models.default" || choice.url.is_some() && key == url_key(choice.model.provider)
}

/// The outcome of the test request. At a terminal, a model that does not answer can be kept all the same.
async fn tried_or_kept(
    asking: impl Future<Output = Result<ModelAnswer, Refusal>>,
    choice: &ModelChoice,
    terminal: Option<&Terminal>,
    context: &Context,
) -> Result<Option<ModelAnswer>, Refusal> {
    context.output.say(&format!("asking {} for one word", text::one_line(&choice.model.to_string())));
    match (asking.await, terminal) {
        (Ok(answer), _) => {
            told(&answer, context);
            Ok(Some(answer))
        }
        (Err(refusal), Some(terminal)) => {
            context.output.warn(&text::revealed(&refusal.reason));
            if yes(terminal, "keep it all the same? [y/N] ").await? { Ok(None) } else { Err(refusal) }
        }
        (Err(refusal), None) => Err(refusal.with_remedy("mend it, or add `--no-try`: nothing was kept")),
    }
}

fn told(answer: &ModelAnswer, context: &Context) {
    let seconds = answer.elapsed_ms as f64 / 1_000.0;
    context.output.say(&format!("it answered in {seconds:.1} s: {}", text::revealed(&answer.text)));
}

/// A model that was named on the command line.
async fn named(
    model: ModelRef,
    url: Option<String>,
    setup: &mut ModelSetup,
    terminal: Option<&Terminal>,
    context: &Context,
) -> Result<ModelChoice, Refusal> {
    if let Some(url) = &url {
        if model.provider == Provider::Replay {
            return Err(usage("a recording has no address", "leave `--url` out"));
        }
        Target::parse(url)
            .map_err(|wrong| usage(format!("`--url`: {}", wrong.reason), "write `http://HOST:PORT/v1`"))?;
        setup.set_url(model.provider, url);
    }
    let key = match &url {
        None if WITH_KEY.iter().any(|(provider, _)| *provider == model.provider) => {
            key(model.provider, setup, terminal, context).await?
        }
        None => ModelKey::Known,
        Some(_) => key_of_server(model.provider, setup, terminal, context).await?,
    };
    Ok(ModelChoice { model, url, is_own: false, key })
}

/// Asks which model is to be used.
async fn asked(setup: &mut ModelSetup, terminal: &Terminal, context: &Context) -> Result<ModelChoice, Refusal> {
    context.output.say("looking for model servers on this machine");
    let servers = setup.local_servers().await;
    let mut offers: Vec<Offer> = Vec::new();
    for server in &servers {
        offers.extend(server.models.iter().take(SHOWN).map(|model| Offer::Local(server, model)));
    }
    offers.extend(WITH_KEY.iter().map(|(provider, words)| Offer::Provider(*provider, words)));
    offers.push(Offer::Server);
    let mut menu = String::from("which model does the work?\n");
    for (number, offer) in offers.iter().enumerate() {
        menu.push_str(&format!("{:>4}  {}\n", number + 1, offer.line(setup)));
    }
    write(terminal, &menu)?;
    for _ in 0..TRIES {
        let said = ask(terminal, "number, or provider/model: ").await?;
        let chosen = said.parse::<usize>().ok().and_then(|number| offers.get(number.checked_sub(1)?));
        match (chosen, said.parse::<ModelRef>()) {
            (Some(Offer::Local(server, model)), _) => {
                let model = ModelRef { provider: server.provider, model: (*model).clone() };
                // The address of a provider that is found by itself is not written.
                let known = setup.address(server.provider).is_some_and(|address| address.base_url == server.base_url);
                setup.set_url(server.provider, &server.base_url);
                let url = (!known).then(|| server.base_url.clone());
                tell_key(server.provider, setup, context);
                return Ok(ModelChoice { model, url, is_own: false, key: ModelKey::Known });
            }
            (Some(Offer::Provider(provider, _)), _) => return of_provider(*provider, setup, terminal, context).await,
            (Some(Offer::Server), _) => return of_server(setup, terminal, context).await,
            (None, Ok(model)) if model.provider == Provider::Compatible => {
                return of_server(setup, terminal, context).await;
            }
            (None, Ok(model)) => return named(model, None, setup, Some(terminal), context).await,
            (None, Err(error)) if said.contains('/') => {
                write(terminal, &format!("{}\n", text::revealed(&error.to_string())))?
            }
            (None, Err(_)) => write(terminal, &format!("that is not one of 1 to {}\n", offers.len()))?,
        }
    }
    Err(unchosen())
}

/// A line of the menu.
enum Offer<'a> {
    Local(&'a LocalServer, &'a String),
    Provider(Provider, &'static str),
    Server,
}

impl Offer<'_> {
    fn line(&self, setup: &ModelSetup) -> String {
        match self {
            Self::Local(server, model) => {
                let name = format!("{}/{model}", server.provider);
                format!("{:<38}  runs on this machine, at {}", text::one_line(&name), text::one_line(&server.base_url))
            }
            Self::Provider(provider, words) => {
                let key = setup.address(*provider).filter(|address| address.has_key);
                let key = key
                    .map_or_else(|| "takes a key".to_owned(), |address| format!("`{}` is set", address.key_variable));
                format!("{words:<38}  {key}")
            }
            Self::Server => format!("{:<38}  with the API of OpenAI", "another server"),
        }
    }
}

async fn of_provider(
    provider: Provider,
    setup: &mut ModelSetup,
    terminal: &Terminal,
    context: &Context,
) -> Result<ModelChoice, Refusal> {
    setup.reset_url(provider);
    let key = key(provider, setup, Some(terminal), context).await?;
    let model = model_of(provider, setup, terminal).await?;
    Ok(ModelChoice { model, url: None, is_own: true, key })
}

async fn of_server(setup: &mut ModelSetup, terminal: &Terminal, context: &Context) -> Result<ModelChoice, Refusal> {
    for _ in 0..TRIES {
        let url = ask(terminal, "address, such as http://127.0.0.1:8080/v1: ").await?;
        match Target::parse(&url) {
            Err(wrong) => write(terminal, &format!("{}\n", text::revealed(&wrong.reason)))?,
            Ok(_) => {
                setup.set_url(Provider::Compatible, &url);
                let key = key_of_server(Provider::Compatible, setup, Some(terminal), context).await?;
                let model = model_of(Provider::Compatible, setup, terminal).await?;
                return Ok(ModelChoice { model, url: Some(url), is_own: false, key });
            }
        }
    }
    Err(unchosen())
}

/// Asks for one of the provider's models, by number or by name.
async fn model_of(provider: Provider, setup: &ModelSetup, terminal: &Terminal) -> Result<ModelRef, Refusal> {
    let models = match setup.models(provider).await {
        Ok(models) => models,
        Err(refusal) => {
            write(terminal, &format!("its models cannot be listed: {}\n", text::revealed(&refusal.reason)))?;
            Vec::new()
        }
    };
    let mut menu = String::new();
    for (number, model) in models.iter().enumerate().take(SHOWN) {
        menu.push_str(&format!("{:>4}  {}\n", number + 1, text::one_line(model)));
    }
    if models.len() > SHOWN {
        menu.push_str(&format!("      and {} more, by name\n", models.len() - SHOWN));
    }
    write(terminal, &menu)?;
    let prompt = if models.is_empty() { "name of the model: " } else { "number, or name of the model: " };
    for _ in 0..TRIES {
        let said = ask(terminal, prompt).await?;
        let by_number = said.parse::<usize>().ok().and_then(|number| models.get(number.checked_sub(1)?));
        let name = by_number.cloned().unwrap_or(said);
        // Both forms are typed: with the provider, and without.
        let prefix = format!("{provider}/");
        match format!("{prefix}{}", name.strip_prefix(&prefix).unwrap_or(&name)).parse::<ModelRef>() {
            Ok(model) => return Ok(model),
            Err(error) => write(terminal, &format!("{}\n", text::revealed(&error.to_string())))?,
        }
    }
    Err(unchosen())
}

/// Says that a key of the environment goes to the server.
fn tell_key(provider: Provider, setup: &ModelSetup, context: &Context) {
    if let Some(address) = setup.address(provider).filter(|address| address.has_key) {
        let EndpointAddress { base_url, key_variable, .. } = address;
        context.output.warn(&format!("the key in `{key_variable}` is sent to {}", text::one_line(&base_url)));
    }
}

/// The key of a server that the owner named: asked for if the server refuses to be asked without one.
async fn key_of_server(
    provider: Provider,
    setup: &mut ModelSetup,
    terminal: Option<&Terminal>,
    context: &Context,
) -> Result<ModelKey, Refusal> {
    tell_key(provider, setup, context);
    match setup.models(provider).await {
        Err(refusal) if refusal.code == RefusalCode::CredentialsNeeded => key(provider, setup, terminal, context).await,
        _ => Ok(ModelKey::Known),
    }
}

/// The key of a provider: none if it has one already, otherwise asked for.
async fn key(
    provider: Provider,
    setup: &mut ModelSetup,
    terminal: Option<&Terminal>,
    context: &Context,
) -> Result<ModelKey, Refusal> {
    let Some(address) = setup.address(provider).filter(|address| !address.has_key) else { return Ok(ModelKey::Known) };
    let variable = address.key_variable;
    let target = Target::parse(&address.base_url).map_err(|wrong| usage(wrong.reason, "mend the address"))?;
    let domain = target.authority();
    if is_stored(variable, &target, context).await? {
        context.output.say(&format!("the vault has a key for it: `{variable}`"));
        return Ok(ModelKey::Stored);
    }
    let Some(terminal) = terminal else {
        let reason = format!("no key for `{provider}`, and no terminal to ask for it");
        let remedy = format!("`… | motor credential set {variable} --domain {domain}`, or export `{variable}`");
        return Err(Refusal::new(RefusalCode::CredentialsNeeded, reason).with_remedy(remedy));
    };
    let prompt = format!("key for {domain} (not shown; it is kept in the vault): ");
    for tries in 1.. {
        let value = terminal.ask_secret(&prompt).await.map_err(|error| gone(&error))?;
        let value = Secret::new(value.expose().trim().to_owned());
        if value.expose().is_empty() {
            return Err(usage("the key is empty", format!("export `{variable}`, or type it at the prompt")));
        }
        setup.set_key(provider, value.clone());
        let refused = setup.models(provider).await.err();
        match refused.filter(|refusal| refusal.code == RefusalCode::CredentialsNeeded) {
            Some(refusal) if tries < TRIES => write(terminal, &format!("{}\n", text::revealed(&refusal.reason)))?,
            Some(refusal) => return Err(refusal),
            None => return Ok(ModelKey::Typed(TypedKey { variable, domain, value })),
        }
    }
    Err(unchosen())
}

/// Whether the vault has a credential of this name that may be sent there.
async fn is_stored(name: &str, target: &Target, context: &Context) -> Result<bool, Refusal> {
    let mut session = Session::open(context.place()?).await?;
    let listed = session.ask::<Vec<CredentialInfo>>(&Call::get("/v1/credentials")).await;
    session.close().await;
    let covers = |domain: &String| domain.parse::<Pattern>().is_ok_and(|pattern| pattern.covers(target));
    let fits = |info: &CredentialInfo| {
        info.name.as_str() == name && info.skill.is_none() && !info.unreadable && info.domains.iter().any(covers)
    };
    Ok(listed?.iter().any(fits))
}

/// Writes the choice: first the key, so that the file never names a model whose key is lost.
async fn keep(choice: &ModelChoice, context: &Context) -> Result<(), Refusal> {
    let place = context.place()?;
    if let ModelKey::Typed(TypedKey { variable, domain, value }) = &choice.key {
        let name: CredentialName =
            variable.parse().map_err(|_| usage(format!("`{variable}` is no name"), "export it"))?;
        let card = Card::new("keep the key?").with("name", *variable).with("sent to", domain.as_str());
        let request = SetCredential {
            name,
            value: value.expose().clone(),
            domains: vec![domain.clone()],
            skill: None,
            raw: false,
        };
        let call = Call::post("/v1/credentials", &request)?;
        let mut session = Session::open(place.clone()).await?;
        let kept = async {
            let word = confirm(&card, context).await?;
            session.ask::<Value>(&call.with(word)).await
        };
        let kept = kept.await;
        session.close().await;
        kept?;
    }
    let file = place.config.unwrap_or_else(|| place.home.config_file());
    if let Some(url) = &choice.url {
        edit::set_in_file(&file, url_key(choice.model.provider), url)?;
    }
    if choice.is_own {
        edit::unset_in_file(&file, url_key(choice.model.provider))?;
    }
    edit::set_in_file(&file, "models.default", &choice.model.to_string())?;
    reload(context).await?;
    // A variable of the environment, or a role of its own, may still choose another model.
    let loaded = context.place()?.load()?;
    if let Ok(model) = loaded.config.models.roles().resolve(Role::Motor)
        && *model != choice.model
    {
        let model = text::one_line(&model.to_string());
        context
            .output
            .warn(&format!("another setting has precedence: runs use `{model}`; see `motor config show models`"));
    }
    let written = |entry: &ConfigEntry| entry.key == url_key(choice.model.provider);
    let in_force = loaded.entries().into_iter().find(written).filter(|entry| !entry.value.is_null());
    let in_force = in_force.filter(|entry| match &choice.url {
        Some(url) => entry.value != url.as_str(),
        None => choice.is_own,
    });
    if let Some(entry) = in_force {
        let (value, origin) = (entry.value.to_string(), entry.origin.to_string());
        let (value, origin) = (text::one_line(&value), text::one_line(&origin));
        context.output.warn(&format!("requests go to {value}, from {origin}, which has precedence"));
    }
    context.output.say(&format!("written to {}", text::one_line(&file.display().to_string())));
    Ok(())
}

/// The key of the configuration that holds a provider's address.
fn url_key(provider: Provider) -> &'static str {
    match provider {
        Provider::OpenRouter => "models.openrouter_url",
        Provider::Anthropic => "models.anthropic_url",
        Provider::Gemini => "models.gemini_url",
        Provider::Ollama => "models.ollama_url",
        _ => "models.openai_url",
    }
}

async fn ask(terminal: &Terminal, prompt: &str) -> Result<String, Refusal> {
    let said = terminal.ask(prompt).await.map_err(|error| gone(&error))?;
    said.map(|said| said.trim().to_owned()).ok_or_else(unchosen)
}

fn write(terminal: &Terminal, text: &str) -> Result<(), Refusal> {
    terminal.write(text).map_err(|error| gone(&error))
}

fn unchosen() -> Refusal {
    usage("no model was chosen, and nothing was changed", "`motor setup --model provider/model`")
}
