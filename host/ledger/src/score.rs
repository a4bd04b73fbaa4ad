//! The information score (SPEC LED-2): how much is known about a peer, from counts and times alone.

use std::time::Duration;

/// The highest trust; the lowest is its negative.
pub const MAX_TRUST: i8 = 10;

/// Explains both scores to a model. It stands in every enriched prompt.
pub const SCORE_GUIDE: &str = "info_score says how much is known, 0 (nothing) to 10 (long and often); it is counted by the host. \
    trust is a judgement: -10 hostile, -5 unreliable, 0 neutral or unknown, +5 reliable, +10 proven over a long time. \
    High trust with a low info_score rests on almost nothing: verify before relying on it";

/// Exchanges from which each further point counts.
const EXCHANGE_STEPS: [u64; 5] = [1, 4, 15, 40, 100];
/// Days between the first and the latest interaction from which each further point counts.
const SPAN_STEPS_DAYS: [u64; 4] = [1, 7, 21, 90];
/// Assessments from which the last point counts.
const ASSESSMENT_STEPS: [u64; 1] = [10];

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// The facts that the information score follows from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Evidence {
    /// The greater of the numbers of incoming and outgoing interactions: a request and its reply are one exchange.
    pub exchanges: u64,
    /// Time between the first and the latest interaction.
    pub span: Duration,
    /// Assessments recorded before this one.
    pub assessments: u64,
}

/// The information score, 0 to 10: a point for each step that the evidence reaches.
///
/// - exchanges: 1, 4, 15, 40, 100
/// - days between the first and the latest interaction: 1, 7, 21, 90
/// - assessments: 10
///
/// Monotone in each of the three. Six exchanges over three weeks are 5, over fifteen days 4.
#[must_use]
pub fn info_score(evidence: Evidence) -> u8 {
    let days = evidence.span.as_secs() / DAY.as_secs();
    let reached = |steps: &[u64], value: u64| steps.iter().filter(|step| value >= **step).count();
    let points = reached(&EXCHANGE_STEPS, evidence.exchanges)
        + reached(&SPAN_STEPS_DAYS, days)
        + reached(&ASSESSMENT_STEPS, evidence.assessments);
    u8::try_from(points).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn score(exchanges: u64, days: u32, assessments: u64) -> u8 {
        info_score(Evidence { exchanges, span: DAY * days, assessments })
    }

    #[test]
    fn the_examples_of_the_specification() {
        assert_eq!(score(6, 21, 0), 5);
        assert_eq!(score(6, 21, 5), 5);
        assert_eq!(score(6, 15, 5), 4);
        assert_eq!(score(0, 0, 0), 0);
        assert_eq!(score(1, 0, 0), 1);
        assert_eq!(score(u64::MAX, u32::MAX, u64::MAX), 10);
    }

    proptest! {
        #[test]
        fn more_evidence_never_lowers_it(
            exchanges in 0..200_u64, hours in 0..3_000_u64, assessments in 0..20_u64,
            more in 0..200_u64, longer in 0..3_000_u64, further in 0..20_u64,
        ) {
            let evidence = Evidence { exchanges, span: Duration::from_secs(hours * 3_600), assessments };
            let greater = Evidence {
                exchanges: exchanges + more,
                span: evidence.span + Duration::from_secs(longer * 3_600),
                assessments: assessments + further,
            };
            prop_assert!(info_score(evidence) <= info_score(greater));
            prop_assert!(info_score(greater) <= 10);
        }
    }
}
