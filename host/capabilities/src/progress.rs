//! `motor:host/progress`: progress reports from long work. They share the log's budgets.

use bindings::progress::Host;
use wasmtime::component::HasData;

use crate::Note;
use crate::log::LogCtx;

/// The view that implements the host trait.
pub struct ProgressView<'a>(pub &'a mut LogCtx);

/// Marks stores whose [`LogCtx`] also takes progress.
pub struct HasProgress;

impl HasData for HasProgress {
    type Data<'a> = ProgressView<'a>;
}

impl Host for ProgressView<'_> {
    fn report(&mut self, message: String, fraction: Option<f32>) -> wasmtime::Result<()> {
        self.0.admit(&message)?;
        // A fraction is shown to people: one that is out of range or not a number is dropped.
        let fraction = fraction.filter(|value| (0.0..=1.0).contains(value));
        (self.0.sink)(Note::Progress { message, fraction });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn a_fraction_out_of_range_is_dropped() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = seen.clone();
        let mut ctx = LogCtx::new(9, 100, Arc::new(move |note| sink.lock().unwrap().push(note)));
        for fraction in [Some(0.5), Some(f32::NAN), Some(7.0), None] {
            ProgressView(&mut ctx).report("x".into(), fraction).unwrap();
        }
        let fractions: Vec<_> = seen
            .lock()
            .unwrap()
            .iter()
            .map(|note| match note {
                Note::Progress { fraction, .. } => *fraction,
                Note::Log { .. } => panic!("not a log line"),
            })
            .collect();
        assert_eq!(fractions, [Some(0.5), None, None, None]);
    }
}
