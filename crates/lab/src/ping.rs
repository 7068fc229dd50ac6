//! Pings all of which have to be answered, however late.

use crate::error::{Error, Result};
use crate::namespace::Namespace;
use crate::process::{Command, Output};

/// Seconds within which the answers have to come, unless the options say so.
const DEADLINE: &str = "10";

impl Namespace {
    /// A `ping` with these options that ends with its `count`th answer, or after 10 seconds.
    ///
    /// Without a deadline, iputils waits for the last answer as long as one interval or two round trips, whatever `-W` says:
    /// on a busy machine an answer that is late would count as lost. With one, `ping` sends more than `count` packets
    /// while answers are late, so that the packets which were answered tell whether one was lost ([`answered_pings`]).
    pub fn pings(&self, options: &[&str], count: usize, to: &str) -> Command {
        let ends = ["-n", "-c", &count.to_string(), "-w", DEADLINE];
        self.command("ping").args(ends).args(options).arg(to)
    }

    /// Runs [`pings`](Namespace::pings); an error unless the first `count` packets, and perhaps more, are answered, each
    /// once and in order.
    pub fn ping(&self, options: &[&str], count: usize, to: &str) -> Result<Output> {
        let output = self.pings(options, count, to).output()?;
        if are_answered(&output.stdout, count) {
            return Ok(output);
        }
        let command = format!("ping {} {to}", options.join(" "));
        let status = format!("other answers than one to each of {count} packets");
        Err(Error::Failed { command, status, printed: output.printed() })
    }
}

/// Whether the first `count` packets, and perhaps more, were answered, each once and in order.
pub fn are_answered(stdout: &str, count: usize) -> bool {
    let answered = answered_pings(stdout);
    answered.len() >= count && answered.iter().copied().eq(1..=answered.len())
}

/// The numbers of the packets that were answered, as `ping` without `-q` prints them, in the order of the answers.
pub fn answered_pings(stdout: &str) -> Vec<usize> {
    let answers = stdout.lines().filter(|line| line.contains(" bytes from "));
    let number = |line: &str| line.split_once("icmp_seq=")?.1.split(' ').next()?.parse().ok();
    answers.filter_map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_from_errors() {
        let said = "PING 10.0.1.3 (10.0.1.3) 56(84) bytes of data.\n\
                    From 10.0.1.1: icmp_seq=1 Redirect Host(New nexthop: 10.0.1.3)\n\
                    64 bytes from 10.0.1.3: icmp_seq=1 ttl=64 time=0.6 ms\n\
                    64 bytes from 10.0.1.3: icmp_seq=3 ttl=64 time=0.6 ms\n\
                    64 bytes from 10.0.1.3: icmp_seq=3 ttl=64 time=0.7 ms (DUP!)\n";
        assert_eq!(answered_pings(said), [1, 3, 3]);
        assert!(!are_answered(said, 1));
        let said = said.replace("icmp_seq=3 ttl=64 time=0.6", "icmp_seq=2 ttl=64 time=0.6");
        let said = said.replace(" (DUP!)", "");
        assert!(are_answered(&said, 3) && are_answered(&said, 2) && !are_answered(&said, 4));
    }
}
