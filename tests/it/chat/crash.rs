//! `kill -9` of the real program at every write of three kinds of turns (SPEC COG-1, COG-3, CX-10, DUR-1): one that compacts the history,
//! one whose answer waits for a consultation, and one that answers a run's question. `strace` kills the host in place of each write to the
//! journal, and at each sync behind one. After the next host no message is lost, no reply is said twice, and the question is answered once.

use std::io;
use std::time::Duration;

use serde_json::{Value, json};
use tests::Patience;
use tests::binary::{Motor, Running};
use tests::model_server::Turn;

use super::world::{Asked, World, call, says};
use crate::injected::strace_is_here;

/// Deaths of a kind at most: the turn is over before.
const MAX_DEATHS: usize = 80;

/// A host dies when it enters one of these calls: of any file, or of the journal alone.
#[derive(Debug, Clone, Copy)]
struct Death {
    calls: &'static str,
    is_of_journal: bool,
}

const DEATHS: [Death; 2] = [
    // Nothing of the write reaches the disk.
    Death { calls: "write,pwrite64", is_of_journal: true },
    // The write is there for the next host, and was acknowledged to none of its callers.
    Death { calls: "fdatasync", is_of_journal: false },
];
/// Journals that a home of these tests has had at most.
const MAX_JOURNALS: usize = 8;

const HOLDING: &str = "Let me think about this; the answer follows in a moment.";
/// The question of high stakes, with the name of its sender.
const PRICE: &str = "is a harmless price all right?";
const BEN: &str = "ben";

/// A turn that the sweep interrupts.
struct Row {
    /// The settings of the home.
    settings: &'static str,
    /// The model of everything.
    minds: fn(&Asked<'_>) -> Turn,
    /// All that happens before the turn, on a host that lives.
    prepare: fn(&World),
    /// The text of the message that begins the turn.
    text: String,
    /// The peer that writes it, or the owner.
    peer: Option<&'static str>,
    /// Whether this event is the last that follows from the message, which is the given event.
    is_last: fn(&Value, u64) -> bool,
    /// Brings all to its end on the last host, after the message was sent again.
    finish: fn(&World, u64),
    /// Checks the end of all of it.
    check: fn(&World),
    /// Commits of the turn, the least number of deaths: those of the host's start come before.
    commits: usize,
}

impl Row {
    fn events(&self) -> String {
        let peer = self.peer.map(|peer| format!("?peer={peer}")).unwrap_or_default();
        format!("/v1/conversations/chat/events{peer}")
    }

    /// Sends the message under its key, and returns the event of it.
    fn send(&self, world: &World) -> io::Result<u64> {
        let mut message = json!({ "text": self.text, "key": "the-turn" });
        let (status, reply) = match self.peer {
            Some(peer) => {
                message["peer"] = json!(peer);
                world.motor.ask("/v1/messages", Some(&message), &[])?
            }
            None => world.motor.ask_as_owner("/v1/messages", &message)?,
        };
        assert_eq!(status, 200, "{reply}");
        Ok(reply["event"].as_u64().unwrap())
    }

    /// Kills a host at the given call of the turn. `false`: the turn was over before.
    fn dies(&self, death: Death, number: usize) -> bool {
        let case = format!("{} {number}", death.calls);
        let world = World::new(self.minds);
        world.motor.configure(self.settings);
        (self.prepare)(&world);
        let traced = traced(&world, death, number);
        let mut acknowledged = None;
        if let Some(serving) = start(&traced) {
            acknowledged = self.send(&world).ok();
            if let Some(event) = acknowledged
                && first(&world, &self.events(), |shown| (self.is_last)(shown, event)).is_some()
            {
                serving.kill();
                return false;
            }
            let ended = serving.wait();
            assert!(ended.code.is_none() && !ended.stderr.contains("panicked"), "{case}: {ended:?}");
        }
        let serving = world.serve();
        let event = self.send(&world).unwrap();
        assert!(
            acknowledged.is_none_or(|first| first == event),
            "{case}: {acknowledged:?} was acknowledged, now {event}"
        );
        (self.finish)(&world, event);
        world.motor.wait_for(&["chat", "list"], |listed| {
            listed.as_array().unwrap().iter().all(|conversation| conversation["waiting"] == 0)
        });
        println!("{case}: the host died, acknowledged: {}", acknowledged.is_some());
        (self.check)(&world);
        serving.kill();
        true
    }

