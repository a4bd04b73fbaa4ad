//! Options that the interpreter's commands would pass over: a script that relies on one is told, instead of losing a file.

use bashkit::hooks::{HookAction, ToolEvent};

use crate::date;

/// Letters of options that a command takes and does not heed.
const PASSED_OVER: [(&str, &str); 2] = [("mv", "nub"), ("cp", "u")];

/// Looks at a command before it runs: its arguments are rewritten to forms that it understands, or to an option that it
/// refuses by name.
pub(crate) fn rewrite(mut event: ToolEvent) -> HookAction<ToolEvent> {
    if event.name == "date" {
        event.args = date::rewritten(event.args);
    } else if let Some((_, letters)) = PASSED_OVER.into_iter().find(|(name, _)| *name == event.name)
        && let Some(letter) = passed_over(&event.args, letters)
    {
        event.args = vec![format!("--option-{letter}-is-not-known-here")];
    }
    HookAction::Continue(event)
}

fn passed_over(arguments: &[String], letters: &str) -> Option<char> {
    let options = arguments.iter().take_while(|argument| *argument != "--");
    let short = options.filter_map(|argument| argument.strip_prefix('-').filter(|rest| !rest.starts_with('-')));
    short.flat_map(str::chars).find(|letter| letters.contains(*letter))
}
