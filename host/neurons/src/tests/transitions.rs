//! No sequence of changes reaches a state that ticks without quarantine, approval and trial, in this order.

use proptest::prelude::*;

use super::*;

fn changes() -> Vec<NeuronChange> {
    let fault = || Fault { code: FaultCode::Threw, reason: String::new() };
    vec![
        NeuronChange::Proposed { draft: Box::new(draft("a", BENIGN)) },
        NeuronChange::QuarantinePassed { scenarios: 3, most_energy_micros: 1 },
        NeuronChange::QuarantineFailed { fault: fault() },
        NeuronChange::Approved { hash: draft("a", BENIGN).hash(), consent: consent() },
        NeuronChange::Rejected { consent: consent() },
        NeuronChange::TrialBegan { after_signal: 0 },
        NeuronChange::Promoted,
        NeuronChange::Disabled { fault: fault() },
        NeuronChange::SwitchedOff { consent: consent() },
        NeuronChange::SwitchedOn { consent: consent() },
    ]
}

#[test]
fn exactly_these_changes_are_legal() {
    use NeuronStatus::{Active, Approved, Disabled, Proposed, Quarantined, Rejected, Trial};
    let mut legal = Vec::new();
    for from in [None].into_iter().chain(NeuronStatus::ALL.map(Some)) {
        for change in changes() {
            if let Ok(to) = NeuronStatus::transition(from, &change) {
                legal.push((from, change.name(), to));
            }
        }
    }
    let expected = [
        (None, "proposed", Proposed),
        (Some(Proposed), "passed", Quarantined),
        (Some(Proposed), "refused", Rejected),
        (Some(Proposed), "rejected", Rejected),
        (Some(Quarantined), "approved", Approved),
        (Some(Quarantined), "rejected", Rejected),
        (Some(Approved), "tried", Trial),
        (Some(Approved), "switched off", Disabled),
        (Some(Trial), "promoted", Active),
        (Some(Trial), "disabled", Disabled),
        (Some(Trial), "switched off", Disabled),
        (Some(Active), "disabled", Disabled),
        (Some(Active), "switched off", Disabled),
        (Some(Disabled), "proposed", Proposed),
        (Some(Disabled), "switched on", Approved),
        (Some(Rejected), "proposed", Proposed),
    ];
    assert_eq!(legal, expected);
}

proptest! {
    #[test]
    fn no_sequence_skips_a_step(picks in proptest::collection::vec(0_usize..10, 0..60)) {
        let all = changes();
        let mut neuron: Option<Neuron> = None;
        // The changes of the present version, in order.
        let mut seen: Vec<&'static str> = Vec::new();
        for (second, pick) in (1..).zip(picks) {
            let event = NeuronEvent { at: Timestamp::from_millis(second), change: all[pick].clone() };
            let before = neuron.clone();
            match Neuron::after(before.clone(), &event) {
                Ok(after) => {
                    if event.change.name() == "proposed" {
                        seen.clear();
                    }
                    seen.push(event.change.name());
                    prop_assert_eq!(after.events, before.map_or(0, |before| before.events) + 1);
                    neuron = Some(after);
                }
                Err(_) => prop_assert_eq!(&neuron, &before),
            }
            let status = neuron.as_ref().map(|neuron| neuron.status);
            let position = |name| seen.iter().rposition(|seen| *seen == name);
            if status.is_some_and(NeuronStatus::ticks) {
                prop_assert!(position("proposed") < position("passed"));
                prop_assert!(position("passed").is_some() && position("passed") < position("approved"));
                prop_assert!(position("approved").is_some() && position("approved") < position("tried"));
                // It was not stopped since its last trial began.
                for stopped in ["disabled", "switched off", "rejected", "refused"] {
                    prop_assert!(position(stopped) < position("tried"));
                }
                prop_assert!(neuron.as_ref().is_some_and(|neuron| neuron.approval.is_some() && neuron.trial.is_some()));
            }
            prop_assert!(status != Some(NeuronStatus::Active) || position("tried") < position("promoted"));
        }
    }
}
