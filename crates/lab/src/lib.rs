//! Test networks in namespaces: hosts, links and routers that exist while a test or the demo runs.
//!
//! A [`Browser`] opens web pages in tests, in a namespace or on the machine.
//!
//! A [`Lab`] owns namespaces named `cst-<pid>-<lab>-<name>`. It creates links as veth pairs
//! directly inside them, so that the machine's own interfaces stay untouched. A lab is removed when
//! it is dropped, when a test panics, on Ctrl-C, and, after `kill -9`, when the next lab starts.
//!
//! ```no_run
//! use castanet_lab::{Lab, Port, require};
//!
//! # fn main() -> castanet_lab::Result<()> {
//! require(&["ip", "ping"])?;
//! let lab = Lab::new("pair")?;
//! let (a, b) = (lab.namespace("a")?, lab.namespace("b")?);
//! lab.link(
//!     Port::new(&a, "eth0").address("10.9.0.1/24"),
//!     Port::new(&b, "eth0").address("10.9.0.2/24"),
//! )?;
//! a.ping(&[], 1, "10.9.0.2")?;
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod browser;
mod capture;
pub mod demo;
mod error;
mod iperf3;
mod lab;
mod namespace;
mod page;
mod ping;
mod process;
mod registry;
mod three_hosts;
mod tools;
mod traceroute;
mod transfer;

pub use browser::{Browser, ColorScheme, PageElement, Violation, keys};
pub use capture::Capture;
pub use demo::demo;
pub use error::{Error, Result};
pub use lab::{Lab, Port};
pub use namespace::Namespace;
pub use page::{CodeBlock, ConsoleStep, code_blocks};
pub use ping::{answered_pings, are_answered};
pub use process::{Command, Output, Process};
pub use three_hosts::{Host, NetworkOptions, Router, ThreeHosts};
pub use tools::{is_installed, require};
pub use transfer::{RandomFile, Transfer};
