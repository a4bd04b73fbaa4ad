//! Tests of whole conversations, with a scripted model and hands in memory.
