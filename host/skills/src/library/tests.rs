//! Tests of the library: added, changed and forged skills, and races.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::{TestClock, Timestamp};
use store::Store;
use tempfile::TempDir;

use super::*;
use crate::trust::tests::consent;
use crate::trust::{Described, Subject};
use crate::{Policy, SkillName};

mod race;
mod speed;
mod watching;

/// A home with a store, a root of its own and another one.
struct Home {
    directory: TempDir,
    store: Store,
    watch: bool,
}

impl Home {
    fn new() -> Self {
        Self::within(&std::env::temp_dir())
    }

    fn within(parent: &Path) -> Self {
        let directory = tempfile::tempdir_in(parent).unwrap();
        let store = Store::open(&directory.path().join("state")).unwrap();
        fs::create_dir(directory.path().join("skills")).unwrap();
        fs::create_dir(directory.path().join("other")).unwrap();
        Self { directory, store, watch: false }
    }

    fn watched() -> Self {
        Self { watch: true, ..Self::new() }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.directory.path().join(below)
    }

    fn parts(&self) -> LibraryParts {
        LibraryParts {
            store: self.store.clone(),
            // Far ahead of the times of files, so that all of them are settled and the index knows them.
            clock: Arc::new(TestClock::at(Timestamp::from_millis(4_000_000_000_000))),
            roots: vec![SkillsRoot::home(self.path("skills")), SkillsRoot::at(self.path("other"))],
            index: self.path("cache/skills.json"),
            versions: self.path("versions"),
            bounds: SkillBounds::default(),
            watch: self.watch,
        }
    }

    fn open(&self) -> Library {
        Library::open(self.parts()).unwrap()
    }
}

/// A skill in a directory.
fn drop_in(directory: &Path, name: &str, description: &str) {
    fs::create_dir_all(directory.join("scripts")).unwrap();
    fs::write(directory.join("SKILL.md"), manifest(name, description)).unwrap();
    fs::write(directory.join("scripts/run.py"), "print('hello')\n").unwrap();
}

fn manifest(name: &str, description: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\n# {name}\n")
}

fn archive(path: &Path, files: &[(&str, &str)]) {
    use std::io::Write as _;
    let mut archive = zip::ZipWriter::new(fs::File::create(path).unwrap());
    for (name, text) in files {
        archive.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(text.as_bytes()).unwrap();
    }
    archive.finish().unwrap();
}

async fn approve(library: &Library, selector: &str) {
    let taken = library.take(selector).await.unwrap();
    let subject = Subject::of(taken.manifest.name.clone(), taken.place.clone(), &taken.snapshot);
    library.trust().reviewed(&subject, None).await.unwrap();
    library.trust().approve(&subject, Policy::default(), consent()).await.unwrap();
}

async fn listed(library: &Library) -> BTreeMap<String, SkillSummary> {
    library.list().await.unwrap().into_iter().map(|skill| (skill.place.to_string(), skill)).collect()
}

async fn status(library: &Library, place: &str) -> SkillStatus {
    listed(library).await[place].status
}

