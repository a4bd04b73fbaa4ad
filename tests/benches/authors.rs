//! The loop of an author, from outside: from `motor new` to the first call of the built tool, with the registry's packages on this
//! machine already, and from a saved source to its result in `motor dev`.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use tests::binary::Motor;

use crate::stats::{Aim, Times, line};

/// Changes of a source.
const SAVES: usize = 7;
const ARGUMENTS: &str = r#"{"name":"Ada"}"#;

struct Language {
    name: &'static str,
    source: &'static str,
    /// Seconds from `motor new` to the first call, and milliseconds from a save to its result.
    first_call: Option<f64>,
    saved: f64,
}

const LANGUAGES: [Language; 2] = [
    Language { name: "rust", source: "src/lib.rs", first_call: Some(60.0), saved: 3_000.0 },
    Language { name: "python", source: "src/app.py", first_call: None, saved: 10_000.0 },
];

pub fn run() -> Result<()> {
    println!("\nauthors");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let mut motor = Motor::new().env("MOTOR_KEYRING", "off");
    for name in ["PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"] {
        if !variable(name).is_empty() {
            motor = motor.env(name, &variable(name));
        }
    }
    for language in LANGUAGES {
        let venv = tests::target_directory().join("toolchains/python/venv");
        if language.name == "python" && !venv.exists() {
            println!("  the toolchain for Python is not built (`cargo xtask toolchains`): not measured");
            continue;
        }
        if language.name == "rust" {
            // Fetches the packages of a scaffold.
            motor.stdout(&["new", "tool", "warm", "--lang", "rust"]);
            motor.stdout(&["build", "warm"]);
        }
        measure(&motor, &language, &venv)?;
    }
    Ok(())
}

fn measure(motor: &Motor, language: &Language, venv: &Path) -> Result<()> {
    let Language { name, source, first_call, saved } = language;
    let project = format!("greeter-{name}");
    let started = Instant::now();
    motor.stdout(&["new", "tool", &project, "--lang", name]);
    let directory = motor.directory().join(&project);
    if *name == "python" {
        std::os::unix::fs::symlink(venv, directory.join(".toolchain"))?;
    }
    motor.stdout(&["build", &project]);
    let once = motor.stdout(&["dev", &project, "greet", ARGUMENTS, "--once"]);
    ensure!(once.contains("hello, Ada"), "{once}");
    let took = started.elapsed().as_secs_f64();
    line(&format!("{name}: `motor new`, build, first call"), took, "s", first_call.map(Aim::AtMost));

    let source = directory.join(source);
    let text = std::fs::read_to_string(&source)?;
    let developing = motor.start(&["dev", &project, "greet", ARGUMENTS]);
    developing.wait_for_output("hello, Ada");
    let mut times = Times::default();
    for save in 0..SAVES {
        // Until it waits for a change, it does not look for one.
        std::thread::sleep(std::time::Duration::from_millis(500));
        let greeting = format!("hello {save}, ");
        let started = Instant::now();
        std::fs::write(&source, text.replace("hello, ", &greeting))?;
        developing.wait_for_output(&format!("{greeting}Ada"));
        times.add(started.elapsed());
    }
    line(&format!("{name}: saved to result in `motor dev`, p50"), times.p50(), "ms", Some(Aim::AtMost(*saved)));
    line("  the longest", times.longest().as_secs_f64() * 1_000.0, "ms", None);
    Ok(())
}
