//! Substitutes variables in configuration strings: `$name`, `${name}`, `${name[2]}`,
//! `${name-default}`.

use std::collections::HashMap;
use std::ops::Range;

use crate::args::{self, CopiedRange};

/// Greatest depth of variables whose values name variables.
const MAX_DEPTH: usize = 10;
/// Most bytes that one configuration string may become.
const MAX_LENGTH: usize = 1 << 20;
/// Most bytes that all substitutions together may read.
const MAX_WORK: usize = 1 << 26;

/// The variables of one scope; `parent` is the scope around it.
#[derive(Debug, Default)]
pub(super) struct Env {
    pub(super) values: HashMap<String, String>,
    pub(super) parent: Option<usize>,
    pub(super) depth: usize,
}

/// The variables of all scopes.
#[derive(Debug)]
pub(super) struct Envs {
    pub(super) all: Vec<Env>,
    /// Number of bytes that substitutions may still read.
    work: usize,
}

/// Error: the text becomes longer than the limits allow.
#[derive(Debug)]
pub(super) struct TextTooLong;

impl Envs {
    pub(super) fn new(root: Env) -> Self {
        Envs { all: vec![root], work: MAX_WORK }
    }

    /// Returns the innermost scope around `env` whose depth is less than `depth`.
    pub(super) fn parent_of(&self, env: usize, depth: usize) -> Option<usize> {
        let mut at = Some(env);
        while let Some(env) = at
            && self.all[env].depth >= depth
        {
            at = self.all[env].parent;
        }
        at
    }

    fn value(&self, env: usize, name: &str) -> Option<&str> {
        let mut at = Some(env);
        while let Some(env) = at {
            if let Some(value) = self.all[env].values.get(name) {
                return Some(value);
            }
            at = self.all[env].parent;
        }
        None
    }

    /// Substitutes the variables of `env`; unknown ones stay. Returns the new text, and the ranges
    /// copied from the old one.
    pub(super) fn expand(
        &mut self,
        text: &str,
        env: usize,
    ) -> Result<(String, Vec<CopiedRange>), TextTooLong> {
        let mut work = self.work;
        let mut substitution = Substitution { envs: self, env, work: &mut work };
        let result = substitution.expand(text, 0);
        self.work = work;
        result
    }
}

/// One substitution of the variables of a scope.
struct Substitution<'a> {
    envs: &'a Envs,
    env: usize,
    work: &'a mut usize,
}

/// A reference to a variable, as written.
struct Reference<'a> {
    /// The text in the braces, or the bare name.
    inner: &'a str,
    braces: bool,
    /// Offset of its end.
    end: usize,
    /// Whether it stands in parentheses.
    is_call: bool,
}

/// Appends the value of a variable, which may stand in double quotes.
fn push_value(out: &mut String, value: &str, is_quoted: bool) {
    if is_quoted {
        let quoted = args::quote(value);
        out.push_str(&quoted[1..quoted.len() - 1]);
    } else {
        out.push_str(value);
    }
}

