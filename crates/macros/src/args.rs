//! Derives `Args`: the declarations of arguments, and their parser.

use crate::attributes::{is_option, required_docs, unraw};
use proc_macro2::TokenStream as Tokens;
use quote::{format_ident, quote};
use syn::{Expr, ExprRange, Field, Ident, LitStr, Meta, RangeLimits, spanned::Spanned};

/// The `#[arg(...)]` of one field.
pub(crate) struct ArgDeclaration<'a> {
    pub(crate) field: &'a Field,
    pub(crate) name: String,
    kind: Ident,
    pub(crate) live: bool,
    default: Option<Expr>,
    /// The default as the manual has it, where that is not the expression's own text.
    shown: Option<String>,
    range: Option<ExprRange>,
    /// The words for the values of the range, where its ends are constants.
    syntax: Option<String>,
}

impl ArgDeclaration<'_> {
    /// Returns an expression for the syntax of a value: that of its type or of its range.
    fn syntax(&self) -> Tokens {
        let ty = &self.field.ty;
        match &self.range {
            Some(range) => {
                let text = self.range_text(range);
                quote!(#text)
            }
            None if self.kind == "Rest" => {
                quote!(<<#ty as ::std::iter::IntoIterator>::Item
                    as ::castanet_element::args::FromArg>::SYNTAX)
            }
            None => quote!(<#ty as ::castanet_element::args::FromArg>::SYNTAX),
        }
    }

    /// Returns the words for the values of the range.
    fn range_text(&self, range: &ExprRange) -> String {
        self.syntax.clone().unwrap_or_else(|| range_text(range))
    }

    /// Returns an expression for the function that parses a value.
    pub(crate) fn parser(&self) -> syn::Result<Tokens> {
        let ty = &self.field.ty;
        let Some(range) = &self.range else {
            return Ok(quote!(<#ty as ::castanet_element::args::FromArg>::from_arg));
        };
        if self.kind == "Rest" || is_option(ty) {
            let message = "a range is for one number: give Option or Vec a type of its own";
            return Err(syn::Error::new(range.span(), message));
        }
        let syntax = self.range_text(range);
        Ok(quote!(|text: &str, names: &::castanet_element::args::Names| {
            ::castanet_element::args::within::<#ty>(text, names, &(#range), #syntax)
        }))
    }
}

/// Parses the `#[arg(...)]` of a field; `None` if the field has none.
pub(crate) fn parse_arg(field: &Field) -> syn::Result<Option<ArgDeclaration<'_>>> {
    let Some(attr) = field.attrs.iter().find(|a| a.path().is_ident("arg")) else {
        return Ok(None);
    };
    let ident = field.ident.as_ref().map(unraw).unwrap_or_default();
    let mut it = ArgDeclaration {
        field,
        name: ident.to_uppercase(),
        kind: format_ident!("Place"),
        live: false,
        default: None,
        shown: None,
        range: None,
        syntax: None,
    };
    if !matches!(attr.meta, Meta::Path(_)) {
        attr.parse_nested_meta(|meta| {
            if meta.path.is_ident("keyword") {
                it.kind = format_ident!("Keyword");
            } else if meta.path.is_ident("rest") {
                it.kind = format_ident!("Rest");
            } else if meta.path.is_ident("flatten") {
                it.kind = format_ident!("Flatten");
            } else if meta.path.is_ident("live") {
                it.live = true;
            } else if meta.path.is_ident("name") {
                it.name = meta.value()?.parse::<LitStr>()?.value();
            } else if meta.path.is_ident("default") {
                it.default = Some(meta.value()?.parse::<Expr>()?);
            } else if meta.path.is_ident("shown") {
                it.shown = Some(meta.value()?.parse::<LitStr>()?.value());
            } else if meta.path.is_ident("syntax") {
                it.syntax = Some(meta.value()?.parse::<LitStr>()?.value());
            } else if meta.path.is_ident("range") {
                it.range = Some(range(meta.value()?.parse::<Expr>()?)?);
            } else {
                return Err(meta.error(
                    "wants keyword, rest, flatten, live, name = \"\", default = ..., shown = \"\", \
                     range = LOW..=HIGH or syntax = \"\"",
                ));
            }
            Ok(())
        })?;
    }
    Ok(Some(it))
}

/// Checks that an expression is a range that includes its end.
fn range(expr: Expr) -> syn::Result<ExprRange> {
    let at = expr.span();
    match expr {
        Expr::Range(it) if it.end.is_none() || matches!(it.limits, RangeLimits::Closed(_)) => {
            Ok(it)
        }
        _ => Err(syn::Error::new(at, "wants LOW..=HIGH, LOW.. or ..=HIGH")),
    }
}

/// Generates `impl Args` for a struct whose fields are arguments or, with
/// `flatten`, argument lists.
pub(crate) fn implementation(name: &Ident, fields: &[&Field]) -> syn::Result<Tokens> {
    let (mut parts, mut takes, mut idents) = (Vec::new(), Vec::new(), Vec::new());
    for field in fields {
        let Some(it) = parse_arg(field)? else {
            let message = "a field without #[arg]: state belongs in Local, and what is compiled \
                           from arguments wants #[element(args = ...)]";
            return Err(syn::Error::new(field.span(), message));
        };
        let (ident, ty) = (&field.ident, &field.ty);
        let (part, len, value) = match it.kind == "Flatten" {
            true => {
                let list = quote!(<#ty as ::castanet_element::args::Args>);
                (quote!(#list::ARGS), quote!(#list::ARGS.len()), quote!(#list::take(taker, __next)))
            }
            false => {
                let spec = spec(&it)?;
                (quote!(&[#spec]), quote!(1), take(&it)?)
            }
        };
        takes.push(quote!(let #ident = #value; __next += #len;));
        idents.push(ident);
        parts.push(part);
    }
    Ok(quote! {
        impl ::castanet_element::args::Args for #name {
            const ARGS: &'static [::castanet_element::args::ArgSpec] = {
                const PARTS: &[&[::castanet_element::args::ArgSpec]] = &[#(#parts),*];
                const ALL: [::castanet_element::args::ArgSpec; ::castanet_element::args::total(PARTS)] =
                    ::castanet_element::args::joined(PARTS);
                &ALL
            };
            #[allow(unused)]
            fn take(taker: &mut ::castanet_element::args::Taker, mut __next: usize)
                -> ::std::option::Option<Self>
            {
                #(#takes)*
                match (#(#idents,)*) {
                    (#(Some(#idents),)*) => ::std::option::Option::Some(Self { #(#idents),* }),
                    _ => ::std::option::Option::None,
                }
            }
        }
    })
}

/// Generates the `ArgSpec` of an argument.
fn spec(it: &ArgDeclaration) -> syn::Result<Tokens> {
    let (name, kind, live) = (&it.name, &it.kind, it.live);
    let doc = required_docs(&it.field.attrs, &it.field.ident, "an argument")?;
    let ty = &it.field.ty;
    let shown = match (&it.default, is_option(ty)) {
        (Some(d), _) => {
            let text = it.shown.clone().unwrap_or_else(|| default_text(d));
            quote!(Some(#text))
        }
        (None, true) => quote!(Some("")),
        (None, false) => quote!(None),
    };
    let syntax = it.syntax();
    Ok(quote!(::castanet_element::args::ArgSpec {
        name: #name, kind: ::castanet_element::args::ArgKind::#kind, live: #live, doc: #doc,
        default: #shown, syntax: #syntax,
    }))
}

/// Returns the default as a user writes it: `true`, `1000`, `text`.
fn default_text(default: &Expr) -> String {
    match default {
        Expr::Lit(lit) => match &lit.lit {
            syn::Lit::Str(s) => s.value(),
            lit => quote!(#lit).to_string().replace('_', ""),
        },
        Expr::Path(path) if path.path.is_ident("None") => String::new(),
        Expr::Path(path) => {
            path.path.segments.last().map_or_else(String::new, |last| last.ident.to_string())
        }
        Expr::Call(call) => {
            let text = call.args.first().map(default_text).unwrap_or_default();
            match &*call.func {
                Expr::Path(path)
                    if path.path.segments.iter().any(|it| it.ident == "from_millis") =>
                {
                    text + "ms"
                }
                _ => text,
            }
        }
        Expr::Binary(it) if matches!(it.op, syn::BinOp::Shl(_)) => {
            let numbers = (default_text(&it.left).parse::<u64>(), default_text(&it.right).parse());
            match numbers {
                (Ok(number), Ok(shift)) => number.wrapping_shl(shift).to_string(),
                _ => quote!(#it).to_string(),
            }
        }
        Expr::MethodCall(call) => default_text(&call.receiver),
        other => quote!(#other).to_string().replace(' ', ""),
    }
}

/// Returns the range as the manual and errors print it: `a number from 0 to 63`.
fn range_text(range: &ExprRange) -> String {
    let shown = |end: &Option<Box<Expr>>| end.as_deref().map(default_text);
    match (shown(&range.start), shown(&range.end)) {
        (Some(low), Some(high)) => format!("a number from {low} to {high}"),
        (Some(low), None) => format!("a number from {low}"),
        (None, Some(high)) => format!("a number up to {high}"),
        (None, None) => "a number".to_owned(),
    }
}

/// Generates an expression for the argument, which is number `__next` of the list.
fn take(it: &ArgDeclaration) -> syn::Result<Tokens> {
    let (ty, parse) = (&it.field.ty, it.parser()?);
    let fallback = match (&it.default, is_option(ty)) {
        _ if it.kind == "Rest" => return Ok(quote!(taker.rest(__next))),
        (Some(d), _) => quote!(Some(#d)),
        (None, true) => quote!(Some(None)),
        (None, false) => quote!(None),
    };
    Ok(quote!(taker.take::<#ty>(__next, #fallback, #parse)))
}
