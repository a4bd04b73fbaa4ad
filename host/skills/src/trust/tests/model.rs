//! Random histories against a tiny model of the table.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Name, place, content, permission bits: few of each, so that they meet.
type Bytes = (u8, u8, u8, u8);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Added(Bytes),
    Reviewed(Bytes),
    Advised(Bytes, bool),
    Approved(Bytes),
    Rejected(Bytes),
    Updated(Bytes),
    Made(Bytes),
    Forgotten(u8),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    modes: u8,
    status: SkillStatus,
    superseded: bool,
    made: bool,
}

/// The known rows, by place, name and content.
#[derive(Default)]
struct Model(BTreeMap<(u8, u8, u8), Row>);

impl Model {
    fn standing(&self, (name, place, content, modes): Bytes) -> SkillStatus {
        match self.0.get(&(place, name, content)) {
            Some(row) if !row.superseded && row.modes == modes => row.status,
            _ => SkillStatus::NeedsReapproval,
        }
    }

    /// Whether it can happen; if so, it has.
    fn happens(&mut self, event: Event) -> bool {
        use SkillStatus::{Approved, NeedsReapproval, PendingReview, Reviewed};
        let (bytes, after) = match event {
            Event::Forgotten(place) => {
                self.0.retain(|key, _| key.0 != place);
                return true;
            }
            Event::Added(bytes) => (bytes, Some(self.standing(bytes))),
            Event::Reviewed(bytes) => (bytes, Some(if self.standing(bytes) == Approved { Approved } else { Reviewed })),
            Event::Advised(bytes, passed) => (
                bytes,
                Some(match (self.standing(bytes), passed) {
                    (Reviewed, false) if self.made(bytes) => PendingReview,
                    (Reviewed, false) => NeedsReapproval,
                    (status, _) => status,
                }),
            ),
            Event::Approved(bytes) => (bytes, (self.standing(bytes) != PendingReview).then_some(Approved)),
            Event::Rejected(bytes) => (
                bytes,
                match self.standing(bytes) {
                    Approved => None,
                    NeedsReapproval => Some(NeedsReapproval),
                    PendingReview | Reviewed => Some(PendingReview),
                },
            ),
            Event::Updated(bytes) => (bytes, (self.standing(bytes) == Approved).then_some(Approved)),
            Event::Made(bytes) => (bytes, Some(PendingReview)),
        };
        let Some(status) = after else { return false };
        let (name, place, content, modes) = bytes;
        let made = self.made(bytes) || matches!(event, Event::Made(_));
        if matches!(event, Event::Approved(_) | Event::Made(_)) {
            self.0.iter_mut().filter(|(key, _)| key.0 == place).for_each(|(_, row)| row.superseded = true);
        }
        self.0.insert((place, name, content), Row { modes, status, superseded: false, made });
        true
    }

    fn made(&self, (name, place, content, _): Bytes) -> bool {
        self.0.get(&(place, name, content)).is_some_and(|row| row.made)
    }
}

fn real((name, at, content, modes): Bytes) -> Subject {
    Subject {
        name: SkillName::parse(["pdf", "pdf-2"][usize::from(name)]).unwrap(),
        place: place(["pdf", "pdf.zip"][usize::from(at)]),
        hash: ContentHash::of(&[content]),
        modes: ContentHash::of(&[modes]),
    }
}

async fn happens(book: &TrustBook, event: Event) -> bool {
    match event {
        Event::Added(bytes) => book.added(&real(bytes), provenance("x")).await.is_ok(),
        Event::Reviewed(bytes) => book.reviewed(&real(bytes), None).await.is_ok(),
        Event::Advised(bytes, passed) => book.advised(&real(bytes), advisory(passed)).await.is_ok(),
        Event::Approved(bytes) => book.approve(&real(bytes), policy(), consent()).await.is_ok(),
        Event::Rejected(bytes) => book.reject(&real(bytes), consent(), None).await.is_ok(),
        Event::Updated(bytes) => book.update(&real(bytes), policy(), consent()).await.is_ok(),
        Event::Made(bytes) => book.made_by_motor(&real(bytes), extracted(), None).await.is_ok(),
        Event::Forgotten(at) => book.forget(&real((0, at, 0, 0)).place, consent()).await.is_ok(),
    }
}

fn bytes() -> impl Strategy<Value = Bytes> {
    (0..2_u8, 0..2_u8, 0..3_u8, 0..2_u8)
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        1 => bytes().prop_map(Event::Added),
        1 => bytes().prop_map(Event::Reviewed),
        1 => (bytes(), any::<bool>()).prop_map(|(bytes, passed)| Event::Advised(bytes, passed)),
        3 => bytes().prop_map(Event::Approved),
        1 => bytes().prop_map(Event::Rejected),
        1 => bytes().prop_map(Event::Updated),
        2 => bytes().prop_map(Event::Made),
        1 => (0..2_u8).prop_map(Event::Forgotten),
    ]
}

fn everything() -> impl Iterator<Item = Bytes> {
    (0..24_u8).map(|number| (number & 1, number >> 1 & 1, number / 8, number >> 2 & 1))
}

/// The owner approved exactly these bytes, and nothing was approved, made or forgotten in their place since.
fn was_approved(history: &[Event], bytes: Bytes) -> bool {
    let at = |event: &Event| match event {
        Event::Approved(bytes) | Event::Made(bytes) => Some(bytes.1),
        Event::Forgotten(place) => Some(*place),
        _ => None,
    };
    history.iter().rev().find(|event| at(event) == Some(bytes.1)) == Some(&Event::Approved(bytes))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn histories_agree_with_the_model(events in prop::collection::vec(event(), 0..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (_, book) = opened();
        let (mut model, mut history) = (Model::default(), Vec::new());
        for event in events {
            let expected = model.happens(event);
            prop_assert_eq!(runtime.block_on(happens(&book, event)), expected, "{:?} after {:?}", event, history);
            if expected {
                history.push(event);
            }
            for bytes in everything() {
                let found = status(&book, &real(bytes));
                prop_assert_eq!(found, model.standing(bytes), "{:?} after {:?}", bytes, history);
                prop_assert!(
                    found != SkillStatus::Approved || was_approved(&history, bytes),
                    "{:?} after {:?}", bytes, history
                );
            }
        }
    }
}
