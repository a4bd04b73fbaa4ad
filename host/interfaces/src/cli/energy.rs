//! `motor energy`.

use agent::EnergyReport;

use super::Done;
use super::context::Context;
use crate::client::Call;
use crate::exit::CommandExit;

pub(super) async fn run(context: &Context) -> Done {
    context
        .with_host(async |session| {
            let path = format!("/v1/energy?agent={}", context.agent());
            let report: EnergyReport = session.ask(&Call::get(path)).await?;
            context.answer(&report, || render(&report))?;
            Ok(CommandExit::Ok)
        })
        .await
}

fn render(report: &EnergyReport) -> String {
    let EnergyReport { agent, level, enabled, allows } = report;
    if !enabled {
        return format!("{agent}: {level:.2} of 1.00; the energy model is off, nothing is refused");
    }
    let allows = if allows.is_empty() { "nothing for now".to_owned() } else { allows.join(", ") };
    format!("{agent}: {level:.2} of 1.00\na model may start: {allows}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_the_level_allows() {
        let report = |level, enabled, allows: &[&str]| EnergyReport {
            agent: Default::default(),
            level,
            enabled,
            allows: allows.iter().map(|&name| name.to_owned()).collect(),
        };
        assert_eq!(
            render(&report(1.0, true, &["oneshot", "agentic"])),
            "main: 1.00 of 1.00\na model may start: oneshot, agentic"
        );
        assert!(render(&report(0.05, true, &[])).ends_with("nothing for now"));
        assert!(render(&report(0.5, false, &["oneshot"])).contains("off"));
    }
}
