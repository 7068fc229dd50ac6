//! Overload resolution: finds the overload of a compound that fits an element's ports and
//! arguments.

use super::scope::{Class, ClassId, Scope};
use crate::args;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::Span;

/// Result of overload resolution.
pub(super) enum Resolution {
    /// The overload, as an index of a scope, and the values of its parameters.
    Compound(usize, Vec<String>),
    /// The class that an extension falls back to.
    Class(ClassId),
    /// No overload fits; the error has been reported.
    None,
}

/// Ports and arguments of an element of a compound class.
pub(super) struct Usage<'a> {
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    pub(super) args: &'a [String],
    pub(super) span: Span,
}

/// Returns the first overload that fits, beginning with the scope `first`. A single overload is
/// returned even if the ports do not fit, because [`tunnel`](super::tunnel) reports them better.
pub(super) fn resolve(
    scopes: &[Scope],
    classes: &[Class],
    first: usize,
    usage: &Usage,
    diagnostics: &mut Diagnostics,
) -> Resolution {
    let mut tried = Vec::new();
    let mut closest = None;
    let mut at = first;
    loop {
        let scope = &scopes[at];
        tried.push(at);
        if let Some(values) = assign(usage.args, &scope.formals) {
            if scope.inputs == usage.inputs && scope.outputs == usage.outputs {
                return Resolution::Compound(at, values);
            }
            closest = Some((at, values));
        }
        match scope.next.map(|class| (class, &classes[class])) {
            Some((_, Class::Compound(next))) => at = *next,
            Some((class, _)) => return Resolution::Class(class),
            None => break,
        }
    }
    if tried.len() != 1 || closest.is_none() {
        no_match(scopes, &tried, usage, diagnostics);
    }
    closest.map_or(Resolution::None, |(at, values)| Resolution::Compound(at, values))
}

/// Reports that no overload fits, with the overloads `tried`.
fn no_match(scopes: &[Scope], tried: &[usize], usage: &Usage, diagnostics: &mut Diagnostics) {
    let first = &scopes[tried[0]];
    let arguments = match usage.args.len() {
        0 => String::new(),
        n => format!("{n} argument{}, ", plural(n)),
    };
    let ports = ports(usage.inputs, usage.outputs);
    let message = format!("no match for '{}[{arguments}{ports}]'", first.display_name());
    let mut error = Diagnostic::error(usage.span, message);
    for (i, scope) in tried.iter().map(|&at| &scopes[at]).enumerate() {
        if i == 0 {
            error = error.with_note(scope.span, "candidates are:");
        }
        error = error.with_note(scope.span, format!("  {}", scope.signature()));
    }
    diagnostics.push(error);
}

fn plural(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}

fn ports(inputs: usize, outputs: usize) -> String {
    format!("{inputs} input{}, {outputs} output{}", plural(inputs), plural(outputs))
}

impl Scope {
    pub(super) fn display_name(&self) -> &str {
        if self.name.is_empty() { "<anonymous>" } else { &self.name }
    }

    fn signature(&self) -> String {
        let formal = |(_, keyword): &(String, String)| match keyword.as_str() {
            "" => "<arg>".to_string(),
            "__REST__" => "...".to_string(),
            keyword => keyword.to_string(),
        };
        let formals: Vec<_> = self.formals.iter().map(formal).collect();
        let formals =
            if formals.is_empty() { String::new() } else { format!("({})", formals.join(", ")) };
        format!("{}{formals}[{}]", self.display_name(), ports(self.inputs, self.outputs))
    }
}

/// Returns the value of each parameter (names and keywords in `formals`); `None` if the arguments
/// do not fit.
fn assign(args: &[String], formals: &[(String, String)]) -> Option<Vec<String>> {
    let (rest, named) = match formals.split_last() {
        Some(((_, keyword), named)) if keyword == "__REST__" => (true, named),
        _ => (false, formals),
    };
    let mut values: Vec<Option<String>> = vec![None; named.len()];
    let mut left = Vec::new();
    for arg in args {
        let (word, value) = args::shift_word(arg);
        let keyword = named.iter().position(|(_, keyword)| !keyword.is_empty() && keyword == word);
        let position =
            named.iter().zip(&values).position(|((_, k), v)| k.is_empty() && v.is_none());
        match (keyword, position) {
            (Some(at), _) if values[at].is_none() => values[at] = Some(value.to_string()),
            (Some(_), _) => return None,
            (None, Some(at)) => values[at] = Some(arg.clone()),
            (None, None) if rest => left.push(arg.as_str()),
            (None, None) => return None,
        }
    }
    let mut values: Vec<String> = values.into_iter().collect::<Option<_>>()?;
    if rest {
        values.push(args::join(left));
    }
    Some(values)
}
