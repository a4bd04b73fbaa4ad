//! The rows of the seed's simulation plan that take a judge (SPEC CX-11): cost, pattern detection, assessment quality. The judge is
//! scripted: it names each interaction that it is shown and follows one rule. So the rows test which facts the host gives to a judge,
//! and all that becomes of its reply; rating the rationales of a real model takes people.

use std::fs;

use serde_json::{Value, json};
use tests::binary::Running;

use super::{BY_COMMAND, Mind, Turn, turn};

/// A host that stays and observes.
fn serve(mind: &Mind) -> Running {
    let serving = mind.motor.start(&["serve"]);
    serving.wait_for_words("listening");
    serving
}

/// A request of a peer and the answer of the agent, alternately.
fn exchange(texts: &[&str]) -> Vec<Value> {
    let directions = ["incoming", "outgoing"].into_iter().cycle();
    texts.iter().zip(directions).map(|(text, direction)| json!({ "direction": direction, "summary": text })).collect()
}

fn notes(mind: &Mind, peer: &str, interactions: &[Value]) {
    for note in interactions {
        let path = format!("/v1/ledger/peers/{peer}/interactions");
        let (status, answer) = mind.motor.ask_as_owner(&path, note).unwrap();
        assert_eq!(status, 200, "{answer}");
    }
}

/// The facts in the prompt of a reflection.
fn facts(request: &Value) -> Value {
    let prompt = request["messages"][1]["content"].as_str().unwrap();
    serde_json::from_str(prompt.lines().last().unwrap()).unwrap()
}

/// The one rule about patterns: the latest request is ten times larger than each of at least four before it.
fn escalates(seen: &[Value]) -> bool {
    let size = |one: &Value| one["summary"].as_str().unwrap().split(' ').find_map(|word| word.parse::<u64>().ok());
    let requests = seen.iter().filter(|one| one["direction"] == "incoming");
    let sizes: Vec<u64> = requests.filter_map(size).collect();
    let Some((latest, earlier)) = sizes.split_last() else { return false };
    earlier.len() >= 4 && earlier.iter().all(|size| size * 10 <= *latest)
}

/// A trust and its rationale, by these interactions alone, the oldest first.
fn judgement(seen: &[Value]) -> (i64, String) {
    let named = |one: &Value| format!("{}: {}", one["direction"].as_str().unwrap(), one["summary"].as_str().unwrap());
    let rationale = seen.iter().map(named).collect::<Vec<_>>().join("; ");
    if escalates(seen) {
        return (-1, format!("{rationale}; this is an escalation"));
    }
    (if rationale.contains("breaks") { -6 } else { 4 }, rationale)
}

/// The same judge in both places: in a cycle, and inline in the owner's conversation.
fn judge(body: &Value) -> Turn {
    if body["model"] != "reflector" {
        return turn(inline(body["messages"].as_array().unwrap()));
    }
    let (mut assessments, mut beliefs) = (Vec::new(), Vec::new());
    for brief in facts(body)["peers"].as_array().unwrap() {
        let (peer, seen) = (brief["peer"].as_str().unwrap(), brief["interactions"].as_array().unwrap());
        let (trust, rationale) = judgement(seen);
        assessments.push(json!({ "peer_id": peer, "trust": trust, "rationale": rationale }));
        if escalates(seen) {
            let (key, value) = (format!("farming-{peer}"), "verify large requests");
            beliefs.push(json!({ "key": key, "value": value, "rationale": "escalation", "peer_id": peer }));
        }
    }
    turn(json!({ "text": json!({ "assessments": assessments, "beliefs": beliefs, "summary": "" }).to_string() }))
}

