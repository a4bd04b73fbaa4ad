//! Rejected promises without a handler: an error that would otherwise vanish is the program's error.

use rquickjs::{Ctx, Persistent, Result, Value};

/// Promises that were rejected and have no handler yet, with their reasons, in order of rejection.
#[derive(Default)]
pub struct Rejections(Vec<(Persistent<Value<'static>>, Persistent<Value<'static>>)>);

impl Rejections {
    /// Records that `promise` was rejected without a handler, or that it got one.
    pub fn track<'js>(&mut self, ctx: &Ctx<'js>, promise: Value<'js>, reason: Value<'js>, is_handled: bool) {
        if is_handled {
            self.0.retain(|(rejected, _)| !rejected.clone().restore(ctx).is_ok_and(|rejected| rejected == promise));
        } else {
            self.0.push((Persistent::save(ctx, promise), Persistent::save(ctx, reason)));
        }
    }

    /// The reason of the first rejection that is still unhandled.
    pub fn first<'js>(&self, ctx: &Ctx<'js>) -> Option<Result<Value<'js>>> {
        self.0.first().map(|(_, reason)| reason.clone().restore(ctx))
    }
}
