//! Traces the path to an address with `traceroute`.

use crate::error::Result;
use crate::namespace::Namespace;

impl Namespace {
    /// Returns the addresses of the hops on the path to `to`, up to `most` hops, by `traceroute`
    /// with these options (`-U`, `-I`, `-T`, `-6`); `*` for a hop that does not answer.
    ///
    /// Each hop is a `traceroute` process of its own. With `-I` and `-T`, `traceroute` uses one
    /// socket for all hops, and reads no answers while the socket has an error. If an ICMP error
    /// arrives on one core while the program takes it on another, Linux (observed with 6.18) marks
    /// the socket once more after the error was taken, and the program then misses all answers.
    pub fn traceroute(&self, options: &[&str], to: &str, most: usize) -> Result<Vec<String>> {
        let mut hops: Vec<String> = Vec::new();
        while hops.len() < most && hops.last().is_none_or(|hop| hop != to) {
            let step = (hops.len() + 1).to_string();
            let only = ["-n", "-q", "1", "-w", "5", "-f", &step, "-m", &step];
            let output =
                self.command("traceroute").args(options).args(only).arg(to).check()?.stdout;
            // The first line is a heading; the second has number, address and time.
            let hop = output.lines().nth(1).and_then(|line| line.split_whitespace().nth(1));
            hops.push(hop.unwrap_or("*").to_owned());
        }
        Ok(hops)
    }
}
