//! Names of skills' tools for other programs (SPEC MCP-1): `SKILL_TOOL`.
//!
//! A skill's name has no `_`, so the first `_` ends it, and two pairs never have the same name. A name that would be too
//! long, or that looks like the host's own, is `START--HASH_TOOL`: no skill's name contains `--`.

use base::ContentHash;
use skills::SkillName;

/// Characters of a name. Models accept 64, and clients put the server's name in front: `mcp__motor__`.
const MAX_NAME: usize = 52;
/// Names of the host's own tools begin with this and `_`.
const HOST: &str = "core";
/// Hex digits that tell shortened names apart.
const DIGITS: usize = 16;
/// Characters of a skill's name in a shortened name.
const SKILL_PART: usize = 15;

/// The name of a skill's tool for other programs.
pub(super) fn offered(skill: &SkillName, tool: &str) -> String {
    let plain = format!("{skill}_{tool}");
    if plain.len() <= MAX_NAME && skill.as_str() != HOST {
        return plain;
    }
    let hash = ContentHash::of(plain.as_bytes()).hex();
    let start = skill.as_str().get(..skill.as_str().floor_char_boundary(SKILL_PART)).unwrap_or_default();
    let digits = hash.get(..DIGITS).unwrap_or_default();
    let mut name = format!("{}--{digits}_{tool}", start.trim_end_matches('-'));
    name.truncate(name.floor_char_boundary(MAX_NAME));
    name
}

/// The skill that a name would belong to if it is not shortened.
pub(super) fn skill_of(name: &str) -> Option<SkillName> {
    let (skill, _) = name.split_once('_')?;
    SkillName::parse(skill).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_name_is_short_unique_and_never_the_hosts() {
        let long = "a-very-long-name-of-a-skill-that-goes-on-and-on-and-on-to-the-end";
        let longest = format!("s{}", "1".repeat(63));
        let mut names = BTreeMap::new();
        for skill in ["units", "core", "core-act", "a-b", long.get(..64).unwrap(), &longest] {
            let skill = SkillName::parse(skill).unwrap();
            for tool in ["convert", "act", "b_convert", "x-y", &"t".repeat(64), &format!("{}u", "t".repeat(63))] {
                let name = offered(&skill, tool);
                assert!(name.len() <= MAX_NAME && !name.starts_with("core_"), "{name}");
                assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)), "{name}");
                let plain = name == format!("{skill}_{tool}");
                assert_eq!(skill_of(&name), plain.then(|| skill.clone()), "{name}");
                assert_eq!(names.insert(name.clone(), (skill.clone(), tool.to_owned())), None, "{name}");
            }
        }
        assert_eq!(offered(&SkillName::parse("units").unwrap(), "convert"), "units_convert");
        assert!(offered(&SkillName::parse("core").unwrap(), "act").starts_with("core--"));
    }
}
