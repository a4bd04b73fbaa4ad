//! Whole numbers in requests. JSON has one kind of number: `598.0` is as whole as `598` (JSON Schema 2020-12, core, section 4.2.3),
//! and some clients write it so.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};

/// Reads a number from 0: `#[serde(deserialize_with = "base::whole::number")]`.
///
/// # Errors
/// If it is no number, has a fraction, or is negative or too large.
pub fn number<'de, D: Deserializer<'de>, T: TryFrom<u64>>(deserializer: D) -> Result<T, D::Error> {
    Whole::deserialize(deserializer)?.narrow()
}

/// Reads a number that may be absent, which needs `default` beside it.
///
/// # Errors
/// As [`number`].
pub fn option<'de, D: Deserializer<'de>, T: TryFrom<u64>>(deserializer: D) -> Result<Option<T>, D::Error> {
    Option::<Whole>::deserialize(deserializer)?.map(Whole::narrow).transpose()
}

/// Reads a number that may be negative.
///
/// # Errors
/// If it is no number, has a fraction, or is too large or too small.
pub fn signed<'de, D: Deserializer<'de>, T: TryFrom<i64>>(deserializer: D) -> Result<T, D::Error> {
    let SignedWhole(number) = SignedWhole::deserialize(deserializer)?;
    T::try_from(number).map_err(|_| D::Error::invalid_value(Unexpected::Signed(number), &"a number closer to 0"))
}

/// Reads a list of numbers.
///
/// # Errors
/// As [`number`].
pub fn list<'de, D: Deserializer<'de>, T: TryFrom<u64>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    Vec::<Whole>::deserialize(deserializer)?.into_iter().map(Whole::narrow).collect()
}

/// Reads numbers by name.
///
/// # Errors
/// As [`number`].
pub fn map<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, u64>, D::Error> {
    Ok(numbers(BTreeMap::deserialize(deserializer)?))
}

/// Reads numbers by name that may be absent, which needs `default` beside it.
///
/// # Errors
/// As [`number`].
pub fn option_map<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<BTreeMap<String, u64>>, D::Error> {
    Ok(Option::deserialize(deserializer)?.map(numbers))
}

fn numbers(read: BTreeMap<String, Whole>) -> BTreeMap<String, u64> {
    read.into_iter().map(|(name, number)| (name, number.0)).collect()
}

struct Whole(u64);

impl Whole {
    fn narrow<T: TryFrom<u64>, E: Error>(self) -> Result<T, E> {
        T::try_from(self.0).map_err(|_| E::invalid_value(Unexpected::Unsigned(self.0), &"a smaller number"))
    }
}

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(WholeVisitor).map(Self)
    }
}

struct WholeVisitor;

impl Visitor<'_> for WholeVisitor {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number from 0")
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<u64, E> {
        Ok(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<u64, E> {
        u64::try_from(value).map_err(|_| E::invalid_value(Unexpected::Signed(value), &self))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<u64, E> {
        /// The first number that is too large: `u64::MAX` rounds up to it.
        const END: f64 = 18_446_744_073_709_551_616.0;
        // The conversion is exact: the value has no fraction and is in range.
        if value.fract() == 0.0 && (0.0..END).contains(&value) {
            return Ok(value as u64);
        }
        Err(E::invalid_value(Unexpected::Float(value), &self))
    }
}

struct SignedWhole(i64);

impl<'de> Deserialize<'de> for SignedWhole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_i64(SignedVisitor).map(Self)
    }
}

struct SignedVisitor;

impl Visitor<'_> for SignedVisitor {
    type Value = i64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number")
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<i64, E> {
        i64::try_from(value).map_err(|_| E::invalid_value(Unexpected::Unsigned(value), &self))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<i64, E> {
        Ok(value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<i64, E> {
        /// The first number that is too large: `i64::MAX` rounds up to it.
        const END: f64 = 9_223_372_036_854_775_808.0;
        // The conversion is exact: the value has no fraction and is in range.
        if value.fract() == 0.0 && (-END..END).contains(&value) {
            return Ok(value as i64);
        }
        Err(E::invalid_value(Unexpected::Float(value), &self))
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Request {
        #[serde(default, deserialize_with = "option")]
        narrow: Option<u32>,
        #[serde(default, deserialize_with = "option")]
        wide: Option<u64>,
        #[serde(default, deserialize_with = "option_map")]
        named: Option<BTreeMap<String, u64>>,
        #[serde(default, deserialize_with = "list")]
        several: Vec<u32>,
        #[serde(default, deserialize_with = "signed")]
        signed: i8,
    }

    fn read(json: &str) -> Option<Request> {
        serde_json::from_str(json).ok()
    }

    #[test]
    fn whole_numbers_are_read_however_they_are_written() {
        for (text, expected) in
            [("7", 7), ("7.0", 7), ("7e0", 7), ("70e-1", 7), ("-0.0", 0), ("4294967295.0", u32::MAX)]
        {
            assert_eq!(read(&format!(r#"{{"narrow":{text}}}"#)).unwrap().narrow, Some(expected), "{text}");
        }
        for text in ["7.5", "-1", "-1.0", "4294967296", "4294967296.0", "1e999", "NaN", "\"7\"", "[7]"] {
            assert!(read(&format!(r#"{{"narrow":{text}}}"#)).is_none(), "{text}");
        }
        assert_eq!(read(r#"{"wide":18446744073709551615}"#).unwrap().wide, Some(u64::MAX));
        for text in ["18446744073709551616", "1.8446744073709552e19"] {
            assert!(read(&format!(r#"{{"wide":{text}}}"#)).is_none(), "{text}");
        }
        let named = read(r#"{"named":{"fuel":1e3}}"#).unwrap().named.unwrap();
        assert_eq!(named, BTreeMap::from([("fuel".to_owned(), 1_000)]));
        assert_eq!(read(r#"{"several":[1,2.0]}"#).unwrap().several, [1, 2]);
        assert!(read(r#"{"several":[1.5]}"#).is_none());
        for (text, expected) in [("-7", -7), ("-7.0", -7), ("-70e-1", -7), ("7", 7), ("-128", i8::MIN)] {
            assert_eq!(read(&format!(r#"{{"signed":{text}}}"#)).unwrap().signed, expected, "{text}");
        }
        for text in ["-7.5", "128", "-129.0", "1e999", "-1e30", "18446744073709551615", "NaN"] {
            assert!(read(&format!(r#"{{"signed":{text}}}"#)).is_none(), "{text}");
        }
        let absent = read(r#"{"narrow":null}"#).unwrap();
        assert!(absent.narrow.is_none() && absent.wide.is_none() && absent.named.is_none());
    }
}
