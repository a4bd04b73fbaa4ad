//! The process ends at each write of a change: afterwards the table is as it was before the change or after it.

use store::DiskFault;

use super::*;

/// Where both versions stand.
fn both(book: &TrustBook) -> (SkillStatus, SkillStatus) {
    (status(book, &subject("1")), status(book, &subject("2")))
}

async fn change(book: &TrustBook, made: bool) -> bool {
    if made {
        book.made_by_motor(&subject("2"), extracted(), None).await.is_ok()
    } else {
        book.approve(&subject("2"), policy(), consent()).await.is_ok()
    }
}

#[tokio::test]
async fn a_change_is_there_as_a_whole_or_not_at_all() {
    let before = (SkillStatus::Approved, SkillStatus::NeedsReapproval);
    for (made, last) in [(false, SkillStatus::Approved), (true, SkillStatus::PendingReview)] {
        let after = (SkillStatus::NeedsReapproval, last);
        for fault in [
            DiskFault::Crash { reached: false },
            DiskFault::Crash { reached: true },
            DiskFault::Io { reached: false },
            DiskFault::Io { reached: true },
            DiskFault::Full,
        ] {
            let reached = matches!(fault, DiskFault::Crash { reached: true } | DiskFault::Io { reached: true });
            let mut died = 0;
            for write in 0.. {
                let disk = SimulatedDisk::new(write);
                let store = Store::simulated(disk.clone()).unwrap();
                book(&store).approve(&subject("1"), policy(), consent()).await.unwrap();
                disk.fail_at(disk.writes() + write, fault);
                let done = change(&book(&store), made).await;
                drop(store);
                let store = Store::simulated(disk).unwrap();
                let expected = if done || reached { after } else { before };
                assert_eq!(both(&book(&store)), expected, "{fault:?} at write {write}");
                if done {
                    break;
                }
                died += 1;
                // The interrupted change can be made again.
                assert!(change(&book(&store), made).await);
                assert_eq!(both(&book(&store)), after);
            }
            assert_eq!(died, 1, "a change is one write");
        }
    }
}

#[tokio::test]
async fn what_fails_is_said_and_nothing_is_trusted_before_it_is_durable() {
    let disk = SimulatedDisk::new(1);
    let store = Store::simulated(disk.clone()).unwrap();
    let book = book(&store);
    disk.fail_at(disk.writes(), DiskFault::Full);
    assert!(matches!(
        book.approve(&subject("1"), policy(), consent()).await,
        Err(crate::SkillError::Store(store::StoreError::Full))
    ));
    assert_eq!(status(&book, &subject("1")), SkillStatus::NeedsReapproval);
    book.approve(&subject("1"), policy(), consent()).await.unwrap();
    assert_eq!(status(&book, &subject("1")), SkillStatus::Approved);
}
