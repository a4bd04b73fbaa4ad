//! The grants of a program beside the language: `fetch` and `workspace` (SPEC CODE-6, CODE-7).
//!
//! Both are made before the snapshot and hidden; a call puts on the global object the ones granted. Nothing here
//! decides about their reach: the host's gate and directory do. It survives programs and the data they read: bodies and
//! files are bounded before they take memory, and every failure is an error that the program can catch.

mod failure;
mod files;
mod paths;
mod requests;
mod scripts;

use std::cell::RefCell;

use rquickjs::{Ctx, Function, Object, Persistent, Result, Value};

use crate::bindings::exports::motor::host::interpreter::Grants;

/// The JavaScript of `fetch` and `workspace`, over the functions made here.
const CONNECTED: &str = include_str!("connected/connected.js");

thread_local! {
    /// Puts `fetch`, `workspace` or both on the global object.
    static GRANT: RefCell<Option<Persistent<Function<'static>>>> = const { RefCell::new(None) };
}

/// Makes both of the possible grants. Called once, before the snapshot: nothing is imported yet.
pub fn prepare(ctx: &Ctx<'_>) -> Result<()> {
    let natives = Object::new(ctx.clone())?;
    requests::install(ctx, &natives)?;
    files::install(ctx, &natives)?;
    scripts::install(ctx, &natives)?;
    let connect: Function = ctx.eval(CONNECTED)?;
    let grant: Function = connect.call((natives,))?;
    GRANT.set(Some(Persistent::save(ctx, grant)));
    Ok(())
}

/// Gives the program its grants.
///
/// # Panics
/// If there is no memory for it: the instance traps, as it would for the engine.
pub fn grant(ctx: &Ctx<'_>, grants: Grants) {
    if grants.is_empty() {
        return;
    }
    let granted = GRANT.with_borrow(Clone::clone).ok_or(rquickjs::Error::Unknown).and_then(|grant| {
        let (network, files) = (grants.contains(Grants::NETWORK), grants.contains(Grants::FILES));
        grant.restore(ctx)?.call::<_, Value>((network, files))
    });
    if granted.is_err() {
        panic!("no memory for what the program was granted");
    }
}
