//! The text format of Prometheus (version 0.0.4), by hand: it is a few lines, while a metrics library wants a recorder of
//! its own beside the places where the figures live.

use std::fmt::{Display, Write as _};

/// The content type of an exposition.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// One metric: its samples differ in the values of labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Family {
    /// The name, with its unit, and `_total` for a counter.
    pub(super) name: &'static str,
    /// The type: `counter` or `gauge`.
    pub(super) kind: &'static str,
    /// The meaning, in one sentence.
    pub(super) help: &'static str,
}

/// An exposition under construction.
#[derive(Debug, Default)]
pub(super) struct Exposition(String);

impl Exposition {
    /// Adds a metric with its samples. A metric without samples is left out.
    pub(super) fn family<L, V>(&mut self, family: &Family, samples: impl IntoIterator<Item = (L, V)>)
    where
        L: AsRef<[(&'static str, String)]>,
        V: Display,
    {
        let Family { name, kind, help } = family;
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_some() {
            self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"));
        }
        for (labels, value) in samples {
            let labels: Vec<_> =
                labels.as_ref().iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
            match labels.as_slice() {
                [] => self.line(format_args!("{name} {value}")),
                labels => self.line(format_args!("{name}{{{}}} {value}", labels.join(","))),
            }
        }
    }

    /// Adds a metric with one sample and no labels.
    pub(super) fn value(&mut self, family: &Family, value: impl Display) {
        self.family(family, [([], value)]);
    }

    /// The text in the format.
    pub(super) fn text(self) -> String {
        self.0
    }

    fn line(&mut self, line: impl Display) {
        // Writing to a string cannot fail.
        writeln!(self.0, "{line}").ok();
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_stand_under_their_metric_and_label_values_cannot_leave_their_quotes() {
        let family = Family { name: "runs_total", kind: "counter", help: "Runs." };
        let mut text = Exposition::default();
        text.family(&family, [([("a", "x\"} 1\n\\".to_owned()), ("b", "y".to_owned())], 7)]);
        text.family(&family, Vec::<([(&'static str, String); 1], u64)>::new());
        text.value(&Family { name: "level", kind: "gauge", help: "Level." }, 0.5);
        let expected = "# HELP runs_total Runs.\n# TYPE runs_total counter\nruns_total{a=\"x\\\"} 1\\n\\\\\",b=\"y\"} 7\n\
                        # HELP level Level.\n# TYPE level gauge\nlevel 0.5\n";
        assert_eq!(text.text(), expected);
    }
}
