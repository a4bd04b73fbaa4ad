//! Changes are noticed, by watching or by polling.

use super::*;

/// Waits until the list is as expected, relying only on `changed`.
async fn until(library: &Library, what: &str, is: impl Fn(&BTreeMap<String, SkillSummary>) -> bool) {
    let mut changed = library.changed();
    let wait = async {
        while !is(&listed(library).await) {
            changed.changed().await.unwrap();
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(20), wait).await.is_ok(), "{what} was not noticed");
}

/// All kinds of changes in a root, each noticed before the next.
async fn all_is_noticed(home: &Home, library: &Library) {
    let skills = home.path("skills");
    let hash = |list: &BTreeMap<String, SkillSummary>, place: &str| list.get(place).and_then(|skill| skill.hash);
    drop_in(&skills.join("mail"), "mail", "Reads mail.");
    let complete = |list: &BTreeMap<String, SkillSummary>| list.get("mail").is_some_and(|skill| skill.readable);
    until(library, "a directory", complete).await;
    until(library, "all of its files", |list| hash(list, "mail") == hash_of(&skills.join("mail"))).await;

    archive(&skills.join("web.zip"), &[("SKILL.md", &manifest("web", "Reads the web."))]);
    until(library, "an archive", |list| list.get("web.zip").is_some_and(|skill| skill.readable)).await;
    fs::write(skills.join("tables.wasm"), "\0asm").unwrap();
    until(library, "a component", |list| hash(list, "tables.wasm") == hash_of(&skills.join("tables.wasm"))).await;

    approve(library, "mail").await;
    let before = listed(library).await["mail"].clone();
    assert_eq!(before.status, SkillStatus::Approved);
    fs::write(skills.join("mail/scripts/run.py"), "print('hullo')\n").unwrap();
    until(library, "a changed file", |list| list["mail"].status == SkillStatus::NeedsReapproval).await;
    fs::write(skills.join("mail/scripts/run.py"), "print('hello')\n").unwrap();
    until(library, "the file as it was", |list| list["mail"] == before).await;
    fs::set_permissions(skills.join("mail/scripts/run.py"), fs::Permissions::from_mode(0o700)).unwrap();
    until(library, "a changed mode", |list| list["mail"].status == SkillStatus::NeedsReapproval).await;

    fs::create_dir_all(skills.join("mail/references/deep")).unwrap();
    fs::write(skills.join("mail/references/deep/a.md"), "one").unwrap();
    until(library, "a file in new directories", |list| hash(list, "mail") == hash_of(&skills.join("mail"))).await;
    let (one, last) = (hash_of(&skills.join("mail")), skills.join("mail/references/deep/a.md"));
    fs::write(&last, "two").unwrap();
    until(library, "a change in them", |list| hash(list, "mail") != one).await;

    fs::rename(skills.join("mail"), skills.join("post")).unwrap();
    until(library, "a new name", |list| list.contains_key("post") && !list.contains_key("mail")).await;
    fs::write(skills.join("post/references/deep/a.md"), "three").unwrap();
    until(library, "a change under the new name", |list| hash(list, "post") == hash_of(&skills.join("post"))).await;
    fs::remove_dir_all(skills.join("post")).unwrap();
    fs::remove_file(skills.join("web.zip")).unwrap();
    until(library, "what was removed", |list| list.keys().collect::<Vec<_>>() == ["tables.wasm"]).await;

    drop_in(&home.path("other/maps"), "maps", "Reads maps.");
    until(library, "a skill in another root", |list| list.len() == 2).await;
}

fn hash_of(path: &Path) -> Option<ContentHash> {
    crate::snapshot::read(path, &SkillBounds::default()).ok().map(|snapshot| snapshot.hash)
}

#[tokio::test]
async fn changes_are_heard() {
    let home = Home::watched();
    let library = home.open();
    all_is_noticed(&home, &library).await;
}

#[tokio::test]
async fn changes_are_seen_where_they_cannot_be_heard() {
    let home = Home::watched();
    let library = Library::open_with(home.parts(), 3).unwrap();
    all_is_noticed(&home, &library).await;
}

/// With the true clock: a fresh change is looked at once more, and that is not another change.
#[tokio::test]
async fn changes_are_heard_of_fresh_files() {
    let home = Home::watched();
    let parts = LibraryParts { clock: Arc::new(base::SystemClock::default()), ..home.parts() };
    let library = Library::open(parts).unwrap();
    all_is_noticed(&home, &library).await;
}

