//! The compile worker as a program of its own, for tests that use the runtime without the `motor` binary.

fn main() -> std::io::Result<()> {
    runtime::worker::run(std::env::args().skip(2))
}
