//! The functions of `bc -l`, to as many digits as `scale` says, cut and not rounded.

use super::number::{Fault, Number};

/// Digits that are calculated beyond those that are asked for.
const GUARD: u32 = 12;

/// The value of a function of the mathematical library.
pub(super) fn call(name: &str, x: &Number, scale: u32) -> Result<Number, Fault> {
    // Large arguments need as many digits more as they have before the point.
    let size = u32::try_from(x.to_scale(0).length()).unwrap_or(u32::MAX);
    if size > 6 || scale > 500 {
        return Err(format!("`{name}` of so many digits takes too long"));
    }
    let precise = Precise { scale: scale + x.scale() + size * 2 + GUARD };
    let result = match name {
        "s" => precise.sine(&precise.of(x))?,
        "c" => precise.sine(&precise.of(x).add(&precise.divide(&precise.pi()?, &Number::from(2))?))?,
        "a" => precise.arctangent(&precise.of(x))?,
        "e" => return exponential(x, scale),
        "l" if x.compare(&Number::from(0)) != std::cmp::Ordering::Greater => {
            // As `bc` does: the smallest number that it can tell.
            return Number::from(1)
                .subtract(&Number::from(10).power(&Number::from(scale.into()), 0)?)
                .divide(&Number::from(1), scale);
        }
        "l" => precise.logarithm(&precise.of(x))?,
        _ => return Err(format!("the function `{name}` is not known")),
    };
    Ok(result.to_scale(scale))
}

/// `e` to a power, the digits of which before the point are known only by calculating it.
fn exponential(x: &Number, scale: u32) -> Result<Number, Fault> {
    let power = i64::try_from(x.whole()).unwrap_or(i64::MAX);
    if power.abs() > 2_000 {
        return Err("`e` of so large a number takes too long".to_owned());
    }
    let digits = u32::try_from(power.unsigned_abs()).unwrap_or_default() / 2 + 2;
    let precise = Precise { scale: scale + x.scale() + digits + GUARD };
    Ok(precise.exponential(&precise.of(x))?.to_scale(scale))
}

/// Numbers with one number of digits behind the point.
#[derive(Clone, Copy)]
struct Precise {
    scale: u32,
}

impl Precise {
    fn of(self, number: &Number) -> Number {
        number.to_scale(self.scale)
    }

    fn multiply(self, a: &Number, b: &Number) -> Result<Number, Fault> {
        a.multiply(b, self.scale)
    }

    fn divide(self, a: &Number, b: &Number) -> Result<Number, Fault> {
        a.divide(b, self.scale)
    }

    /// Adds `first` and each following term of `next`, which gets the number of the term, until nothing is added.
    fn series(
        self,
        first: &Number,
        next: impl Fn(&Number, i64) -> Result<(Number, Number), Fault>,
    ) -> Result<Number, Fault> {
        let (mut sum, mut term) = (first.clone(), first.clone());
        for count in 1.. {
            let (following, added) = next(&term, count)?;
            if added.is_zero() {
                break;
            }
            sum = sum.add(&added);
            term = following;
        }
        Ok(sum)
    }

    fn exponential(self, x: &Number) -> Result<Number, Fault> {
        // Halved until it is small, and squared as often.
        let (mut small, mut halved) = (x.clone(), 0);
        while !small.whole().eq(&0.into()) || small.compare(&self.divide(&Number::from(1), &Number::from(4))?).is_gt() {
            small = self.divide(&small, &Number::from(2))?;
            halved += 1;
        }
        let more = Self { scale: self.scale + halved };
        let small = more.of(x).divide(&Number::from(2).power(&Number::from(halved.into()), 0)?, more.scale)?;
        let mut result = more.series(&more.of(&Number::from(1)), |term, count| {
            let term = more.divide(&more.multiply(term, &small)?, &Number::from(count))?;
            Ok((term.clone(), term))
        })?;
        for _ in 0..halved {
            result = more.multiply(&result, &result)?;
        }
        Ok(result)
    }

    fn logarithm(self, x: &Number) -> Result<Number, Fault> {
        let (mut near, mut doubled) = (x.clone(), 0);
        let (low, high) =
            (self.divide(&Number::from(9), &Number::from(10))?, self.divide(&Number::from(11), &Number::from(10))?);
        while near.compare(&low).is_lt() || near.compare(&high).is_gt() {
            near = near.root(self.scale)?;
            doubled += 1;
        }
        let one = Number::from(1);
        let ratio = self.divide(&near.subtract(&one), &near.add(&one))?;
        let square = self.multiply(&ratio, &ratio)?;
        let sum = self.series(&ratio, |term, count| {
            let term = self.multiply(term, &square)?;
            let added = self.divide(&term, &Number::from(2 * count + 1))?;
            Ok((term, added))
        })?;
        self.multiply(&sum, &Number::from(2).power(&Number::from(doubled + 1), 0)?)
    }

    fn arctangent(self, x: &Number) -> Result<Number, Fault> {
        let (mut small, mut doubled) = (x.clone(), 0);
        let one = Number::from(1);
        let bound = self.divide(&one, &Number::from(5))?;
        while small.compare(&bound).is_gt() || small.compare(&bound.negate()).is_lt() {
            let root = one.add(&self.multiply(&small, &small)?).root(self.scale)?;
            small = self.divide(&small, &one.add(&root))?;
            doubled += 1;
        }
        let square = self.multiply(&small, &small)?.negate();
        let sum = self.series(&small, |term, count| {
            let term = self.multiply(term, &square)?;
            let added = self.divide(&term, &Number::from(2 * count + 1))?;
            Ok((term, added))
        })?;
        self.multiply(&sum, &Number::from(2).power(&Number::from(doubled), 0)?)
    }

    fn pi(self) -> Result<Number, Fault> {
        self.multiply(&self.arctangent(&self.of(&Number::from(1)))?, &Number::from(4))
    }

    fn sine(self, x: &Number) -> Result<Number, Fault> {
        let circle = self.multiply(&self.pi()?, &Number::from(2))?;
        let turns = self.divide(x, &circle)?.to_scale(0);
        let angle = x.subtract(&self.multiply(&turns, &circle)?);
        let square = self.multiply(&angle, &angle)?.negate();
        self.series(&angle, |term, count| {
            let term = self.divide(&self.multiply(term, &square)?, &Number::from(2 * count * (2 * count + 1)))?;
            Ok((term.clone(), term))
        })
    }
}