#[tokio::test]
async fn roots_may_come_go_and_be_replaced() {
    let home = Home::watched();
    fs::remove_dir(home.path("other")).unwrap();
    let library = home.open();
    assert!(library.list().await.unwrap().is_empty());
    drop_in(&home.path("new/maps"), "maps", "Reads maps.");
    fs::rename(home.path("new"), home.path("other")).unwrap();
    until(&library, "a new root", |list| list.len() == 1).await;
    drop_in(&home.path("other/cards"), "cards", "Reads cards.");
    until(&library, "a skill in it", |list| list.values().filter(|skill| skill.readable).count() == 2).await;

    drop_in(&home.path("better/maps"), "maps", "Reads better maps.");
    fs::rename(home.path("other"), home.path("old")).unwrap();
    fs::rename(home.path("better"), home.path("other")).unwrap();
    let better = |list: &BTreeMap<String, SkillSummary>| {
        list.len() == 1 && list.values().all(|skill| skill.description == "Reads better maps.")
    };
    until(&library, "another root in its place", better).await;
    fs::write(home.path("other/maps/SKILL.md"), manifest("maps", "Reads the best maps.")).unwrap();
    let best =
        |list: &BTreeMap<String, SkillSummary>| list.values().any(|skill| skill.description == "Reads the best maps.");
    until(&library, "a change in that", best).await;
    fs::remove_dir_all(home.path("other")).unwrap();
    until(&library, "that it is gone", BTreeMap::is_empty).await;
}

#[tokio::test]
async fn what_the_host_writes_itself_is_no_change() {
    let home = Home::watched();
    drop_in(&home.path("skills/mail"), "mail", "Reads mail.");
    let library = home.open();
    library.list().await.unwrap();
    fs::write(home.path("skills/mail/policy.json"), "{}").unwrap();
    drop_in(&home.path("skills/.staged"), "staged", "Is staged.");
    fs::write(home.path("skills/index.json"), "{}").unwrap();
    library.refresh().await.unwrap();
    assert_eq!(*library.changed().borrow(), 0);
    fs::rename(home.path("skills/.staged"), home.path("skills/staged")).unwrap();
    until(&library, "what was put there", |list| list.len() == 2).await;
    assert_eq!(*library.changed().borrow(), 1);
}

#[tokio::test]
async fn a_flood_of_changes_is_noticed() {
    let home = Home::watched();
    drop_in(&home.path("skills/mail"), "mail", "Reads mail.");
    let library = home.open();
    library.refresh().await.unwrap();
    let script = home.path("skills/mail/scripts/run.py");
    for round in 0..5_000 {
        fs::set_permissions(&script, fs::Permissions::from_mode(0o600 + round % 2 * 0o100)).unwrap();
        fs::rename(home.path("skills/mail/SKILL.md"), home.path("skills/mail/skill.txt")).unwrap();
        fs::rename(home.path("skills/mail/skill.txt"), home.path("skills/mail/SKILL.md")).unwrap();
    }
    fs::write(&script, "print('the end')").unwrap();
    drop_in(&home.path("skills/last"), "last", "Comes last.");
    let (mail, last) = (hash_of(&home.path("skills/mail")), hash_of(&home.path("skills/last")));
    let hashes = |list: &BTreeMap<String, SkillSummary>| {
        list["mail"].hash == mail && list.get("last").is_some_and(|skill| skill.hash == last)
    };
    until(&library, "the end of it", hashes).await;
}

#[tokio::test]
async fn lists_are_whole_while_skills_are_renamed() {
    let home = Home::watched();
    for name in ["aa", "bb", "cc"] {
        drop_in(&home.path("skills").join(name), name, "Stays.");
    }
    drop_in(&home.path("skills/moves"), "moves", "Moves.");
    let library = home.open();
    library.list().await.unwrap();
    let skills = home.path("skills");
    let mover = std::thread::spawn(move || {
        for _ in 0..2_000 {
            fs::rename(skills.join("moves"), skills.join("moved")).unwrap();
            fs::rename(skills.join("moved"), skills.join("moves")).unwrap();
        }
    });
    while !mover.is_finished() {
        library.refresh().await.unwrap();
        let list = listed(&library).await;
        for name in ["aa", "bb", "cc"] {
            assert!(list.get(name).is_some_and(|skill| skill.readable), "{name} in {list:?}");
        }
    }
    mover.join().unwrap();
    until(&library, "where it came to lie", |list| {
        list.keys().collect::<Vec<_>>() == ["aa", "bb", "cc", "moves"] && list["moves"].readable
    })
    .await;
}
