//! Derives `Fate`: outputs and drop reasons with their numbers.

use crate::attributes::{required_docs, unraw};
use proc_macro2::TokenStream as Tokens;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, spanned::Spanned};

/// Most drop reasons of an element, without the engine's own.
const MAX_DROP_REASONS: u8 = 11;

/// Generates `impl Fate` for an enum.
pub(crate) fn implementation(input: &DeriveInput) -> syn::Result<Tokens> {
    let Data::Enum(data) = &input.data else {
        return Err(syn::Error::new(input.span(), "Fate wants an enum"));
    };
    let name = &input.ident;
    let (mut specs, mut arms, mut outputs, mut drops) = (Vec::new(), Vec::new(), 0u8, 0u8);
    for v in &data.variants {
        let marked = |what: &str| v.attrs.iter().any(|a| a.path().is_ident(what));
        let (kind, index) = if marked("drop") {
            drops += 1;
            ("Drop", u8::MAX - (drops - 1))
        } else {
            outputs += 1;
            (if marked("optional") { "Optional" } else { "Output" }, outputs - 1)
        };
        if drops > MAX_DROP_REASONS {
            return Err(syn::Error::new(v.span(), "more than eleven reasons to drop"));
        }
        let doc = required_docs(&v.attrs, v, "an exit")?;
        let (ident, kind, text) = (&v.ident, format_ident!("{kind}"), snake(&unraw(&v.ident)));
        specs.push(quote!(::castanet_element::fate::FateSpec {
            name: #text, doc: #doc, kind: ::castanet_element::fate::FateKind::#kind,
        }));
        arms.push(quote!(#name::#ident => #index));
    }
    Ok(quote! {
        impl ::std::clone::Clone for #name {
            #[inline]
            fn clone(&self) -> Self { *self }
        }
        impl ::std::marker::Copy for #name {}
        impl ::castanet_element::fate::Fate for #name {
            const FATES: &'static [::castanet_element::fate::FateSpec] = &[#(#specs),*];
            #[inline]
            fn index(self) -> u8 { match self { #(#arms),* } }
        }
    })
}

/// Converts `CamelCase` to `snake_case`.
fn snake(camel: &str) -> String {
    camel.chars().enumerate().fold(String::new(), |mut out, (i, c)| {
        if c.is_uppercase() && i > 0 {
            out.push('_');
        }
        out.extend(c.to_lowercase());
        out
    })
}
