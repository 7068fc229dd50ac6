//! `#[handlers]`: generates handlers from methods.

use crate::attributes::{metric, required_docs, unraw};
use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::punctuated::Punctuated;
use syn::{Attribute, Ident, ImplItem, ImplItemFn, ItemImpl, Meta, Token};
use syn::{parse_quote, spanned::Spanned};

/// The words in a handler's attribute: its name, then flags (`stops`, `wakes`).
type HandlerWords = Punctuated<Ident, Token![,]>;

/// Returns the impl block without the attributes, and the tables of its handlers, as those of each
/// type that has the block's type as a part.
pub(crate) fn implementation(mut block: ItemImpl) -> syn::Result<Tokens> {
    let (mut reads, mut writes, mut changes) = (Vec::new(), Vec::new(), Vec::new());
    let part = quote!(::castanet_element::handler::HasPart::<Self>::part(it));
    let (mut stop_handlers, mut wake_handlers) = (Vec::new(), Vec::new());
    for item in &mut block.items {
        let ImplItem::Fn(method) = item else { continue };
        let Some(at) = method.attrs.iter().position(is_handler) else { continue };
        let attr = method.attrs.remove(at);
        let metric = metric(&method.attrs)?;
        method.attrs.retain(|attr| !attr.path().is_ident("metric"));
        let doc = required_docs(&method.attrs, &method.sig, "a handler")?;
        let ident = &method.sig.ident;
        let words = words(&attr, ident)?;
        let name = unraw(&words[0]);
        for (flag, names) in [("stops", &mut stop_handlers), ("wakes", &mut wake_handlers)] {
            if words[1..].iter().any(|it| it == flag) {
                names.push(name.clone());
            }
        }
        if attr.path().is_ident("read") {
            reads.push(read_handler(method, &name, &doc, &metric, &part)?);
        } else if method.sig.receiver().is_some_and(|r| r.mutability.is_some()) {
            changes.push(quote!(::castanet_element::handler::StateHandler {
                name: #name, doc: #doc,
                apply: |it, text| {
                    let it = ::castanet_element::handler::HasPart::<Self>::part_mut(it);
                    it.#ident(text).map(::std::convert::Into::into)
                },
            }));
        } else {
            writes.push(quote!(::castanet_element::handler::WriteHandler {
                name: #name, doc: #doc,
                set: |it, text, names| {
                    let part = #part.#ident(text, names)?;
                    ::std::result::Result::Ok(
                        ::castanet_element::handler::HasPart::<Self>::with_part(it, part))
                },
            }));
        }
    }
    let ty = &block.self_ty;
    let mut generics = block.generics.clone();
    let bound = if writes.is_empty() { quote!() } else { quote!(+ ::std::clone::Clone) };
    generics.params.push(parse_quote!(
        __T: ::castanet_element::handler::HasPart<#ty> #bound));
    let (generics, _, condition) = generics.split_for_impl();
    Ok(quote! {
        #block
        impl #generics ::castanet_element::handler::HandlerMethods<__T> for #ty #condition {
            const READS: &'static [::castanet_element::handler::ReadHandler<__T>] = &[#(#reads),*];
            const WRITES: &'static [::castanet_element::handler::WriteHandler<__T>] =
                &[#(#writes),*];
            const CHANGES: &'static [::castanet_element::handler::StateHandler<__T>] =
                &[#(#changes),*];
            const STOPS: &'static [&'static str] = &[#(#stop_handlers),*];
            const WAKES: &'static [&'static str] = &[#(#wake_handlers),*];
        }
    })
}

/// Returns the words of a handler's attribute; the method's name if there are none.
fn words(attr: &Attribute, method: &Ident) -> syn::Result<Vec<Ident>> {
    match &attr.meta {
        Meta::Path(_) => Ok(vec![method.clone()]),
        _ => {
            let words = attr.parse_args_with(HandlerWords::parse_separated_nonempty)?;
            Ok(words.into_iter().collect())
        }
    }
}

fn is_handler(attr: &Attribute) -> bool {
    attr.path().is_ident("read") || attr.path().is_ident("write")
}

/// Returns the entry of a read handler in its table.
fn read_handler(
    method: &ImplItemFn,
    name: &str,
    doc: &str,
    metric: &Tokens,
    part: &Tokens,
) -> syn::Result<Tokens> {
    let call = read_call(method, part)?;
    Ok(quote!(::castanet_element::handler::ReadHandler {
        name: #name, doc: #doc, metric: #metric, get: #call,
    }))
}

fn read_call(method: &ImplItemFn, part: &Tokens) -> syn::Result<Tokens> {
    let ident = &method.sig.ident;
    match method.sig.inputs.len() {
        1 => Ok(quote!(|it, _| #part.#ident().into())),
        2 => Ok(quote!(|it, ask| #part.#ident(ask).into())),
        _ => Err(syn::Error::new(method.sig.span(), "a read takes &self, and perhaps &Ask")),
    }
}
