//! Bytes that are swapped while the host reads them: an accepted run has the approved ones, whole (SPEC HOST-8).

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base::Random;
use serde_json::json;
use tests::{MAX_WAIT, Patience, target_directory};

use crate::skills_scenarios::world::{MAIL, World, call, calls, files, manifest, says, write};

const EVIL: &str = "the-evil-marker";

/// Runs and refusals that there have to be, of each way to swap.
const ENOUGH: usize = 8;

fn good() -> [(&'static str, String); 3] {
    [
        ("SKILL.md", manifest(MAIL, "Run `bash scripts/send.sh`, which runs the other.")),
        ("scripts/send.sh", "echo sending; bash scripts/other.sh\n".to_owned()),
        ("scripts/other.sh", format!("echo other {}\n", "# long enough to be read in pieces\n".repeat(2_000))),
    ]
}

fn put_down(directory: &Path, files: &[(&str, String)]) {
    for (path, content) in files {
        write(directory, &[(path, content)]);
    }
}

fn evil(path: &str) -> String {
    match path {
        "SKILL.md" => manifest(MAIL, EVIL),
        "scripts/send.sh" => format!("echo {EVIL}; bash scripts/other.sh\n"),
        _ => format!("echo {EVIL} {}\n", "# long enough to be read in pieces\n".repeat(2_000)),
    }
}

/// One swap to the evil bytes, and one back.
type Swap<'a> = &'a (dyn Fn(bool) + Sync);

#[test]
fn no_run_ever_has_bytes_that_were_not_approved() {
    let world = World::new(vec![call("bash", json!({ "script": "bash scripts/send.sh" })), says("done")]);
    world.motor.configure("[energy]\nenabled = false\n");
    let directory = world.skills().join(MAIL);
    put_down(&directory, &good());
    let tool = fs::read(target_directory().join("guests/greeting.wasm")).unwrap();
    fs::write(directory.join("tool.wasm"), &tool).unwrap();
    world.approve(&[MAIL, "--tools", "bash"]);
    let approved = files(&directory);
    let beside = world.skills().join(".evil");
    for path in approved.keys().filter(|path| !path.ends_with(".wasm")) {
        write(&beside, &[(path, &evil(path))]);
    }
    fs::write(beside.join("tool.wasm"), tests::hostile_guest("benign")).unwrap();
    let hold = world.skills().join(".hold");
    let content = |path: &str, is_evil: bool| if is_evil { evil(path).into_bytes() } else { approved[path].clone() };

    let in_place =
        |is_evil: bool| fs::write(directory.join("scripts/send.sh"), content("scripts/send.sh", is_evil)).unwrap();
    let draft = world.skills().join(".draft");
    let by_rename = |is_evil: bool| {
        fs::write(&draft, content("scripts/other.sh", is_evil)).unwrap();
        fs::rename(&draft, directory.join("scripts/other.sh")).unwrap();
    };
    let instructions = |is_evil: bool| fs::write(directory.join("SKILL.md"), content("SKILL.md", is_evil)).unwrap();
    let all_of_it = |is_evil: bool| {
        let (away, back) = if is_evil { (&hold, &beside) } else { (&beside, &hold) };
        fs::rename(&directory, away).unwrap();
        fs::rename(back, &directory).unwrap();
    };
    let serving = world.serve();
    for (what, swap) in [
        ("a script written over", &in_place as Swap<'_>),
        ("a script renamed over", &by_rename),
        ("the instructions written over", &instructions),
        ("the whole directory", &all_of_it),
    ] {
        let (accepted, refused) = under_fire(&world, swap);
        println!("{what}: {accepted} accepted, {refused} refused");
        assert!(accepted >= ENOUGH && refused >= ENOUGH, "{what}: {accepted} accepted, {refused} refused");
        assert_eq!(files(&directory), approved, "{what}: the test did not put it back");
    }
    drop(serving);
    let runs = world.motor.json(&["task", "list", "--limit", "1000"]);
    for run in runs.as_array().unwrap() {
        let id = run["runId"].as_str().unwrap();
        for (path, bytes) in &approved {
            assert!(files(&world.motor.workspace(id)).get(path) == Some(bytes), "{id} has other bytes in {path}");
        }
        let trace = world.motor.json(&["task", "status", id]);
        let said = calls(&trace)[0]["result"]["output"].as_str().unwrap().to_owned();
        assert!(said.contains("sending") && said.contains("other"), "{trace:#}");
        assert!(!trace.to_string().contains(EVIL), "{trace:#}");
    }
    for request in world.model.requests() {
        let body = request.body.to_string();
        assert!(!body.contains(EVIL) && body.contains("\"greet\"") && !body.contains("append_line"), "{body}");
    }
    assert_eq!(world.status(MAIL), "approved");
}

/// Acts while another thread swaps. How many acts were accepted, and how many refused.
fn under_fire(world: &World, swap: Swap<'_>) -> (usize, usize) {
    let over = AtomicBool::new(false);
    let swaps = AtomicUsize::new(0);
    let (mut accepted, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let chance = Random::from_system();
            while !over.load(Ordering::SeqCst) {
                swap(true);
                spin(chance.next_u64() % 3_000);
                swap(false);
                // The good bytes lie there long enough, sometimes, to be read whole.
                spin(chance.next_u64() % 12_000);
                swaps.fetch_add(1, Ordering::SeqCst);
            }
        });
        let began = Instant::now();
        while (accepted < ENOUGH || refused < ENOUGH) && began.elapsed() < MAX_WAIT {
            let act = json!({ "task": "send it", "skill": MAIL, "unattended": true });
            let (code, answer) = world.motor.ask("/v1/tasks", Some(&act), &[]).unwrap();
            match code {
                200 => {
                    accepted += 1;
                    until_over(world, answer["runId"].as_str().unwrap());
                }
                _ if answer["code"] == "busy" => {}
                _ => {
                    let code = answer["code"].as_str().unwrap();
                    assert!(["skill_untrusted", "not_found"].contains(&code), "{answer}");
                    refused += 1;
                }
            }
        }
        over.store(true, Ordering::SeqCst);
    });
    println!("{} swaps", swaps.into_inner());
    (accepted, refused)
}

fn spin(micros: u64) {
    let until = Instant::now() + Duration::from_micros(micros);
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

fn until_over(world: &World, run: &str) {
    let mut patience = Patience::default();
    loop {
        let (_, trace) = world.motor.ask(&format!("/v1/tasks/{run}"), None, &[]).unwrap();
        match trace["status"].as_str().unwrap() {
            "completed" => return,
            "failed" | "cancelled" => panic!("{trace:#}"),
            _ => assert!(patience.lasts(), "{trace:#}"),
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