#[tokio::test]
async fn what_is_dropped_in_is_listed_with_its_state_and_its_one_reason() {
    let home = Home::new();
    let skills = home.path("skills");
    drop_in(&skills.join("mail"), "mail", "Reads mail.");
    archive(&skills.join("web.zip"), &[("SKILL.md", &manifest("web", "Reads the web."))]);
    archive(&skills.join("maps.skill"), &[("SKILL.md", &manifest("maps", "Reads maps."))]);
    fs::write(skills.join("tables.wasm"), "\0asm").unwrap();
    // Unusable entries, and why.
    fs::create_dir(skills.join("empty")).unwrap();
    drop_in(&skills.join("linked"), "linked", "Has a link.");
    symlink("/etc/passwd", skills.join("linked/passwd")).unwrap();
    symlink(skills.join("mail"), skills.join("shortcut")).unwrap();
    fs::write(skills.join("broken.zip"), "no archive").unwrap();
    fs::write(skills.join("Bad Name.wasm"), "\0asm").unwrap();
    fs::create_dir(skills.join(std::ffi::OsString::from_vec(b"caf\xe9".to_vec()))).unwrap();
    // Entries that are not skills.
    for name in ["README.md", "LICENSE", "index.json", "notes.txt", ".hidden.zip"] {
        fs::write(skills.join(name), "text").unwrap();
    }
    drop_in(&skills.join(".staged"), "staged", "Is hidden.");
    symlink(skills.join("README.md"), skills.join("READ")).unwrap();
    symlink("/nowhere", skills.join("dangling")).unwrap();

    let library = home.open();
    let list = library.list().await.unwrap();
    let seen: Vec<(String, Option<&str>, Option<SkillForm>, bool)> =
        list.iter().map(|skill| (skill.place.to_string(), skill.name.as_deref(), skill.form, skill.readable)).collect();
    let (directory, archive, component) =
        (Some(SkillForm::Directory), Some(SkillForm::Archive), Some(SkillForm::Component));
    let expected = [
        ("broken.zip", Some("broken"), archive, false),
        ("empty", Some("empty"), directory, false),
        ("linked", Some("linked"), directory, false),
        ("mail", Some("mail"), directory, true),
        ("maps.skill", Some("maps"), archive, true),
        ("shortcut", Some("shortcut"), None, false),
        ("tables.wasm", Some("tables"), component, true),
        ("web.zip", Some("web"), archive, true),
        ("Bad Name.wasm", None, component, false),
        ("caf\u{fffd}", None, None, false),
    ];
    assert_eq!(seen, expected.map(|(place, name, form, readable)| (place.to_owned(), name, form, readable)));
    let list = listed(&library).await;
    for skill in list.values() {
        assert_eq!(skill.status, SkillStatus::NeedsReapproval, "{}", skill.place);
        assert_eq!(skill.hash.is_some(), skill.readable, "{}", skill.place);
        assert!(!skill.reason.is_empty());
    }
    assert_eq!(list["mail"].description, "Reads mail.");
    assert_eq!(list["empty"].reason, "it has no `SKILL.md`");
    assert_eq!(list["linked"].reason, "`passwd` is a link: put the file itself there");
    assert_eq!(list["shortcut"].reason, "it is a link: put the file itself there");
    assert_eq!(list["caf\u{fffd}"].reason, "its name is not UTF-8");

    // No skill acts before it is approved; the readable ones do after.
    for place in ["mail", "web.zip", "maps.skill", "tables.wasm"] {
        let refused = library.approved(place).await.unwrap_err();
        assert!(matches!(refused, SkillError::Untrusted { status: SkillStatus::NeedsReapproval, .. }), "{refused}");
        approve(&library, place).await;
        assert_eq!(library.approved(place).await.unwrap().place.to_string(), place);
        assert_eq!(status(&library, place).await, SkillStatus::Approved);
    }
    for place in ["empty", "linked", "shortcut", "broken.zip", "Bad Name.wasm"] {
        let refused = library.approved(place).await.unwrap_err();
        assert!(matches!(refused, SkillError::Unreadable { .. }), "{place}: {refused}");
        assert_eq!(refused.to_string(), list[place].reason);
    }
    assert!(matches!(library.take("caf\u{fffd}").await, Err(SkillError::Missing { .. })));
}

#[tokio::test]
async fn two_roots_show_both_and_neither_has_the_trust_of_the_other() {
    let home = Home::new();
    drop_in(&home.path("skills/mail"), "mail", "Reads mail.");
    drop_in(&home.path("other/mail"), "mail", "Reads mail.");
    let library = home.open();
    let other = format!("{}/mail", home.path("other").display());
    let refused = library.take("mail").await.unwrap_err();
    assert!(matches!(&refused, SkillError::Ambiguous { places, .. } if *places == [other.clone(), "home/mail".into()]));
    approve(&library, "home/mail").await;
    assert_eq!(status(&library, "mail").await, SkillStatus::Approved);
    assert_eq!(status(&library, &other).await, SkillStatus::NeedsReapproval);
    assert!(library.approved("home/mail").await.is_ok());
    assert!(matches!(library.approved(&other).await, Err(SkillError::Untrusted { .. })));
    // An unreadable skill does not give its name to the other.
    fs::remove_file(home.path("skills/mail/SKILL.md")).unwrap();
    library.refresh().await.unwrap();
    assert!(matches!(library.take("mail").await, Err(SkillError::Ambiguous { .. })));
    fs::remove_dir_all(home.path("skills/mail")).unwrap();
    library.refresh().await.unwrap();
    assert_eq!(library.take("mail").await.unwrap().place.to_string(), other);
}

