//! The functions of the language: handlers that every script has.

use super::World;
use super::machine::Machine;
use super::number::{integer, real, show, truth};
use super::sprintf::{sprintf, words};
use castanet_lang::args::{quote, unquote};
use std::cmp::Ordering;

/// Names of all functions, and what each answers.
pub const FUNCTIONS: &[(&str, &str)] = &[
    ("add", "The sum of numbers."),
    ("sub", "The first number without the others."),
    ("mul", "The product of numbers."),
    ("div", "The first number divided by the others."),
    ("idiv", "The same, cut to an integer."),
    ("mod", "The remainder of two integers."),
    ("rem", "The remainder of two numbers."),
    ("neg", "The negative of a number."),
    ("abs", "A number without its sign."),
    ("min", "The least of numbers."),
    ("max", "The greatest of numbers."),
    ("avg", "The average of numbers."),
    ("count", "How many numbers."),
    ("popcount", "How many of the numbers are not zero."),
    ("gt_vec", "How many of the numbers after the first are greater than it."),
    ("eq", "Whether two values are equal."),
    ("ne", "Whether two values differ."),
    ("gt", "Whether the first of two values is greater."),
    ("ge", "Whether the first of two values is greater or equal."),
    ("lt", "Whether the first of two values is less."),
    ("le", "Whether the first of two values is less or equal."),
    ("not", "Whether a truth value is false."),
    ("and", "Whether all truth values are true."),
    ("or", "Whether any truth value is true."),
    ("nand", "Whether any truth value is false."),
    ("nor", "Whether all truth values are false."),
    ("if", "The second of three values if the first is true, else the third."),
    ("in", "Whether the first value is among the others."),
    ("first", "The first of several values."),
    ("length", "How many bytes the text has."),
    ("unquote", "The text without a layer of quotes."),
    ("sprintf", "Values in a format, as in C."),
    ("random", "A random integer, below a number or between two."),
    ("readable", "Whether all these read handlers exist."),
    ("writable", "Whether all these write handlers exist."),
    ("now", "The time in seconds since 1970."),
    ("hz", "How many ticks Click's clock has a second."),
    ("cat", "The contents of a file."),
    ("catq", "The contents of a file, quoted."),
    ("get", "The value of a variable."),
];

/// Calls a function; `None` if there is none of that name.
pub fn call(
    name: &str,
    text: &str,
    machine: &Machine,
    world: &mut dyn World,
) -> Option<Result<String, String>> {
    let list = words(text);
    Some(match name {
        "add" | "sub" | "mul" | "div" | "idiv" | "min" | "max" | "avg" | "count" | "popcount"
        | "gt_vec" => fold(name, &list),
        "mod" | "rem" | "neg" | "abs" => arithmetic(name, &list),
        "eq" | "ne" | "gt" | "ge" | "lt" | "le" => compare(name, &list),
        "not" | "and" | "or" | "nand" | "nor" => logic(name, &list),
        "if" => match list.as_slice() {
            [condition, yes, no] => truth(condition)
                .map(|holds| if holds { yes } else { no }.to_string())
                .ok_or_else(syntax),
            _ => Err(syntax()),
        },
        "in" => {
            let plain: Vec<String> = list.iter().map(|w| unquote(w)).collect();
            let found = plain.split_first().is_some_and(|(x, rest)| rest.contains(x));
            Ok(found.to_string())
        }
        "first" => Ok(list.first().copied().unwrap_or_default().to_owned()),
        "length" => Ok(text.len().to_string()),
        "unquote" => Ok(unquote(text)),
        "sprintf" => sprintf(&list),
        "random" => random(&list, world.random()),
        "readable" | "writable" => {
            let all = list.iter().all(|handler| world.exists(handler, name == "writable"));
            Ok(all.to_string())
        }
        "now" => {
            let now = world.now();
            Ok(format!("{}.{:09}", now.div_euclid(1_000_000_000), now.rem_euclid(1_000_000_000)))
        }
        "hz" => Ok("1000".into()),
        "cat" => world.load(&unquote(text)),
        "catq" => world.load(&unquote(text)).map(|text| quote(&text)),
        "get" => machine
            .get(text.trim())
            .map(str::to_owned)
            .ok_or_else(|| format!("no variable '{}'", text.trim())),
        _ => return None,
    })
}

fn syntax() -> String {
    "syntax error".into()
}

fn numbers() -> String {
    "expected list of numbers".into()
}