    fn sweep(&self) {
        if !strace_is_here() {
            println!("skipped: kills at writes and syncs need `strace`, which is not here or may not trace");
            return;
        }
        for death in DEATHS {
            let deaths = (1..=MAX_DEATHS).take_while(|number| self.dies(death, *number)).count();
            assert!((self.commits..MAX_DEATHS).contains(&deaths), "{deaths} deaths at {death:?}");
        }
    }
}

/// The home under a `strace` that kills its host.
fn traced(world: &World, Death { calls, is_of_journal }: Death, number: usize) -> Motor {
    let log = world.motor.directory().join("strace.log").display().to_string();
    let (trace, inject) = (format!("trace={calls}"), format!("inject={calls}:signal=KILL:when={number}"));
    let state = world.motor.home().join("state").display().to_string();
    let journals = if is_of_journal { MAX_JOURNALS } else { 0 };
    let journals: Vec<String> = (0..journals).map(|number| format!("{state}/{number}.jnl")).collect();
    // As a grandchild, so that the child which the test has is the host.
    let mut strace = vec!["strace", "-D", "-f", "-qq", "-o", &log, "-e", "signal=none", "-e", &trace, "-e", &inject];
    strace.extend(journals.iter().flat_map(|path| ["-P", path.as_str()]));
    let motor = Motor::with_model(&world.model).env("MOTOR_KEYRING", "off").at(world.motor.home().to_owned());
    motor.started_by(&strace)
}

/// Starts a host; `None` if it dies before it listens.
fn start(motor: &Motor) -> Option<Running> {
    let mut serving = motor.start(&["serve"]);
    let mut patience = Patience::default();
    while motor.ask("/v1/host", None, &[]).is_err() {
        if !serving.is_alive() {
            let ended = serving.wait();
            assert_eq!(ended.code, None, "it was not killed: {ended:?}");
            return None;
        }
        assert!(patience.lasts(), "the host neither listens nor dies");
        std::thread::sleep(Duration::from_millis(2));
    }
    Some(serving)
}

/// The first event of a conversation that fits; `None` if the host dies before.
fn first(world: &World, path: &str, fits: impl Fn(&Value) -> bool) -> Option<Value> {
    world.motor.events(path, 0).ok()?.map(|(_, event)| event).find(fits)
}

fn is_ended(shown: &Value, event: u64) -> bool {
    shown["type"] == "ended" && shown["trigger"] == event
}

fn wait_for_end_with(world: &World, event: u64) {
    assert!(first(world, "/v1/conversations/chat/events", |shown| is_ended(shown, event)).is_some());
}

/// The texts of a kind of events in a conversation, oldest first.
fn texts(world: &World, query: &str, kind: &str) -> Vec<String> {
    let (status, shown) = world.motor.ask(&format!("/v1/conversations/chat?limit=1000{query}"), None, &[]).unwrap();
    assert_eq!(status, 200, "{shown}");
    let of_kind = shown.as_array().unwrap().iter().filter(|event| event["type"] == kind);
    of_kind.map(|event| event["text"].as_str().unwrap().to_owned()).collect()
}

fn story() -> String {
    "a long story ".repeat(2_400)
}

/// An agent that knows the cat as long as its name is in the request.
fn knows_the_cat(asked: &Asked<'_>) -> Turn {
    match asked.last() {
        _ if asked.is_summary() => says("The owner has a cat called Tom."),
        "what is my cat called?" if asked.text().contains("Tom") => says("Tom."),
        "what is my cat called?" => says("I do not know."),
        _ => says("I see."),
    }
}

#[test]
fn a_kill_at_every_write_of_a_turn_that_compacts_leaves_one_summary_and_one_reply() {
    let row = Row {
        settings: "",
        minds: knows_the_cat,
        prepare: |world| {
            let serving = world.serve();
            let mut chat = world.follow();
            for text in ["my cat is called Tom", &story()] {
                world.send(text);
                chat.until("ended", "");
            }
            assert_eq!(texts(world, "", "said"), ["I see."; 2]);
            serving.kill();
        },
        text: story(),
        peer: None,
        is_last: is_ended,
        finish: wait_for_end_with,
        check: |world| {
            assert_eq!(texts(world, "", "message"), ["my cat is called Tom", &story(), &story()]);
            assert_eq!(texts(world, "", "said"), ["I see."; 3]);
            let (_, listed) = world.motor.ask("/v1/conversations", None, &[]).unwrap();
            let summary = &listed[0]["summary"];
            assert_eq!(
                (&summary["by"], &summary["text"]),
                (&json!("agent"), &json!("The owner has a cat called Tom."))
            );
            world.send("what is my cat called?");
            world.follow().until("said", "Tom.");
        },
        // The message, the summary with the window, the reply with the end.
        commits: 3,
    };
    row.sweep();
}

#[test]
fn a_kill_at_every_write_of_a_turn_with_a_consultation_holds_and_answers_once() {
    let row = Row {
        settings: "[cortex]\nconsult = \"stakes\"\nconsultation_timeout_seconds = 60\n\
                   [cortex.triggers]\ntimer = false\ninteraction_count = false\nnew_peer = false\n",
        minds: |asked| match asked.is_mind() {
            true => says(&format!("Answer to {}", asked.last())),
            false => says(r#"{"verdict":"send","reason":"harmless"}"#),
        },
        prepare: |world| {
            world.serve().kill();
        },
        text: PRICE.to_owned(),
        peer: Some(BEN),
        is_last: is_ended,
        finish: |world, event| {
            let path = format!("/v1/conversations/chat/events?peer={BEN}");
            assert!(first(world, &path, |shown| is_ended(shown, event)).is_some());
        },
        check: |world| {
            let of_ben = format!("&peer={BEN}");
            assert_eq!(texts(world, &of_ben, "message"), [PRICE]);
            assert_eq!(texts(world, &of_ben, "said"), [HOLDING, &format!("Answer to {PRICE}")]);
            let (_, peer) = world.motor.ask(&format!("/v1/ledger/peers/{BEN}"), None, &[]).unwrap();
            assert_eq!((&peer["incoming"], &peer["outgoing"]), (&json!(1), &json!(2)), "{peer:#}");
        },
        // The message, the answer that is held, the answer that is sent with the end.
        commits: 3,
    };
    row.sweep();
}

/// An agent whose run asks for a colour, and that passes the owner's answer on.
fn paints(asked: &Asked<'_>) -> Turn {
    let told = asked.last_of("user");
    match (asked.is_mind(), asked.role()) {
        (true, "user") if asked.is_signal() && told.contains("awaiting_input") => says("The run asks: which colour?"),
        (true, "user") if asked.is_signal() => {
            says(&format!("The run says: {}", asked.between("\"summary\":\"", "\"")))
        }
        (true, "user") if told == "blue" => {
            call("core_task", json!({ "runId": asked.open_run(), "action": "respond", "answer": "blue" }))
        }
        (true, "user") => call("core_act", json!({ "task": "paint it" })),
        (true, _) if told == "blue" => says("I have dealt with it."),
        (true, _) => says("It is under way."),
        (false, _) if asked.replies() == 0 => {
            call("ask_user", json!({ "question": "Which colour?", "choices": ["red", "blue"] }))
        }
        (false, _) => says(if asked.last_of("tool").contains("blue") { "painted blue" } else { "no colour" }),
    }
}

const PAINTED: &str = "The run says: painted blue";

fn is_painted(shown: &Value, _: u64) -> bool {
    shown["type"] == "said" && shown["text"] == PAINTED
}

/// Waits for the end of the fence, and repeats the answer where the next host was not allowed to pass it on: the authority of a message
/// ends with the host that heard it.
fn until_painted(world: &World, event: u64) {
    wait_for_end_with(world, event);
    let (_, trace) = world.motor.ask(&format!("/v1/tasks/{}", world.motor.only_run()), None, &[]).unwrap();
    if trace["status"] == "awaiting_input" {
        let again = json!({ "text": "blue", "key": "once-more" });
        let (status, reply) = world.motor.ask_as_owner("/v1/messages", &again).unwrap();
        assert_eq!(status, 200, "{reply}");
    }
    assert!(first(world, "/v1/conversations/chat/events", |shown| is_painted(shown, event)).is_some());
}

#[test]
fn a_kill_at_every_write_of_a_turn_that_answers_a_run_answers_it_once() {
    let row = Row {
        settings: "",
        minds: paints,
        prepare: |world| {
            let serving = world.serve();
            let mut chat = world.follow();
            world.send("Paint the fence");
            chat.until("said", "which colour?");
            chat.until("ended", "");
            serving.kill();
        },
        text: "blue".to_owned(),
        peer: None,
        is_last: is_painted,
        finish: until_painted,
        check: |world| {
            let messages = texts(world, "", "message");
            assert!(messages.len() <= 3 && messages[0] == "Paint the fence", "{messages:?}");
            assert!(messages.len() >= 2 && messages[1..].iter().all(|text| text == "blue"), "{messages:?}");
            let said = texts(world, "", "said");
            for once in ["It is under way.", "The run asks: which colour?", PAINTED] {
                assert_eq!(said.iter().filter(|text| *text == once).count(), 1, "{once}: {said:?}");
            }
            // One reply to each message of the owner.
            assert_eq!(said.len(), 3 + messages.len() - 1, "{said:?}");
            let run = world.motor.only_run();
            let (_, trace) = world.motor.ask(&format!("/v1/tasks/{run}"), None, &[]).unwrap();
            assert_eq!(trace["status"], "completed", "{trace:#}");
            let questions = trace["questions"].as_array().unwrap();
            assert!(questions.len() == 1 && questions[0]["answer"] == "blue", "{trace:#}");
            let kinds = |kind: &str| {
                let events = world.motor.events(&format!("/v1/tasks/{run}/events"), 0).unwrap();
                events.filter(|(_, event)| event["type"] == kind).count()
            };
            assert_eq!((kinds("asked"), kinds("answered"), kinds("finished")), (1, 1, 1), "{trace:#}");
        },
        // The message, the call, the answer to the run, its outcome, the reply with the end; the run's reply with its end, its
        // signal, the beginning of the signal's turn, the reply with its end.
        commits: 8,
    };
    row.sweep();
}
