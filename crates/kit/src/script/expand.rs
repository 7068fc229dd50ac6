//! Substitution: `$x`, `${x}` and `$(handler arguments)`.

use super::machine::{self, Machine};
use super::{LONGEST, World, functions};
use castanet_lang::args::{quote, shift_word};

/// How deep calls may lie in one another.
const DEPTH: usize = 64;

/// The error about a value that is too long.
pub(super) fn too_long() -> String {
    format!("a value would be longer than {LONGEST} bytes")
}

/// Substitutes in `text`. What is put between double quotes is escaped; with
/// `protect`, what is put outside of quotes survives unquoting.
pub(super) fn expand(
    text: &str,
    protect: bool,
    machine: &mut Machine,
    world: &mut dyn World,
) -> String {
    let (mut out, mut quoted, mut at) = (String::new(), None, 0);
    let bytes = text.as_bytes();
    while let Some(&byte) = bytes.get(at) {
        if machine.has_failed() {
            return String::new();
        }
        match (byte, quoted) {
            (b'$', None | Some(b'"')) => {
                if let Some((name, is_call, length)) = reference(&text[at..])
                    && let Some(value) = value(name, is_call, machine, world)
                {
                    if out.len() + value.len() > LONGEST {
                        machine.fail(too_long());
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

trait Inner {
    fn trim_matches_once(&self, c: char) -> &str;
}

impl Inner for String {
    /// The text without one `c` at each end.
    fn trim_matches_once(&self, c: char) -> &str {
        let inner = self.strip_prefix(c).unwrap_or(self);
        inner.strip_suffix(c).unwrap_or(inner)
    }
}

/// The name after a `$`, whether it is a call, and the length of it all.
fn reference(text: &str) -> Option<(&str, bool, usize)> {
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

/// Where the parenthesis that begins `text` closes; those in quotes do not count.
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

fn value(
    name: &str,
    is_call: bool,
    machine: &mut Machine,
    world: &mut dyn World,
) -> Option<String> {
    if !is_call {
        return machine.variable(name, world);
    }
    if machine.depth == DEPTH {
        machine.fail(format!("more than {DEPTH} calls in one another"));
        return None;
    }
    machine.depth += 1;
    let call = expand(name, false, machine, world);
    machine.depth -= 1;
    match read(&call, machine, world) {
        Ok(value) => Some(value),
        Err(message) => {
            world.complain(&message);
            None
        }
    }
}

/// Reads a handler: a function or an export of the script itself, another
/// handler of its element, or one of the router.
pub(super) fn read(
    call: &str,
    machine: &mut Machine,
    world: &mut dyn World,
) -> Result<String, String> {
    let (name, parameter) = shift_word(call);
    if let Some(local) = own(name, world) {
        if let Some(answer) = functions::call(&local, parameter, machine, world) {
            return answer;
        }
        if let Some(value) = machine.exported(&local) {
            return Ok(value.to_owned());
        }
        let path = format!("{}.{local}", world.name());
        if !name.contains('.') && world.exists(&path, false) {
            return world.read(format!("{path} {parameter}").trim_end());
        }
    }
    world.read(call.trim())
}

/// The handler of the script's own element that a name may mean.
pub(super) fn own(name: &str, world: &dyn World) -> Option<String> {
    if !name.contains('.') {
        return Some(name.to_owned());
    }
    let full = world.full_name(name);
    full.strip_prefix(world.name())?.strip_prefix('.').map(str::to_owned)
}

/// The whole name of the handler that is called, and its parameter.
pub(super) fn called(call: &str, machine: &Machine, world: &mut dyn World) -> String {
    let (name, parameter) = shift_word(call);
    let path = format!("{}.{name}", world.name());
    let is_own = !name.contains('.')
        && (functions::is_one(name)
            || machine.exported(name).is_some()
            || world.exists(&path, false)
            || machine::OWN_WRITES.contains(&name));
    let full = if is_own { path } else { world.full_name(name) };
    match parameter.is_empty() {
        true => full,
        false => format!("{full} {parameter}"),
    }
}
