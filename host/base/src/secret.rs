//! Secrets are redacted by their type: printing, logging or serialising a `Secret` never shows its value.

use std::fmt;

use zeroize::Zeroize;

/// A value that must not be shown. Wiped when dropped.
#[derive(Clone)]
pub struct Secret<T: Zeroize>(T);

impl<T: Zeroize> Secret<T> {
    /// Wraps a secret value.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// The value itself. Call this only where the value leaves the host for its intended destination.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T: Zeroize> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl<T: Zeroize> fmt::Display for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl<T: Zeroize> Drop for Secret<T> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_wiped_when_dropped() {
        struct Probe<'a>(&'a std::cell::Cell<u32>);
        impl Zeroize for Probe<'_> {
            fn zeroize(&mut self) {
                self.0.set(self.0.get() + 1);
            }
        }
        let wiped = std::cell::Cell::new(0);
        let secret = Secret::new(Probe(&wiped));
        assert_eq!(wiped.get(), 0);
        drop(secret);
        assert_eq!(wiped.get(), 1);
    }

    #[test]
    fn a_secret_does_not_print() {
        let secret = Secret::new("hunter2".to_owned());
        assert_eq!(format!("{secret} {secret:?}"), "[secret] [secret]");
        assert_eq!(secret.expose(), "hunter2");
    }
}
