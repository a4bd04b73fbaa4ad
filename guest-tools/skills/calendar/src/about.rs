//! The skill's own description: its `SKILL.md`, so that the directory and the bare component say the same.

const MANIFEST: &str = include_str!("../../../../skills/calendar/SKILL.md");

/// The purpose of the skill and when to use it.
pub fn description() -> &'static str {
    let (frontmatter, _) = parts();
    frontmatter.lines().find_map(|line| line.strip_prefix("description:")).unwrap_or_default().trim()
}

/// How to go about it.
pub fn instructions() -> &'static str {
    parts().1.trim_start()
}

/// The frontmatter and the body.
fn parts() -> (&'static str, &'static str) {
    MANIFEST.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n")).unwrap_or(("", MANIFEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_its_manifest_says() {
        assert!(parts().0.contains("name: calendar\n"));
        assert!(description().starts_with("Works out dates exactly"), "{:?}", description());
        assert!((100..1024).contains(&description().chars().count()));
        assert!(instructions().starts_with("# Calendar\n") && instructions().len() < 64 * 1024);
        for tool in crate::tools() {
            let name = tool.describe().name;
            assert!(instructions().contains(&format!("`{name}`")), "`{name}` is not in the instructions");
        }
    }
}
