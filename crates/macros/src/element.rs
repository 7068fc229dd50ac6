//! Derives `Element` and `Local`: documentation, ports and handlers.

use crate::args::{implementation as args_impl, parse_arg};
use crate::attributes::{docs, fields, marked_fields, metric, required_docs, unraw};
use proc_macro2::TokenStream as Tokens;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{
    DeriveInput, Field, Ident, LitStr, Member, Meta, Token, Type, punctuated::Punctuated,
    spanned::Spanned,
};

/// The options of `#[element(...)]`.
#[derive(Default)]
struct Options {
    args: Option<Type>,
    by: Option<Type>,
    aliases: Vec<String>,
    ports: Option<String>,
    processing: Option<String>,
    flow: Option<String>,
    gives: Option<String>,
    headers: Option<syn::Expr>,
    room: Option<String>,
    methods: bool,
}

fn options(input: &DeriveInput) -> syn::Result<Options> {
    let mut it = Options::default();
    for attr in input.attrs.iter().filter(|a| a.path().is_ident("element")) {
        attr.parse_nested_meta(|meta| {
            let text = || Ok::<_, syn::Error>(meta.value()?.parse::<LitStr>()?.value());
            if meta.path.is_ident("args") {
                it.args = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("by") {
                it.by = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("alias") {
                it.aliases.push(text()?);
            } else if meta.path.is_ident("ports") {
                it.ports = Some(text()?);
            } else if meta.path.is_ident("processing") {
                it.processing = Some(text()?);
            } else if meta.path.is_ident("flow") {
                it.flow = Some(text()?);
            } else if meta.path.is_ident("gives") {
                it.gives = Some(text()?);
            } else if meta.path.is_ident("headers") {
                it.headers = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("room") {
                it.room = Some(text()?);
            } else if meta.path.is_ident("methods") {
                it.methods = true;
            } else {
                return Err(meta.error(
                    "wants room, args, by, alias, ports, processing, flow, gives, headers or methods",
                ));
            }
            Ok(())
        })?;
    }
    Ok(it)
}

/// Generates `impl Describe` and, if the element is its own argument list, `Build` and `Args`.
pub(crate) fn element(input: &DeriveInput) -> syn::Result<Tokens> {
    let name = &input.ident;
    let doc = required_docs(&input.attrs, name, "an element")?;
    let class = name.to_string();
    let it = options(input)?;
    let fields = fields(input)?;
    let (reads, writes) = element_handlers(&fields)?;
    let parts = Parts::new(input, &fields, it.methods);
    let (more_reads, more_writes) = (parts.tables("READS"), parts.tables("WRITES"));
    let has_parts = &parts.impls;
    let optional = |text: &Option<String>| match text {
        Some(text) => quote!(Some(#text)),
        None => quote!(None),
    };
    let (ports, processing) = (optional(&it.ports), optional(&it.processing));
    let (flow, gives, aliases) = (optional(&it.flow), optional(&it.gives), &it.aliases);
    let room = optional(&it.room);
    let headers = match &it.headers {
        Some(effect) => quote!({
            #[allow(unused_imports)]
            use ::castanet_element::headers::{FirstHeader, HeaderEffect::*, MarkedHeader};
            ::std::option::Option::Some(#effect)
        }),
        None => quote!(None),
    };
    let implementor = it.by.as_ref().map_or(quote!(#name), |ty| quote!(#ty));
    let build = match it.args.is_some() || it.by.is_some() {
        true => quote!(),
        false => build_from_args(name, &fields)?,
    };
    let args_check = it.args.iter().map(|ty| {
        quote!(const _: fn() = || {
            fn same<E: ::castanet_element::element::Build<Args = A>, A>() {}
            same::<#implementor, #ty>();
        };)
    });
    Ok(quote! {
        impl ::castanet_element::element::Describe for #implementor {
            const SPEC: ::castanet_element::spec::Spec = ::castanet_element::spec::Spec {
                class: #class, doc: #doc, file: file!(), room: #room, aliases: &[#(#aliases),*],
                ports: #ports, processing: #processing, flow: #flow, headers: #headers, gives: #gives,
            };
            const READS: &'static [&'static [::castanet_element::handler::ReadHandler<Self>]] =
                &[&[#(#reads),*] #(, #more_reads)*];
            const WRITES: &'static [&'static [::castanet_element::handler::WriteHandler<Self>]] =
                &[&[#(#writes),*] #(, #more_writes)*];
        }
        #(#has_parts)*
        #(#args_check)*
        #build
    })
}

/// Generates `Args`, and a `Build` that returns the arguments.
fn build_from_args(name: &Ident, fields: &[&Field]) -> syn::Result<Tokens> {
    let args = args_impl(name, fields)?;
    Ok(quote! {
        #args
        impl ::castanet_element::element::Build for #name {
            type Args = Self;
            fn build(args: Self, _: &::castanet_element::setup::Setup)
                -> ::std::result::Result<Self, ::castanet_element::error::ArgError>
            {
                ::std::result::Result::Ok(args)
            }
        }
    })
}

/// Generates the read handlers of `#[read]` and live fields, and the write handlers of live fields.
fn element_handlers(fields: &[&Field]) -> syn::Result<(Vec<Tokens>, Vec<Tokens>)> {
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    for (field, name) in marked_fields(fields, "read")? {
        reads.push(read_handler(field, &name, "a handler")?);
    }
    for field in fields {
        let Some(arg) = parse_arg(field)?.filter(|arg| arg.live) else { continue };
        let (ident, name, parse) = (&field.ident, arg.name.to_lowercase(), arg.parser()?);
        let doc = docs(&field.attrs);
        reads.push(read_handler(field, &name, "an argument")?);
        writes.push(quote!(::castanet_element::handler::WriteHandler {
            name: #name, doc: #doc,
            set: |it, text, names| {
                let mut it: Self = ::std::clone::Clone::clone(it);
                it.#ident = (#parse)(text, names)?;
                ::std::result::Result::Ok(it)
            },
        }));
    }
    Ok((reads, writes))
}

/// Generates a read handler that returns a copy of a field.
fn read_handler(field: &Field, name: &str, what: &str) -> syn::Result<Tokens> {
    let ident = &field.ident;
    let doc = required_docs(&field.attrs, ident, what)?;
    // The compiler reports a type that does not convert to `Value` at the field.
    let value = quote_spanned!(field.ty.span()=>
        ::std::convert::Into::<::castanet_element::handler::Value>::into);
    let metric = metric(&field.attrs)?;
    Ok(quote!(::castanet_element::handler::ReadHandler {
        name: #name, doc: #doc, metric: #metric, get: |it, _| #value(::std::clone::Clone::clone(&it.#ident)),
    }))
}

/// Generates `impl Local`.
pub(crate) fn local(input: &DeriveInput) -> syn::Result<Tokens> {
    let name = &input.ident;
    let fields = fields(input)?;
    let mut reads = Vec::new();
    for (field, handler) in marked_fields(&fields, "read")? {
        reads.push(read_handler(field, &handler, "a handler")?);
    }
    let mut portable = portable_fields(&fields)?;
    let (mut writes, mut methods) = (Vec::new(), false);
    for attr in &input.attrs {
        if attr.path().is_ident("local") {
            attr.parse_nested_meta(|meta| match meta.path.is_ident("methods") {
                true => {
                    methods = true;
                    Ok(())
                }
                false => Err(meta.error("wants methods")),
            })?;
        } else if attr.path().is_ident("portable") {
            let name = unraw(&attr.parse_args::<Ident>()?);
            portable.push(state_field(&name, &quote!(Self), None));
        } else if attr.path().is_ident("write") {
            let names = Punctuated::<Ident, Token![,]>::parse_terminated;
            for ident in attr.parse_args_with(names)? {
                let text = unraw(&ident);
                writes.push(quote!(::castanet_element::handler::StateHandler {
                    name: #text, doc: "Starts again from zero.",
                    apply: |it, _| {
                        *it = ::std::default::Default::default();
                        ::std::result::Result::Ok(().into())
                    },
                }));
            }
        }
    }
    let parts = Parts::new(input, &fields, methods);
    let (more_reads, more_writes) = (parts.tables("READS"), parts.tables("CHANGES"));
    let (stops, wakes) = (parts.tables("STOPS"), parts.tables("WAKES"));
    let has_parts = &parts.impls;
    let (generics, arguments, condition) = input.generics.split_for_impl();
    Ok(quote! {
        impl #generics ::castanet_element::element::Local for #name #arguments #condition {
            const READS: &'static [&'static [::castanet_element::handler::ReadHandler<Self>]] =
                &[&[#(#reads),*] #(, #more_reads)*];
            const WRITES: &'static [&'static [::castanet_element::handler::StateHandler<Self>]] =
                &[&[#(#writes),*] #(, #more_writes)*];
            const STOPS: &'static [&'static [&'static str]] = &[#(#stops),*];
            const WAKES: &'static [&'static [&'static str]] = &[#(#wakes),*];
            const PORTABLE: &'static [::castanet_element::portable_state::StateField<Self>] =
                &[#(#portable),*];
        }
        #(#has_parts)*
    })
}

/// Generates the entries of the fields marked `#[portable]`.
fn portable_fields(fields: &[&Field]) -> syn::Result<Vec<Tokens>> {
    let marked = fields.iter().enumerate().filter_map(|(at, field)| {
        let attr = field.attrs.iter().find(|attr| attr.path().is_ident("portable"))?;
        Some((at, field, attr))
    });
    let entries = marked.map(|(at, field, attr)| {
        let member = field.ident.clone().map_or(Member::from(at), Member::Named);
        let name = field.ident.as_ref().map_or_else(|| at.to_string(), unraw);
        let name = match &attr.meta {
            Meta::Path(_) => name,
            _ => unraw(&attr.parse_args::<Ident>()?),
        };
        Ok(state_field(&name, &field.ty, Some(member)))
    });
    entries.collect()
}

/// Generates the entry of a field of a type, or of the state as a whole without `member`.
fn state_field(name: &str, ty: &(impl ToTokens + Spanned), member: Option<Member>) -> Tokens {
    let state = quote_spanned!(ty.span()=>
        <#ty as ::castanet_element::portable_state::PortableState>);
    let member = member.map(|member| quote!(.#member));
    let (read, write) = match member {
        Some(member) => (quote!(&it #member), quote!(&mut it #member)),
        None => (quote!(it), quote!(it)),
    };
    quote!(::castanet_element::portable_state::StateField {
        name: #name,
        is_table: #state::IS_TABLE,
        export: |it, from, to| #state::export(#read, from, to),
        import: |it, record, cx| #state::import(#write, record, cx),
        remove: |it, record| #state::remove(#write, record),
    })
}

/// The types whose `#[handlers]` a struct has: those of its fields marked `#[flatten]`, and its own.
struct Parts<'a> {
    types: Vec<&'a Type>,
    /// Whether the struct has `#[handlers]` of its own.
    methods: bool,
    /// The implementations of `HasPart` for the fields.
    impls: Vec<Tokens>,
}

impl<'a> Parts<'a> {
    fn new(input: &DeriveInput, fields: &[&'a Field], methods: bool) -> Parts<'a> {
        let (name, (generics, arguments, condition)) =
            (&input.ident, input.generics.split_for_impl());
        let (mut types, mut impls) = (Vec::new(), Vec::new());
        for (at, field) in fields.iter().enumerate() {
            if !field.attrs.iter().any(|a| a.path().is_ident("flatten")) {
                continue;
            }
            let (ty, index) = (&field.ty, Member::from(at));
            let member = field.ident.clone().map_or(index, Member::Named);
            types.push(ty);
            impls.push(quote! {
                impl #generics ::castanet_element::handler::HasPart<#ty> for #name #arguments
                    #condition
                {
                    fn part(&self) -> &#ty {
                        &self.#member
                    }
                    fn part_mut(&mut self) -> &mut #ty {
                        &mut self.#member
                    }
                }
            });
        }
        Parts { types, methods, impls }
    }

    /// Returns the tables of this name of all types, as those of the struct.
    fn tables(&self, table: &str) -> Vec<Tokens> {
        let (table, own) = (format_ident!("{table}"), self.methods.then(|| quote!(Self)));
        let types = self.types.iter().map(|ty| quote!(#ty)).chain(own);
        types
            .map(|ty| quote!(<#ty as ::castanet_element::handler::HandlerMethods<Self>>::#table))
            .collect()
    }
}
