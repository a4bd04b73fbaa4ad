//! Fields as the owner sees them: which come first, and their texts made harmless.

use super::body::{Leaf, Leaves};
use super::{Field, Origin, digest};

use base::text::Foreign;

/// Fields that are listed; one more stands for the others.
const MAX_FIELDS: usize = 64;
const MAX_VALUE_CHARS: usize = 200;
pub(super) const MAX_NAME_CHARS: usize = 120;

/// Names of recipients, amounts, addresses, accounts, code and rights, wherever they stand in a name.
const STEMS: &str = "account address amount balance beneficiary callback command currency destination email endpoint \
    grant href iban invite link member password payee payment permission phone price query recipient redirect script \
    secret share source target token transfer uri url wallet webhook";
/// The same, as words of their own only.
const WORDS: &str = "to cc bcc bic cmd code cost exec from host key mail owner pay role sql sum total user value";

/// Whether the owner looks at a field first: its name is that of a recipient, an amount or code, or its value looks like an
/// e-mail address, an IBAN, a URL or a number of an account.
pub(super) fn matters(name: &str, value: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    if STEMS.split(' ').any(|stem| lower.contains(stem)) || words_of(name).any(is_word) {
        return true;
    }
    let value = value.trim();
    let is_email = value
        .split(|sign: char| sign.is_whitespace() || matches!(sign, '<' | '>' | ',' | ';'))
        .any(|word| word.split_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty()));
    is_email || value.contains("://") || value.starts_with("www.") || is_iban(value) || has_long_number(value)
}

/// The words of a name: `sendTo` and `send_to` have two.
fn words_of(name: &str) -> impl Iterator<Item = &str> {
    name.split(|sign: char| !sign.is_alphanumeric()).flat_map(|part| {
        let mut rest = part;
        std::iter::from_fn(move || {
            let end =
                rest.char_indices().skip(1).find(|(_, sign)| sign.is_uppercase()).map_or(rest.len(), |(at, _)| at);
            let (word, after) = rest.split_at_checked(end)?;
            rest = after;
            (!word.is_empty()).then_some(word)
        })
    })
}

fn is_word(word: &str) -> bool {
    WORDS.split(' ').any(|known| known.eq_ignore_ascii_case(word))
}

/// Two letters, two digits, and 11 to 30 alphanumerics, in groups or not (ISO 13616).
fn is_iban(value: &str) -> bool {
    let mut signs = value.chars().filter(|sign| *sign != ' ');
    let has_country = signs.by_ref().take(2).filter(char::is_ascii_alphabetic).count() == 2;
    let has_check = signs.by_ref().take(2).filter(char::is_ascii_digit).count() == 2;
    let account: Vec<char> = signs.take(31).collect();
    has_country && has_check && (11..=30).contains(&account.len()) && account.iter().all(char::is_ascii_alphanumeric)
}

/// Eight digits in a row, in groups or not.
fn has_long_number(value: &str) -> bool {
    let digits = value.chars().try_fold(0, |digits, sign| match sign {
        _ if digits == 8 => Err(()),
        '0'..='9' => Ok(digits + 1),
        ' ' | '-' => Ok(digits),
        _ => Ok(0),
    });
    digits.is_err() || digits == Ok(8)
}

/// The fields in the order of their weight, and one for those that are not listed.
pub(super) fn fields(leaves: Leaves<'_>, origin: impl Fn(&Leaf<'_>) -> Origin) -> Vec<Field> {
    let mut listed: Vec<(&Leaf<'_>, Origin)> = leaves.kept.iter().map(|leaf| (leaf, origin(leaf))).collect();
    listed.sort_by_key(|(leaf, origin)| (*origin == Origin::User, !leaf.matters));
    let hidden = listed.split_off(listed.len().min(MAX_FIELDS));
    let mut fields: Vec<Field> = listed
        .into_iter()
        .map(|(leaf, origin)| Field { name: Foreign(&leaf.name).visible(MAX_NAME_CHARS), value: value(leaf), origin })
        .collect();
    let (mut count, mut bytes) = leaves.others;
    let mut hash = leaves.rest;
    for (leaf, _) in &hidden {
        count += 1;
        bytes += leaf.bytes();
        hash = digest(hash, &[leaf.name.as_bytes(), &leaf.hash(0).to_le_bytes()]);
    }
    if count > 0 {
        let value = format!("{count} more fields, {bytes} bytes, hash {hash:016x}");
        fields.push(Field { name: "…".to_owned(), value, origin: Origin::Model });
    }
    fields
}

fn value(leaf: &Leaf<'_>) -> String {
    match leaf.text() {
        Some(text) => Foreign(text).visible(MAX_VALUE_CHARS),
        None => format!("{} bytes that are not text", leaf.bytes()),
    }
}
