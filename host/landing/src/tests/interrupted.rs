//! A landing that is killed, or that finds the disk full, at every step.

use super::*;

/// Stops at each step in turn, and checks that the directory is in one state or the other then.
fn at_each_step(
    make: impl Fn() -> Desk,
    begin: impl Fn(&Desk, &Steps) -> Result<Landed, LandError>,
    landing: &str,
    full: bool,
) {
    for step in 0.. {
        let desk = make();
        let before = desk.now();
        let steps = Steps { left: Some(Cell::new(step)), full, ..Steps::default() };
        let done = begin(&desk, &steps);
        let reached = steps.left.as_ref().unwrap().get();
        if done.is_ok() {
            assert!(step > 20, "only {step} steps");
            return;
        }
        assert!(full == !matches!(done, Err(LandError::Killed)), "step {step}: {done:?} {reached}");
        // Ending it is interrupted at each step, too.
        if !full {
            for again in (0..60).step_by(1 + step % 3) {
                if recover_with(&desk.path(landing), &after(again)).is_ok() {
                    break;
                }
            }
        }
        let state = crate::recover(&desk.path(landing)).unwrap();
        match state {
            Some(State::Landed) => assert_ne!(desk.now(), before, "step {step}"),
            None | Some(State::RolledBack) => assert_eq!(desk.now(), before, "step {step}"),
            other => panic!("step {step}: {other:?}"),
        }
        assert!(!desk.now().keys().any(|path| path.contains(".motor-landing")), "step {step}: {:?}", desk.now());
        if state == Some(State::Landed) && landing == "first" {
            assert_eq!(desk.now(), desk.wanted(), "step {step}");
            desk.undo("first", "second", &Steps::default()).unwrap();
            assert_eq!(desk.now(), before, "step {step}: the originals are all there");
        }
    }
}

fn landed() -> Desk {
    let desk = every_kind();
    desk.lands(desk.plan(), "first");
    desk
}

#[test]
fn a_killed_landing_ends_in_one_or_the_other() {
    at_each_step(every_kind, |desk, steps| desk.land(desk.plan(), "first", None, steps), "first", false);
}

#[test]
fn a_killed_undo_ends_in_one_or_the_other() {
    at_each_step(landed, |desk, steps| desk.undo("first", "second", steps), "second", false);
}

#[test]
fn a_full_disk_ends_in_one_or_the_other() {
    at_each_step(every_kind, |desk, steps| desk.land(desk.plan(), "first", None, steps), "first", true);
    at_each_step(landed, |desk, steps| desk.undo("first", "second", steps), "second", true);
}
