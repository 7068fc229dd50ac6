//! Reads fields, attributes and doc comments of the annotated source.

use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::{Attribute, Data, DeriveInput, Expr, Field, Ident, Lit, Meta, Type, spanned::Spanned};

/// Returns the fields of a struct.
pub(crate) fn fields(input: &DeriveInput) -> syn::Result<Vec<&Field>> {
    match &input.data {
        Data::Struct(s) => Ok(s.fields.iter().collect()),
        _ => Err(syn::Error::new(input.span(), "wants a struct")),
    }
}

/// Returns the fields with the attribute `#[attr]` or `#[attr(name)]`, with the handler's name.
pub(crate) fn marked_fields<'a>(
    fields: &[&'a Field],
    attr: &str,
) -> syn::Result<Vec<(&'a Field, String)>> {
    let mut found = Vec::new();
    for field in fields {
        for a in field.attrs.iter().filter(|a| a.path().is_ident(attr)) {
            let name = match &a.meta {
                Meta::Path(_) => field.ident.as_ref().map(unraw).unwrap_or_default(),
                _ => a.parse_args::<Ident>()?.to_string(),
            };
            found.push((*field, name));
        }
    }
    Ok(found)
}

/// Returns the metric of a read handler, by its attribute `#[metric(NAME)]`, as an option.
pub(crate) fn metric(attrs: &[Attribute]) -> syn::Result<Tokens> {
    match attrs.iter().find(|a| a.path().is_ident("metric")) {
        Some(attr) => {
            let name: syn::Path = attr.parse_args()?;
            Ok(quote!(::std::option::Option::Some(&#name)))
        }
        None => Ok(quote!(::std::option::Option::None)),
    }
}

/// Returns an identifier without `r#`.
pub(crate) fn unraw(ident: &Ident) -> String {
    ident.to_string().trim_start_matches("r#").to_owned()
}

/// Returns the doc comment, without one leading space on each line.
pub(crate) fn docs(attrs: &[Attribute]) -> String {
    let lines = attrs.iter().filter_map(|a| match &a.meta {
        Meta::NameValue(nv) if nv.path.is_ident("doc") => match &nv.value {
            Expr::Lit(lit) => match &lit.lit {
                Lit::Str(s) => Some(s.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    });
    let lines: Vec<String> = lines.map(|l| l.strip_prefix(' ').unwrap_or(&l).to_owned()).collect();
    lines.join("\n").trim().to_owned()
}

/// Returns the doc comment, or an error that asks for one; `what` names the item in the error.
pub(crate) fn required_docs(
    attrs: &[Attribute],
    at: impl Spanned,
    what: &str,
) -> syn::Result<String> {
    let doc = docs(attrs);
    match doc.is_empty() {
        true => {
            let message = format!("{what} without a doc comment: say after /// what it is");
            Err(syn::Error::new(at.span(), message))
        }
        false => Ok(doc),
    }
}

/// Whether a type is written `Option<...>`.
pub(crate) fn is_option(ty: &Type) -> bool {
    matches!(ty, Type::Path(p) if p.path.segments.last().is_some_and(|s| s.ident == "Option"))
}
