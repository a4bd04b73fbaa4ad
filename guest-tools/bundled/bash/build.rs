//! Gives the shell a stack that its deepest scripts do not fill: they end with a limit of the interpreter or of the host.

/// Bytes of the stack in the component's memory. The default is 1 MiB.
const STACK_BYTES: usize = 2 << 20;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_FAMILY").is_ok_and(|family| family == "wasm") {
        println!("cargo::rustc-link-arg-cdylib=-zstack-size={STACK_BYTES}");
    }
}
