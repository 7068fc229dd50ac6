//! Why a configuration or a handler's value was refused.

use std::fmt;

/// Why a configuration was refused: what is wrong, where in the text, and
/// what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgError {
    place: Box<str>,
    write: Option<Box<WriteContext>>,
    message: String,
    click: Option<Box<str>>,
    /// Whether Click says its words without the place.
    click_omits_place: bool,
    /// Help: a way to put it right.
    pub hint: Option<String>,
    /// Byte offset and length within the configuration text.
    pub range: Option<(usize, usize)>,
}

/// Details of an error of a handler that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
struct WriteContext {
    /// The handler, which Click does not name; empty if it is not known.
    handler: String,
    /// The value of `$?` in scripts.
    status: i32,
}

impl Default for WriteContext {
    fn default() -> WriteContext {
        WriteContext { handler: String::new(), status: -1 }
    }
}

impl ArgError {
    /// An error that says `message`.
    pub fn new(message: impl Into<String>) -> Self {
        ArgError {
            place: Box::default(),
            write: None,
            message: message.into(),
            click: None,
            click_omits_place: false,
            hint: None,
            range: None,
        }
    }
    /// All values, or one error that says all that is wrong with them.
    pub fn all<T>(results: impl IntoIterator<Item = Result<T, Self>>) -> Result<Vec<T>, Self> {
        let (mut values, mut errors) = (Vec::new(), Vec::new());
        for result in results {
            match result {
                Ok(value) => values.push(value),
                Err(error) => errors.push(error),
            }
        }
        match errors.len() {
            0 => Ok(values),
            1 => Err(errors.swap_remove(0)),
            _ => {
                let messages: Vec<String> = errors.iter().map(ArgError::message).collect();
                let clicks: Vec<String> =
                    errors.iter().filter_map(ArgError::in_click_words).collect();
                let omits_place = errors.iter().all(|error| error.click_omits_place);
                let error = ArgError::new(messages.join("; ")).click(clicks.join("\n"));
                Err(ArgError { click_omits_place: omits_place, ..error })
            }
        }
    }
    /// The system's error about a file.
    pub fn of_file(path: impl fmt::Display, error: &std::io::Error) -> Self {
        ArgError::new(format!("{path}: {}", castanet_lang::io_error_text(error)))
    }
    /// Click's words for it, where they differ; empty if Click says nothing.
    pub fn click(mut self, words: impl Into<String>) -> Self {
        self.click.get_or_insert_with(|| words.into().into_boxed_str());
        self
    }
    /// The same error, in Click's words for this place rather than in those
    /// for its type.
    pub fn reworded(mut self, words: impl Into<String>) -> Self {
        self.click = Some(words.into().into_boxed_str());
        self
    }
    /// The same error, which Click finds in the configuration as a whole: its words do not name the
    /// argument.
    pub fn unplaced(mut self) -> Self {
        self.click_omits_place = true;
        self
    }
    /// Adds help: a way to put it right.
    pub fn help(mut self, hint: impl Into<String>) -> Self {
        self.hint.get_or_insert(hint.into());
        self
    }
    /// The same error, saying first where it arose.
    pub fn at(mut self, place: impl fmt::Display) -> Self {
        self.place = match self.place.is_empty() {
            true => place.to_string(),
            false => format!("{place}: {}", self.place),
        }
        .into_boxed_str();
        self
    }
    /// The same error of a write of this handler, which Click does not name.
    pub fn of_handler(mut self, handler: &str) -> Self {
        handler.clone_into(&mut self.write.get_or_insert_default().handler);
        self
    }
    /// The same error with another value of `$?` than -1 in scripts, the negative of an error number.
    pub fn with_status(mut self, status: i32) -> Self {
        self.write.get_or_insert_default().status = status;
        self
    }
    /// The value of `$?` in a script that has caused the error.
    pub fn status(&self) -> i32 {
        self.write.as_ref().map_or(-1, |write| write.status)
    }
    /// The same error about `length` bytes at `offset`; a range already known
    /// is taken to be relative to `offset`.
    pub fn within(mut self, offset: usize, length: usize) -> Self {
        self.range = Some(match self.range {
            Some((from, inner)) => (offset + from, inner),
            None => (offset, length),
        });
        self
    }
    /// The message in Click's words; `None` if Click stays silent.
    pub fn in_click_words(&self) -> Option<String> {
        let words = self.click.as_deref().unwrap_or(&self.message);
        let place = if self.click_omits_place { "" } else { &*self.place };
        let colon = if place.is_empty() { "" } else { ": " };
        (!words.is_empty()).then(|| format!("{place}{colon}{words}"))
    }
    /// The message in Castanet's words, without the hint.
    pub fn message(&self) -> String {
        let colon = if self.place.is_empty() { "" } else { ": " };
        let handler = self.write.as_ref().filter(|write| !write.handler.is_empty());
        let handler = handler.map_or_else(String::new, |write| format!("{}: ", write.handler));
        format!("{handler}{}{colon}{}", self.place, self.message)
    }
}

impl fmt::Display for ArgError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())?;
        self.hint.iter().try_for_each(|hint| write!(f, "; {hint}"))
    }
}

impl std::error::Error for ArgError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_handler_that_was_written_stands_in_castanets_words_only() {
        let error = ArgError::new("too many").click("bad N").at("N").of_handler("limit");
        assert_eq!(error.message(), "limit: N: too many");
        assert_eq!((error.in_click_words().as_deref(), error.status()), (Some("N: bad N"), -1));
        let there = ArgError::new("is there").with_status(-17).of_handler("add");
        assert_eq!((there.message().as_str(), there.status()), ("add: is there", -17));
        assert_eq!(there.in_click_words().as_deref(), Some("is there"));
    }

    #[test]
    fn all_errors_become_one() {
        let ok = |n: u8| Ok::<u8, ArgError>(n);
        let wrong = |text: &str| Err(ArgError::new(text).click(format!("bad {text}")));
        assert_eq!(ArgError::all([ok(1), ok(2)]), Ok(vec![1, 2]));
        let error = ArgError::all([wrong("a"), ok(2), wrong("b")]).map(drop).expect_err("is wrong");
        assert_eq!(error.message(), "a; b");
        assert_eq!(error.in_click_words().as_deref(), Some("bad a\nbad b"));
    }

    #[test]
    fn click_names_no_argument_for_errors_of_the_whole_configuration() {
        let small = || ArgError::new("N is too small").unplaced();
        let error = small().at("N");
        assert_eq!(error.message(), "N: N is too small");
        assert_eq!(error.in_click_words().as_deref(), Some("N is too small"));
        let all =
            |errors: [ArgError; 2]| ArgError::all::<u8>(errors.map(Err)).expect_err("is wrong");
        let words = |errors| all(errors).at("N").in_click_words();
        assert_eq!(words([small(), small()]).as_deref(), Some("N is too small\nN is too small"));
        let mixed = words([small(), ArgError::new("b")]);
        assert_eq!(mixed.as_deref(), Some("N: N is too small\nb"));
    }
}
