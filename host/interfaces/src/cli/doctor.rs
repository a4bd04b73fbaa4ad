//! `motor doctor`: examines without starting anything, so that it works when nothing else does.

use agent::AcceptedLoss;
use agent::doctor::{Finding, Severity, examine_without_host, home_finding};
use base::{Refusal, SystemClock};
use clap::Args;

use super::Done;
use super::context::Context;
use crate::client::Call;
use crate::exit::CommandExit;
use crate::output::{Palette, text};
use crate::session::{HostTarget, Session};

/// Options of `motor doctor`.
#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// Go on without the lost part of a damaged or incomplete state; all that is left of it is kept in a directory
    #[arg(long)]
    accept_loss: bool,
}

pub(super) async fn run(arguments: &DoctorArgs, context: &Context) -> Done {
    let place = context.place()?;
    if arguments.accept_loss {
        let loss = agent::accept_loss(&place.home, &SystemClock::default())?;
        context.answer(&loss, || render_loss(&loss))?;
        return Ok(CommandExit::Ok);
    }
    let mut findings = vec![home_finding(&place.home)];
    findings.extend(examine_state(&place).await?);
    let problems = findings.iter().any(|finding| finding.level == Severity::Problem);
    context.answer(&findings, || render(&findings, context.output.out))?;
    Ok(if problems { CommandExit::Failed } else { CommandExit::Ok })
}

/// Asks the host that has the state open; without one, this process examines it.
async fn examine_state(place: &HostTarget) -> Result<Vec<Finding>, Refusal> {
    match Session::connect(place.clone()).await? {
        Some(mut session) => session.ask(&Call::get("/v1/host/findings")).await,
        None => Ok(examine_without_host(&place.options()?)),
    }
}

fn render_loss(loss: &AcceptedLoss) -> String {
    let Some(reason) = &loss.reason else { return "the state is complete: there is no loss to accept".to_owned() };
    let mut report = format!("accepted: {}\n", text::one_line(reason));
    let kept = "what is left of the state is in use again; check `motor task list`, `motor skill list`, `motor credential \
                list` and `motor network list`, because later changes are lost, revocations among them";
    let lost = "the next command begins with an empty state: runs, credentials, approvals, signals and energy are lost";
    report.push_str(if loss.is_new { lost } else { kept });
    for run in &loss.runs {
        report.push_str(&format!("\nthe run {run} has no record any longer"));
    }
    if let Some(aside) = &loss.aside {
        report.push_str(&format!("\nkept in {}", text::one_line(&aside.display().to_string())));
    }
    report
}

fn render(findings: &[Finding], palette: Palette) -> String {
    let widest = findings.iter().map(|finding| text::width(&finding.name)).max().unwrap_or(0);
    let mut report = String::new();
    for finding in findings {
        let mark = match finding.level {
            Severity::Ok => palette.green("ok     "),
            Severity::Warning => palette.yellow("warning"),
            Severity::Problem => palette.red("problem"),
        };
        let padding = " ".repeat(widest.saturating_sub(text::width(&finding.name)));
        report.push_str(&format!("{mark}  {}{padding}  {}\n", finding.name, text::one_line(&finding.message)));
        if let Some(remedy) = &finding.remedy {
            report.push_str(&format!(
                "         {}{padding}  {}\n",
                " ".repeat(text::width(&finding.name)),
                palette.cyan(&text::one_line(remedy))
            ));
        }
    }
    report
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_problem_comes_with_its_remedy() {
        let findings = [
            Finding { name: "home".into(), level: Severity::Ok, message: "is there".into(), remedy: None },
            Finding {
                name: "a model".into(),
                level: Severity::Problem,
                message: "no key".into(),
                remedy: Some("export K=…".into()),
            },
        ];
        expect![[r#"
            ok       home     is there
            problem  a model  no key
                              export K=…
        "#]]
        .assert_eq(&render(&findings, Palette::new(false)));
    }
}
