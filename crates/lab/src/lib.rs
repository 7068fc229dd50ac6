//! Test networks in namespaces: hosts, links and routers that exist only while a test or the demo runs.
//!
//! A [`Lab`] owns namespaces named `cst-<pid>-<lab>-<name>`. Links are veth pairs made straight
//! inside them, so the machine's own interfaces are never touched. Everything goes away when the lab
//! is dropped, when a test panics, on Ctrl-C, and, after `kill -9`, when the next lab starts.
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
//! a.command("ping").args(["-c", "1", "10.9.0.2"]).check()?;
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod capture;
pub mod demo;
mod error;
mod lab;
mod namespace;
mod process;
mod registry;
mod three;
mod tools;
mod trace;
mod transfer;

pub use capture::Capture;
pub use demo::demo;
pub use error::{Error, Result};
pub use lab::{Lab, Port};
pub use namespace::Namespace;
pub use process::{Command, Output, Process};
pub use three::{Host, Router, ThreeHosts, Wiring};
pub use tools::{have, require};
pub use transfer::{Fetched, RandomFile};
