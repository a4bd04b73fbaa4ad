//! The effects of a tool, as its author writes them: `"read"`, `"write, idempotent, open-world"`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::LitStr;

/// The right forms, for messages.
pub(crate) const FORM: &str =
    "write `read`, `write` or `destructive`, and after it `idempotent` or `open-world` where they hold";

/// The effects of the WIT's record.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Effects {
    read_only: bool,
    destructive: bool,
    idempotent: bool,
    open_world: bool,
}

impl Effects {
    /// Reads the words of the attribute.
    ///
    /// # Errors
    /// If there is a word of another kind, or not exactly one of `read`, `write` and `destructive`.
    pub fn parse(text: &LitStr) -> syn::Result<Self> {
        let wrong = |reason: String| syn::Error::new(text.span(), format!("{reason}: {FORM}"));
        let mut effects = Self::default();
        let mut kinds = 0;
        for word in text.value().split(',').map(str::trim) {
            match word {
                // A call that changes nothing may be repeated.
                "read" => (effects.read_only, effects.idempotent) = (true, true),
                "write" => {}
                "destructive" => effects.destructive = true,
                "idempotent" => effects.idempotent = true,
                "open-world" => effects.open_world = true,
                _ => return Err(wrong(format!("there is no effect `{word}`"))),
            }
            kinds += usize::from(matches!(word, "read" | "write" | "destructive"));
        }
        if kinds == 1 { Ok(effects) } else { Err(wrong("the effects of a call are of one kind".to_owned())) }
    }

    /// The record as an expression.
    pub fn expression(self) -> TokenStream {
        let Self { read_only, destructive, idempotent, open_world } = self;
        quote! {
            ::motor_sdk::Effects {
                read_only: #read_only,
                destructive: #destructive,
                idempotent: #idempotent,
                open_world: #open_world,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proc_macro2::Span;

    use super::*;

    fn parse(text: &str) -> Result<Effects, String> {
        Effects::parse(&LitStr::new(text, Span::call_site())).map_err(|error| error.to_string())
    }

    #[test]
    fn words_are_the_flags_of_the_record() {
        let read = Effects { read_only: true, idempotent: true, ..Effects::default() };
        assert_eq!(parse("read"), Ok(read));
        assert_eq!(parse("read, open-world"), Ok(Effects { open_world: true, ..read }));
        assert_eq!(parse("write"), Ok(Effects::default()));
        let replacing = Effects { destructive: true, idempotent: true, ..Effects::default() };
        assert_eq!(parse("destructive,idempotent"), Ok(replacing));
    }

    #[test]
    fn contradictions_and_other_words_are_refused_with_the_form() {
        for text in ["", "readonly", "read, write", "idempotent", "read, destructive", "read,"] {
            let refused = parse(text).unwrap_err();
            assert!(refused.ends_with(FORM), "{text}: {refused}");
        }
    }
}
