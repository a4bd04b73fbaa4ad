//! The owner's word about a request for consent, read from the owner's own message by the host (SPEC CONSENT-1).
//!
//! The model decides which request a message belongs to; it never decides the answer. With any reply of a model, a message that
//! is not plainly a yes grants nothing.

/// The words that are a yes.
const YES: [&str; 25] = [
    "yes",
    "y",
    "yep",
    "yeah",
    "ok",
    "okay",
    "sure",
    "approve",
    "approved",
    "allow",
    "allowed",
    "confirm",
    "confirmed",
    "accept",
    "accepted",
    "ja",
    "oui",
    "si",
    "sí",
    "sim",
    "да",
    "tak",
    "はい",
    "好",
    "是",
];
/// Words that may accompany a yes.
const BESIDE_YES: [&str; 5] = ["go", "ahead", "please", "do", "it"];
/// A message that begins with one of these is a no.
const NO: [&str; 16] = [
    "no",
    "n",
    "nope",
    "deny",
    "denied",
    "reject",
    "rejected",
    "refuse",
    "stop",
    "don't",
    "dont",
    "cancel",
    "nein",
    "non",
    "нет",
    "いいえ",
];
/// Words that make the name after them, also with `of` in between, that of someone who is judged.
const JUDGING: [&str; 5] = ["assess", "rate", "judge", "trust", "score"];
/// Words that may end a judgement.
const AFTER_JUDGEMENT: [&str; 2] = ["because", "please"];
/// Words of a yes: a longer message has conditions.
const MAX_YES_WORDS: usize = 6;

/// The answer in a message of the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnerWord {
    Yes,
    No,
    /// Neither: a question, a condition, another matter.
    Unclear,
}

/// Reads the word of the owner. `ids`: the names of the request, which may stand beside it. `must_name`: a yes has to
/// contain one of them, because several requests are open.
pub(crate) fn owner_word(message: &str, ids: &[&str], must_name: bool) -> OwnerWord {
    let is_edge = |sign: char| !sign.is_alphanumeric() && sign != '_';
    let words: Vec<String> = message
        .split(|sign: char| sign.is_whitespace() || ",.!;:".contains(sign))
        .map(|word| word.trim_matches(is_edge).to_lowercase())
        .filter(|word| !word.is_empty())
        .collect();
    let (named, said): (Vec<&str>, Vec<&str>) = words.iter().map(String::as_str).partition(|word| ids.contains(word));
    if said.first().is_some_and(|first| NO.contains(first)) {
        return OwnerWord::No;
    }
    let is_yes = said.len() <= MAX_YES_WORDS
        && said.iter().all(|word| YES.contains(word) || BESIDE_YES.contains(word))
        && said.iter().any(|word| YES.contains(word))
        // A question about the yes is not one.
        && !message.contains('?');
    if is_yes && (!must_name || !named.is_empty()) { OwnerWord::Yes } else { OwnerWord::Unclear }
}

/// Whether the owner's message has this id of a peer, apart from signs around it.
pub(crate) fn mentions(message: &str, peer: &str) -> bool {
    // None of these is a sign of a peer's id.
    let ends_word = |sign: char| sign.is_whitespace() || "'\u{2019},;!?()\"`".contains(sign);
    let is_edge = |sign: char| !sign.is_alphanumeric() && !"@#+-".contains(sign);
    message.split(ends_word).any(|said| said == peer || said.trim_matches(is_edge) == peer)
}

/// Whether the owner's message gives the peer this trust, so that no other number in it is taken for one:
///
/// ```text
/// anywhere                                            PEER: 7   PEER = -3   PEER's trust to 7
/// at the beginning of the message or of a sentence,
/// or after `assess`, `rate`, `judge`, `trust`, `score`
/// with or without `of`                                PEER 7   PEER to 7   PEER at 7   PEER is 7
/// ```
///
/// After the number comes the end, a sign that ends a part of a sentence, `because` or `please`: not `PEER 7 messages`.
pub(crate) fn gives_trust(message: &str, peer: &str, trust: i64) -> bool {
    message.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        (0..words.len()).any(|at| {
            let (before, from) = words.split_at(at);
            from.split_first().is_some_and(|(name, rest)| gives_at(before, name, rest, (peer, trust)))
        })
    })
}

/// Whether the words from the name on are a judgement about the peer.
fn gives_at(before: &[&str], name: &str, rest: &[&str], (peer, trust): (&str, i64)) -> bool {
    let is_quote = |sign: char| "'\u{2019}\"`()".contains(sign);
    let Some(mark) = name.trim_start_matches(is_quote).strip_prefix(peer) else { return false };
    let mark = if matches!(mark, "'s" | "\u{2019}s") { "'s" } else { mark.trim_start_matches(is_quote) };
    // Also without spaces, as in `mai:7`.
    if let Some(number) = mark.strip_prefix([':', '=']).filter(|number| !number.is_empty()) {
        return is_number(number, rest, trust);
    }
    let is = |word: Option<&&str>, of: &[&str]| word.is_some_and(|word| of.contains(&word.to_lowercase().as_str()));
    let (is_marked, rest) = match (mark, rest) {
        (":" | "=", _) => (true, rest),
        ("", [":" | "=", rest @ ..]) => (true, rest),
        ("", ["to" | "at" | "is", rest @ ..]) => (false, rest),
        ("'s", [noun, "to" | "at" | "is", rest @ ..]) if is(Some(noun), &["trust"]) => (true, rest),
        ("", _) => (false, rest),
        _ => return false,
    };
    let mut earlier = before.iter().rev();
    let last = earlier.next();
    let is_judged = last.is_none_or(|last| last.ends_with(['.', '!', '?', ';']))
        || is(last, &JUDGING)
        || is(last, &["of"]) && is(earlier.next(), &JUDGING);
    (is_marked || is_judged) && rest.split_first().is_some_and(|(number, rest)| is_number(number, rest, trust))
}