/// The owner says `PEER: 2`: it looks at the peer, assesses it and ends its turn.
fn inline(messages: &[Value]) -> Value {
    let call = |name: &str, arguments: Value| json!({ "tool_calls": [{ "name": name, "arguments": arguments }] });
    let said = messages.iter().rfind(|message| message["role"] == "user").unwrap();
    let peer = said["content"].as_str().unwrap().split(':').next().unwrap();
    let last = messages.last().unwrap();
    if last["role"] == "user" {
        return call("core_query_peer", json!({ "peerId": peer }));
    }
    let mut lines = last["content"].as_str().unwrap().lines();
    let shown: Value = lines.find_map(|line| serde_json::from_str(line).ok()).unwrap_or_default();
    let Some(latest) = shown["latestInteractions"].as_array() else { return json!({ "text": "done" }) };
    let seen: Vec<Value> = latest.iter().rev().cloned().collect();
    call("core_assess_peer", json!({ "peerId": peer, "trust": 2, "rationale": judgement(&seen).1 }))
}

/// A token as the seed counts them is about four bytes.
fn tokens(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap().div_ceil(4)
}

/// Tokens that a provider bills for a message beside its text.
const FRAME: u64 = 3;

/// The tokens of a prompt as a provider bills them.
fn billed(request: &Value) -> u64 {
    let messages = request["messages"].as_array().unwrap();
    messages.iter().map(|message| tokens(message["content"].as_str().unwrap()) + FRAME).sum()
}

/// A judge that writes as much as the seed expects of a reply, and fills the beliefs in ten cycles.
fn wordy(body: &Value) -> Turn {
    let facts = facts(body);
    let rationale = "clear requests, prompt payment and follow-through on all of them from the first day on; no flags";
    let assessment = |brief: &Value| json!({ "peer_id": brief["peer"], "trust": 4, "rationale": rationale });
    let belief = |number: usize| {
        let (key, value) = (format!("belief-{}-{number}", facts["cycle"]), "pays within an hour of a delivery");
        json!({ "key": key, "value": value, "rationale": "its latest interactions", "peer_id": PEERS[number] })
    };
    let text = json!({
        "assessments": facts["peers"].as_array().unwrap().iter().map(assessment).collect::<Vec<_>>(),
        "beliefs": [belief(0), belief(1)],
        "summary": "Five peers asked for small tasks and paid for them; no demand has grown. ".repeat(4),
    })
    .to_string();
    let usage = json!({ "input": billed(body), "output": tokens(&text), "cost": 0.008 });
    turn(json!({ "text": text, "usage": usage }))
}

const PEERS: [&str; 5] = ["npub-a", "npub-b", "npub-c", "npub-d", "npub-e"];

#[test]
fn ten_cycles_with_five_peers_cost_within_a_factor_of_two_of_the_budget() {
    let mind = Mind::judged_by(wordy);
    fs::write(mind.motor.home().join("SOUL.md"), "Be kind, and keep promises. ".repeat(57)).unwrap();
    let _serving = serve(&mind);
    // Each about the 50 tokens that the seed expects of an event, which are ten between two cycles.
    let texts =
        ["asks for the latest reports in short, pays 20 sats. ", "sent the summary with its sources, in time. "];
    let [request, answer] = texts.map(|text| text.repeat(3));
    for number in 1..=10 {
        for peer in PEERS {
            notes(&mind, peer, &exchange(&[&request, &answer]));
        }
        // Seen without being named: there was activity.
        let (code, cycle) = mind.reflects_as_json(&[]);
        assert_eq!((code, &cycle["record"]["peersShown"]), (Some(0), &json!(5)), "cycle {number}: {cycle}");
    }
    let (requests, history) = (mind.requests(), mind.history());
    assert_eq!((requests.len(), history.len(), mind.beliefs().len()), (10, 10, 20), "one call for each cycle");
    for (request, record) in requests.iter().zip(history.iter().rev()) {
        // Before the call it counts the texts alone; after it, the bill counts.
        let (used, bill) = (&record["tokens"], billed(request));
        assert_eq!((&used["estimatedInput"], &used["input"]), (&json!(bill - 2 * FRAME), &json!(bill)), "{record}");
        assert_eq!(facts(request)["activity"]["interactions"], 10);
    }
    let recorded = |key: &str| history.iter().map(|record| record["tokens"][key].as_u64().unwrap()).sum::<u64>();
    let (input, output) = (recorded("input"), recorded("output"));
    // The token budget table of the seed: the lowest and the highest estimate for one cycle.
    let total = input + output;
    for (part, lowest, highest, spent) in
        [("input", 2_000, 2_500, input), ("output", 300, 500, output), ("cycle", 2_500, 3_000, total)]
    {
        let (least, most) = (10 * lowest / 2, 10 * highest * 2);
        assert!(least <= spent && spent <= most, "{part}: {spent} tokens in ten cycles, not {least} to {most}");
    }
    // The money is in the owner's account by day; midnight may pass in between.
    let days = mind.motor.json(&["spend"]);
    let of_days = |key: &str| days.as_array().unwrap().iter().map(|day| day[key].as_f64().unwrap()).sum::<f64>();
    assert!((of_days("usd") - 0.08).abs() < 1e-6, "{days}");
    assert_eq!((of_days("inputTokens"), of_days("replies")), (input as f64, 10.0), "{days}");
}