/// Integers while all are integers and the function stays among them, else
/// real numbers.
fn fold(name: &str, list: &[&str]) -> Result<String, String> {
    let reals: Option<Vec<f64>> = list.iter().map(|w| real(w)).collect();
    let reals = reals.ok_or_else(numbers)?;
    let first = reals.first().copied().unwrap_or(0.0);
    match name {
        "count" => return Ok(list.len().to_string()),
        "popcount" => return Ok(reals.iter().filter(|x| x.abs() > 1e-5).count().to_string()),
        "gt_vec" => return Ok(reals.iter().skip(1).filter(|x| **x > first).count().to_string()),
        _ => {}
    }
    let integers: Option<Vec<i64>> = list.iter().map(|w| integer(w)).collect();
    if let (Some(integers), "add" | "sub" | "mul" | "min" | "max") = (integers, name) {
        let combine = |a: i64, b: i64| match name {
            "add" => a.wrapping_add(b),
            "sub" => a.wrapping_sub(b),
            "mul" => a.wrapping_mul(b),
            "min" => a.min(b),
            _ => a.max(b),
        };
        let empty = i64::from(name == "mul");
        return Ok(integers.into_iter().reduce(combine).unwrap_or(empty).to_string());
    }
    let combine = |a: f64, b: f64| match name {
        "add" | "avg" => a + b,
        "sub" => a - b,
        "mul" => a * b,
        "min" => a.min(b),
        "max" => a.max(b),
        _ => a / b,
    };
    let count = reals.len().max(1) as f64;
    let result = reals.into_iter().reduce(combine).unwrap_or(1.0);
    Ok(match name {
        "idiv" => (result as i64).to_string(),
        "avg" => show(result / count),
        _ => show(result),
    })
}

fn arithmetic(name: &str, list: &[&str]) -> Result<String, String> {
    match (name, list) {
        ("mod", [a, b]) => match (integer(a), integer(b)) {
            (Some(a), Some(b)) => {
                a.checked_rem(b).map(|r| r.to_string()).ok_or("division by zero".into())
            }
            _ => Err("expected integers".into()),
        },
        ("rem", [a, b]) => match (integer(a), integer(b), real(a), real(b)) {
            (Some(a), Some(b), ..) if b != 0 => Ok(a.wrapping_rem(b).to_string()),
            (_, _, Some(a), Some(b)) => Ok(show(a % b)),
            _ => Err(numbers()),
        },
        ("neg" | "abs", [a]) => match (integer(a), real(a)) {
            (Some(n), _) if name == "neg" => Ok(n.wrapping_neg().to_string()),
            (Some(n), _) => Ok(n.unsigned_abs().to_string()),
            (None, Some(x)) => Ok(show(if name == "neg" { -x } else { x.abs() })),
            _ => Err("expected number".into()),
        },
        ("mod" | "rem", _) => Err("expected two numbers".into()),
        _ => Err("expected number".into()),
    }
}

/// As numbers if both are, else as texts byte by byte.
fn compare(name: &str, list: &[&str]) -> Result<String, String> {
    let [a, b] = list else { return Err("expected two numbers".into()) };
    let order = match (integer(a), integer(b), real(a), real(b)) {
        (Some(a), Some(b), ..) => Some(a.cmp(&b)),
        (_, _, Some(a), Some(b)) => a.partial_cmp(&b),
        _ => Some(unquote(a).cmp(&unquote(b))),
    };
    Ok(match name {
        "eq" => order == Some(Ordering::Equal),
        "ne" => order != Some(Ordering::Equal),
        "gt" => order == Some(Ordering::Greater),
        "ge" => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        "lt" => order == Some(Ordering::Less),
        _ => matches!(order, Some(Ordering::Less | Ordering::Equal)),
    }
    .to_string())
}

fn logic(name: &str, list: &[&str]) -> Result<String, String> {
    let values: Option<Vec<bool>> = list.iter().map(|w| truth(w)).collect();
    let values = values.ok_or_else(syntax)?;
    let (all, any) = (values.iter().all(|v| *v), values.contains(&true));
    Ok(match name {
        "not" if values.len() != 1 => return Err(syntax()),
        "not" | "nand" => !all,
        "and" => all,
        "or" => any,
        _ => !any,
    }
    .to_string())
}

fn random(list: &[&str], bits: u64) -> Result<String, String> {
    let bounds: Option<Vec<i64>> = list.iter().map(|w| integer(w)).collect();
    let (low, high) = match bounds.as_deref() {
        Some([]) => (0, i64::from(i32::MAX)),
        Some([n]) if *n > 0 => (0, n - 1),
        Some([a, b]) if a <= b => (*a, *b),
        _ => return Err(syntax()),
    };
    let span = (i128::from(high) - i128::from(low) + 1) as u128;
    Ok((i128::from(low) + (u128::from(bits) % span) as i128).to_string())
}
