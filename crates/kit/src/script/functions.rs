//! The functions of the language: handlers that every script has.

use super::Environment;
use super::interpreter::Interpreter;
use super::number::{format_real, integer, real};
use super::sprintf::{sprintf, words};
use crate::rng::in_range;
use crate::text::parse_bool;
use castanet_lang::args::{quote, shift_word, unquote};
use std::cmp::Ordering;

/// The names of all functions and their manual texts.
pub const FUNCTIONS: &[(&str, &str)] = &[
    ("add", "The sum of numbers."),
    ("sub", "The first number without the others."),
    ("mul", "The product of numbers."),
    ("div", "The first number divided by the others."),
    ("idiv", "The same, cut to an integer."),
    ("ceil", "The least integer that is no less than a number."),
    ("floor", "The greatest integer that is no greater than a number."),
    ("round", "The integer nearest to a number, of two the one farther from zero."),
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
    ("htons", "A 16-bit number in network byte order."),
    ("htonl", "A 32-bit number in network byte order."),
    ("ntohs", "A 16-bit number from network byte order."),
    ("ntohl", "A 32-bit number from network byte order."),
    ("now", "The time in seconds since 1970."),
    ("now_steady", "The time in seconds by a clock that is never set."),
    ("hz", "How many ticks Click's clock has a second."),
    ("cat", "The contents of a file."),
    ("catq", "The contents of a file, quoted."),
    ("kill", "Sends a signal, by name or number, to processes."),
    ("get", "The value of a variable."),
    ("shift", "Takes the first word off a variable, `args` unless another is named."),
];

/// Functions that cannot be called as handlers from outside: they access files and processes.
pub const PRIVATE: &[&str] = &["cat", "catq", "kill"];

/// Calls a function; `None` if there is none of that name.
pub fn call(
    name: &str,
    text: &str,
    interp: &mut Interpreter,
    env: &mut dyn Environment,
) -> Option<Result<String, String>> {
    let list = words(text);
    Some(match name {
        "add" | "sub" | "mul" | "div" | "idiv" | "min" | "max" | "avg" | "count" | "popcount"
        | "gt_vec" => fold(name, &list),
        "mod" | "rem" | "neg" | "abs" | "ceil" | "floor" | "round" => arithmetic(name, &list),
        "eq" | "ne" | "gt" | "ge" | "lt" | "le" => compare(name, &list),
        "not" | "and" | "or" | "nand" | "nor" => logic(name, &list),
        "htons" | "htonl" | "ntohs" | "ntohl" => network_order(name, text),
        "if" => match list.first().and_then(|word| parse_bool(word)) {
            Some(holds) => {
                Ok(list.get(if holds { 1 } else { 2 }).copied().unwrap_or("").to_owned())
            }
            None => Err(syntax()),
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
        "random" => random(&list, || env.random()),
        "readable" | "writable" => {
            let all = list.iter().all(|handler| env.exists(handler, name == "writable"));
            Ok(all.to_string())
        }
        "now" => Ok(format_seconds(env.now())),
        "now_steady" => Ok(format_seconds(env.steady())),
        "hz" => Ok("1000".into()),
        "cat" | "catq" if text.trim().is_empty() => Err("bad FILE".into()),
        "cat" => env.load(name, &unquote(text)),
        "catq" => env.load(name, &unquote(text)).map(|text| quote(&text)),
        "kill" => kill(&list, env),
        "get" | "shift" => variable(name, &list, interp),
        _ => return None,
    })
}

/// Whether there is a function of that name.
pub(super) fn is_function(name: &str) -> bool {
    FUNCTIONS.iter().any(|(function, _)| *function == name)
}

/// Seconds with six digits behind the point, or with nine if six are not enough.
fn format_seconds(nanos: i64) -> String {
    let (seconds, rest) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
    match rest % 1000 {
        0 => format!("{seconds}.{:06}", rest / 1000),
        _ => format!("{seconds}.{rest:09}"),
    }
}

fn variable(name: &str, list: &[&str], interp: &mut Interpreter) -> Result<String, String> {
    let variable = match (name, list) {
        (_, [variable]) => *variable,
        ("shift", []) => "args",
        (_, []) => return Err("no variable".into()),
        _ => return Err("too many arguments".into()),
    };
    let value = interp.value(variable);
    let value = value.ok_or_else(|| format!("undefined variable '{variable}'"))?.to_owned();
    if name == "get" {
        return Ok(value);
    }
    let (first, rest) = shift_word(&value);
    interp.assign(variable, rest)?;
    Ok(first.to_owned())
}

/// Signals that have names in scripts.
const SIGNALS: &[(&str, i32)] = &[
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ABRT", 6),
    ("USR1", 10),
    ("USR2", 12),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
    ("TSTP", 20),
    ("IO", 29),
];

/// The number of a signal, by name or number.
pub fn signal(text: &str) -> Option<i32> {
    let named = SIGNALS.iter().find(|(name, _)| *name == text).map(|(_, number)| *number);
    let number = || integer(text).filter(|n| (0..32).contains(n)).and_then(|n| n.try_into().ok());
    named.or_else(number)
}

fn kill(list: &[&str], env: &mut dyn Environment) -> Result<String, String> {
    let (first, processes) = list.split_first().ok_or("bad SIGNO")?;
    let signal = signal(first).ok_or("bad SIGNO")?;
    for process in processes {
        let process = integer(process).and_then(|n| i32::try_from(n).ok()).ok_or("bad PID")?;
        env.kill(process, signal).map_err(|error| format!("kill({process}, {signal}): {error}"))?;
    }
    Ok(String::new())
}

fn network_order(name: &str, text: &str) -> Result<String, String> {
    let n = integer(text.trim()).ok_or_else(syntax)?;
    // As C's functions, with the value truncated.
    Ok(match name.ends_with('s') {
        true => (n as u16).to_be().to_string(),
        false => (n as u32).to_be().to_string(),
    })
}

fn syntax() -> String {
    "syntax error".into()
}

fn not_numbers() -> String {
    "expected list of numbers".into()
}

/// Computes with integers if all are integers and the function has integer results, else with real
/// numbers.
fn fold(name: &str, list: &[&str]) -> Result<String, String> {
    let reals: Option<Vec<f64>> = list.iter().map(|w| real(w)).collect();
    let reals = reals.ok_or_else(not_numbers)?;
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
        let empty = i64::from(!matches!(name, "add" | "sub"));
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
        "avg" => format_real(result / count),
        _ => format_real(result),
    })
}

