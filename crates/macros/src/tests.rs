//! Tests of the derives' error messages.

use crate::{args, attributes, element, fate};
use syn::{DeriveInput, parse_quote};

fn error_text<T>(outcome: syn::Result<T>) -> String {
    outcome.err().map(|e| e.to_string()).unwrap_or_default()
}

fn element_error(input: DeriveInput) -> String {
    error_text(element::element(&input))
}

fn args_error(input: DeriveInput) -> String {
    error_text(
        attributes::fields(&input).and_then(|fields| args::implementation(&input.ident, &fields)),
    )
}

#[test]
fn missing_doc_comments_are_errors() {
    let rest = "without a doc comment: say after /// what it is";
    for (what, message) in [
        (
            "an element",
            element_error(parse_quote!(
                struct E;
            )),
        ),
        (
            "an argument",
            args_error(parse_quote!(
                struct A {
                    #[arg]
                    a: u8,
                }
            )),
        ),
        (
            "an argument",
            element_error(parse_quote!(
                #[doc = "E."]
                struct E {
                    #[arg]
                    a: u8,
                }
            )),
        ),
        (
            "an argument",
            element_error(parse_quote!(
                #[doc = "E."]
                struct E {
                    #[arg(live)]
                    a: u8,
                }
            )),
        ),
        (
            "a handler",
            error_text(element::local(&parse_quote!(
                struct L {
                    #[read]
                    n: u64,
                }
            ))),
        ),
        (
            "an exit",
            error_text(fate::implementation(&parse_quote!(
                enum F {
                    On,
                }
            ))),
        ),
    ] {
        assert_eq!(message, format!("{what} {rest}"));
    }
}

#[test]
fn wrong_options_of_arguments_are_errors() {
    let options = "wants keyword, rest, flatten, live, name = \"\", default = ..., shown = \"\", \
                   range = LOW..=HIGH or syntax = \"\"";
    assert_eq!(
        args_error(parse_quote!(
            struct A {
                #[arg(optional)]
                a: u8,
            }
        )),
        options
    );
    let ends = "wants LOW..=HIGH, LOW.. or ..=HIGH";
    assert_eq!(
        args_error(parse_quote!(
            struct A {
                #[arg(range = 64)]
                a: u8,
            }
        )),
        ends
    );
    assert_eq!(
        args_error(parse_quote!(
            struct A {
                #[arg(range = 0..64)]
                a: u8,
            }
        )),
        ends
    );
    let one = "a range is for one number: give Option or Vec a type of its own";
    let option = args_error(parse_quote!(
        struct A {
            #[doc = "A."]
            #[arg(range = 0..)]
            a: Option<u8>,
        }
    ));
    assert_eq!(option, one);
    let rest = args_error(parse_quote!(
        struct A {
            #[doc = "A."]
            #[arg(rest, range = 0..)]
            a: Vec<u8>,
        }
    ));
    assert_eq!(rest, one);
    let bare = args_error(parse_quote!(
        struct A {
            n: u64,
        }
    ));
    assert!(bare.starts_with("a field without #[arg]: state belongs in Local"), "{bare}");
}

#[test]
fn the_syntax_of_a_range_is_in_words() {
    for (input, words) in [
        (
            parse_quote!(
                struct A {
                    #[doc = "A."]
                    #[arg(range = 0..=63)]
                    a: u8,
                }
            ),
            "from 0 to 63",
        ),
        (
            parse_quote!(
                struct A {
                    #[doc = "A."]
                    #[arg(range = 8..)]
                    a: u8,
                }
            ),
            "from 8",
        ),
        (
            parse_quote!(
                struct A {
                    #[doc = "A."]
                    #[arg(range = ..=1_000)]
                    a: u16,
                }
            ),
            "up to 1000",
        ),
    ] {
        let input: DeriveInput = input;
        let fields = attributes::fields(&input).expect("is a struct");
        let code = args::implementation(&input.ident, &fields).expect("is right").to_string();
        assert!(code.contains(&format!("syntax : \"a number {words}\"")), "{code}");
    }
}
