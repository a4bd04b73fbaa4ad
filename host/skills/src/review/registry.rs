//! Files in which registries and installers of skills keep their own records, such as `_meta.json` of ClawHub.
//!
//! The addresses of registries in them say nothing about the skill. Any other address in such a file counts: a script can
//! read its destination there.

/// Names of records at the top of a skill.
const NAMES: [&str; 5] = [".openskills.json", ".skill-meta.json", "_meta.json", "skill-lock.json", "skills-lock.json"];
/// Directories that hold records of registries.
const DIRECTORIES: [&str; 3] = [".clawdhub/", ".clawhub/", ".openclaw/"];
/// Registries, and the hosts of the repositories that they name.
const REGISTRIES: [&str; 11] = [
    "agentskills.io",
    "clawdhub.com",
    "clawhub.ai",
    "clawhub.com",
    "github.com",
    "gitlab.com",
    "lobehub.com",
    "openclaw.ai",
    "skills.sh",
    "skillsmp.com",
    "smithery.ai",
];

/// Whether a domain that a file mentions is that of a registry in its record.
pub(super) fn is_of_record(path: &str, domain: &str) -> bool {
    let is_record = NAMES.contains(&path)
        || DIRECTORIES.iter().any(|directory| path.starts_with(directory) && path.ends_with(".json"));
    is_record && REGISTRIES.contains(&domain.strip_prefix("www.").unwrap_or(domain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_registries_in_their_own_records_are_passed_over() {
        for (path, domain) in [
            ("_meta.json", "github.com"),
            (".clawhub/origin.json", "clawhub.ai"),
            ("skills-lock.json", "www.skills.sh"),
        ] {
            assert!(is_of_record(path, domain), "{path} {domain}");
        }
        for (path, domain) in [
            ("_meta.json", "collect.away.dev"),
            ("_meta.json", "github.com.away.dev"),
            ("_meta.json", "a.clawhub.ai"),
            ("references/_meta.json", "github.com"),
            (".clawhub/run.sh", "github.com"),
            ("SKILL.md", "github.com"),
        ] {
            assert!(!is_of_record(path, domain), "{path} {domain}");
        }
    }
}
