//! The sources of untrusted content that a conversation has taken in (SPEC TAINT-1).
//!
//! The set only grows and outlives the window of the prompt: a model carries on in its own words the content that it has read, also
//! after that content has left its sight. It has the runs, too, of which text came in: they taint nothing by themselves, and memories
//! name them.

use std::collections::BTreeSet;

use base::RunId;
use base::text::cut;
use ledger::PeerId;
use serde::{Deserialize, Serialize};

use crate::record::{Entry, EntryBody};

/// Sources of a conversation that are kept by name, of runs and of all else. All others are one more.
const MAX_SOURCES: usize = 64;
/// Characters of the name of a source.
const MAX_SOURCE: usize = 200;
/// Stands for all sources beyond [`MAX_SOURCES`], and for a set that is unknown. It taints like any other.
pub(crate) const MANY: &str = "many other sources";
/// Begins the source of text of a run. No host, with or without a port, and no name of a peer or neuron is written so.
const RUN: &str = "run:run_";
/// Stands for all runs beyond [`MAX_SOURCES`].
pub(crate) const MANY_RUNS: &str = "run:run_others";
/// Stands for the sources of a report that was stored without them.
const EARLIER_REPORT: &str = "an earlier report of a run";

/// The sources of a conversation, in order and each once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Sources(BTreeSet<String>);

impl Sources {
    /// A set of which nothing is known: it taints.
    pub fn unknown() -> Self {
        Self(BTreeSet::from([MANY.to_owned()]))
    }

    pub fn add(&mut self, sources: &[String]) {
        for source in sources {
            let source = cut(source, MAX_SOURCE);
            let is_taint = taints(&source);
            let others = if is_taint { MANY } else { MANY_RUNS };
            let is_named = |known: &&String| taints(known) == is_taint && *known != others;
            if source == others || self.0.iter().filter(is_named).count() < MAX_SOURCES {
                self.0.insert(source);
            } else if !self.0.contains(&source) {
                self.0.insert(others.to_owned());
            }
        }
    }

    /// Adds the sources of an entry, and the run that it tells of.
    pub fn add_entry(&mut self, body: &EntryBody) {
        self.add(body.sources());
        if let EntryBody::Signal { run, .. } = body {
            self.add(&[source_of(run)]);
        }
    }

    /// Whether nothing in it taints.
    pub fn is_empty(&self) -> bool {
        !self.0.iter().any(|source| taints(source))
    }

    /// The sources that taint.
    pub fn list(&self) -> Vec<String> {
        self.0.iter().filter(|source| taints(source)).cloned().collect()
    }

    /// The sources that taint, and the runs.
    pub fn with_runs(&self) -> Vec<String> {
        self.0.iter().cloned().collect()
    }

    /// Adds the sources of an entry that was stored before heads had them.
    pub fn add_stored(&mut self, entry: &Entry) {
        self.add_entry(&entry.body);
        if let EntryBody::Returned { name, content, sources, .. } = &entry.body {
            // Quotes within the report's texts are escaped, so that none of them can pass for this field.
            let is_report = name == "core_task" && content.contains("<untrusted-");
            if is_report && sources.is_empty() && !content.contains("\"webSources\":[]") {
                self.add(&[EARLIER_REPORT.to_owned()]);
            }
        }
    }
}

/// Whether a source is one of untrusted content, and not only a run.
pub(crate) fn taints(source: &str) -> bool {
    !source.starts_with(RUN)
}

/// The source of text of a run.
pub(crate) fn source_of(run: &RunId) -> String {
    format!("run:{run}")
}

/// The source of text of a peer. The cortex names it likewise. It is shorter than the limit of names, so it is never cut.
pub(crate) fn source_of_peer(peer: &PeerId) -> String {
    format!("peer:{peer}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn beyond_the_bound_others_are_one_source_that_stays() {
        let mut sources = Sources::default();
        sources.add(&(0..MAX_SOURCES).map(|number| format!("{number}.example")).collect::<Vec<_>>());
        let full = sources.clone();
        sources.add(&["0.example".to_owned()]);
        assert_eq!(sources, full, "a known source is not another one");
        for other in ["a.example", "b.example"] {
            sources.add(&[other.to_owned()]);
            assert_eq!(sources.list().len(), MAX_SOURCES + 1);
            assert!(sources.list().contains(&MANY.to_owned()));
        }
        assert!(!Sources::unknown().is_empty());
    }

    #[test]
    fn a_full_set_that_is_added_first_keeps_all_its_names() {
        let mut sources = Sources::default();
        // Some of them are after the one that stands for others.
        sources.add(&(0..MAX_SOURCES + 9).map(|number| format!("peer:{number}")).collect::<Vec<_>>());
        sources.add(&(0..MAX_SOURCES + 9).map(|number| format!("run:run_{number}")).collect::<Vec<_>>());
        let mut again = Sources::default();
        again.add(&sources.with_runs());
        assert_eq!(again, sources);
        again.add(&["evil.example".to_owned()]);
        assert_eq!(again, sources);
    }

    #[test]
    fn runs_are_named_and_taint_nothing_however_many_they_are() {
        let mut sources = Sources::default();
        for number in 0..3 * MAX_SOURCES {
            sources.add(&[source_of(&RunId::parse(&format!("run_{number}")).unwrap())]);
        }
        assert!(sources.is_empty() && sources.list().is_empty());
        assert_eq!(sources.with_runs().len(), MAX_SOURCES + 1);
        // A host cannot be taken for one, and has room of its own.
        for host in ["run", "run:80", "evil.example", "peer:run:run_1"] {
            sources.add(&[host.to_owned()]);
        }
        assert_eq!(sources.list(), ["evil.example", "peer:run:run_1", "run", "run:80"]);
    }

    proptest! {
        #[test]
        fn the_set_only_grows_and_is_bounded(steps in proptest::collection::vec(proptest::collection::vec(".{0,300}", 0..40), 0..8)) {
            let mut sources = Sources::default();
            for step in steps {
                let before = sources.clone();
                sources.add(&step);
                prop_assert!(before.0.is_subset(&sources.0));
                prop_assert!(step.is_empty() || !sources.is_empty());
                prop_assert!(sources.0.len() <= 2 * (MAX_SOURCES + 1));
            }
        }
    }
}