/// Whether a word is this number, and ends the judgement.
fn is_number(word: &str, rest: &[&str], trust: i64) -> bool {
    let number = word.trim_end_matches(['.', ',', ';', '!', ')', '"', '\'', '`']);
    let is_end = number.len() < word.len()
        || rest.first().is_none_or(|next| AFTER_JUDGEMENT.contains(&next.to_lowercase().as_str()));
    is_end && number.strip_prefix('+').unwrap_or(number) == trust.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_yes_is_one() {
        let word = |message| owner_word(message, &["run_1", "apr_1"], false);
        for yes in ["Yes", "yes, approved", "OK!", "yes please, go ahead", "ja", "Approve run_1", "y"] {
            assert_eq!(word(yes), OwnerWord::Yes, "{yes}");
        }
        for no in ["no", "No, not that one", "don't", "Deny apr_1", "nein"] {
            assert_eq!(word(no), OwnerWord::No, "{no}");
        }
        let unclear = [
            "",
            "thanks",
            "yes but only half of it",
            "yes?",
            "what does it do",
            "go",
            "please",
            "tell me a joke",
            "yes yes yes yes yes yes yes",
            "approve nothing",
            "run_1",
        ];
        for unclear in unclear {
            assert_eq!(word(unclear), OwnerWord::Unclear, "{unclear}");
        }
    }

    #[test]
    fn a_yes_names_its_request_if_there_are_several() {
        assert_eq!(owner_word("yes", &["run_1"], true), OwnerWord::Unclear);
        assert_eq!(owner_word("yes run_2", &["run_1"], true), OwnerWord::Unclear);
        assert_eq!(owner_word("yes, run_1", &["run_1"], true), OwnerWord::Yes);
        assert_eq!(owner_word("no", &["run_1"], true), OwnerWord::No);
    }

    #[test]
    fn a_message_mentions_whole_ids() {
        for (message, peer) in [
            ("what do you think of mai?", "mai"),
            ("mai's word is good", "mai"),
            ("(@mai:example.org), she paid", "@mai:example.org"),
            ("+4930123456: 8", "+4930123456"),
            ("#chan is loud", "#chan"),
            ("a key of npub~= is new", "npub~="),
            ("mai\u{2014} she paid", "mai"),
        ] {
            assert!(mentions(message, peer), "{message}: {peer}");
        }
        for (message, peer) in
            [("", "mai"), ("the mail from mail", "mai"), ("mai.example.org is down", "mai"), ("Mai is here", "mai")]
        {
            assert!(!mentions(message, peer), "{message}: {peer}");
        }
    }

    #[test]
    fn a_number_is_a_trust_only_beside_its_peer() {
        for (message, peer, trust) in [
            ("mai: 7", "mai", 7),
            ("mai:7", "mai", 7),
            ("mai 7", "mai", 7),
            ("mai to 7", "mai", 7),
            ("mai at 7.", "mai", 7),
            ("mai = -3", "mai", -3),
            ("`mai`: -3, for being late", "mai", -3),
            ("She paid. mai +8!", "mai", 8),
            ("assess mai: 7, tom: 3", "tom", 3),
            ("Assess the two:\nmai 7\ntom 3", "tom", 3),
            ("please rate mai 0 because she is new", "mai", 0),
            ("I trust mai at 10", "mai", 10),
            ("set the trust of mai to 7 please", "mai", 7),
            ("set mai's trust to 7", "mai", 7),
            ("assess @mai:example.org: 7", "@mai:example.org", 7),
            ("+4930123456: 8", "+4930123456", 8),
        ] {
            assert!(gives_trust(message, peer, trust), "{message}: {peer} {trust}");
        }
        for (message, peer, trust) in [
            ("", "mai", 0),
            ("show me the last 10 messages of mai", "mai", 10),
            ("10 mai", "mai", 10),
            ("mai 10 messages", "mai", 10),
            ("mai: 10 messages", "mai", 10),
            ("mai's last 10 messages", "mai", 10),
            ("pay mai 10", "mai", 10),
            ("meet mai at 10", "mai", 10),
            ("move the meeting with mai to 10", "mai", 10),
            ("I trust ben, send mai 10.", "mai", 10),
            ("mai, 10 of them", "mai", 10),
            ("mai 10?", "mai", 10),
            ("mai: 7.5", "mai", 7),
            ("mai: 18", "mai", 8),
            ("mai: -8", "mai", 8),
            ("mai: \u{2212}8", "mai", 8),
            ("mai: 8", "mai", -8),
            ("mai: 7, tom: 3", "mai", 3),
            ("mail: 7", "mai", 7),
            ("mais trust to 7", "mai", 7),
            ("mai.example.org: 7", "mai", 7),
        ] {
            assert!(!gives_trust(message, peer, trust), "{message}: {peer} {trust}");
        }
    }
}
