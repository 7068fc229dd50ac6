//! `#[derive(Element, Args, Local, Fate)]` and `#[handlers]`: generate the
//! implementations of an element from its declarations.

mod args;
mod attributes;
mod element;
mod fate;
mod handlers;
#[cfg(test)]
mod tests;

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use syn::{DeriveInput, ItemImpl, parse_macro_input};

/// Makes a struct an element, from its doc comment, arguments and handlers.
///
/// `#[element(...)]` takes `room = "ip"` (the room that the element declares),
/// `args = Type` (the element compiles its arguments in `Build`), `by = Type<Name>` (elements of the
/// class are of this type, which is generic over its classes; the struct only declares),
/// `alias = "Name"`, `ports = "1/1-2"`, `processing = "a/ah"`, `gives = "ip"` and
/// `methods` (there is a `#[handlers] impl`). The `#[handlers]` of a field's type are the element's
/// where the field is marked `#[flatten]`.
#[proc_macro_derive(Element, attributes(element, arg, read, metric, flatten))]
pub fn element(input: TokenStream) -> TokenStream {
    expand(input, element::element)
}

/// Makes a struct an argument list, for elements that compile their arguments.
#[proc_macro_derive(Args, attributes(arg))]
pub fn args(input: TokenStream) -> TokenStream {
    expand(input, |input| args::implementation(&input.ident, &attributes::fields(input)?))
}

/// Makes a struct per-worker state with handlers: `#[read]` on fields,
/// `#[write(reset)]` on the struct for handlers that set it to its default,
/// `#[local(methods)]` if there is a `#[handlers] impl`, `#[flatten]` on fields whose type has one, and
/// `#[portable]` or `#[portable(NAME)]` on fields that go to another instance. `#[portable(NAME)]` on the struct makes the struct
/// itself such a field, of this name.
#[proc_macro_derive(Local, attributes(read, metric, write, local, flatten, portable))]
pub fn local(input: TokenStream) -> TokenStream {
    expand(input, element::local)
}

/// Makes an enum the exits of an element: outputs, `#[optional]` outputs and
/// `#[drop]` reasons, each with a doc comment.
#[proc_macro_derive(Fate, attributes(optional, drop))]
pub fn fate(input: TokenStream) -> TokenStream {
    expand(input, fate::implementation)
}

/// Makes the methods marked `#[read]` and `#[write]` handlers.
///
/// A read is `fn name(&self) -> T` or `fn name(&self, &Ask) -> T`; a write of
/// state `fn name(&mut self, &str) -> Result<(), ArgError>`; a write of a
/// configuration `fn name(&self, &str, &Names) -> Result<Self, ArgError>`.
/// `#[metric(NAME)]` beside `#[read]`, on a method or on a field, makes the value a metric: `NAME` is a
/// constant of type `castanet_element::handler::Metric`.
#[proc_macro_attribute]
pub fn handlers(_: TokenStream, input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as ItemImpl);
    handlers::implementation(input).unwrap_or_else(|e| e.to_compile_error()).into()
}

fn expand(input: TokenStream, f: impl Fn(&DeriveInput) -> syn::Result<Tokens>) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    f(&input).unwrap_or_else(|e| e.to_compile_error()).into()
}
