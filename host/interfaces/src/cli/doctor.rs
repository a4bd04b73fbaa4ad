//! `motor doctor`: examines without starting anything, so that it works when nothing else does.

use agent::AcceptedLoss;
use agent::config::LoadedConfig;
use agent::doctor::{
    Finding, Severity, ask_without_host, config_findings, examine_without_host, home_findings, mend, unasked,
    variable_finding,
};
use base::{Refusal, SystemClock};
use clap::Args;

use super::Done;
use super::consent::VARIABLE;
use super::context::Context;
use crate::client::Call;
use crate::exit::CommandExit;
use crate::output::{Output, Palette, text};
use crate::session::{HostTarget, Session};

/// Options of `motor doctor`.
#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// Do not ask the model for one word
    #[arg(long)]
    offline: bool,
    /// Apply the safe mends: permissions, missing directories, leftovers of a host that was killed
    #[arg(long)]
    fix: bool,
    /// Go on without the lost part of a damaged or incomplete state; all that is left of it is kept in a directory
    #[arg(long, conflicts_with_all = ["fix", "offline"])]
    accept_loss: bool,
}

pub(super) async fn run(arguments: &DoctorArgs, context: &Context) -> Done {
    let place = context.place()?;
    if arguments.accept_loss {
        let loss = agent::accept_loss(&place.home, &SystemClock::default())?;
        context.answer(&loss, || render_loss(&loss))?;
        return Ok(CommandExit::Ok);
    }
    let (config, faults) = place.examine()?;
    let mended = if arguments.fix { mend(&place.home) } else { Vec::new() };
    let mut findings = home_findings(&place.home);
    // The permissions come last, beside the other parts of this machine.
    let permissions = findings.split_off(findings.len().min(1));
    let settings = config_findings(&config, &faults);
    findings.extend(examine(&place, config, arguments.offline).await?);
    findings.extend(settings);
    findings.extend(permissions);
    findings.extend(
        (context.env)(VARIABLE).filter(|token| !token.is_empty()).map(|token| variable_finding(&place.home, &token)),
    );
    findings.push(terminal(&context.output));
    findings.extend(mended);
    context.answer(&findings, || render(&findings, context.output.out))?;
    let worst = findings.iter().map(|finding| finding.status).max();
    Ok(if worst == Some(Severity::Problem) { CommandExit::Failed } else { CommandExit::Ok })
}

/// Asks the host that has the state open; without one, this process examines it.
async fn examine(place: &HostTarget, config: LoadedConfig, offline: bool) -> Result<Vec<Finding>, Refusal> {
    let Some(mut session) = Session::connect(place.clone()).await? else {
        let options = place.options_with(config);
        let mut findings = examine_without_host(&options).await;
        findings.push(if offline { unasked() } else { ask_without_host(&options).await });
        return Ok(findings);
    };
    let mut findings: Vec<Finding> = session.ask(&Call::get("/v1/host/findings")).await?;
    findings.push(match offline {
        true => unasked(),
        false => session.ask(&Call::post("/v1/host/findings/model", &())?).await?,
    });
    Ok(findings)
}

/// The finding about stdout.
fn terminal(output: &Output) -> Finding {
    let colours = if output.out.enabled() { "with colours" } else { "without colours" };
    let message = if output.is_terminal() {
        format!("stdout is a terminal of {} columns, {colours}", output.columns)
    } else {
        format!("stdout is not a terminal: {} columns, {colours}", output.columns)
    };
    Finding { id: "terminal".to_owned(), name: "terminal".to_owned(), status: Severity::Ok, message, fix: None }
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

/// Findings as lines: severity, name, message, and below it the command that mends it.
pub(super) fn render(findings: &[Finding], palette: Palette) -> String {
    let widest = findings.iter().map(|finding| text::width(&finding.name)).max().unwrap_or(0);
    let mut report = String::new();
    for finding in findings {
        let mark = match finding.status {
            Severity::Ok => palette.green("ok     "),
            Severity::Skipped => palette.dim("skipped"),
            Severity::Fixed => palette.green("fixed  "),
            Severity::Warning => palette.yellow("warning"),
            Severity::Problem => palette.red("problem"),
        };
        let padding = " ".repeat(widest.saturating_sub(text::width(&finding.name)));
        report.push_str(&format!("{mark}  {}{padding}  {}\n", finding.name, text::one_line(&finding.message)));
        if let Some(fix) = &finding.fix {
            report.push_str(&format!(
                "         {}{padding}  {}\n",
                " ".repeat(text::width(&finding.name)),
                palette.cyan(&text::one_line(fix))
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
    fn a_problem_comes_with_the_command_that_mends_it() {
        let finding = |name: &str, status, message: &str, fix: Option<&str>| Finding {
            id: name.to_owned(),
            name: name.to_owned(),
            status,
            message: message.to_owned(),
            fix: fix.map(str::to_owned),
        };
        let findings = [
            finding("home", Severity::Ok, "is there", None),
            finding("a model", Severity::Problem, "no key", Some("motor setup")),
            finding("answer", Severity::Skipped, "not asked", None),
            finding("fix", Severity::Fixed, "mended", None),
        ];
        expect![[r#"
            ok       home     is there
            problem  a model  no key
                              motor setup
            skipped  answer   not asked
            fixed    fix      mended
        "#]]
        .assert_eq(&render(&findings, Palette::new(false)));
    }
}
