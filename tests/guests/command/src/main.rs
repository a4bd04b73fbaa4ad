//! A command-line program that knows nothing of the host: `wasi:cli/run`, as any toolchain makes it. Its first argument
//! says how it behaves.

use std::io::{Read as _, Write as _};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    let rest: Vec<String> = arguments.collect();
    match command.as_str() {
        "upper" => {
            let mut text = String::new();
            if std::io::stdin().read_to_string(&mut text).is_err() {
                return ExitCode::from(2);
            }
            print!("{}", text.to_uppercase());
        }
        "arguments" => println!("{rest:?}"),
        "cat" => {
            for path in &rest {
                match std::fs::read_to_string(path) {
                    Ok(text) => print!("{text}"),
                    Err(error) => {
                        eprintln!("{path}: {error}");
                        return ExitCode::from(3);
                    }
                }
            }
        }
        "flood" => {
            let line = [b'x'; 4096];
            while std::io::stdout().write_all(&line).is_ok() {}
        }
        "spin" => loop {
            std::hint::spin_loop();
        },
        "trap" => std::process::abort(),
        "exit-zero" => {
            print!("left early");
            std::process::exit(0)
        }
        "count" => {
            // A call that sees a file of an earlier one would count on.
            let seen = std::fs::read_to_string("/tmp/seen").is_ok();
            println!("{seen}");
        }
        other => {
            eprintln!("unknown command `{other}`");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