#[tokio::test]
async fn a_skill_that_came_a_moment_ago_is_found_and_one_that_went_is_not() {
    let home = Home::new();
    let library = home.open();
    assert!(library.list().await.unwrap().is_empty());
    drop_in(&home.path("skills/mail"), "mail", "Reads mail.");
    assert_eq!(library.find("mail").await.unwrap(), SkillPlace::new("home", "mail"));
    // It was moved, which the catalogue does not know.
    fs::rename(home.path("skills/mail"), home.path("skills/post")).unwrap();
    let taken = library.take("mail").await.unwrap();
    assert_eq!((taken.place.entry.as_str(), taken.manifest.name.as_str()), ("post", "mail"));
    // A skill selected by its name is not taken under another.
    fs::write(home.path("skills/post/SKILL.md"), manifest("fax", "Sends.")).unwrap();
    let gone = library.take("mail").await.unwrap_err();
    assert!(matches!(&gone, SkillError::Missing { nearest: None, .. }), "{gone}");
    assert_eq!(library.take("post").await.unwrap().manifest.name.as_str(), "fax");
    let near = library.take("faxe").await.unwrap_err();
    assert!(matches!(&near, SkillError::Missing { nearest: Some(near), .. } if near == "fax"), "{near}");
    for selector in ["../other/mail", "home/../post", "home/.", "/etc", "", "home/post/scripts"] {
        assert!(matches!(library.take(selector).await, Err(SkillError::Missing { .. })), "{selector}");
    }
    for entry in ["..", "../skills/post", "", ".hidden", "post/scripts"] {
        let place = SkillPlace::new("home", entry);
        assert!(library.take_at(&place).await.is_err(), "{entry}");
        assert!(library.path(&place).is_err(), "{entry}");
    }
    assert_eq!(library.path(&SkillPlace::new("home", "post")).unwrap(), home.path("skills/post"));
}

