//! Names that files with secrets commonly have: they are kept out of a run unless the owner names them.

use base::text::is_invisible;

use crate::tree::FileKind;

/// Directories that tools keep credentials in.
const DIRECTORIES: [&str; 8] =
    [".aws", ".azure", ".docker", ".gnupg", ".kube", ".password-store", ".ssh", ".terraform.d"];
/// Names of files, in lower case.
const FILES: [&str; 24] = [
    ".env",
    ".envrc",
    ".git-credentials",
    ".htpasswd",
    ".my.cnf",
    ".netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    ".s3cfg",
    ".vault-token",
    ".yarnrc.yml",
    "_netrc",
    "application_default_credentials.json",
    "client_secret.json",
    "credentials.json",
    "credentials.toml",
    "kubeconfig",
    "master.key",
    "secrets.json",
    "secrets.toml",
    "secrets.yaml",
    "secrets.yml",
    "service-account.json",
];
/// Beginnings of names, with and without more behind them.
const KEYS: [&str; 4] = ["id_dsa", "id_ecdsa", "id_ed25519", "id_rsa"];
/// Ends of names, in lower case.
const SUFFIXES: [&str; 11] = ["asc", "jks", "kdbx", "key", "keystore", "ovpn", "p12", "p8", "pem", "pfx", "ppk"];
/// Ends of names that say that a file is to be copied and filled in.
const TEMPLATES: [&str; 6] = ["default", "dist", "example", "sample", "template", "tpl"];

/// Whether a name is one that secrets are kept under. Case and characters that are not seen do not count, so that a
/// file system that does not tell such names apart gives nothing away.
pub fn named(name: &str, kind: FileKind) -> bool {
    let name = folded(name);
    if kind == FileKind::Directory {
        return DIRECTORIES.contains(&name.as_str());
    }
    let suffix = name.rsplit_once('.').map_or("", |(_, suffix)| suffix);
    if TEMPLATES.contains(&suffix) || suffix == "pub" {
        return false;
    }
    FILES.contains(&name.as_str())
        || name.starts_with(".env.")
        || KEYS.iter().any(|key| name.strip_prefix(key).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric)))
        || (name.contains('.') && SUFFIXES.contains(&suffix))
}

/// Whether the text of a git configuration has a credential in it.
pub fn in_git_config(text: &str) -> bool {
    let text = text.to_lowercase();
    let user_info = |rest: &str| rest.split(['/', '\n', '"', ' ']).next().is_some_and(|host| host.contains('@'));
    text.contains("extraheader")
        || text.split("://").skip(1).any(user_info)
        || text.lines().any(|line| line.trim_start().starts_with("password"))
}

/// The name as a file system sees it that ignores case and characters without a shape.
#[must_use]
pub fn folded(name: &str) -> String {
    name.chars().filter(|letter| !is_invisible(*letter)).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_secrets_are_known_by_name_and_others_are_not() {
        for name in [
            ".env",
            ".ENV",
            ".env.production",
            "id_ed25519",
            "id_rsa.old",
            "server.pem",
            "TLS.KEY",
            ".npmrc",
            ".e\u{200d}nv",
        ] {
            assert!(named(name, FileKind::File), "{name}");
        }
        for name in [".env.example", "id_rsa.pub", "id_rsable", "key", "keys.rs", "monkey", "environment", "pem.rs"] {
            assert!(!named(name, FileKind::File), "{name}");
        }
        assert!(named(".ssh", FileKind::Directory));
        assert!(!named("key", FileKind::Directory));
    }

    #[test]
    fn a_git_configuration_with_a_credential_is_told_from_one_without() {
        assert!(in_git_config("[remote \"origin\"]\n\turl = https://me:token@host.test/a.git\n"));
        assert!(in_git_config("[http]\n\textraHeader = Authorization: Basic abc\n"));
        assert!(!in_git_config(
            "[remote \"origin\"]\n\turl = https://host.test/a.git\n[user]\n\temail = me@host.test\n"
        ));
        assert!(!in_git_config("[remote \"origin\"]\n\turl = git@host.test:a.git\n"));
    }
}
