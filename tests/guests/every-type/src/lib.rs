//! A component of its own WIT with a function for every type that returns its argument. Beside it functions that behave
//! badly, and those that cannot be tools.

use std::sync::atomic::{AtomicU32, Ordering};

#[allow(missing_docs, unsafe_code, clippy::all, clippy::restriction)]
mod bindings {
    wit_bindgen::generate!({ path: "wit" });
}

use bindings::exports::every::kind::back::{Guest, GuestThing, Mode, Numbers, Rights, Thing, Tree};

static CALLS: AtomicU32 = AtomicU32::new(0);

struct Component;
struct Resource;

impl GuestThing for Resource {
    fn new() -> Self {
        Self
    }

    fn get(&self) -> u8 {
        7
    }
}

impl Guest for Component {
    type Thing = Resource;

    fn every(value: Numbers) -> Numbers {
        value
    }

    fn text(text: String, letter: char, yes: bool) -> (String, char, bool) {
        (text, letter, yes)
    }

    fn bytes(data: Vec<u8>) -> Vec<u8> {
        data
    }

    fn trees(trees: Vec<Tree>) -> Vec<Tree> {
        trees
    }

    fn choices(mode: Mode, rights: Rights) -> (Mode, Rights) {
        (mode, rights)
    }

    fn maybe(one: Option<String>, two: Option<Option<u8>>) -> (Option<String>, Option<Option<u8>>) {
        (one, two)
    }

    fn outcome(inner: Result<u8, String>) -> (Result<u8, String>, Result<(), ()>) {
        let other = if inner.is_ok() { Err(()) } else { Ok(()) };
        (inner, other)
    }

    fn checked(fail: bool) -> Result<String, Tree> {
        if fail { Err(Tree::Number(-1)) } else { Ok("fine".to_owned()) }
    }

    fn nothing() {}

    fn count() -> u32 {
        CALLS.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn flood() -> Vec<String> {
        vec!["x".repeat(1 << 20); 16]
    }

    fn spin() {
        loop {
            std::hint::spin_loop();
        }
    }

    fn trap() {
        std::process::abort()
    }

    fn give(value: Thing) -> u8 {
        value.get::<Resource>().get()
    }
}

impl bindings::Guest for Component {
    fn top(value: u32) -> u32 {
        value
    }

    fn nothing() -> bool {
        true
    }
}

// The exports have fixed foreign names, which the language counts as unsafe.
#[allow(unsafe_code)]
const _: () = {
    bindings::export!(Component with_types_in bindings);
};
