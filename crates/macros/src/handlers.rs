//! `#[handlers]`: generates handlers from methods.

use crate::attributes::{required_docs, unraw};
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
        let marked = method.attrs.iter().find(|a| is_handler(a)).cloned();
        let Some(attr) = marked else { continue };
        method.attrs.retain(|a| !is_handler(a));
        let doc = required_docs(&method.attrs, &method.sig, "a handler")?;
        let ident = &method.sig.ident;
        let words = match &attr.meta {
            Meta::Path(_) => vec![ident.clone()],
            _ => {
                attr.parse_args_with(HandlerWords::parse_separated_nonempty)?.into_iter().collect()
            }
        };
        let (name, has_flag) =
            (unraw(&words[0]), |what: &str| words[1..].iter().any(|it| it == what));
        if has_flag("stops") {
            stop_handlers.push(name.clone());
        }
        if has_flag("wakes") {
            wake_handlers.push(name.clone());
        }
        if attr.path().is_ident("read") {
            let call = read_call(method, &part)?;
            reads.push(quote!(::castanet_element::handler::ReadHandler {
                name: #name, doc: #doc, get: #call,
            }));
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
        __Whole: ::castanet_element::handler::HasPart<#ty> #bound));
    let (generics, _, condition) = generics.split_for_impl();
    Ok(quote! {
        #block
        impl #generics ::castanet_element::handler::HandlerMethods<__Whole> for #ty #condition {
            const READS: &'static [::castanet_element::handler::ReadHandler<__Whole>] =
                &[#(#reads),*];
            const WRITES: &'static [::castanet_element::handler::WriteHandler<__Whole>] =
                &[#(#writes),*];
            const CHANGES: &'static [::castanet_element::handler::StateHandler<__Whole>] =
                &[#(#changes),*];
            const STOPS: &'static [&'static str] = &[#(#stop_handlers),*];
            const WAKES: &'static [&'static str] = &[#(#wake_handlers),*];
        }
    })
}

fn is_handler(attr: &Attribute) -> bool {
    attr.path().is_ident("read") || attr.path().is_ident("write")
}

fn read_call(method: &ImplItemFn, part: &Tokens) -> syn::Result<Tokens> {
    let ident = &method.sig.ident;
    match method.sig.inputs.len() {
        1 => Ok(quote!(|it, _| #part.#ident().into())),
        2 => Ok(quote!(|it, ask| #part.#ident(ask).into())),
        _ => Err(syn::Error::new(method.sig.span(), "a read takes &self, and perhaps &Ask")),
    }
}
