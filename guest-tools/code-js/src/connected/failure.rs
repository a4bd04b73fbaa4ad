//! A failure on its way into JavaScript: a code that programs can tell apart, and a sentence.

use std::fmt::Display;

use rquickjs::{Ctx, Object, Result};

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Such as `network_blocked`, `limit`, `missing`.
    pub code: &'static str,
    /// One sentence for the program.
    pub message: String,
}

impl Failure {
    /// A failure with its sentence.
    pub fn new(code: &'static str, message: impl Display) -> Self {
        Self { code, message: message.to_string() }
    }

    /// As the object that the JavaScript side throws as an error: throwing from here would need a class of error, which
    /// is that side's to choose.
    pub fn into_object<'js>(self, ctx: &Ctx<'js>) -> Result<Object<'js>> {
        let object = Object::new(ctx.clone())?;
        object.set("code", self.code)?;
        object.set("failure", self.message)?;
        Ok(object)
    }
}
