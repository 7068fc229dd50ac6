//! Times that may be negative, in arguments and handlers of the elements about time stamps.

use castanet_engine::prelude::*;

/// Nanoseconds, which may be negative: `1.5`, `-20ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span(pub(super) i64);

impl FromArg for Span {
    const SYNTAX: &'static str = "a time such as 1.5s or -20ms";

    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let time = Duration::from_arg(text, names)?;
        let nanos = i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        Ok(Span(if negative { -nanos } else { nanos }))
    }
}

impl From<Span> for Value {
    fn from(span: Span) -> Value {
        Value::Text(seconds(span.0))
    }
}

/// Seconds with nine decimals, as Click prints time stamps.
pub(super) fn seconds(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.unsigned_abs();
    format!("{sign}{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}
