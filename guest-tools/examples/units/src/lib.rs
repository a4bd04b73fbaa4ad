//! A whole skill in one file: it converts units, and describes itself.

use motor_sdk::{ToolError, serde, tool};

motor_sdk::arguments! {
    #[derive(Debug, Clone, Copy)]
    #[serde(rename_all = "lowercase")]
    enum Unit { M, Km, Ft, Mi, G, Kg, Lb, Oz, C, F, K }
}

#[derive(Debug, PartialEq, serde::Serialize, motor_sdk::schemars::JsonSchema)]
#[serde(crate = "motor_sdk::serde")]
#[schemars(crate = "motor_sdk::schemars")]
struct Converted {
    /// The number in the unit that was wanted.
    value: f64,
}

#[derive(Debug, PartialEq)]
enum Kind {
    Length,
    Mass,
    Temperature,
}

impl Unit {
    /// Its kind, and `scale` and `offset` such that `value * scale + offset` is in metres, grams or kelvins.
    fn measure(self) -> (Kind, f64, f64) {
        match self {
            Self::M => (Kind::Length, 1.0, 0.0),
            Self::Km => (Kind::Length, 1000.0, 0.0),
            Self::Ft => (Kind::Length, 0.3048, 0.0),
            Self::Mi => (Kind::Length, 1609.344, 0.0),
            Self::G => (Kind::Mass, 1.0, 0.0),
            Self::Kg => (Kind::Mass, 1000.0, 0.0),
            Self::Lb => (Kind::Mass, 453.59237, 0.0),
            Self::Oz => (Kind::Mass, 28.349523125, 0.0),
            Self::C => (Kind::Temperature, 1.0, 273.15),
            Self::F => (Kind::Temperature, 5.0 / 9.0, 459.67 * 5.0 / 9.0),
            Self::K => (Kind::Temperature, 1.0, 0.0),
        }
    }
}

/// Converts a number from one unit to another of the same kind.
#[tool(effects = "read")]
fn convert(
    /// The number to convert.
    value: f64,
    /// The unit it is in.
    from: Unit,
    /// The unit that is wanted, of the same kind.
    to: Unit,
) -> Result<Converted, ToolError> {
    let ((kind, scale, offset), (to_kind, to_scale, to_offset)) = (from.measure(), to.measure());
    if kind != to_kind {
        return Err(ToolError::bad_input(format!(
            "`{from:?}` and `{to:?}` do not measure the same: choose two of a kind"
        )));
    }
    let value = (value * scale + offset - to_offset) / to_scale;
    // The last bits are noise of the arithmetic.
    Ok(Converted { value: (value * 1e9).round() / 1e9 })
}

motor_sdk::skill! {
    name: "units",
    description: "Converts lengths, masses and temperatures between units. Use it whenever a number has to be given in \
                  another unit.",
    instructions: include_str!("instructions.md"),
    tools: [convert],
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: f64, from: Unit, to: Unit, expected: f64) {
        let converted = convert(value, from, to).unwrap();
        assert_eq!(converted.value, expected, "{value} {from:?} {to:?}");
    }

    #[test]
    fn converts() {
        check(1.0, Unit::Mi, Unit::Km, 1.609344);
        check(16.0, Unit::Oz, Unit::Lb, 1.0);
        check(212.0, Unit::F, Unit::C, 100.0);
        check(0.0, Unit::K, Unit::C, -273.15);
    }
}
