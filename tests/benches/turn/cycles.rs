//! Turns beside cycles whose reflector attacks: they may not take longer than turns alone (SPEC CX-3).

use std::time::{Duration, Instant};

use agent::{ReflectRequest, Reflections};
use anyhow::{Result, ensure};
use base::AgentName;
use tests::binary::Motor;
use tokio_util::sync::CancellationToken;

use super::{Model, Talk, peer};
use crate::stats::{Aim, Times, line};

/// Turns beside cycles, in rounds that take turns with as many alone.
const ROUNDS: usize = 10;
const TURNS_OF_ROUND: usize = 20;
/// From the end of a cycle to the next one: much less than any trigger allows.
const PAUSE: Duration = Duration::from_millis(5);
/// The most that a turn may take beside an attack, in turns beside honest cycles.
const MAX_SLOWDOWN: f64 = 1.1;
/// The peer whose words the facts hold.
const PEER: &str = "mai";
/// A reply to a reflection that is named by its facts.
const REPLY: &str = "reply:";

/// An attack of the hostile reflector: the facts hold the words of a peer.
struct Attack {
    writes: &'static str,
    does: &'static str,
    /// Words of the record of the cycle.
    ends: &'static str,
}

/// The first is the benign twin.
static ATTACKS: [Attack; 7] = [
    Attack { writes: "hello", does: "is honest", ends: "applied" },
    Attack { writes: "attack:spin", does: "loops", ends: "reflector_limit" },
    Attack { writes: "reply:spin", does: "loops on a reply", ends: "reflector_limit" },
    Attack { writes: "attack:trap", does: "traps", ends: "reflector_trapped" },
    Attack { writes: "reply:long_error", does: "returns garbage", ends: "reply_unreadable" },
    Attack { writes: "reply:many_beliefs", does: "returns 10,000 proposals", ends: "proposals_invalid" },
    Attack { writes: "reply:big_summary", does: "returns 10 MB", ends: "reflector_limit" },
];

/// The configuration of a home whose cycles begin by command only.
const CONFIG: &str = "[cortex]\nreflector = \"hostile\"\n[cortex.triggers]\ntimer = false\ninteraction_count = false\nnew_peer = false\n";
/// The prompt of that reflector.
const PROMPT: &str = "You reflect.";

/// The reply to a request for a reflection: the one that its facts name.
pub fn reply(request: &str) -> Option<String> {
    request.contains(PROMPT).then(|| {
        let named = request.split_once(REPLY).map_or("calm", |(_, rest)| rest);
        named.chars().take_while(|sign| *sign == '_' || sign.is_alphanumeric()).collect()
    })
}

/// Each attack in a home of its own: the facts of a cycle are all that was said since the last.
pub async fn attacked(model: &Model) -> Result<()> {
    let mut honest = None;
    for attack in &ATTACKS {
        let motor = Motor::bare().env("MOTOR_KEYRING", "off").unattended();
        let reflectors = motor.home().join("reflectors");
        std::fs::create_dir_all(&reflectors)?;
        std::fs::write(reflectors.join("hostile.wasm"), tests::hostile_guest("reflectors-pure"))?;
        motor.configure(CONFIG);
        ensure!(motor.run_as_owner(&["cortex", "reflector", "approve", "hostile"], "").code == Some(0));
        motor.stdout(&["ledger", "note", PEER, attack.writes]);
        let mut talk = Talk::open(&motor, model).await?;
        let ratio = beside_cycles(&mut talk, attack).await?;
        talk.host.shutdown().await;
        line("    p50 beside them to alone", ratio, "x", None);
        // A cycle costs a model call and a commit with any reflector.
        let honest = *honest.get_or_insert(ratio);
        line("    the same to that of an honest one", ratio / honest, "x", Some(Aim::AtMost(MAX_SLOWDOWN)));
    }
    Ok(())
}

/// Turns while cycles of the same agent are attacked by its reflector, against turns without a cycle, a round each in turn. Only turns with a
/// cycle under way count. Returns the median of these in turns alone.
async fn beside_cycles(talk: &mut Talk<'_>, attack: &'static Attack) -> Result<f64> {
    let (mut alone, mut beside, mut cycles) = (Times::default(), Times::default(), Times::default());
    for _ in 0..ROUNDS {
        for _ in 0..TURNS_OF_ROUND {
            alone.add(talk.turn().await?);
        }
        let ends = CancellationToken::new();
        let attacked = tokio::spawn(cycles_until(ends.clone(), talk.host.reflections.clone(), attack));
        let mut turns = Vec::new();
        for _ in 0..TURNS_OF_ROUND {
            let started = Instant::now();
            turns.push((started, talk.turn().await?));
        }
        ends.cancel();
        let under_way = attacked.await??;
        for (started, took) in turns {
            if under_way.iter().any(|(begun, lasted)| *begun < started + took && started < *begun + *lasted) {
                beside.add(took);
            }
        }
        under_way.into_iter().for_each(|(_, lasted)| cycles.add(lasted));
    }
    println!("  {} cycles of {:.1} ms whose reflector {}", cycles.count(), cycles.p50(), attack.does);
    println!("    {} turns beside them, p50 {:.3} ms", beside.count(), beside.p50());
    line("    p99 of turns alone", alone.p99(), "ms", None);
    line("    p99 beside them", beside.p99(), "ms", None);
    Ok(beside.p50() / alone.p50())
}

/// Cycles with a pause between them, each of which has to end as the attack does: their beginnings and their times. At least one.
async fn cycles_until(
    ends: CancellationToken,
    reflections: Reflections,
    attack: &'static Attack,
) -> Result<Vec<(Instant, Duration)>> {
    let mut cycles = Vec::new();
    loop {
        let started = Instant::now();
        let request = ReflectRequest { agent: AgentName::default(), peers: vec![peer(PEER)?] };
        let record = serde_json::to_value(reflections.reflect(request).await?)?;
        cycles.push((started, started.elapsed()));
        ensure!(record.to_string().contains(attack.ends), "the cycle was to end as {}: {record}", attack.ends);
        if ends.run_until_cancelled(tokio::time::sleep(PAUSE)).await.is_none() {
            return Ok(cycles);
        }
    }
}