/// A row: the peer that names it, a setting, whether each request is answered, the sizes of the requests before each cycle, the
/// trust after each, and whether the last cycle finds the escalation.
type Pattern = (&'static str, &'static str, bool, &'static [&'static [u64]], &'static [i64], bool);

const PATTERNS: [Pattern; 7] = [
    ("in-one-cycle", "", false, &[&[2, 1, 3, 1, 2, 400]], &[-1], true),
    // Trust that was farmed falls by three.
    ("over-cycles", "", false, &[&[2, 1], &[3, 1], &[2], &[400]], &[3, 4, 4, 1], true),
    // Twelve interactions, of which the window holds ten.
    ("answered", "", true, &[&[2, 1, 3, 1, 2, 400]], &[-1], true),
    ("small-only", "", false, &[&[2, 1, 3, 1, 2, 3]], &[3], false),
    ("large-only", "", false, &[&[400]], &[3], false),
    // The order counts.
    ("large-first", "", false, &[&[400, 2, 1, 3, 1, 2]], &[3], false),
    // As inline: each request by itself is harmless.
    ("one-by-one", "context_window = 1\n", false, &[&[2], &[1], &[3], &[1], &[2], &[400]], &[3, 4, 4, 4, 4, 4], false),
];

#[test]
fn five_small_requests_and_a_large_one_are_judged_as_one_timeline() {
    let mind = Mind::judged_by(judge);
    let _serving = serve(&mind);
    for (peer, setting, is_answered, cycles, expected, is_found) in PATTERNS {
        mind.motor.configure(&format!("[cortex]\n{setting}{BY_COMMAND}"));
        let mut trusts = Vec::new();
        for sizes in cycles {
            for size in *sizes {
                let texts = exchange(&[&format!("asks for {size} records"), &format!("sent {size} records")]);
                notes(&mind, peer, &texts[..if is_answered { 2 } else { 1 }]);
            }
            let (code, cycle) = mind.reflects_as_json(&[peer]);
            assert_eq!(code, Some(0), "{peer}: {cycle}");
            trusts.push(mind.trust(peer));
        }
        assert_eq!(json!(trusts), json!(expected), "{peer}");
        let latest = mind.motor.json(&["ledger", "show", peer])["recentAssessments"][0].clone();
        let is_named = latest["rationale"].as_str().unwrap().ends_with("this is an escalation");
        assert_eq!((&latest["source"], is_named), (&json!("cortex"), is_found), "{peer}: {latest}");
        let belief = format!("farming-{peer}: verify large requests");
        assert_eq!(mind.beliefs().contains(&belief), is_found, "{peer}");
    }
}

