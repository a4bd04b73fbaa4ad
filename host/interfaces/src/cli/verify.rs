//! `motor verify`: a home and every skill in it, byte by byte, without a request (SPEC SIM-1).

use agent::doctor::{HomeVerification, Severity, config_findings, verify_without_host};
use base::Refusal;
use clap::Args;

use super::Done;
use super::context::Context;
use super::doctor::render;
use super::skill::is_broken;
use crate::client::Call;
use crate::exit::CommandExit;
use crate::output::text;
use crate::session::{HostTarget, Session};

/// Options of `motor verify`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 nothing is broken, 1 the home is damaged, 5 a skill is no longer as you approved it, \
                        75 another process has the home."
)]
pub(super) struct VerifyArgs {}

pub(super) async fn run(_: &VerifyArgs, context: &Context) -> Done {
    let verification = verify(context.place()?).await?;
    context.answer(&verification, || {
        let skills = text::plural(verification.skills.len() as u64, "skill");
        format!("{}{skills} read, byte by byte\n", render(&verification.findings, context.output.out))
    })?;
    Ok(exit(&verification))
}

/// Asks the host that has the home; without one, this process verifies it.
async fn verify(place: HostTarget) -> Result<HomeVerification, Refusal> {
    let (config, faults) = place.examine()?;
    let settings = config_findings(&config, &faults);
    let verification: HomeVerification = match Session::connect(place.clone()).await? {
        Some(mut session) => session.ask(&Call::get("/v1/host/verification")).await?,
        None => verify_without_host(&place.options_with(config)).await?,
    };
    Ok(verification.with(settings))
}

/// Damage of the home is worse than a skill that changed: such a skill is not used.
fn exit(verification: &HomeVerification) -> CommandExit {
    match verification.status {
        Severity::Problem => CommandExit::Failed,
        _ if verification.skills.iter().any(is_broken) => CommandExit::Consent,
        _ => CommandExit::Ok,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_exit_code_is_by_severity() {
        let exit_of = |status: &str, skill: Option<(&str, bool)>| {
            let skills: Vec<_> = skill
                .into_iter()
                .map(|(status, was_approved)| {
                    json!({ "place": { "root": "home", "entry": "x" }, "status": status, "wasApproved": was_approved,
                            "reason": "", "millis": 0.5 })
                })
                .collect();
            let verification = json!({ "status": status, "findings": [], "skills": skills });
            exit(&serde_json::from_value(verification).unwrap())
        };
        assert_eq!(exit_of("ok", Some(("approved", true))), CommandExit::Ok);
        assert_eq!(exit_of("warning", None), CommandExit::Ok);
        assert_eq!(exit_of("ok", Some(("pending_review", false))), CommandExit::Ok);
        assert_eq!(exit_of("warning", Some(("needs_reapproval", true))), CommandExit::Consent);
        assert_eq!(exit_of("problem", Some(("needs_reapproval", true))), CommandExit::Failed);
        assert_eq!(exit_of("problem", None), CommandExit::Failed);
    }
}
