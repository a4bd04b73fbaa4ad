//! Every place at which a landing can be interrupted. Tests stop at each in turn.

use crate::error::Result;

/// An act of the owner, in a test.
#[cfg(test)]
type Act = Box<dyn Fn()>;

/// Counts the steps of a landing.
#[derive(Default)]
pub struct Steps {
    #[cfg(test)]
    pub left: Option<std::cell::Cell<usize>>,
    /// The owner does something at this step.
    #[cfg(test)]
    pub act: Option<(std::cell::Cell<usize>, Act)>,
    /// The system fails instead of the process.
    #[cfg(test)]
    pub full: bool,
}

impl Steps {
    /// Called before each change of the disk.
    #[cfg_attr(not(test), expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "only tests interrupt"))]
    pub fn step(&self) -> Result<()> {
        #[cfg(test)]
        if let Some((left, act)) = &self.act {
            if left.get() == 0 {
                act();
            }
            left.set(left.get().wrapping_sub(1));
        }
        #[cfg(test)]
        if let Some(left) = &self.left {
            if left.get() == 0 && self.full {
                // A disk that is full stays so for one step: taking back frees room.
                left.set(usize::MAX);
                return Err(crate::LandError::Io {
                    what: "a step".to_owned(),
                    source: std::io::Error::from(std::io::ErrorKind::StorageFull),
                });
            }
            if left.get() == 0 {
                return Err(crate::LandError::Killed);
            }
            left.set(left.get() - 1);
        }
        Ok(())
    }
}
