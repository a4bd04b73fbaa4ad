//! The commands, against those of git itself. Where the machine has no `git`, these tests say so and pass.

mod compare;
mod hostile;
mod push;
mod support;
mod write;
