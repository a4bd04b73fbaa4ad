//! Decimal numbers of any length, as `bc` counts: an integer and how many of its digits are behind the point. Every result
//! is cut, never rounded.

use num_bigint::{BigInt, Sign};

/// Digits that a number may have: far more than anybody prints, and little enough to be multiplied.
const MAX_DIGITS: u64 = 20_000;

/// Characters of a line of output, with the backslash that ends it.
const LINE: usize = 69;

/// A number in decimal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Number {
    value: BigInt,
    scale: u32,
}

/// An error message for standard error.
pub(super) type Fault = String;

fn ten_to(power: u32) -> BigInt {
    BigInt::from(10).pow(power)
}

impl Number {
    pub(super) fn from(value: i64) -> Self {
        Self { value: value.into(), scale: 0 }
    }

    /// Reads a literal. As in `bc`, a digit too large for the base counts as the largest there is, but alone as itself.
    pub(super) fn read(text: &str, base: u32) -> Result<Self, Fault> {
        let digits = text.chars().filter(|character| *character != '.').count();
        let digit = |character: char| {
            let value = character.to_digit(16).unwrap_or_default();
            if digits == 1 { value } else { value.min(base.saturating_sub(1)) }
        };
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let join = |text: &str| text.chars().fold(BigInt::ZERO, |sum, character| sum * base + digit(character));
        let scale = u32::try_from(fraction.len()).map_err(|_| "the number is too long".to_owned())?;
        if digits as u64 > MAX_DIGITS {
            return Err("the number is too long".to_owned());
        }
        let (whole, part) =
            (join(whole) * ten_to(scale), join(fraction) * ten_to(scale) / BigInt::from(base).pow(scale));
        Ok(Self { value: whole + part, scale })
    }

    pub(super) fn is_zero(&self) -> bool {
        self.value.sign() == Sign::NoSign
    }

    pub(super) fn scale(&self) -> u32 {
        self.scale
    }

    /// How many digits it has.
    pub(super) fn length(&self) -> i64 {
        let digits = i64::try_from(self.value.magnitude().to_string().len()).unwrap_or(i64::MAX);
        let scale = i64::from(self.scale);
        if self.is_zero() { scale.max(1) } else { digits.max(scale) }
    }

    /// With so many digits behind the point: others are cut, missing ones are zeros.
    pub(super) fn to_scale(&self, scale: u32) -> Self {
        let value = if scale >= self.scale {
            &self.value * ten_to(scale - self.scale)
        } else {
            &self.value / ten_to(self.scale - scale)
        };
        Self { value, scale }
    }

    /// The digits before the point.
    pub(super) fn whole(&self) -> BigInt {
        self.to_scale(0).value
    }

    pub(super) fn negate(&self) -> Self {
        Self { value: -&self.value, scale: self.scale }
    }

    pub(super) fn add(&self, other: &Self) -> Self {
        let scale = self.scale.max(other.scale);
        Self { value: self.to_scale(scale).value + other.to_scale(scale).value, scale }
    }

    pub(super) fn subtract(&self, other: &Self) -> Self {
        self.add(&other.negate())
    }

    pub(super) fn multiply(&self, other: &Self, scale: u32) -> Result<Self, Fault> {
        check_bits(self.value.bits() + other.value.bits())?;
        let exact = Self { value: &self.value * &other.value, scale: self.scale + other.scale };
        Ok(exact.to_scale(exact.scale.min(scale.max(self.scale).max(other.scale))))
    }

    pub(super) fn divide(&self, other: &Self, scale: u32) -> Result<Self, Fault> {
        if other.is_zero() {
            return Err("divide by zero".to_owned());
        }
        let value = &self.value * ten_to(scale + other.scale) / (&other.value * ten_to(self.scale));
        Ok(Self { value, scale })
    }

