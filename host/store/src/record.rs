//! The envelope of every record, `{"v":1,"d":…}`: a version, so that a record from a newer host is refused by name and
//! an old one is recognised, and the value. Records of unexpected content are refused, never skipped.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{StoreError, Table};

/// The version written into new records.
const RECORD_VERSION: u32 = 1;

/// Maximum size of a record: a batch of them passes through memory several times. Larger data belongs in files.
pub(crate) const MAX_RECORD_BYTES: usize = 16 << 20;

#[derive(Serialize)]
struct OutgoingRecord<'a, T> {
    v: u32,
    d: &'a T,
}

#[derive(Deserialize)]
struct IncomingRecord<T> {
    v: u32,
    d: T,
}

#[derive(Deserialize)]
struct RecordVersion {
    v: u32,
    #[serde(rename = "d")]
    _value: IgnoredAny,
}

/// Encodes `value` for storage.
pub(crate) fn encode<T: Serialize>(table: Table, value: &T) -> Result<Vec<u8>, StoreError> {
    let bytes = serde_json::to_vec(&OutgoingRecord { v: RECORD_VERSION, d: value })
        .map_err(|source| StoreError::Encode { table, source: source.into() })?;
    if bytes.len() > MAX_RECORD_BYTES {
        return Err(StoreError::TooLarge { table, bytes: bytes.len(), limit: MAX_RECORD_BYTES });
    }
    Ok(bytes)
}

/// Decodes a value from stored `bytes`.
pub(crate) fn decode<T: DeserializeOwned>(table: Table, key: &[u8], bytes: &[u8]) -> Result<T, StoreError> {
    match serde_json::from_slice::<IncomingRecord<T>>(bytes) {
        Ok(record) if record.v == RECORD_VERSION => Ok(record.d),
        Ok(record) => Err(refusal(table, key, wrong_version(record.v))),
        // Only the version of a newer record can be relied upon, so it is read alone before the rest is blamed.
        Err(error) => Err(refusal(
            table,
            key,
            match serde_json::from_slice::<RecordVersion>(bytes) {
                Ok(record) if record.v != RECORD_VERSION => wrong_version(record.v),
                // The parser's own message would quote the content.
                _ => format!("it does not read as what it should be (at byte {})", error.column()),
            },
        )),
    }
}

fn wrong_version(found: u32) -> String {
    format!("it has record version {found}, and this version of `motor` reads {RECORD_VERSION}")
}

fn refusal(table: Table, key: &[u8], reason: String) -> StoreError {
    StoreError::Record { table, key: key.escape_ascii().to_string(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expected: Result<u32, &str>) {
        let found = decode::<u32>(Table::Runs, b"a\0b", bytes);
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(StoreError::Record { table: Table::Runs, key, reason }), Err(expected)) => {
                assert_eq!(key, "a\\x00b");
                assert!(reason.contains(expected), "{reason}");
            }
            (found, expected) => panic!("{found:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn only_records_of_this_version_are_read() {
        check(br#"{"v":1,"d":7}"#, Ok(7));
        check(br#"{"v":2,"d":7}"#, Err("record version 2"));
        check(br#"{"v":2,"d":{"other":"shape"}}"#, Err("record version 2"));
        check(br#"{"v":1,"d":"seven"}"#, Err("does not read"));
        check(br#"{"v":1}"#, Err("does not read"));
        check(br#"{"v":1,"d":7"#, Err("does not read"));
        check(b"", Err("does not read"));
        check(&[0xff; 40], Err("does not read"));
        check("[".repeat(10_000).as_bytes(), Err("does not read"));
    }

    #[test]
    fn a_damaged_record_is_not_quoted() {
        let error = decode::<u32>(Table::Runs, b"k", br#"{"v":1,"d":"hunter2"}"#).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }

    #[test]
    fn a_record_has_a_largest_size() {
        assert_eq!(encode(Table::Meta, &"x").unwrap(), br#"{"v":1,"d":"x"}"#);
        assert!(encode(Table::Meta, &"x".repeat(MAX_RECORD_BYTES - 14)).is_ok());
        assert!(matches!(
            encode(Table::Meta, &"x".repeat(MAX_RECORD_BYTES - 13)),
            Err(StoreError::TooLarge { bytes, limit, .. }) if bytes == limit + 1
        ));
    }
}
