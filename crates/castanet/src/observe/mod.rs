//! Observation of a running router: totals, rates, drops, traces and captures, for live views, clients and
//! metrics.

pub(crate) mod capture;
pub(crate) mod drops;
pub(crate) mod edges;
pub(crate) mod log;
pub(crate) mod packet;
pub(crate) mod rates;
pub(crate) mod snapshot;
pub(crate) mod trace;

use castanet_element::error::ArgError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The most bytes of a packet that a trace or a capture copies: the longest IP packet and its frame.
const MAX_SNAP_LEN: usize = 65_535 + 64;

/// The number of a trace or of a capture, by which its client reads and stops it.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct SessionNumber {
    pub(crate) session: u64,
}

/// Executes a command about a trace or a capture: a verb, and the words behind it.
fn session_command(
    what: &str,
    text: &str,
    execute: impl FnOnce(&str, &str) -> Result<String, ArgError>,
) -> Result<String, ArgError> {
    let done = match text.trim().split_once(' ') {
        Some((verb, rest)) => execute(verb, rest.trim()),
        None => Err(unknown_verb(what)),
    };
    // Control sockets answer in Click's words, which have no room for help.
    done.map_err(|error| ArgError::new(error.to_string()))
}

/// Checks the length of a text that a client sends.
fn check_length(what: &str, text: &str, most: usize) -> Result<(), ArgError> {
    match text.len() > most {
        true => Err(ArgError::new(format!("{what} is longer than {most} bytes"))),
        false => Ok(()),
    }
}

fn unknown_verb(what: &str) -> ArgError {
    ArgError::new(format!("`{what}` takes `start QUERY`, `next NUMBER` or `stop NUMBER`"))
}

fn session(text: &str) -> Result<u64, ArgError> {
    text.parse().map_err(|_| ArgError::new(format!("'{text}' is no number")))
}

fn query<T: DeserializeOwned>(text: &str) -> Result<T, ArgError> {
    serde_json::from_str(text).map_err(|error| ArgError::new(format!("the query: {error}")))
}

fn to_json<T: Serialize>(value: &T) -> Result<String, ArgError> {
    serde_json::to_string(value).map_err(|error| ArgError::new(error.to_string()))
}
