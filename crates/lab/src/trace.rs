//! Who answers on the way to somewhere.

use crate::error::Result;
use crate::namespace::Namespace;

impl Namespace {
    /// The addresses that answer on the way to another, by up to `most` steps of `traceroute` with
    /// these options (`-U`, `-I`, `-T`, `-6`); `*` where nobody does.
    ///
    /// Each step is a `traceroute` of its own. With `-I` and `-T` one has a single socket for all
    /// steps, and while that has an error it reads nothing else; if an ICMP error arrives on one
    /// core while the program takes it on another, Linux (seen with 6.18) marks the socket once
    /// more after the error was taken, and then answers are not heard any more.
    pub fn trace(&self, options: &[&str], to: &str, most: usize) -> Result<Vec<String>> {
        let mut hops: Vec<String> = Vec::new();
        while hops.len() < most && hops.last().is_none_or(|hop| hop != to) {
            let step = (hops.len() + 1).to_string();
            let only = ["-n", "-q", "1", "-w", "5", "-f", &step, "-m", &step];
            let said = self.command("traceroute").args(options).args(only).arg(to).check()?.stdout;
            // A heading; then number, address and time.
            let hop = said.lines().nth(1).and_then(|line| line.split_whitespace().nth(1));
            hops.push(hop.unwrap_or("*").to_owned());
        }
        Ok(hops)
    }
}
