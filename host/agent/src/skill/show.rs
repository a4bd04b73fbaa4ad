//! The text of a skill's files, for the owner to read before a decision. Changes no status.

use base::{Refusal, RefusalCode, text::nearest};
use skills::review::{MANIFEST, text_of};

use super::Skills;
use crate::api::skills::{ShowSkillRequest, SkillText};

impl Skills {
    /// The whole text of a file of a skill, with hidden characters written out.
    ///
    /// # Errors
    /// If the skill cannot be read, has no such file, or the file is not text.
    pub async fn show(&self, request: ShowSkillRequest) -> Result<SkillText, Refusal> {
        let taken = self.environment.skills.take(&request.skill).await?;
        let file = request.file.unwrap_or_else(|| MANIFEST.to_owned());
        let Some(text) = text_of(&taken.snapshot, &file) else {
            let files = &taken.snapshot.files;
            let refusal = |reason: &str| Refusal::new(RefusalCode::InvalidRequest, format!("`{file}` {reason}"));
            if files.contains_key(&file) {
                let remedy = "`motor skill review` shows its size, its hash and, of a component, its powers";
                return Err(refusal("is not a text").with_remedy(remedy));
            }
            let near = nearest(&file, files.keys().map(|path| (path.as_str(), path.clone())));
            let remedy = match near {
                Some(near) => format!("did you mean `{}`?", skills::review::visible_name(&near)),
                None => "`motor skill review` lists the files of the skill".to_owned(),
            };
            return Err(refusal("is not a file of the skill").with_remedy(remedy));
        };
        let (name, hash) = (taken.manifest.name, taken.snapshot.hash);
        Ok(SkillText { name, place: taken.place, hash, status: taken.standing.status, file, text })
    }
}
