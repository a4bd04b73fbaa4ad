//! A prompt's section about network access: the domains, the rule about writing, the credentials.

use std::fmt::Display;

use layer::Layer;
use network::{RunNetwork, TaintedWrite};

/// The section of the prompt.
pub(crate) fn of(network: &RunNetwork, commands: Option<&[String]>) -> String {
    let policy = network.policy();
    let reachable: Vec<_> =
        policy.domains.iter().filter(|pattern| !policy.refused.contains(pattern)).cloned().collect();
    let mut text = String::from("# Network\n");
    if reachable.is_empty() {
        text.push_str("- No domain was granted: every request is refused.");
    } else {
        text.push_str(&format!(
            "- Reachable: {}. Ports 80 and 443 unless one is named; all else is refused as `network_blocked`.",
            names(&reachable)
        ));
    }
    if network.is_staged() {
        text.push_str(
            "\n- A request that writes (POST, PUT, PATCH, DELETE) is not sent but held for the owner: it fails as `staged`, with its \
             number and no response. Make each once, go on as if it will be sent, and list them in your answer.",
        );
    }
    if policy.only_planned {
        let writes = match policy.writes.as_slice() {
            [] => "none".to_owned(),
            writes => names(writes),
        };
        text.push_str(&format!(
            "\n- The owner agreed to a plan: of the requests that write, only these are allowed: {writes}."
        ));
    } else if policy.tainted_write != TaintedWrite::Allow && !reachable.is_empty() && !network.is_staged() {
        let except = match policy.writes.as_slice() {
            [] => String::new(),
            writes => format!(", except to {}", names(writes)),
        };
        text.push_str(&format!(
            "\n- Once you have read from the network, requests that write (POST, PUT, PATCH, DELETE), carry a credential or much in \
             the URL wait for the owner{except}."
        ));
    }
    let secrets = network.secrets();
    for granted in secrets.granted().iter().filter(|granted| !secrets.is_revoked(&granted.name)) {
        let placeholder = granted.name.placeholder();
        let towards = match granted.domains.as_slice() {
            [] => "it is sent nowhere; tools may compute with it".to_owned(),
            domains => format!("it becomes the secret on the way to {} only", domains.join(", ")),
        };
        text.push_str(&format!(
            "\n- Credential `{}`: write `{placeholder}` in header, URL or body; {towards}.",
            granted.name
        ));
    }
    if let Some(commands) = commands {
        let commands = if commands.is_empty() { "none".to_owned() } else { commands.join(", ") };
        text.push_str(&format!("\n- `bash` is narrowed to these commands: {commands}."));
    }
    text
}

/// The section about the directories that the run works on.
pub(crate) fn of_directories(layer: &Layer, landed: &[String]) -> String {
    let mut text = String::from("# Directory\n");
    let sources = layer.sources();
    match sources {
        [source] if source.prefix.is_empty() => {
            let writable = if source.writable { "" } else { " You may only read it." };
            text.push_str(&format!("- `/workspace` is a directory of the user.{writable}"));
        }
        _ => {
            text.push_str("- These are directories of the user:");
            for source in sources {
                let writable = if source.writable { "" } else { " (read only)" };
                text.push_str(&format!(" `/workspace/{}`{writable}", source.prefix));
            }
            text.push('.');
        }
    }
    text.push_str(
        "\n- Your changes are kept aside until the user applies them: change only what the task needs, in place.\n\
         - Ignored files and likely secrets are not shown. A file that is `busy` was changed by the user: leave it and say so.",
    );
    if !landed.is_empty() {
        text.push_str(&format!("\n- So far: {}.", landed.join("; ")));
    }
    text
}

fn names<T: Display>(patterns: &[T]) -> String {
    patterns.iter().map(|pattern| format!("`{pattern}`")).collect::<Vec<_>>().join(", ")
}