impl Substitution<'_> {
    fn expand(
        &mut self,
        text: &str,
        depth: usize,
    ) -> Result<(String, Vec<CopiedRange>), TextTooLong> {
        let whole = |text: &str| vec![CopiedRange { to: 0, from: 0, len: text.len() }];
        if depth > MAX_DEPTH || !text.contains('$') {
            return Ok((text.to_string(), whole(text)));
        }
        *self.work = self.work.checked_sub(text.len() + 1).ok_or(TextTooLong)?;
        let bytes = text.as_bytes();
        let mut out = String::new();
        let mut copied = Vec::new();
        let (mut at, mut from) = (0, 0);
        let mut quote = None;
        while at < bytes.len() {
            let byte = bytes[at];
            match byte {
                b'\\' if quote == Some(b'"') => at += 1,
                b'\'' | b'"' if quote.is_none() => quote = Some(byte),
                b'\'' | b'"' if quote == Some(byte) => quote = None,
                b'/' if quote.is_none() && matches!(bytes.get(at + 1), Some(b'/' | b'*')) => {
                    at = args::skip_comment(text, at);
                    continue;
                }
                b'$' if quote != Some(b'\'') => {
                    let Some(reference) = reference(text, at) else {
                        at += 1;
                        continue;
                    };
                    let Some(value) = self.value(&reference, depth)? else {
                        if reference.is_call && depth < MAX_DEPTH {
                            // The call is the element's; variables of the configuration in it are not.
                            let (inner, ranges) = self.expand(reference.inner, depth + 1)?;
                            copy(&mut out, &mut copied, text, from..at + 2);
                            copied.extend(moved(ranges, out.len(), at + 2));
                            out.push_str(&inner);
                            from = reference.end - 1;
                        }
                        at = reference.end;
                        continue;
                    };
                    copy(&mut out, &mut copied, text, from..at);
                    push_value(&mut out, &value, quote == Some(b'"'));
                    if out.len() > MAX_LENGTH {
                        return Err(TextTooLong);
                    }
                    at = reference.end;
                    from = at;
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
        copy(&mut out, &mut copied, text, from..text.len());
        Ok((out, copied))
    }

    /// Returns the value of a variable; `None` if it is not defined.
    fn value(
        &mut self,
        reference: &Reference,
        depth: usize,
    ) -> Result<Option<String>, TextTooLong> {
        if depth >= MAX_DEPTH {
            return Ok(None);
        }
        let inner = if reference.braces && reference.inner.contains('$') {
            self.expand(reference.inner, depth + 1)?.0
        } else {
            reference.inner.to_string()
        };
        let VariableExpr { name, index, default } =
            if reference.braces { parse_variable(&inner) } else { VariableExpr::name(&inner) };
        let envs = self.envs;
        match (envs.value(self.env, name), default) {
            (Some(value), _) => {
                let value = self.expand(value, depth + 1)?.0;
                Ok(Some(match index {
                    Some(index) => {
                        args::split_words(&value).get(index).copied().unwrap_or("").to_string()
                    }
                    None => value,
                }))
            }
            (None, Some(default)) => Ok(Some(self.expand(default, depth + 1)?.0)),
            (None, None) => Ok(None),
        }
    }
}

/// Appends a part of `text` as it is.
fn copy(out: &mut String, copied: &mut Vec<CopiedRange>, text: &str, part: Range<usize>) {
    copied.push(CopiedRange { to: out.len(), from: part.start, len: part.len() });
    out.push_str(&text[part]);
}

/// The ranges of a part of a text, as ranges of the whole.
fn moved(ranges: Vec<CopiedRange>, to: usize, from: usize) -> impl Iterator<Item = CopiedRange> {
    ranges.into_iter().map(move |range| CopiedRange {
        to: to + range.to,
        from: from + range.from,
        ..range
    })
}

/// Parses the reference that begins with the dollar sign at `at`, if it is one.
fn reference(text: &str, at: usize) -> Option<Reference<'_>> {
    let rest = &text[at + 1..];
    let word =
        |text: &str| text.bytes().take_while(|&b| b.is_ascii_alphanumeric() || b == b'_').count();
    let plain = |len: usize| {
        let end = at + 1 + len;
        Some(Reference { inner: &rest[..len], braces: false, is_call: false, end })
    };
    match rest.bytes().next()? {
        b'{' => {
            let close = rest.find('}')?;
            Some(Reference {
                inner: &rest[1..close],
                braces: true,
                is_call: false,
                end: at + 1 + close + 1,
            })
        }
        b'(' => {
            let close = close_parenthesis(rest)?;
            let inner = &rest[1..close];
            // `$(…)` is a command to elements such as Script; as a variable it is a plain name.
            Some(Reference { inner, braces: false, is_call: true, end: at + 1 + close + 1 })
        }
        b'?' | b'#' | b'$' => plain(1),
        _ => match word(rest) {
            0 => None,
            len => plain(len),
        },
    }
}

/// Returns the names of the variables that a text mentions, also in quotes and comments. A name
/// that contains another variable, such as `a$b` in `${a$b}`, is returned as written.
pub fn variables(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('$').filter_map(|(at, _)| {
        let Reference { inner, braces, .. } = reference(text, at)?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || braces && c == '$';
        let inner = inner.trim_ascii_start();
        let end = inner.find(|c: char| !is_name(c)).unwrap_or(inner.len());
        (end > 0 && (braces || end == inner.len())).then_some(&inner[..end])
    })
}

/// Returns the offset of the parenthesis that closes the first one.
fn close_parenthesis(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0usize;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'(' => depth += 1,
            b')' if depth == 1 => return Some(at),
            b')' => depth -= 1,
            b'\\' => at += 1,
            b'"' | b'\'' => {
                at = args::skip_item(text, at);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// The text `name[index]-default` of a variable in braces.
struct VariableExpr<'a> {
    name: &'a str,
    index: Option<usize>,
    default: Option<&'a str>,
}

impl<'a> VariableExpr<'a> {
    fn name(name: &'a str) -> Self {
        VariableExpr { name, index: None, default: None }
    }
}

fn parse_variable(inner: &str) -> VariableExpr<'_> {
    let inner = inner.trim_ascii_start();
    let end = inner.bytes().take_while(|&b| b.is_ascii_alphanumeric() || b == b'_').count();
    let (name, rest) = inner.split_at(end);
    let mut rest = rest.trim_ascii_start();
    let mut index = None;
    if let Some((number, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'))
        && let Ok(number) = number.trim_ascii().parse()
    {
        index = Some(number);
        rest = after.trim_ascii_start();
    }
    VariableExpr { name, index, default: rest.strip_prefix('-') }
}
