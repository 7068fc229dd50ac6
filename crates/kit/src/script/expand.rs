//! Substitution of `$x`, `${x}` and `$(handler arguments)`.

use super::interpreter::{self, Interpreter};
use super::{Environment, MAX_VALUE_LEN, functions};
use castanet_lang::args::{quote, shift_word};

/// How deep calls may be nested.
const MAX_DEPTH: usize = 64;

/// The error about a value that is too long.
pub(super) fn too_long() -> String {
    format!("a value would be longer than {MAX_VALUE_LEN} bytes")
}

/// Substitutes in `text`. Values inside double quotes are escaped; with `protect`, values outside
/// of quotes are quoted, so that they survive unquoting.
pub(super) fn expand(
    text: &str,
    protect: bool,
    interp: &mut Interpreter,
    env: &mut dyn Environment,
) -> String {
    let (mut out, mut quoted, mut at) = (String::new(), None, 0);
    let bytes = text.as_bytes();
    while let Some(&byte) = bytes.get(at) {
        if interp.has_failed() {
            return String::new();
        }
        match (byte, quoted) {
            (b'$', None | Some(b'"')) => {
                if let Some((name, is_call, length)) = parse_reference(&text[at..])
                    && let Some(value) = resolve(name, is_call, interp, env)
                {
                    if out.len() + value.len() > MAX_VALUE_LEN {
                        interp.fail(too_long());
                        return String::new();
                    }
                    match quoted {
                        Some(_) => out.push_str(quote(&value).trim_matches_once('"')),
                        None if protect => out.push_str(&quote(&value)),
                        None => out.push_str(&value),
                    }
                    at += length;
                    continue;
                }
            }
            (b'"' | b'\'', None) => quoted = Some(byte),
            (_, Some(open)) if byte == open => quoted = None,
            (b'\\', Some(b'"')) if at + 1 < bytes.len() => {
                let next = text[at + 1..].chars().next().map_or(1, char::len_utf8);
                out.push_str(&text[at..at + 1 + next]);
                at += 1 + next;
                continue;
            }
            _ => {}
        }
        let width = text[at..].chars().next().map_or(1, char::len_utf8);
        out.push_str(&text[at..at + width]);
        at += width;
    }
    out
}

trait TrimOnce {
    fn trim_matches_once(&self, c: char) -> &str;
}

impl TrimOnce for String {
    /// The text without one `c` at each end.
    fn trim_matches_once(&self, c: char) -> &str {
        let inner = self.strip_prefix(c).unwrap_or(self);
        inner.strip_suffix(c).unwrap_or(inner)
    }
}

/// The name after a `$`, whether it is a call, and the length of the whole reference.
fn parse_reference(text: &str) -> Option<(&str, bool, usize)> {
    let rest = &text[1..];
    let first = rest.chars().next()?;
    match first {
        '{' => rest.find('}').map(|end| (&rest[1..end], false, end + 2)),
        '(' => closing(rest).map(|end| (&rest[1..end], true, end + 2)),
        '?' | '#' | '$' => Some((&rest[..1], false, 2)),
        c if c.is_ascii_alphanumeric() || c == '_' => {
            let word = |c: char| match first.is_ascii_digit() {
                true => c.is_ascii_digit(),
                false => c.is_ascii_alphanumeric() || c == '_',
            };
            let end = rest.find(|c| !word(c)).unwrap_or(rest.len());
            Some((&rest[..end], false, end + 1))
        }
        _ => None,
    }
}

/// Adds the handlers that calls in `text` name, as far as their names are not computed.
pub(super) fn add_calls<'t>(text: &'t str, calls: &mut Vec<&'t str>) {
    let (mut quoted, mut at) = (None, 0);
    let bytes = text.as_bytes();
    while let Some(&byte) = bytes.get(at) {
        at += match (byte, quoted) {
            (b'$', None | Some(b'"')) => match parse_reference(&text[at..]) {
                Some((call, is_call, length)) => {
                    if is_call {
                        add_calls(call, calls);
                        calls.extend(fixed_name(call));
                    }
                    length
                }
                None => 1,
            },
            (b'"' | b'\'', None) => {
                quoted = Some(byte);
                1
            }
            (_, Some(open)) if byte == open => {
                quoted = None;
                1
            }
            (b'\\', Some(b'"')) if at + 1 < bytes.len() => {
                1 + text[at + 1..].chars().next().map_or(1, char::len_utf8)
            }
            _ => text[at..].chars().next().map_or(1, char::len_utf8),
        };
    }
}

