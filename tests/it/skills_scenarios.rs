//! A skill's life with the real program, a scripted model over real HTTP and sites on this machine (SPEC SKILL-1 to SKILL-12,
//! RUN-13, RUN-14, SIG-1, HOST-10): learned, used, failing, healed, shared, brought along, given other powers, looked at by a
//! run, and seen when it comes and goes. Each way that is refused has its twin that is let through.

mod advice;
mod brought;
mod healed;
mod learned;
mod used;
mod watched;
pub(super) mod world;
