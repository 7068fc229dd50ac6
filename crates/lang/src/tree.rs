//! The syntax tree of a configuration, before any name is looked up.

use crate::lexer::Token;
use crate::source::{FileId, Span};

/// A parsed configuration.
#[derive(Clone, Debug)]
pub struct Tree {
    /// The source text.
    pub file: FileId,
    /// Its statements.
    pub body: Vec<Stmt>,
    /// Every token and configuration string of the text in order, for the formatter.
    pub(crate) tokens: Vec<Token>,
    /// Every comment and line directive of the text in order.
    pub(crate) comments: Vec<Span>,
    /// The text itself.
    pub(crate) text: std::sync::Arc<str>,
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Stmt {
    /// Declarations and connections.
    Chain(Chain),
    /// `elementclass Name …`
    ElementClass(ElementClass),
    /// `require(…)`
    Require(Require),
    /// `define($name value, …)`
    Define(Vec<Define>),
}

/// `a, b -> c => d`: lists of elements and the arrows between them.
#[derive(Clone, Debug)]
pub struct Chain {
    /// The lists, one more than arrows.
    pub lists: Vec<List>,
    /// The arrows between them.
    pub links: Vec<Link>,
    /// The whole chain.
    pub span: Span,
}

/// Elements separated by commas.
#[derive(Clone, Debug)]
pub struct List {
    /// The elements, at least one.
    pub elements: Vec<ElementExpr>,
    /// The whole list.
    pub span: Span,
}

/// An arrow between two lists.
#[derive(Clone, Debug)]
pub struct Link {
    /// Kind of the arrow.
    pub kind: LinkKind,
    /// The arrow.
    pub span: Span,
}

/// Kind of an arrow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// `->`
    Arrow,
    /// `=>` or `==>`: many to many.
    DoubleArrow,
    /// `~>`, `~IP>` or `~/IP>`: FastClick's link that changes context, with the text between the
    /// tilde and the arrowhead.
    Context(String),
}

/// `[1] name :: Class(config) [2]`, of which most parts are optional.
#[derive(Clone, Debug)]
pub struct ElementExpr {
    /// Input ports.
    pub inputs: Option<Ports>,
    /// Name, class, compound or group.
    pub head: Head,
    /// Class after `::`.
    pub class: Option<ClassExpr>,
    /// Configuration string.
    pub config: Option<ConfigText>,
    /// Output ports.
    pub outputs: Option<Ports>,
    /// The whole expression.
    pub span: Span,
}

/// The beginning of an element expression.
#[derive(Clone, Debug)]
pub enum Head {
    /// A name of an element or of a class.
    Name(Name),
    /// `{ … }`
    Compound(Compound),
    /// `( … )`
    Group(Body),
    /// Nothing: `input` at the start of a chain, `output` at its end.
    Implicit,
}

/// A name with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The name.
    pub text: String,
    /// Its source text.
    pub span: Span,
}

/// An expression for a class.
#[derive(Clone, Debug)]
pub enum ClassExpr {
    /// By name.
    Name(Name),
    /// `{ … }`
    Compound(Compound),
    /// Missing; the error has been reported.
    Missing,
}

/// `[0, 2-4, 7-]`
#[derive(Clone, Debug)]
pub struct Ports {
    /// The numbers.
    pub list: Vec<u32>,
    /// Whether as many ports follow as there are to connect (`[]`, `[0,]`, `[0-]`).
    pub expandable: bool,
    /// From bracket to bracket.
    pub span: Span,
}

/// A configuration string as written, without line directives.
#[derive(Clone, Debug)]
pub struct ConfigText {
    /// The text, comments and all.
    pub text: String,
    /// The source text between the parentheses.
    pub span: Span,
    /// Line directives cut out, each as an offset in `text` and the offset in the source text at
    /// which the text goes on.
    pub(crate) cuts: Vec<(u32, u32)>,
}

/// A compound element: one body or several overloads of it.
#[derive(Clone, Debug)]
pub struct Compound {
    /// The overloads, in the order in which they are tried.
    pub overloads: Vec<Body>,
    /// The `...` that extends the class of the same name.
    pub extends: Option<Span>,
    /// From brace to brace.
    pub span: Span,
}

/// The text in braces, or in the parentheses of a group.
#[derive(Clone, Debug)]
pub struct Body {
    /// `$a, KEY $b, __REST__ $r |`
    pub formals: Vec<Formal>,
    /// The statements.
    pub stmts: Vec<Stmt>,
    /// The whole body.
    pub span: Span,
}

/// A parameter of a compound element.
#[derive(Clone, Debug)]
pub struct Formal {
    /// Its name, without the dollar sign.
    pub name: String,
    /// Its keyword; empty for a positional parameter, `__REST__` for all remaining arguments.
    pub keyword: String,
    /// Its source text.
    pub span: Span,
}

/// `elementclass Name { … }` or `elementclass Name Other`.
#[derive(Clone, Debug)]
pub struct ElementClass {
    /// The new name.
    pub name: Name,
    /// The class that the name stands for.
    pub class: ClassExpr,
    /// The whole statement.
    pub span: Span,
}

/// `require(…)`
#[derive(Clone, Debug)]
pub struct Require {
    /// Words such as `package foo` or `compact_config`, one entry for each requirement.
    pub requirements: Vec<String>,
    /// Trees of the libraries that it includes.
    pub libraries: Vec<Tree>,
    /// The whole statement.
    pub span: Span,
}

/// One variable of a `define`.
#[derive(Clone, Debug)]
pub struct Define {
    /// Its name, without the dollar sign.
    pub name: String,
    /// Its value.
    pub value: String,
    /// The whole `define` statement.
    pub span: Span,
}
