//! Why a configuration or a handler's value was refused.

use std::fmt;

/// Why a configuration was refused: what is wrong, where in the text, and
/// what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgError {
    place: String,
    message: String,
    click: Option<String>,
    /// Help: a way to put it right.
    pub hint: Option<String>,
    /// Byte offset and length within the configuration text.
    pub range: Option<(usize, usize)>,
}

impl ArgError {
    /// An error that says `message`.
    pub fn new(message: impl Into<String>) -> Self {
        ArgError {
            place: String::new(),
            message: message.into(),
            click: None,
            hint: None,
            range: None,
        }
    }
    /// The system's error about a file.
    pub fn of_file(path: impl fmt::Display, error: &std::io::Error) -> Self {
        ArgError::new(format!("{path}: {}", castanet_lang::io_error_text(error)))
    }
    /// Click's words for it, where they differ; empty if Click says nothing.
    pub fn click(mut self, words: impl Into<String>) -> Self {
        self.click.get_or_insert(words.into());
        self
    }
    /// The same error, in Click's words for this place rather than in those
    /// for its type.
    pub fn reworded(mut self, words: impl Into<String>) -> Self {
        self.click = Some(words.into());
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
        };
        self
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
        let words = self.click.as_ref().unwrap_or(&self.message);
        let colon = if self.place.is_empty() { "" } else { ": " };
        (!words.is_empty()).then(|| format!("{}{colon}{words}", self.place))
    }
    /// The message in Castanet's words, without the hint.
    pub fn message(&self) -> String {
        let colon = if self.place.is_empty() { "" } else { ": " };
        format!("{}{colon}{}", self.place, self.message)
    }
}

impl fmt::Display for ArgError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())?;
        self.hint.iter().try_for_each(|hint| write!(f, "; {hint}"))
    }
}

impl std::error::Error for ArgError {}
