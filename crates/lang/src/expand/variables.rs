//! Variables in configuration strings: `$name`, `${name}`, `${name[2]}`, `${name-default}`.

use std::collections::HashMap;

use crate::args::{self, Kept};

/// Values may name variables whose values name variables, this deep.
const DEPTH: usize = 10;
/// The longest text that one configuration string may become.
const LONGEST: usize = 1 << 20;
/// Characters that all substitutions together may look at.
const WORK: usize = 1 << 26;

/// The variables of one scope; those of the scopes around it are found through `parent`.
#[derive(Debug, Default)]
pub(super) struct Env {
    pub(super) values: HashMap<String, String>,
    pub(super) parent: Option<usize>,
    pub(super) depth: usize,
}

/// All scopes.
#[derive(Debug)]
pub(super) struct Envs {
    pub(super) all: Vec<Env>,
    work: usize,
}

/// The text became longer than any configuration string needs to be.
#[derive(Debug)]
pub(super) struct TooLong;

impl Envs {
    pub(super) fn new(root: Env) -> Self {
        Envs { all: vec![root], work: WORK }
    }

    /// The innermost scope around `env` that lies above `depth`.
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

    /// Substitutes the variables of `env`; unknown ones stay as they are.
    pub(super) fn expand(
        &mut self,
        text: &str,
        env: usize,
    ) -> Result<(String, Vec<Kept>), TooLong> {
        let mut work = self.work;
        let mut pass = Pass { envs: self, env, work: &mut work };
        let result = pass.expand(text, 0);
        self.work = work;
        result
    }
}

struct Pass<'a> {
    envs: &'a Envs,
    env: usize,
    work: &'a mut usize,
}

/// A variable as written.
struct Reference<'a> {
    /// What stands in the braces, or the bare name.
    inner: &'a str,
    braces: bool,
    /// Where it ends.
    end: usize,
}

impl Pass<'_> {
    fn expand(&mut self, text: &str, depth: usize) -> Result<(String, Vec<Kept>), TooLong> {
        let whole = |text: &str| vec![Kept { to: 0, from: 0, len: text.len() }];
        if depth > DEPTH || !text.contains('$') {
            return Ok((text.to_string(), whole(text)));
        }
        *self.work = self.work.checked_sub(text.len() + 1).ok_or(TooLong)?;
        let bytes = text.as_bytes();
        let mut out = String::new();
        let mut kept = Vec::new();
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
                        at = reference.end;
                        continue;
                    };
                    kept.push(Kept { to: out.len(), from, len: at - from });
                    out.push_str(&text[from..at]);
                    if quote == Some(b'"') {
                        let quoted = args::quote(&value);
                        out.push_str(&quoted[1..quoted.len() - 1]);
                    } else {
                        out.push_str(&value);
                    }
                    if out.len() > LONGEST {
                        return Err(TooLong);
                    }
                    at = reference.end;
                    from = at;
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
        kept.push(Kept { to: out.len(), from, len: text.len() - from });
        out.push_str(&text[from..]);
        Ok((out, kept))
    }

    /// What a variable stands for; `None` if it is not defined.
    fn value(&mut self, reference: &Reference, depth: usize) -> Result<Option<String>, TooLong> {
        if depth >= DEPTH {
            return Ok(None);
        }
        let inner = if reference.braces && reference.inner.contains('$') {
            self.expand(reference.inner, depth + 1)?.0
        } else {
            reference.inner.to_string()
        };
        let Part { name, index, default } =
            if reference.braces { part(&inner) } else { Part::name(&inner) };
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

/// The variable at a dollar sign.
fn reference(text: &str, at: usize) -> Option<Reference<'_>> {
    let rest = &text[at + 1..];
    let word =
        |text: &str| text.bytes().take_while(|&b| b.is_ascii_alphanumeric() || b == b'_').count();
    match rest.bytes().next()? {
        b'{' => {
            let close = rest.find('}')?;
            Some(Reference { inner: &rest[1..close], braces: true, end: at + 1 + close + 1 })
        }
        b'(' => {
            let close = close_parenthesis(rest)?;
            let inner = &rest[1..close];
            // `$(…)` is a command to elements such as Script; as a variable it is a plain name.
            Some(Reference { inner, braces: false, end: at + 1 + close + 1 })
        }
        b'?' | b'#' | b'$' => Some(Reference { inner: &rest[..1], braces: false, end: at + 2 }),
        _ => match word(rest) {
            0 => None,
            len => Some(Reference { inner: &rest[..len], braces: false, end: at + 1 + len }),
        },
    }
}

/// The names of variables that a text mentions, wherever it does; a name that is put together of
/// others, as `a$b` in `${a$b}`, as it stands there.
pub fn variables(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('$').filter_map(|(at, _)| {
        let Reference { inner, braces, .. } = reference(text, at)?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || braces && c == '$';
        let inner = inner.trim_ascii_start();
        let end = inner.find(|c: char| !is_name(c)).unwrap_or(inner.len());
        (end > 0 && (braces || end == inner.len())).then_some(&inner[..end])
    })
}

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

/// `name[index]-default`
struct Part<'a> {
    name: &'a str,
    index: Option<usize>,
    default: Option<&'a str>,
}

impl<'a> Part<'a> {
    fn name(name: &'a str) -> Self {
        Part { name, index: None, default: None }
    }
}

fn part(inner: &str) -> Part<'_> {
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
    Part { name, index, default: rest.strip_prefix('-') }
}
