//! Attacks on the trust in skills, with the real program (SPEC SKILL-3 to SKILL-6, HOST-8, HOST-5): changed bytes on
//! every surface, forged claims and caches, bytes that are swapped while they are read, hostile archives, components
//! that want more, and kills in the middle of taking a skill over. An unapproved skill is never used, by any attack;
//! each attack has a twin that changes nothing and must go on working.

pub(super) mod archives;
mod changed;
mod claims;
mod components;
mod killed;
mod race;
