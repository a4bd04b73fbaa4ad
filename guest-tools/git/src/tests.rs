//! The commands, against those of git itself.