/// Every change that leaves the size and the settable time alone.
#[tokio::test]
async fn one_byte_a_mode_a_name_and_the_trust_is_gone() {
    type Change = fn(&Path);
    let changes: [(&str, Change); 8] = [
        ("a flipped byte", |skill| {
            let file = skill.join("scripts/run.py");
            let modified = fs::metadata(&file).unwrap().modified().unwrap();
            fs::write(&file, "print('hullo')\n").unwrap();
            fs::File::options().write(true).open(&file).unwrap().set_modified(modified).unwrap();
        }),
        ("an added file", |skill| fs::write(skill.join("scripts/more.py"), "").unwrap()),
        ("a removed file", |skill| fs::remove_file(skill.join("scripts/run.py")).unwrap()),
        ("a renamed file", |skill| fs::rename(skill.join("scripts/run.py"), skill.join("scripts/ran.py")).unwrap()),
        ("a changed mode", |skill| {
            fs::set_permissions(skill.join("scripts/run.py"), fs::Permissions::from_mode(0o755)).unwrap();
        }),
        ("a link", |skill| symlink("run.py", skill.join("scripts/link.py")).unwrap()),
        ("a hard link", |skill| fs::hard_link(skill.join("scripts/run.py"), skill.join("scripts/link.py")).unwrap()),
        ("a twin", |skill| fs::write(skill.join("scripts/RUN.py"), "").unwrap()),
    ];
    for (what, change) in changes {
        let home = Home::new();
        drop_in(&home.path("skills/mail"), "mail", "Reads mail.");
        fs::set_permissions(home.path("skills/mail/scripts/run.py"), fs::Permissions::from_mode(0o644)).unwrap();
        let library = home.open();
        approve(&library, "mail").await;
        library.close().await;
        // A status claimed in its directory has no effect.
        fs::write(home.path("skills/mail/policy.json"), r#"{"status":"approved"}"#).unwrap();
        let library = home.open();
        assert!(library.approved("mail").await.is_ok(), "{what}");
        assert_eq!(status(&library, "mail").await, SkillStatus::Approved, "{what}");
        library.close().await;

        change(&home.path("skills/mail"));
        let library = home.open();
        assert_eq!(status(&library, "mail").await, SkillStatus::NeedsReapproval, "{what}");
        assert!(library.approved("mail").await.is_err(), "{what}");
        let verified = library.verify(None).await.unwrap();
        let approved = verified[0].result.as_ref().is_ok_and(|(_, standing)| standing.status == SkillStatus::Approved);
        assert!(!approved, "{what}");
    }
}

#[tokio::test]
async fn an_index_that_is_missing_damaged_or_old_is_made_anew() {
    let home = Home::new();
    drop_in(&home.path("skills/mail"), "mail", "Reads mail.");
    let index = home.path("cache/skills.json");
    let library = home.open();
    let expected = library.list().await.unwrap();
    library.close().await;
    let good = fs::read_to_string(&index).unwrap();
    assert_eq!(fs::metadata(&index).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(good.contains("Reads mail."));
    for text in
        ["", "{", "null", "[]", &good.replace("\"version\":1", "\"version\":0"), &good.replace("sha256:", "md5:")]
    {
        fs::write(&index, text).unwrap();
        let library = home.open();
        assert_eq!(library.list().await.unwrap(), expected, "{text}");
        library.close().await;
        assert_eq!(fs::read_to_string(&index).unwrap(), good, "{text}");
    }
    // An index that cannot be written does no harm.
    fs::remove_dir_all(home.path("cache")).unwrap();
    fs::write(home.path("cache"), "").unwrap();
    assert_eq!(home.open().list().await.unwrap(), expected);
}

#[tokio::test]
async fn a_forged_index_changes_what_is_shown_and_never_what_is_used() {
    let home = Home::new();
    drop_in(&home.path("skills/mail"), "mail", "Reads mail.");
    drop_in(&home.path("skills/evil"), "evil", "Reads more.");
    let index = home.path("cache/skills.json");
    let library = home.open();
    approve(&library, "mail").await;
    let list = listed(&library).await;
    library.close().await;
    let good = fs::read_to_string(&index).unwrap();
    let (mail, evil) = (list["mail"].hash.unwrap().to_string(), list["evil"].hash.unwrap().to_string());

    // The stamps are right: the list believes it, as this file's owner could also change this program.
    fs::write(&index, good.replace("Reads more.", "Forged.").replace(&evil, &mail)).unwrap();
    let library = home.open();
    assert_eq!(listed(&library).await["evil"].description, "Forged.");
    let taken = library.take("evil").await.unwrap();
    assert_eq!((taken.snapshot.hash.to_string(), taken.standing.status), (evil.clone(), SkillStatus::NeedsReapproval));
    assert!(matches!(library.approved("evil").await, Err(SkillError::Untrusted { .. })));
    assert!(library.approved("mail").await.is_ok());
    library.close().await;

    // Another skill's name selects a place and nothing more.
    fs::write(&index, good.replace("\"name\":\"evil\"", "\"name\":\"post\"")).unwrap();
    let library = home.open();
    assert!(matches!(library.take("post").await, Err(SkillError::Missing { .. })));
    library.close().await;

    // After a change the stamps are wrong, and the index is not believed.
    fs::write(home.path("skills/evil/more"), "").unwrap();
    fs::write(&index, good.replace("Reads more.", "Forged.").replace(&evil, &mail)).unwrap();
    let library = home.open();
    let list = listed(&library).await;
    assert_eq!((list["evil"].description.as_str(), list["evil"].status), ("Reads more.", SkillStatus::NeedsReapproval));
    assert_eq!(list["mail"].status, SkillStatus::Approved);
    // A place known only to the index does not exist.
    let gone = home.path("skills/evil");
    fs::remove_dir_all(gone).unwrap();
    assert!(matches!(home.open().take("evil").await, Err(SkillError::Missing { .. })));
}

/// With the true clock the files of a test are too recent for a later change to be sure to show.
#[tokio::test]
async fn what_has_just_changed_is_not_believed_from_the_index() {
    let home = Home::new();
    drop_in(&home.path("skills/mail"), "mail", "Reads mail.");
    let parts = || LibraryParts { clock: Arc::new(base::SystemClock::default()), ..home.parts() };
    let library = Library::open(parts()).unwrap();
    assert_eq!(library.list().await.unwrap().len(), 1);
    library.close().await;
    assert!(!fs::read_to_string(home.path("cache/skills.json")).unwrap_or_default().contains("Reads mail."));
    let library = Library::open(parts()).unwrap();
    assert_eq!(listed(&library).await["mail"].description, "Reads mail.");
}

#[tokio::test]
async fn what_a_component_said_at_its_review_is_shown_for_these_bytes_only() {
    let home = Home::new();
    fs::write(home.path("skills/tables.wasm"), "\0asm one").unwrap();
    let library = home.open();
    let taken = library.take("tables").await.unwrap();
    let generated = taken.manifest.clone();
    let subject = Subject::of(SkillName::parse("tables").unwrap(), taken.place, &taken.snapshot);
    let described = Described { description: "Adds up tables.".to_owned(), body: "# Tables\n".to_owned() };
    library.trust().reviewed(&subject, Some(described)).await.unwrap();
    let taken = library.take("tables").await.unwrap();
    assert_eq!((taken.manifest.description.as_str(), taken.manifest.body.as_str()), ("Adds up tables.", "# Tables\n"));
    assert_eq!(listed(&library).await["tables.wasm"].description, "Adds up tables.");
    fs::write(home.path("skills/tables.wasm"), "\0asm two").unwrap();
    library.refresh().await.unwrap();
    assert_eq!(library.take("tables").await.unwrap().manifest, generated);
    assert_eq!(listed(&library).await["tables.wasm"].description, generated.description);
}

#[tokio::test]
async fn roots_that_are_missing_or_cannot_be_read_are_empty() {
    let home = Home::new();
    fs::remove_dir(home.path("skills")).unwrap();
    fs::remove_dir(home.path("other")).unwrap();
    fs::write(home.path("other"), "a file").unwrap();
    let library = home.open();
    assert!(library.list().await.unwrap().is_empty());
    assert_eq!(fs::metadata(home.path("skills")).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(matches!(library.verify(None).await, Err(SkillError::Io { .. })));
    // The same root given twice counts once.
    let mut parts = home.parts();
    parts.roots = vec![SkillsRoot::home(home.path("skills")), SkillsRoot::home(home.path("elsewhere"))];
    assert_eq!(Library::open(parts).unwrap().roots().len(), 1);
}

#[tokio::test]
async fn verifying_reads_all_and_says_of_each_where_it_stands() {
    let home = Home::new();
    for name in ["aa", "bb", "cc"] {
        drop_in(&home.path("skills").join(name), name, "Does.");
    }
    fs::create_dir(home.path("other/dd")).unwrap();
    let library = home.open();
    approve(&library, "bb").await;
    let verified = library.verify(None).await.unwrap();
    let seen: Vec<_> = verified
        .iter()
        .map(|verified| {
            let status = verified.result.as_ref().map(|(_, standing)| standing.status);
            (verified.place.entry.as_str(), status.ok())
        })
        .collect();
    let open = Some(SkillStatus::NeedsReapproval);
    assert_eq!(seen, [("dd", None), ("aa", open), ("bb", Some(SkillStatus::Approved)), ("cc", open)]);
    assert_eq!(library.verify(Some("bb")).await.unwrap().len(), 1);
    assert!(matches!(library.verify(Some("none")).await, Err(SkillError::Missing { .. })));
}

#[tokio::test]
async fn a_library_that_was_closed_says_so_and_still_lists() {
    let home = Home::watched();
    drop_in(&home.path("skills/mail"), "mail", "Reads mail.");
    let library = home.open();
    assert_eq!(library.list().await.unwrap().len(), 1);
    library.close().await;
    assert_eq!(library.list().await.unwrap().len(), 1);
    assert!(tokio::time::timeout(Duration::from_secs(10), library.refresh()).await.unwrap().is_err());
}