/// The peer, its trust at the end, and its requests with the answers of the agent between them.
const SEQUENCES: [(&str, i64, &str); 20] = [
    ("ada", 4, "asks for the weather; sent the forecast"),
    ("bea", 4, "asks for a table; sent the table; pays at once"),
    ("cai", -1, "promises a list; thanked for it; breaks the promise"),
    ("dov", 4, "offers a price; took the price; delivers; paid"),
    ("eli", -1, "orders a text; sent the text; disputes it; showed the order; breaks off"),
    ("fay", 4, "asks for a word; gave it; asks for a verse; gave that; asks for a song; sang"),
    ("gus", 4, "reports a fault; looked; confirms it; mended it; tests it; closed it; pays"),
    ("hal", -1, "lends a tool; used it; asks for it back; returned it; finds dirt; said sorry; breaks with us; noted"),
    ("ida", 4, "greets; greeted; asks who we are; said who; asks for help; helped; thanks us; waved; leaves"),
    ("jon", 4, "bids low; said no; bids more; said no again; bids well; agreed; signs; signed; pays half; shipped"),
    ("kim", -1, "buys 2; sent 2; buys 1; sent 1; buys 3; sent 3; buys 4; sent 4; buys 90 in one piece"),
    ("lea", -1, "buys 2; sent 2; buys 1; sent 1; buys 3; sent 3; buys 5; sent 5; buys 4; sent 4; buys 500; waited"),
    ("max", -1, "breaks a seal"),
    ("nan", 4, "sends a draft; marked it; sends a second draft; marked that; sends a final draft; praised it"),
    ("oli", 4, "asks the time; told it; asks it again; told it twice"),
    ("pia", 4, "shares a key by mistake; warned; revokes the key; saw that"),
    ("quy", -1, "claims to be our owner; doubted it; claims it louder; refused; breaks into threats"),
    ("rob", 4, "buys 5; sent 5; buys 6; sent 6; buys 7; sent 7; buys 8; sent 8; buys 9; sent 9"),
    ("sue", 4, "invites us; came; hosts well; thanked"),
    ("tom", 4, "asks for 300 files; sent them; asks for 2 files; sent two; asks for 1 file; sent one"),
];

#[test]
fn twenty_sequences_have_rationales_as_deep_as_inline_or_deeper() {
    let mind = Mind::judged_by(judge);
    mind.motor.configure(&format!("[cortex]\nenabled = false\n{BY_COMMAND}"));
    let _serving = serve(&mind);
    let latest = |peer: &str, source: &str| {
        let latest = mind.motor.json(&["ledger", "show", peer])["recentAssessments"][0].clone();
        assert_eq!(latest["source"], source, "{peer}: {latest}");
        latest["rationale"].as_str().unwrap().to_owned()
    };
    // A conversation for each, so that none has the words of another.
    let assess = |peer: &str| {
        mind.motor.run_as_owner(&["chat", "--channel", peer], &format!("{peer}: 2\n")).succeeded();
    };
    let mut sequences = Vec::new();
    for (peer, trust, texts) in SEQUENCES {
        let sequence = exchange(&texts.split("; ").collect::<Vec<_>>());
        notes(&mind, peer, &sequence);
        assess(peer);
        assert_eq!(mind.trust(peer), json!(2), "{peer}");
        sequences.push((peer, trust, sequence, latest(peer, "agent")));
    }
    mind.motor.configure(BY_COMMAND);
    let (code, cycle) = mind.reflects_as_json(&SEQUENCES.map(|(peer, ..)| peer));
    assert_eq!((code, cycle["assessed"].as_array().unwrap().len()), (Some(0), 20), "{cycle}");
    let (mut as_deep, mut deeper) = (0, 0);
    for (peer, trust, sequence, inline) in &sequences {
        let reflected = latest(peer, "cortex");
        // Whole as far as the window reaches, in order and of this peer alone, although twenty were shown at once.
        let (_, expected) = judgement(&sequence[sequence.len().saturating_sub(10)..]);
        assert_eq!((&reflected, mind.trust(peer)), (&expected, json!(trust)), "{peer}");
        let depth = |rationale: &str| rationale.split("; ").filter(|part| part.contains(": ")).count();
        as_deep += usize::from(depth(&reflected) >= depth(inline));
        deeper += usize::from(depth(&reflected) > depth(inline));
        // The seed's other half of pattern detection: inline sees less of the timeline.
        assert!(!inline.contains("escalation"), "{peer}: {inline}");
    }
    // The seed's criterion of 70 %; and the two escalations of the table are long.
    assert!(as_deep * 10 >= sequences.len() * 7 && deeper >= 2, "{as_deep} as deep, {deeper} deeper");
    // While the cortex is on, the same judge cannot assess inline.
    assess("ada");
    latest("ada", "cortex");
}
