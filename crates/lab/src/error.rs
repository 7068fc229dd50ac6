//! What can go wrong while a test network is built or used.

use std::fmt;
use std::time::Duration;

/// The result of every lab operation.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a test network could not do what was asked.
#[derive(Debug)]
pub enum Error {
    /// Namespaces need root (`CAP_SYS_ADMIN`).
    NotRoot,
    /// The kernel refuses to make network namespaces; the text is what `ip` said.
    NoNamespaces(String),
    /// Programs that are not installed, and the Debian packages that hold them.
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
        /// Its exit status, in words.
        status: String,
        /// All that it printed.
        printed: String,
    },
    /// A command, or a line awaited from it, took too long.
    TimedOut {
        /// The command line.
        command: String,
        /// How long it was given.
        after: Duration,
        /// All that it had printed.
        printed: String,
    },
    /// A process ended before it printed the awaited text.
    Ended {
        /// The command line.
        command: String,
        /// The text that never came.
        awaited: String,
        /// All that it printed.
        printed: String,
    },
    /// The program was interrupted and its networks are being removed.
    Interrupted,
    /// The operating system refused; the first part says what was tried.
    Io(String, std::io::Error),
}

impl Error {
    /// Turns an operating-system error into ours, saying what was tried.
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> Error {
        let doing = doing.into();
        move |error| Error::Io(doing, error)
    }

    /// Whether this machine cannot have test networks at all, as against one that broke.
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Error::NotRoot | Error::NoNamespaces(_) | Error::MissingTools { .. })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotRoot => write!(f, "network namespaces need root: run this with sudo"),
            Error::NoNamespaces(said) => {
                write!(f, "this machine makes no network namespaces: {}", said.trim())
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
            Error::Interrupted => write!(f, "interrupted"),
            Error::Io(doing, error) => write!(f, "cannot {doing}: {error}"),
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
