//! A file swapped between check and use (SPEC SKILL-6, HOST-8): at any time of any swap, bytes reported as approved are
//! the approved bytes.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::super::catalogue::SelectedSkill;
use super::*;

const ROUNDS: u32 = 100_000;
const GOOD: &str = "print('hello')\n";
const EVIL: &str = "print('evil!')\n";

/// Swaps the good skill for an evil one and back, in every way there is.
fn swap(skills: &Path, stop: &AtomicBool) {
    let (skill, script) = (skills.join("mail"), skills.join("mail/scripts/run.py"));
    let (draft, evil) = (skills.join(".draft"), skills.join(".evil"));
    let exchange = || renameat_with(CWD, &skill, CWD, &evil, RenameFlags::EXCHANGE).unwrap();
    while !stop.load(Ordering::Relaxed) {
        // Another file under its name.
        for text in [EVIL, GOOD] {
            fs::write(&draft, text).unwrap();
            fs::rename(&draft, &script).unwrap();
        }
        // The same file, other bytes of the same length, without it being empty in between.
        for text in [EVIL, GOOD] {
            use std::os::unix::fs::FileExt as _;
            fs::File::options().write(true).open(&script).unwrap().write_all_at(text.as_bytes(), 0).unwrap();
        }
        // The whole skill.
        exchange();
        exchange();
        // An additional file.
        fs::write(skill.join("scripts/more.py"), EVIL).unwrap();
        fs::remove_file(skill.join("scripts/more.py")).unwrap();
    }
}

#[tokio::test]
async fn in_a_hundred_thousand_rounds_approved_bytes_are_the_approved_bytes() {
    let memory = Path::new("/dev/shm");
    let home = if memory.is_dir() { Home::within(memory) } else { Home::new() };
    let skills = home.path("skills");
    drop_in(&skills.join("mail"), "mail", "Reads mail.");
    fs::write(skills.join("mail/scripts/run.py"), GOOD).unwrap();
    drop_in(&skills.join(".evil"), "mail", "Reads mail.");
    fs::write(skills.join(".evil/scripts/run.py"), EVIL).unwrap();
    let library = home.open();
    approve(&library, "mail").await;
    let approved = library.take("mail").await.unwrap().snapshot;
    let chosen =
        SelectedSkill { place: SkillPlace::new("home", "mail"), name: Some(SkillName::parse("mail").unwrap()) };

    let stop = Arc::new(AtomicBool::new(false));
    let swapper = std::thread::spawn({
        let (skills, stop) = (skills.clone(), stop.clone());
        move || swap(&skills, &stop)
    });
    let (mut good, mut refused, mut unreadable) = (0_u32, 0_u32, 0_u32);
    let mut round = 0;
    // On a slow machine it continues until both have been seen.
    while round < ROUNDS || good == 0 || refused == 0 {
        round += 1;
        assert!(round < 100 * ROUNDS, "{good} good, {refused} refused");
        match library.inner.read(&chosen) {
            Ok(taken) if taken.standing.status == SkillStatus::Approved => {
                assert_eq!(taken.snapshot.files, approved.files, "in round {round}");
                good += 1;
            }
            Ok(taken) => {
                assert_ne!(taken.snapshot.files, approved.files, "in round {round}");
                refused += 1;
            }
            Err(_) => unreadable += 1,
        }
    }
    stop.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    println!("{round} rounds: {good} approved, {refused} refused, {unreadable} unreadable");
    // Without swaps the approved bytes are returned.
    assert_eq!(library.approved("mail").await.unwrap().snapshot, approved);
}
