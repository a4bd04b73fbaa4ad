//! Attacks on memory.

use std::hint::black_box;

const MIB: usize = 1024 * 1024;
const PAGE_BYTES: usize = 64 * 1024;

/// Far more than any limit, in one request.
pub(crate) fn grow_step() -> String {
    refusal(grow(4_000 * MIB / PAGE_BYTES))
}

/// Never more than one page in a request, and each page is touched.
pub(crate) fn grow_slow() -> String {
    while grow(1).is_some() {}
    // A host that only refuses memory still has to end this.
    crate::cpu::spin()
}

/// By way of the allocator, which aborts when it gets no more.
pub(crate) fn allocate() -> String {
    let mut all: Vec<Vec<u8>> = Vec::new();
    loop {
        all.push(vec![1; MIB]);
        black_box(&mut all);
    }
}

pub(crate) fn big_output() -> String {
    "x".repeat(60 * MIB)
}

fn refusal(grown: Option<usize>) -> String {
    match grown {
        Some(_) => "REACHED 4 GiB of memory".to_owned(),
        None => "refused".to_owned(),
    }
}

#[cfg(target_family = "wasm")]
fn grow(pages: usize) -> Option<usize> {
    Some(core::arch::wasm32::memory_grow::<0>(pages)).filter(|before| *before != usize::MAX)
}

#[cfg(not(target_family = "wasm"))]
fn grow(_pages: usize) -> Option<usize> {
    None
}
