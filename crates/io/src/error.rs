//! Errors of opening devices and files, with hints.

use castanet_element::args::io_error_text;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// The reason why a device or a file cannot be opened.
#[derive(Debug)]
pub enum IoError {
    /// There is no interface of this name.
    NoInterface {
        /// The name in the configuration.
        name: String,
        /// The most similar existing name.
        nearest: Option<String>,
        /// The names of all interfaces.
        known: Vec<String>,
    },
    /// The process lacks a permission.
    NotPermitted {
        /// The attempted action, as in "cannot …".
        doing: String,
        /// The missing capability.
        needs: &'static str,
    },
    /// The interface carries neither Ethernet frames nor bare IP packets.
    Link {
        /// The interface.
        name: String,
        /// Its hardware type (`ARPHRD_…`).
        hardware: u16,
    },
    /// Another program uses the device.
    Busy {
        /// The attempted action.
        doing: String,
    },
    /// This kernel lacks the feature.
    Unsupported {
        /// The attempted action.
        doing: String,
        /// A hint.
        hint: &'static str,
    },
    /// The interface is unsuitable.
    Unfit {
        /// The attempted action.
        doing: String,
        /// The reason.
        why: String,
    },
    /// A file cannot be read or written.
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// Any other error of the kernel.
    Os {
        /// The attempted action.
        doing: String,
        /// The kernel's error.
        error: io::Error,
    },
}

impl IoError {
    /// Makes the error for an attempt at `doing` from the kernel's error.
    pub(crate) fn new(doing: impl Into<String>, error: io::Error) -> IoError {
        let doing = doing.into();
        match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                IoError::NotPermitted { doing, needs: "CAP_NET_ADMIN" }
            }
            Some(libc::EBUSY) => IoError::Busy { doing },
            _ => IoError::Os { doing, error },
        }
    }

    /// As [`new`](Self::new), for actions that need the right to use raw sockets.
    pub(crate) fn raw(doing: impl Into<String>, error: io::Error) -> IoError {
        match IoError::new(doing, error) {
            IoError::NotPermitted { doing, .. } => {
                IoError::NotPermitted { doing, needs: "CAP_NET_RAW" }
            }
            other => other,
        }
    }
}

impl IoError {
    /// Returns whether the error is that there is no such interface.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, IoError::NoInterface { .. })
    }

    /// Returns whether the error is that a file does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, IoError::File { error, .. } if error.kind() == io::ErrorKind::NotFound)
    }
}

impl fmt::Display for IoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IoError::NoInterface { name, nearest: Some(nearest), .. } => {
                write!(f, "no network interface is called ‘{name}’; did you mean ‘{nearest}’?")
            }
            IoError::NoInterface { name, known, .. } if known.is_empty() => {
                write!(f, "no network interface is called ‘{name}’; there are none at all")
            }
            IoError::NoInterface { name, known, .. } => {
                let known = known.join(", ");
                write!(f, "no network interface is called ‘{name}’; there are {known}")
            }
            IoError::NotPermitted { doing, needs } => {
                write!(f, "cannot {doing}: not permitted; run as root or with {needs}")
            }
            IoError::Link { name, hardware } => write!(
                f,
                "interface ‘{name}’ (hardware type {hardware}) carries neither Ethernet nor bare IP"
            ),
            IoError::Busy { doing } => write!(f, "cannot {doing}: another program holds it"),
            IoError::Unfit { doing, why } => write!(f, "cannot {doing}: {why}"),
            IoError::Unsupported { doing, hint } => write!(f, "cannot {doing}: {hint}"),
            IoError::File { path, error } => {
                // The path and the reason, in the usual Unix form.
                write!(f, "{}: {}", path.display(), io_error_text(error))
            }
            IoError::Os { doing, error } => write!(f, "cannot {doing}: {error}"),
        }
    }
}

impl std::error::Error for IoError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            IoError::File { error, .. } | IoError::Os { error, .. } => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn os(code: i32) -> io::Error {
        io::Error::from_raw_os_error(code)
    }

    #[test]
    fn messages_say_what_and_what_would_be_right() {
        let missing = |nearest: Option<&str>, known: &[&str]| IoError::NoInterface {
            name: "eht0".into(),
            nearest: nearest.map(Into::into),
            known: known.iter().map(|&n| n.into()).collect(),
        };
        for (error, text) in [
            (
                missing(Some("eth0"), &["lo", "eth0"]),
                "no network interface is called ‘eht0’; did you mean ‘eth0’?",
            ),
            (
                missing(None, &["lo", "wan"]),
                "no network interface is called ‘eht0’; there are lo, wan",
            ),
            (missing(None, &[]), "no network interface is called ‘eht0’; there are none at all"),
            (
                IoError::raw("open a packet socket", os(libc::EPERM)),
                "cannot open a packet socket: not permitted; run as root or with CAP_NET_RAW",
            ),
            (
                IoError::new("make tun0", os(libc::EPERM)),
                "cannot make tun0: not permitted; run as root or with CAP_NET_ADMIN",
            ),
            (
                IoError::new("open queue 2 of tap0", os(libc::EBUSY)),
                "cannot open queue 2 of tap0: another program holds it",
            ),
            (
                IoError::Link { name: "can0".into(), hardware: 280 },
                "interface ‘can0’ (hardware type 280) carries neither Ethernet nor bare IP",
            ),
        ] {
            assert_eq!(error.to_string(), text);
        }
    }
}
