//! Which model serves which role, and the defaults for unset roles (SPEC CONF-3).
//!
//! The origin of the values (flag, environment, file) is not known here.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ModelRef;

/// The purpose of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Small and quick work.
    Fast,
    /// Work that needs the best model.
    Smart,
    /// Runs of the motor loop.
    Motor,
    /// Reflection on past events.
    Cortex,
}

impl Role {
    /// The roles whose settings serve this one, nearest first; after the last comes the default model.
    #[must_use]
    pub fn chain(self) -> &'static [Self] {
        match self {
            Self::Fast => &[Self::Fast],
            Self::Smart => &[Self::Smart],
            Self::Motor => &[Self::Motor, Self::Fast],
            Self::Cortex => &[Self::Cortex, Self::Smart, Self::Motor, Self::Fast],
        }
    }

    /// The environment variable that sets it.
    #[must_use]
    pub fn variable(self) -> &'static str {
        match self {
            Self::Fast => "LLM_FAST_MODEL",
            Self::Smart => "LLM_SMART_MODEL",
            Self::Motor => "LLM_MOTOR_MODEL",
            Self::Cortex => "LLM_CORTEX_MODEL",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fast => "fast",
            Self::Smart => "smart",
            Self::Motor => "motor",
            Self::Cortex => "cortex",
        })
    }
}

/// The configured models. Default: all unset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RoleSettings {
    /// The model of [`Role::Fast`], if set.
    pub fast: Option<ModelRef>,
    /// The model of [`Role::Smart`], if set.
    pub smart: Option<ModelRef>,
    /// The model of [`Role::Motor`], if set.
    pub motor: Option<ModelRef>,
    /// The model of [`Role::Cortex`], if set.
    pub cortex: Option<ModelRef>,
    /// The model of every role without any other setting.
    pub default: Option<ModelRef>,
}

/// Neither the role nor any that could serve it has a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no model is set for the role `{role}`: set `{}` to `provider/model`", .role.variable())]
pub struct RoleUnset {
    /// The role without a model.
    pub role: Role,
}

impl RoleSettings {
    /// The model of a role: its own, otherwise the nearest of its chain, otherwise the default.
    ///
    /// # Errors
    /// [`RoleUnset`] if the whole chain is unset.
    pub fn resolve(&self, role: Role) -> Result<&ModelRef, RoleUnset> {
        self.candidates(role).next().ok_or(RoleUnset { role })
    }

    /// Every distinct model of a role's chain in order: the first answers, the others if it cannot.
    #[must_use]
    pub fn fallbacks(&self, role: Role) -> Vec<&ModelRef> {
        self.candidates(role).fold(Vec::new(), |mut models, model| {
            if !models.contains(&model) {
                models.push(model);
            }
            models
        })
    }

    fn candidates(&self, role: Role) -> impl Iterator<Item = &ModelRef> {
        role.chain().iter().filter_map(|role| self.own(*role)).chain(self.default.as_ref())
    }

    fn own(&self, role: Role) -> Option<&ModelRef> {
        match role {
            Role::Fast => self.fast.as_ref(),
            Role::Smart => self.smart.as_ref(),
            Role::Motor => self.motor.as_ref(),
            Role::Cortex => self.cortex.as_ref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Letters name the configured roles, `d` the default; the answer is the model that serves `role`.
    fn check(set: &str, role: Role, expected: &[&str]) {
        let model = |letter: char| set.contains(letter).then(|| format!("openai/{letter}").parse().unwrap());
        let settings = RoleSettings {
            fast: model('f'),
            smart: model('s'),
            motor: model('m'),
            cortex: model('c'),
            default: model('d'),
        };
        let names: Vec<_> = settings.fallbacks(role).iter().map(|model| model.model.clone()).collect();
        assert_eq!(names, expected, "{set} {role}");
        assert_eq!(settings.resolve(role).ok().map(|model| model.model.as_str()), expected.first().copied());
    }

    #[test]
    fn a_role_falls_back_along_its_chain() {
        check("fsmcd", Role::Motor, &["m", "f", "d"]);
        check("fscd", Role::Motor, &["f", "d"]);
        check("scd", Role::Motor, &["d"]);
        check("fsmcd", Role::Cortex, &["c", "s", "m", "f", "d"]);
        check("md", Role::Cortex, &["m", "d"]);
        check("fd", Role::Smart, &["d"]);
        check("s", Role::Motor, &[]);
        let error = RoleSettings::default().resolve(Role::Motor).unwrap_err().to_string();
        assert!(error.contains("`LLM_MOTOR_MODEL`"), "{error}");
    }

    #[test]
    fn the_same_model_is_not_tried_twice() {
        let same: ModelRef = "ollama/qwen".parse().unwrap();
        let settings = RoleSettings { fast: Some(same.clone()), default: Some(same), ..RoleSettings::default() };
        assert_eq!(settings.fallbacks(Role::Motor).len(), 1);
    }
}
