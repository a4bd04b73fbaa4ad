//! From a function to a tool: a struct of its arguments beside it, named as it is, that knows how to call it. Types and
//! functions have names apart, so the function stays as it was and is called directly in tests.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::spanned::Spanned as _;
use syn::{Attribute, FnArg, GenericArgument, ItemFn, Pat, PathArguments, ReturnType, Signature, Type};

use crate::options::Options;
use crate::text;

/// The function, and the parts that make it a tool.
///
/// # Errors
/// If it cannot be a tool; the message names the fix.
pub(crate) fn tool(options: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let span = item.span();
    let mut function: ItemFn = syn::parse2(item).map_err(|_| {
        syn::Error::new(
            span,
            "`#[tool]` goes on a free function: `fn greet(name: String) -> Result<String, ToolError>`",
        )
    })?;
    let options = Options::parse(options)?;
    check(&function.sig)?;
    let name = options.name(&function.sig.ident)?;
    let description = text::of(&function.attrs);
    if description.is_empty() {
        let reason = "a tool needs a description: write a doc comment that says what it does and when to use it";
        return Err(syn::Error::new(function.sig.ident.span(), reason));
    }
    let constructor = match answer(&function.sig)? {
        Answer::Text => format_ident!("new"),
        Answer::Json => format_ident!("json"),
    };
    let arguments = arguments(&mut function.sig)?;
    let fields = arguments.iter().filter_map(Argument::field);
    let passed = arguments.iter().map(Argument::passed);
    let effects = options.effects.map(|effects| {
        let effects = effects.expression();
        quote!(.effects(#effects))
    });
    let (ident, visibility) = (&function.sig.ident, &function.vis);
    Ok(quote! {
        // A tool has as many arguments as its task; the model gives them by name.
        #[allow(clippy::too_many_arguments)]
        #function

        #[derive(::motor_sdk::serde::Deserialize, ::motor_sdk::schemars::JsonSchema)]
        #[serde(crate = "motor_sdk::serde")]
        #[schemars(crate = "motor_sdk::schemars")]
        #[allow(non_camel_case_types, missing_docs)]
        #[doc(hidden)]
        #visibility struct #ident {
            #(#fields,)*
        }

        impl ::motor_sdk::ToolFunction for #ident {
            #[allow(clippy::useless_conversion)]
            fn tool() -> ::motor_sdk::Tool {
                ::motor_sdk::Tool::#constructor(#name, #description, |_arguments: #ident, _context: &::motor_sdk::Context| {
                    #ident(#(#passed),*).map_err(::std::convert::Into::into)
                })
                #effects
            }
        }
    })
}

/// One parameter of the function.
enum Argument {
    /// Given by the model.
    Field { attributes: Vec<Attribute>, name: syn::Ident, ty: Box<Type> },
    /// Given by the host.
    Context,
}

impl Argument {
    fn field(&self) -> Option<TokenStream> {
        match self {
            Self::Field { attributes, name, ty } => Some(quote!(#(#attributes)* #name: #ty)),
            Self::Context => None,
        }
    }

    fn passed(&self) -> TokenStream {
        match self {
            Self::Field { name, .. } => quote!(_arguments.#name),
            Self::Context => quote!(_context),
        }
    }
}

/// The form of the answer.
enum Answer {
    Text,
    Json,
}

/// Refuses functions of kinds that no tool can be.
fn check(signature: &Signature) -> syn::Result<()> {
    let generics = &signature.generics;
    let reason = if signature.asyncness.is_some() {
        "a tool has no executor: make it a plain `fn`, whose requests wait for their responses"
    } else if !generics.params.is_empty() || generics.where_clause.is_some() {
        "a tool's schema needs concrete types: take the generic parameters away"
    } else if signature.unsafety.is_some() {
        "the host calls a tool with any arguments: make it a safe `fn`"
    } else if signature.abi.is_some() || signature.variadic.is_some() {
        "`#[tool]` exports through the component itself: make it a plain `fn`"
    } else {
        return Ok(());
    };
    Err(syn::Error::new(signature.span(), reason))
}

/// The parameters; their comments and options go to the fields, where the language allows them.
fn arguments(signature: &mut Signature) -> syn::Result<Vec<Argument>> {
    signature.inputs.iter_mut().map(argument).collect()
}

fn argument(input: &mut FnArg) -> syn::Result<Argument> {
    let parameter = match input {
        FnArg::Typed(parameter) => parameter,
        FnArg::Receiver(receiver) => {
            let reason =
                "each call has a fresh instance and no `self`: make it a free function, and keep state in `/workspace`";
            return Err(syn::Error::new(receiver.span(), reason));
        }
    };
    let (attributes, kept) = std::mem::take(&mut parameter.attrs)
        .into_iter()
        .partition(|attribute| ["doc", "serde", "schemars"].iter().any(|name| attribute.path().is_ident(name)));
    parameter.attrs = kept;
    if let Type::Reference(reference) = &*parameter.ty {
        if reference.mutability.is_none()
            && last_segment(&reference.elem).is_some_and(|segment| segment.ident == "Context")
        {
            return Ok(Argument::Context);
        }
        let reason = "an argument is read from JSON, so the tool owns it: take `String` for `&str`, `Vec<T>` for `&[T]`; the \
                      one reference that a tool can take is `&Context`";
        return Err(syn::Error::new(reference.span(), reason));
    }
    if let Type::ImplTrait(other) = &*parameter.ty {
        return Err(syn::Error::new(
            other.span(),
            "a tool's schema needs concrete types: name one instead of `impl ..`",
        ));
    }
    match &*parameter.pat {
        Pat::Ident(pattern) if pattern.by_ref.is_none() && pattern.subpat.is_none() => {
            Ok(Argument::Field { attributes, name: pattern.ident.clone(), ty: parameter.ty.clone() })
        }
        other => {
            let reason = "the name of a parameter is the argument's name for the model: write `name: Type`, and take it apart in the body";
            Err(syn::Error::new(other.span(), reason))
        }
    }
}

/// The form of the answer, from the return type.
fn answer(signature: &Signature) -> syn::Result<Answer> {
    let form = "a tool returns `Result<T, ToolError>`: `T` is `String` for text, or a type with `Serialize` and `JsonSchema` for JSON";
    let ReturnType::Type(_, ty) = &signature.output else { return Err(syn::Error::new(signature.ident.span(), form)) };
    let wrong = || syn::Error::new(ty.span(), form);
    let segment = last_segment(ty).filter(|segment| segment.ident == "Result").ok_or_else(wrong)?;
    let PathArguments::AngleBracketed(generics) = &segment.arguments else { return Err(wrong()) };
    match generics.args.first() {
        Some(GenericArgument::Type(Type::Tuple(tuple))) if tuple.elems.is_empty() => {
            let reason = "the model would see nothing of `()`: answer with a `String` that says what was done";
            Err(syn::Error::new(tuple.span(), reason))
        }
        Some(GenericArgument::Type(value)) => {
            let is_text = last_segment(value).is_some_and(|segment| segment.ident == "String");
            Ok(if is_text { Answer::Text } else { Answer::Json })
        }
        _ => Err(wrong()),
    }
}

fn last_segment(ty: &Type) -> Option<&syn::PathSegment> {
    match ty {
        Type::Path(path) => path.path.segments.last(),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
