//! The loop from outside, over a real store, with scripted tools and models.
#![allow(clippy::disallowed_methods, reason = "tests")]

#[cfg(test)]
mod ask;
#[cfg(test)]
mod cancel;
#[cfg(test)]
mod ceilings;
#[cfg(test)]
mod clock;
#[cfg(test)]
mod consent;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod damaged;
#[cfg(test)]
mod ends;
#[cfg(test)]
mod every_write;
#[cfg(test)]
mod full_disk;
#[cfg(test)]
mod guard;
#[cfg(test)]
mod home;
#[cfg(test)]
mod long_run;
#[cfg(test)]
mod measure;
#[cfg(test)]
mod places;
#[cfg(test)]
mod prune;
#[cfg(test)]
mod run;
#[cfg(test)]
mod side_by_side;
#[cfg(test)]
mod sim;
#[cfg(test)]
mod spending;
