//! What the derives say about what is missing or wrong.

use crate::{args, element, fate, read};
use syn::{DeriveInput, parse_quote};

fn said<T>(outcome: syn::Result<T>) -> String {
    outcome.err().map(|e| e.to_string()).unwrap_or_default()
}

fn of_element(input: DeriveInput) -> String {
    said(element::element(&input))
}

fn of_args(input: DeriveInput) -> String {
    said(read::fields(&input).and_then(|fields| args::implementation(&input.ident, &fields)))
}

#[test]
fn what_has_no_sentence_is_called_what_it_is() {
    let rest = "without a doc comment: say after /// what it is";
    for (what, message) in [
        (
            "an element",
            of_element(parse_quote!(
                struct E;
            )),
        ),
        (
            "an argument",
            of_args(parse_quote!(
                struct A {
                    #[arg]
                    a: u8,
                }
            )),
        ),
        (
            "an argument",
            of_element(parse_quote!(
                #[doc = "E."]
                struct E {
                    #[arg]
                    a: u8,
                }
            )),
        ),
        (
            "an argument",
            of_element(parse_quote!(
                #[doc = "E."]
                struct E {
                    #[arg(live)]
                    a: u8,
                }
            )),
        ),
        (
            "a handler",
            said(element::local(&parse_quote!(
                struct L {
                    #[read]
                    n: u64,
                }
            ))),
        ),
        (
            "an exit",
            said(fate::implementation(&parse_quote!(
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
fn arguments_say_what_may_be_declared() {
    let options =
        "wants keyword, rest, flatten, live, name = \"\", default = ... or range = LOW..=HIGH";
    assert_eq!(
        of_args(parse_quote!(
            struct A {
                #[arg(optional)]
                a: u8,
            }
        )),
        options
    );
    let ends = "wants LOW..=HIGH, LOW.. or ..=HIGH";
    assert_eq!(
        of_args(parse_quote!(
            struct A {
                #[arg(range = 64)]
                a: u8,
            }
        )),
        ends
    );
    assert_eq!(
        of_args(parse_quote!(
            struct A {
                #[arg(range = 0..64)]
                a: u8,
            }
        )),
        ends
    );
    let one = "a range is for one number: give Option or Vec a type of its own";
    let option = of_args(parse_quote!(
        struct A {
            #[doc = "A."]
            #[arg(range = 0..)]
            a: Option<u8>,
        }
    ));
    assert_eq!(option, one);
    let rest = of_args(parse_quote!(
        struct A {
            #[doc = "A."]
            #[arg(rest, range = 0..)]
            a: Vec<u8>,
        }
    ));
    assert_eq!(rest, one);
    let bare = of_args(parse_quote!(
        struct A {
            n: u64,
        }
    ));
    assert!(bare.starts_with("a field without #[arg]: state belongs in Local"), "{bare}");
}

#[test]
fn ranges_are_put_in_words() {
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
        let fields = read::fields(&input).expect("is a struct");
        let code = args::implementation(&input.ident, &fields).expect("is right").to_string();
        assert!(code.contains(&format!("syntax : \"a number {words}\"")), "{code}");
    }
}