    pub(super) fn remainder(&self, other: &Self, scale: u32) -> Result<Self, Fault> {
        let quotient = self.divide(other, scale)?;
        let product = Self { value: &quotient.value * &other.value, scale: quotient.scale + other.scale };
        Ok(self.subtract(&product).to_scale((scale + other.scale).max(self.scale)))
    }

    pub(super) fn power(&self, exponent: &Self, scale: u32) -> Result<Self, Fault> {
        let exponent = exponent.whole();
        let times = u32::try_from(exponent.magnitude()).map_err(|_| "the exponent is too large".to_owned())?;
        check_bits(self.value.bits().saturating_mul(times.into()))?;
        let scale_of = self.scale.checked_mul(times).filter(|scale| u64::from(*scale) <= MAX_DIGITS);
        let exact_scale = scale_of.ok_or_else(|| "the result is too long".to_owned())?;
        let exact = Self { value: self.value.pow(times), scale: exact_scale };
        if exponent.sign() == Sign::Minus {
            return Self::from(1).divide(&exact, scale);
        }
        Ok(exact.to_scale(exact.scale.min(scale.max(self.scale))))
    }

    pub(super) fn root(&self, scale: u32) -> Result<Self, Fault> {
        if self.value.sign() == Sign::Minus {
            return Err("square root of a negative number".to_owned());
        }
        let scale = scale.max(self.scale);
        Ok(Self { value: self.to_scale(2 * scale).value.sqrt(), scale })
    }

    pub(super) fn compare(&self, other: &Self) -> std::cmp::Ordering {
        let scale = self.scale.max(other.scale);
        self.to_scale(scale).value.cmp(&other.to_scale(scale).value)
    }

    /// As `bc` prints it: no zero before the point, and long ones on several lines.
    pub(super) fn print(&self, base: u32) -> String {
        if self.is_zero() {
            return "0".to_owned();
        }
        let sign = if self.value.sign() == Sign::Minus { "-" } else { "" };
        let text = if base == 10 { self.decimal() } else { self.in_base(base) };
        let text = format!("{sign}{text}");
        let pieces: Vec<char> = text.chars().collect();
        pieces.chunks(LINE - 1).map(|piece| piece.iter().collect::<String>()).collect::<Vec<_>>().join("\\\n")
    }

    fn decimal(&self) -> String {
        let digits = self.value.magnitude().to_string();
        let scale = self.scale as usize;
        let padded = format!("{digits:0>scale$}");
        let (whole, fraction) = padded.split_at(padded.len().saturating_sub(scale));
        if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") }
    }

    fn in_base(&self, base: u32) -> String {
        let unit = ten_to(self.scale);
        let mut whole = self.value.magnitude() / unit.magnitude();
        let mut rest = self.value.magnitude() % unit.magnitude();
        let width = base.saturating_sub(1).to_string().len();
        let digit = |value: u32| match char::from_digit(value, 16).filter(|_| base <= 16) {
            Some(digit) => digit.to_ascii_uppercase().to_string(),
            None => format!(" {value:0width$}"),
        };
        let zero = num_bigint::BigUint::ZERO;
        let mut digits = Vec::new();
        while whole > zero {
            digits.push(digit(u32::try_from(&whole % base).unwrap_or_default()));
            whole /= base;
        }
        digits.reverse();
        if self.scale > 0 {
            digits.push(".".to_owned());
            // As many digits as hold the precision of the decimal ones.
            let (mut said, wanted) = (num_bigint::BigUint::from(1u8), num_bigint::BigUint::from(10u8).pow(self.scale));
            while said < wanted {
                rest *= base;
                digits.push(digit(u32::try_from(&rest / unit.magnitude()).unwrap_or_default()));
                rest %= unit.magnitude();
                said *= base;
            }
        }
        digits.concat()
    }
}

fn check_bits(bits: u64) -> Result<(), Fault> {
    // A decimal digit has 3.3 bits.
    if bits / 4 > MAX_DIGITS { Err(format!("the result has more than {MAX_DIGITS} digits")) } else { Ok(()) }
}
