//! The options of the attribute: `effects = ".."`, `name = ".."`.

use proc_macro2::TokenStream;
use syn::parse::Parser as _;
use syn::{Ident, LitStr};

use crate::effects::Effects;

/// The host's bound on a tool's name, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// The words of an author about a tool besides its function.
#[derive(Default)]
pub(crate) struct Options {
    /// Declared effects; without them the host takes the worst case.
    pub effects: Option<Effects>,
    name: Option<LitStr>,
}

impl Options {
    /// Reads the options.
    ///
    /// # Errors
    /// If one is unknown, or its value invalid.
    pub fn parse(options: TokenStream) -> syn::Result<Self> {
        let mut parsed = Self::default();
        let parser = syn::meta::parser(|meta| {
            if meta.path.is_ident("effects") {
                parsed.effects = Some(Effects::parse(&meta.value()?.parse()?)?);
            } else if meta.path.is_ident("name") {
                parsed.name = Some(meta.value()?.parse()?);
            } else {
                return Err(meta.error("there is no such option: write `effects = \"read\"` or `name = \"greet\"`"));
            }
            Ok(())
        });
        parser.parse2(options)?;
        Ok(parsed)
    }

    /// The tool's name: the option, or else the function's.
    ///
    /// # Errors
    /// If the host would refuse it.
    pub fn name(&self, function: &Ident) -> syn::Result<String> {
        let (name, span) = match &self.name {
            Some(name) => (name.value(), name.span()),
            None => (function.to_string(), function.span()),
        };
        let mut bytes = name.bytes();
        let is_valid = name.len() <= MAX_NAME_BYTES
            && bytes.next().is_some_and(|first| first.is_ascii_lowercase())
            && bytes.all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'));
        if is_valid {
            return Ok(name);
        }
        let reason = format!(
            "`{name}` is no name of a tool: begin with a-z, go on with a-z, 0-9, `_` or `-`, at most {MAX_NAME_BYTES} \
             characters; `#[tool(name = \"..\")]` names it differently from its function"
        );
        Err(syn::Error::new(span, reason))
    }
}
