//! Errors of building or using a test network.

use std::fmt;
use std::time::Duration;

/// The result of every lab operation.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of a test network.
#[derive(Debug)]
pub enum Error {
    /// Namespaces need root (`CAP_SYS_ADMIN`).
    NotRoot,
    /// The kernel refuses to create network namespaces; the text is the message of `ip`.
    NoNamespaces(String),
    /// Programs that are not installed, and the Debian packages that contain them.
    MissingTools {
        /// The programs.
        tools: Vec<String>,
        /// The packages.
        packages: Vec<String>,
    },
    /// A command ended with an error.
    Failed {
        /// The command line.
        command: String,
        /// Its exit status, as text.
        status: String,
        /// Its output.
        printed: String,
    },
    /// A command, or the wait for a text that it prints, took too long.
    TimedOut {
        /// The command line.
        command: String,
        /// The timeout.
        after: Duration,
        /// Its output so far.
        printed: String,
    },
    /// A process ended before it printed the awaited text.
    Ended {
        /// The command line.
        command: String,
        /// The awaited text.
        awaited: String,
        /// Its output.
        printed: String,
    },
    /// The browser refused a step of a test, or did not reach the awaited state.
    Browser {
        /// The step.
        step: String,
        /// The browser's message, or the state that it has reached.
        message: String,
    },
    /// The program was interrupted and its networks are being removed.
    Interrupted,
    /// An error of the operating system, with the action that failed.
    Io(String, std::io::Error),
}

impl Error {
    /// Returns a function that wraps an operating-system error with the action that failed.
    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(std::io::Error) -> Error {
        let action = action.into();
        move |error| Error::Io(action, error)
    }

    /// Whether this machine cannot run test networks at all.
    pub(crate) fn is_unsupported(&self) -> bool {
        matches!(self, Error::NotRoot | Error::NoNamespaces(_) | Error::MissingTools { .. })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotRoot => write!(f, "network namespaces need root: run this with sudo"),
            Error::NoNamespaces(output) => {
                write!(f, "this machine makes no network namespaces: {}", output.trim())
            }
            Error::MissingTools { tools, packages } => write!(
                f,
                "not installed: {}; on Debian: apt-get install {}",
                tools.join(", "),
                packages.join(" ")
            ),
            Error::Failed { command, status, printed } => {
                write!(f, "`{command}` ended with {status}\n{}", printed.trim_end())
            }
            Error::TimedOut { command, after, printed } => write!(
                f,
                "`{command}` was not done after {:.1} s\n{}",
                after.as_secs_f64(),
                printed.trim_end()
            ),
            Error::Ended { command, awaited, printed } => {
                write!(f, "`{command}` ended without printing `{awaited}`\n{}", printed.trim_end())
            }
            Error::Browser { step, message } => {
                write!(f, "the browser failed to {step}: {}", message.trim_end())
            }
            Error::Interrupted => write!(f, "interrupted"),
            Error::Io(action, error) => write!(f, "cannot {action}: {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io(_, error) => Some(error),
            _ => None,
        }
    }
}
