//! The Click language: parses a configuration, expands it to a flat graph of elements and
//! connections, and prints graphs as text and drawings.
//!
//! ```
//! use castanet_lang::{SourceMap, expand, parse, print};
//!
//! let mut sources = SourceMap::new();
//! let file = sources.add("config", "Idle -> c :: Counter -> Discard;");
//! let (tree, errors) = parse(&mut sources, file);
//! assert!(errors.is_empty());
//! let known = |class: &str| ["Idle", "Counter", "Discard"].contains(&class);
//! let (flat, errors) = expand(&tree, &known, &[]);
//! assert!(errors.is_empty());
//! assert_eq!(flat.elements[1].name, "c");
//! assert_eq!(
//!     print::flat(&flat),
//!     "Idle@1 :: Idle;\nc :: Counter;\nDiscard@3 :: Discard;\n\n\
//!      Idle@1 -> c\n    -> Discard@3;\n",
//! );
//! ```
#![forbid(unsafe_code)]

mod archive;
pub mod args;
mod diagnostic;
mod expand;
mod flat;
mod fuzz;
mod lexer;
mod nearest;
mod outline;
mod parse;
pub mod print;
mod render;
mod shell_words;
mod source;
pub mod transform;
pub mod tree;

pub use archive::{Member, archive};
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use expand::{AnyClass, ClassInfo, UNDECLARED_CLASS, expand, outline, variables};
pub use flat::{Connection, FlatElement, FlatGraph, Port};
pub use fuzz::{fuzz_entry, fuzz_tools};
pub use nearest::nearest;
pub use outline::{ClassRef, Outline, OutlineScope, Processing};
pub use parse::{Libraries, NoLibraries, parse, parse_with};
pub use shell_words::shell_words;
pub use source::{FileId, Location, SourceMap, Span, io_error_text};
pub use tree::Tree;
