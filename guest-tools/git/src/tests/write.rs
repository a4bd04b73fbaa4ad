//! Commands that write.
