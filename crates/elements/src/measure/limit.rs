//! Counts at which an element calls a handler, as arguments of counting elements.

use castanet_element::prelude::*;

/// A count, and the handler that is written when it is reached: `N HANDLER VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    /// The count that is the limit.
    pub(crate) at: u64,
    /// The handler and its value.
    pub(crate) call: Call,
}

impl FromArg for Limit {
    const SYNTAX: &'static str = "a count, a write handler and its value";

    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        let (at, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text, ""));
        let wrong = || ArgError::new(format!("it wants {}", Self::SYNTAX));
        let at =
            u64::from_arg(at, names).map_err(|_| wrong().click("should be `N HANDLER [VALUE]'"))?;
        Ok(Limit { at, call: Call::from_arg(rest.trim(), names)? })
    }
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Limit { at, call: Call { handler, value } } = self;
        write!(f, "{at} {handler}{}{value}", if value.is_empty() { "" } else { " " })
    }
}

/// The limit of the arguments `what_STOP`, `what_FREEZE` and `what_CALL`, of which at most one may be given; `me` is the name of the element.
pub(crate) fn one_of(
    what: &str,
    me: &str,
    stop: Option<u64>,
    freeze: Option<u64>,
    call: &Option<Limit>,
) -> Result<Option<Limit>, ArgError> {
    let own_handler = |at, handler: &str, value: &str| {
        let handler = format!("{me}.{handler}");
        Limit { at, call: Call { handler, value: value.to_owned() } }
    };
    match (stop, freeze, call) {
        (None, None, call) => Ok(call.clone()),
        (Some(at), None, None) => Ok(Some(own_handler(at, "stop", ""))),
        (None, Some(at), None) => Ok(Some(own_handler(at, "freeze", "true"))),
        _ => Err(ArgError::new(format!(
            "'{what}_FREEZE', '{what}_STOP', and '{what}_CALL' are mutually exclusive"
        ))),
    }
}

/// A count, and the handler that is written when it is reached, if any: `N [HANDLER VALUE]`.
#[derive(Clone, Debug)]
pub(crate) struct CallAt {
    count: u64,
    call: Option<Call>,
}

impl FromArg for CallAt {
    const SYNTAX: &'static str = "a count, a write handler and its value";

    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        let (count, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text, ""));
        let count = u64::from_arg(count, names).map_err(|e| e.reworded("type mismatch"))?;
        let call = match rest.trim() {
            "" => None,
            rest => Some(Call::from_arg(rest, names)?),
        };
        Ok(CallAt { count, call })
    }
}

impl CallAt {
    /// The count.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The handler.
    pub(crate) fn handler(self) -> Option<String> {
        Some(self.call?.handler)
    }

    /// The call to make, if the count is reached by the `more` that come after `before`.
    pub(crate) fn due(&self, before: u64, more: u64) -> Option<&Call> {
        let CallAt { count, call } = self;
        call.as_ref().filter(|_| before < *count && before + more >= *count)
    }
}
