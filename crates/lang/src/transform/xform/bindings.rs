//! Variables in the configuration strings of patterns: binds them to arguments, and substitutes
//! them.

use std::collections::BTreeMap;

use crate::args;

/// Values of variables by name.
pub(super) type Bindings = BTreeMap<String, String>;

/// Binds the variables in a pattern's arguments so that these are the arguments of a configuration
/// string; returns whether that is possible. In either case, the names of new bindings are in
/// `trail`.
pub(super) fn unify(
    pattern: &[String],
    config: &str,
    bindings: &mut Bindings,
    trail: &mut Vec<String>,
) -> bool {
    let args = args::split(config);
    args.len() == pattern.len()
        && pattern.iter().zip(args).all(|(want, have)| {
            let Some(name) = variable(want) else { return *want == have.text };
            match bindings.get(name) {
                Some(known) => *known == have.text,
                None => {
                    trail.push(name.to_owned());
                    bindings.insert(name.to_owned(), have.text);
                    true
                }
            }
        })
}

/// Returns the name of a variable, if an argument is one.
fn variable(arg: &str) -> Option<&str> {
    let name = arg.strip_prefix('$')?;
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    (!name.is_empty() && name.bytes().all(word)).then_some(name)
}

/// Substitutes the variables of a configuration string outside quotes.
pub(super) fn substitute(config: &str, bindings: &Bindings) -> String {
    let mut out = String::new();
    let mut at = 0;
    while at < config.len() {
        let rest = &config[at..];
        let (name, length) = reference(rest);
        let end = match name.and_then(|name| bindings.get(name)) {
            Some(value) => {
                out.push_str(value);
                at + length
            }
            None => {
                let end = at + args::skip_item(config, at).saturating_sub(at).max(length);
                out.push_str(&config[at..end]);
                end
            }
        };
        at = end;
    }
    out
}

/// Returns the name of the variable with which a text begins, `$name` or `${name}`, and the length
/// of the reference in bytes.
fn reference(text: &str) -> (Option<&str>, usize) {
    let Some(rest) = text.strip_prefix('$') else { return (None, 0) };
    let word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    if let Some(inner) = rest.strip_prefix('{') {
        let length = inner.bytes().take_while(|b| word(b)).count();
        let closed = length > 0 && inner[length..].starts_with('}');
        return if closed { (Some(&inner[..length]), length + 3) } else { (None, 0) };
    }
    let length = rest.bytes().take_while(|b| word(b)).count();
    if length > 0 { (Some(&rest[..length]), length + 1) } else { (None, 0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(pairs: &[(&str, &str)]) -> Bindings {
        pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    #[test]
    fn variables_match_whole_arguments() {
        let args = |text: &str| args::split(text).into_iter().map(|arg| arg.text).collect();
        for (pattern, config, want) in [
            ("$a", "1000", Some(vec![("a", "1000")])),
            ("$a, $b", "1 x, \"y, z\"", Some(vec![("a", "1 x"), ("b", "\"y, z\"")])),
            ("$a, $a", "1, 1", Some(vec![("a", "1")])),
            ("$a, $a", "1, 2", None),
            ("X $a", "X 5", None),
            ("$a", "", None),
            ("", "", Some(vec![])),
            ("7", "7", Some(vec![])),
            ("$", "$", Some(vec![])),
        ] {
            let pattern: Vec<String> = args(pattern);
            let (mut bindings, mut trail) = (Bindings::new(), Vec::new());
            let fits = unify(&pattern, config, &mut bindings, &mut trail);
            assert_eq!(fits.then_some(bindings), want.map(|want| bound(&want)), "{pattern:?}");
        }
    }

    #[test]
    fn variables_are_substituted_outside_quotes() {
        let bindings = bound(&[("a", "5 x"), ("b", "é")]);
        for (config, want) in [
            ("$a, BURST $b", "5 x, BURST é"),
            ("${a}y, $ab, ${, $", "5 xy, $ab, ${, $"),
            ("'$a', \"$a\", $c", "'$a', \"$a\", $c"),
        ] {
            assert_eq!(substitute(config, &bindings), want);
        }
    }
}
