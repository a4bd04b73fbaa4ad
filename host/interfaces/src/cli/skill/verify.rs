//! `motor skill verify`: every byte of the skills is read and compared with the approved version.

use std::fmt::Write as _;
use std::time::Duration;

use agent::api::skills::{SkillVerification, VerifySkills};
use base::Refusal;
use skills::SkillStatus;

use super::super::Done;
use super::super::context::Context;
use super::super::live::LiveView;
use crate::client::Call;
use crate::exit::CommandExit;
use crate::output::{Palette, text};
use crate::session::Session;
use crate::words::card::Tone;
use crate::words::facts;

/// Between two pictures of the spinner.
const TICK: Duration = Duration::from_millis(100);

pub(super) async fn verify(skill: Option<String>, session: &mut Session, context: &Context) -> Done {
    let call = Call::post("/v1/skills/verifications", &VerifySkills { skill })?;
    let verified = waiting(&call, session, context).await?;
    context.answer(&verified, || render(&verified, context.output.columns, context.output.out))?;
    Ok(if verified.iter().any(is_broken) { CommandExit::Consent } else { CommandExit::Ok })
}

/// Sends the request, with a sign of life if it takes its time.
async fn waiting(call: &Call, session: &mut Session, context: &Context) -> Result<Vec<SkillVerification>, Refusal> {
    let mut live = LiveView::new(&context.output, false);
    live.wait("reading every byte".to_owned());
    let mut tick = tokio::time::interval_at(tokio::time::Instant::now() + TICK, TICK);
    let asking = session.ask(call);
    tokio::pin!(asking);
    let verified = loop {
        tokio::select! {
            verified = &mut asking => break verified,
            _ = tick.tick() => live.tick(),
        }
    };
    live.end();
    verified
}

/// Whether a skill differs from the approved version. A skill that was never approved is not broken: it cannot run
/// either.
pub(in crate::cli) fn is_broken(verified: &SkillVerification) -> bool {
    verified.was_approved && verified.status != SkillStatus::Approved
}

fn render(verified: &[SkillVerification], columns: usize, palette: Palette) -> String {
    let mut page = String::new();
    for one in verified.iter().filter(|one| one.status != SkillStatus::Approved) {
        let place = one.place.to_string();
        let tone = if is_broken(one) { Tone::Alarm } else { Tone::Plain };
        let name = tone.paint(palette, &text::quoted(one.name.as_deref().unwrap_or(&place)));
        writeln!(page, "{name}  {}", facts::tone(one.status).paint(palette, one.status.as_str())).ok();
        for row in text::wrapped(&text::quoted(&one.reason), columns.saturating_sub(2)) {
            writeln!(page, "  {row}").ok();
        }
    }
    let count = |of: &dyn Fn(&SkillVerification) -> bool| verified.iter().filter(|one| of(one)).count() as u64;
    let (good, broken) = (count(&|one| one.status == SkillStatus::Approved), count(&is_broken));
    let others = verified.len() as u64 - good - broken;
    let mut parts = vec![format!("{} verified", text::plural(good, "approved skill"))];
    if broken > 0 {
        parts.push(palette.red(&format!("{} no longer as approved", text::thousands(broken))));
    }
    if others > 0 {
        parts.push(format!("{} not approved", text::thousands(others)));
    }
    let took = verified.iter().fold(0.0, |took, one| took + one.millis);
    writeln!(page, "{} ({})", parts.join(", "), text::millis(took)).ok();
    page
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::{Value, json};

    use super::*;

    fn verified(entry: &str, status: &str, was_approved: bool) -> Value {
        json!({ "name": entry, "place": { "root": "home", "entry": entry }, "status": status, "wasApproved": was_approved,
                "reason": format!("why {entry} is {status}"), "millis": 0.5 })
    }

    #[test]
    fn what_is_not_as_approved_is_named() {
        let all: Vec<SkillVerification> = serde_json::from_value(json!([
            verified("good", "approved", true),
            verified("swapped", "needs_reapproval", true),
            verified("new", "needs_reapproval", false),
        ]))
        .unwrap();
        expect![[r#"
            swapped  needs_reapproval
              why swapped is needs_reapproval
            new  needs_reapproval
              why new is needs_reapproval
            1 approved skill verified, 1 no longer as approved, 1 not approved (1.5 ms)
        "#]]
        .assert_eq(&render(&all, 80, Palette::new(false)));
        assert_eq!(all.iter().map(is_broken).collect::<Vec<_>>(), [false, true, false]);
        expect![[r#"
            1 approved skill verified (0.50 ms)
        "#]]
        .assert_eq(&render(&all[..1], 80, Palette::new(false)));
        expect![[r#"
            0 approved skills verified (0.00 ms)
        "#]]
        .assert_eq(&render(&[], 80, Palette::new(false)));
    }
}
