//! Energy: the cost of acting for an agent, and its recovery (SPEC EN-1, EN-3).
//!
//! Architecture invariant: it must not know the effect of an act, nor who asked for it: its caller decides
//! whether a gate binds (it binds acts that a model asks for, not the owner's). It survives a clock that jumps either
//! way, a crash between a drain and its commit, any number of drains at a time; the level is never below the floor and
//! never above 1.

mod activity;
mod book;
mod config;
mod level;
mod report;

pub use activity::Activity;
pub use book::{DrainedEnergy, EnergyBook};
pub use config::{EnergyConfig, InvalidConfig, SleepWindow, Thresholds};
pub use report::EnergyReport;
