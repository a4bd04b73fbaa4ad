//! `motor skill show`: the text that an approval is about, behind a bar that only this program draws.

use agent::api::skills::{ShowSkillRequest, SkillText};

use super::super::Done;
use super::super::context::Context;
use crate::client::Call;
use crate::exit::CommandExit;
use crate::output::text;
use crate::session::Session;
use crate::words::facts::tone;
use crate::words::review::barred_text;

/// Shows the text of one file.
pub(super) async fn show(request: &ShowSkillRequest, session: &mut Session, context: &Context) -> Done {
    let shown: SkillText = session.ask(&Call::post("/v1/skills/texts", request)?).await?;
    let palette = context.output.out;
    context.answer(&shown, || {
        let status = tone(shown.status).paint(palette, shown.status.as_str());
        let file = text::quoted(&shown.file);
        let head = format!("{}  {status}\n{file} of {}\n\n", palette.bold(shown.name.as_str()), shown.hash.short());
        head + &barred_text(&shown.text, context.output.columns, palette)
    })?;
    Ok(CommandExit::Ok)
}
