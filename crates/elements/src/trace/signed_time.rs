//! Times that may be negative, in arguments and handlers of this room.

use castanet_element::prelude::*;

/// A time in nanoseconds, which may be negative: `1.5`, `-20ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignedTime(pub(super) i64);

impl FromArg for SignedTime {
    const SYNTAX: &'static str = "a time such as 1.5s, +2 or -20ms";

    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let time = Duration::from_arg(text, names)?;
        let nanos = i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        Ok(SignedTime(if negative { -nanos } else { nanos }))
    }
}

impl From<SignedTime> for Value {
    fn from(time: SignedTime) -> Value {
        Value::Text(seconds(time.0))
    }
}

/// Seconds as Click prints time stamps: with six decimals, or nine if they are no whole microseconds.
pub(super) fn seconds(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.unsigned_abs();
    let (seconds, nanos) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    match nanos % 1000 {
        0 => format!("{sign}{seconds}.{:06}", nanos / 1000),
        _ => format!("{sign}{seconds}.{nanos:09}"),
    }
}
