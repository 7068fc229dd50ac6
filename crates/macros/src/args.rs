//! `Args`: the declared arguments and their parser.

use crate::read::{bare, is_option, needed_docs};
use proc_macro2::TokenStream as Tokens;
use quote::{format_ident, quote};
use syn::{Expr, Field, Ident, LitStr, Meta, spanned::Spanned};

/// One field's `#[arg(...)]`.
pub(crate) struct Declared<'a> {
    pub(crate) field: &'a Field,
    pub(crate) name: String,
    kind: Ident,
    pub(crate) live: bool,
    default: Option<Expr>,
}

/// Reads `#[arg(...)]`; `None` if the field has none.
pub(crate) fn declared(field: &Field) -> syn::Result<Option<Declared<'_>>> {
    let Some(attr) = field.attrs.iter().find(|a| a.path().is_ident("arg")) else {
        return Ok(None);
    };
    let ident = field.ident.as_ref().map(bare).unwrap_or_default();
    let mut it = Declared {
        field,
        name: ident.to_uppercase(),
        kind: format_ident!("Place"),
        live: false,
        default: None,
    };
    if !matches!(attr.meta, Meta::Path(_)) {
        attr.parse_nested_meta(|meta| {
            if meta.path.is_ident("keyword") {
                it.kind = format_ident!("Keyword");
            } else if meta.path.is_ident("rest") {
                it.kind = format_ident!("Rest");
            } else if meta.path.is_ident("live") {
                it.live = true;
            } else if meta.path.is_ident("name") {
                it.name = meta.value()?.parse::<LitStr>()?.value();
            } else if meta.path.is_ident("default") {
                it.default = Some(meta.value()?.parse::<Expr>()?);
            } else {
                return Err(meta.error("wants keyword, rest, live, name = \"\" or default = ..."));
            }
            Ok(())
        })?;
    }
    Ok(Some(it))
}

/// `impl Args` for a struct all of whose fields are arguments.
pub(crate) fn implementation(name: &Ident, fields: &[&Field]) -> syn::Result<Tokens> {
    let (mut specs, mut takes, mut idents) = (Vec::new(), Vec::new(), Vec::new());
    for (i, field) in fields.iter().enumerate() {
        let Some(it) = declared(field)? else {
            let message = "a field without #[arg]: state belongs in Local, and what is compiled \
                           from arguments wants #[element(args = ...)]";
            return Err(syn::Error::new(field.span(), message));
        };
        specs.push(spec(&it)?);
        takes.push(take(i, &it));
        idents.push(&field.ident);
    }
    Ok(quote! {
        impl ::castanet_engine::args::Args for #name {
            const ARGS: &'static [::castanet_engine::args::ArgSpec] = &[#(#specs),*];
            fn parse(text: &str, names: &::castanet_engine::args::Names)
                -> ::std::result::Result<Self, ::std::vec::Vec<::castanet_engine::args::ArgError>>
            {
                #[allow(unused_mut)]
                let mut taker = ::castanet_engine::args::Taker::new(text, Self::ARGS, names);
                #(#takes)*
                taker.finish();
                match (#(#idents,)*) {
                    (#(Some(#idents),)*) if taker.errors.is_empty() =>
                        ::std::result::Result::Ok(Self { #(#idents),* }),
                    _ => ::std::result::Result::Err(taker.errors),
                }
            }
        }
    })
}

fn spec(it: &Declared) -> syn::Result<Tokens> {
    let (name, kind, live) = (&it.name, &it.kind, it.live);
    let doc = needed_docs(&it.field.attrs, it.field, "an argument")?;
    let ty = &it.field.ty;
    let shown = match (&it.default, is_option(ty)) {
        (Some(d), _) => {
            let text = shown_default(d);
            quote!(Some(#text))
        }
        (None, true) => quote!(Some("")),
        (None, false) => quote!(None),
    };
    let value = match it.kind == "Rest" {
        true => quote!(<#ty as ::std::iter::IntoIterator>::Item),
        false => quote!(#ty),
    };
    Ok(quote!(::castanet_engine::args::ArgSpec {
        name: #name, kind: ::castanet_engine::args::ArgKind::#kind, live: #live, doc: #doc,
        default: #shown, syntax: <#value as ::castanet_engine::args::FromArg>::SYNTAX,
    }))
}

/// `true`, `1000`, `text`: the default as a user would write it.
fn shown_default(default: &Expr) -> String {
    match default {
        Expr::Lit(lit) => match &lit.lit {
            syn::Lit::Str(s) => s.value(),
            lit => quote!(#lit).to_string().replace('_', ""),
        },
        Expr::Path(path) if path.path.is_ident("None") => String::new(),
        Expr::Path(path) => {
            path.path.segments.last().map_or_else(String::new, |last| last.ident.to_string())
        }
        Expr::Call(call) => call.args.first().map(shown_default).unwrap_or_default(),
        Expr::MethodCall(call) => shown_default(&call.receiver),
        other => quote!(#other).to_string().replace(' ', ""),
    }
}

fn take(i: usize, it: &Declared) -> Tokens {
    let (ident, ty) = (&it.field.ident, &it.field.ty);
    if it.kind == "Rest" {
        return quote!(let #ident = taker.rest(#i););
    }
    let fallback = match (&it.default, is_option(ty)) {
        (Some(d), _) => quote!(Some(#d)),
        (None, true) => quote!(Some(None)),
        (None, false) => quote!(None),
    };
    quote!(let #ident = taker.take::<#ty>(#i, #fallback);)
}