fn arithmetic(name: &str, list: &[&str]) -> Result<String, String> {
    let two = || String::from("expected two numbers");
    match (name, list) {
        ("mod" | "rem", [a, b]) => match (integer(a), integer(b), real(a), real(b)) {
            (Some(_), Some(0), ..) => Err("division by zero".into()),
            (Some(a), Some(b), ..) => Ok(a.wrapping_rem(b).to_string()),
            (_, _, Some(a), Some(b)) if name == "rem" => Ok(format_real(a % b)),
            _ => Err(two()),
        },
        ("neg" | "abs" | "ceil" | "floor" | "round", [a]) => match (integer(a), real(a), name) {
            (Some(n), _, "neg") => Ok(n.wrapping_neg().to_string()),
            (Some(n), _, "abs") => Ok(n.unsigned_abs().to_string()),
            (Some(n), ..) => Ok(n.to_string()),
            (None, Some(x), "neg") => Ok(format_real(-x)),
            (None, Some(x), "abs") => Ok(format_real(x.abs())),
            (None, Some(x), "floor") => Ok(format_real(x.floor())),
            (None, Some(x), "round") => Ok(format_real(x.round())),
            (None, Some(x), _) => Ok(format_real(x.ceil())),
            (None, None, _) => Err("expected one number".into()),
        },
        ("mod" | "rem", _) => Err(two()),
        _ => Err("expected one number".into()),
    }
}

/// Compares as numbers if both are, else as texts byte by byte.
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

/// Words after the one that decides are not evaluated, as in Click.
fn logic(name: &str, list: &[&str]) -> Result<String, String> {
    if name == "not" {
        let [word] = list else { return Err(syntax()) };
        return parse_bool(word).map(|value| (!value).to_string()).ok_or_else(syntax);
    }
    let (all, negated) = (matches!(name, "and" | "nand"), matches!(name, "nand" | "nor"));
    let mut value = all;
    for word in list {
        value = parse_bool(word).ok_or_else(syntax)?;
        if value != all {
            break;
        }
    }
    Ok((value != negated).to_string())
}

/// A random number; `draw` returns 31 random bits.
fn random(list: &[&str], mut draw: impl FnMut() -> u32) -> Result<String, String> {
    let bounds: Option<Vec<i64>> = list.iter().map(|w| integer(w)).collect();
    let (low, high) = match bounds.as_deref() {
        Some([]) => (0, i64::from(i32::MAX)),
        Some([n]) if *n > 0 => (0, n - 1),
        Some([a, b]) if 0 <= *a && a <= b => (*a, *b),
        _ => return Err("bad N".into()),
    };
    if let (Ok(low), Ok(high)) = (u32::try_from(low), u32::try_from(high)) {
        return Ok(in_range(low, high, draw).to_string());
    }
    let bits = u128::from(draw()) << 62 | u128::from(draw()) << 31 | u128::from(draw());
    let span = (i128::from(high) - i128::from(low) + 1) as u128;
    Ok((i128::from(low) + (bits % span) as i128).to_string())
}
