//! A command-line program without a line for this host.
#![allow(clippy::print_stdout, reason = "a command-line program")]

use std::io::Read as _;

fn main() -> std::io::Result<()> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    println!("{} words for {}", text.split_whitespace().count(), arguments.join(" "));
    Ok(())
}
