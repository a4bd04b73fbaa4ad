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

/// Whether the owner's message has this word or number, apart from signs around it.
pub(crate) fn mentions(message: &str, word: &str) -> bool {
    // None of these is a sign of a peer's id.
    let ends_word = |sign: char| sign.is_whitespace() || "'\u{2019},;!?()\"`".contains(sign);
    // Another dash before a number is a minus, too.
    let is_edge = |sign: char| !sign.is_alphanumeric() && !"@#+-\u{2012}\u{2013}\u{2014}\u{2212}".contains(sign);
    message.split(ends_word).any(|said| {
        let trimmed = said.trim_matches(is_edge);
        said == word || trimmed == word || trimmed.strip_prefix('+').is_some_and(|number| number == word)
    })
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
    fn a_message_mentions_whole_words() {
        for (message, word) in [
            ("what do you think of mai?", "mai"),
            ("mai's word is good", "mai"),
            ("(@mai:example.org), she paid", "@mai:example.org"),
            ("+4930123456: 8", "+4930123456"),
            ("#chan is loud", "#chan"),
            ("a key of npub~= is new", "npub~="),
            ("give mai +8.", "8"),
            ("mai: -3, for being late", "-3"),
            ("mai 0", "0"),
        ] {
            assert!(mentions(message, word), "{message}: {word}");
        }
        for (message, word) in [
            ("", "mai"),
            ("the mail from mail", "mai"),
            ("mai.example.org is down", "mai"),
            ("give mai 18", "8"),
            ("give mai 8", "-8"),
            ("give mai -8", "8"),
            ("give mai \u{2212}8", "8"),
            ("Mai is here", "mai"),
        ] {
            assert!(!mentions(message, word), "{message}: {word}");
        }
    }
}
