//! Doc comments as text for a model: the lines of a paragraph become one.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// The text of the doc comments among the attributes, or nothing.
pub(crate) fn of(attributes: &[Attribute]) -> String {
    let mut text = String::new();
    for line in attributes
        .iter()
        .filter_map(line)
        .flat_map(|comment| comment.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>())
    {
        let begins_item = line.starts_with("- ") || line.starts_with("* ");
        if line.is_empty() {
            text.push_str("\n\n");
        } else if begins_item && !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        } else if !text.is_empty() && !text.ends_with('\n') {
            text.push(' ');
        }
        text.push_str(&line);
    }
    text.trim().to_owned()
}

/// Whether an attribute is a line of a doc comment.
pub(crate) fn is_doc(attribute: &Attribute) -> bool {
    attribute.path().is_ident("doc")
}

fn line(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(pair) if is_doc(attribute) => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => {
                let text = text.value();
                // An empty line of the source is one here too.
                Some(if text.is_empty() { "\n".to_owned() } else { text })
            }
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    #[test]
    fn paragraphs_become_lines_and_lists_stay() {
        let function: syn::ItemFn = parse_quote! {
            /// Adds numbers,
            /// all of them.
            ///
            /// Kinds:
            /// - whole ones
            /// - others
            #[inline]
            fn add() {}
        };
        assert_eq!(of(&function.attrs), "Adds numbers, all of them.\n\nKinds:\n- whole ones\n- others");
        assert_eq!(of(&[]), "");
    }
}