/// The name of the handler that a call begins with, if it is not computed.
pub(super) fn fixed_name(call: &str) -> Option<&str> {
    let name = shift_word(call).0;
    (!name.is_empty() && !name.contains(['$', '"', '\'', '\\'])).then_some(name)
}

/// The offset of the parenthesis that closes the one at the start of `text`; parentheses in quotes
/// do not count.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quoted, mut escaped) = (0usize, None, false);
    for (at, c) in text.char_indices() {
        match (c, quoted) {
            _ if escaped => escaped = false,
            ('\\', Some('"')) => escaped = true,
            (c, Some(open)) => quoted = (c != open).then_some(open),
            ('"' | '\'', None) => quoted = Some(c),
            ('(', None) => depth += 1,
            (')', None) if depth == 1 => return Some(at),
            (')', None) => depth -= 1,
            _ => {}
        }
    }
    None
}

fn resolve(
    name: &str,
    is_call: bool,
    interp: &mut Interpreter,
    env: &mut dyn Environment,
) -> Option<String> {
    if !is_call {
        return interp.variable(name, env);
    }
    if interp.depth == MAX_DEPTH {
        interp.fail(format!("more than {MAX_DEPTH} calls in one another"));
        return None;
    }
    interp.depth += 1;
    let call = expand(name, false, interp, env);
    interp.depth -= 1;
    let (name, parameter) = shift_word(&call);
    match read(name, parameter, interp, env) {
        Ok(value) => Some(value),
        Err(message) => {
            env.report_error(&message);
            // A handler that fails has no value; one that does not exist stays in the text.
            exists(name, interp, env).then(String::new)
        }
    }
}

/// Whether a read handler exists, or a function or an export of the script itself.
fn exists(name: &str, interp: &Interpreter, env: &mut dyn Environment) -> bool {
    let is_own = own_handler(name, env)
        .is_some_and(|local| functions::is_function(&local) || interp.exported(&local).is_some());
    let path = format!("{}.{name}", env.name());
    is_own || !name.contains('.') && env.exists(&path, false) || env.exists(name, false)
}

/// Reads a handler: a function or an export of the script itself, another handler of its element,
/// or one of the router.
pub(super) fn read(
    name: &str,
    parameter: &str,
    interp: &mut Interpreter,
    env: &mut dyn Environment,
) -> Result<String, String> {
    if let Some(local) = own_handler(name, env) {
        if let Some(answer) = functions::call(&local, parameter, interp, env) {
            return answer;
        }
        if let Some(value) = interp.exported(&local) {
            return Ok(value.to_owned());
        }
        let path = format!("{}.{local}", env.name());
        if !name.contains('.') && env.exists(&path, false) {
            return env.read(format!("{path} {parameter}").trim_end());
        }
    }
    env.read(format!("{name} {parameter}").trim_end())
}

/// The name of a handler of the script's own element, if `name` may stand for one.
pub(super) fn own_handler(name: &str, env: &dyn Environment) -> Option<String> {
    if !name.contains('.') {
        return Some(name.to_owned());
    }
    let full = env.full_name(name);
    full.strip_prefix(env.name())?.strip_prefix('.').map(str::to_owned)
}

/// The full name of the handler that is called, with its parameter.
pub(super) fn full_call(
    name: &str,
    parameter: &str,
    interp: &Interpreter,
    env: &mut dyn Environment,
) -> String {
    let path = format!("{}.{name}", env.name());
    let is_own = !name.contains('.')
        && (functions::is_function(name)
            || interp.exported(name).is_some()
            || env.exists(&path, false)
            || interpreter::OWN_WRITES.contains(&name));
    let full = if is_own { path } else { env.full_name(name) };
    match parameter.is_empty() {
        true => full,
        false => format!("{full} {parameter}"),
    }
}
