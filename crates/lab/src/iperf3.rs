//! Measures the rate between two namespaces with iperf3.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::namespace::Namespace;

/// Time until a server listens, and until a client ends, with its measurement.
const TIMEOUT: Duration = Duration::from_secs(60);

impl Namespace {
    /// Runs iperf3 to a server at an address of another namespace, for a second if `words` say nothing
    /// else, and returns the rate at the receiver in megabits per second.
    ///
    /// Each measurement has a server of its own: one that is left from the measurement before says for a
    /// while that it is busy.
    pub fn iperf3(&self, server: &Namespace, address: &str, words: &[&str]) -> Result<f64> {
        let mut listener = server
            .command("iperf3")
            .args(["--server", "--one-off", "--forceflush", "--bind", address])
            .spawn()?;
        listener.wait_for("Server listening", TIMEOUT)?;
        let client = self.command("iperf3").args(["--client", address, "--time", "1"]);
        let client = client.args(["--format", "m"]).args(words).timeout(TIMEOUT);
        let printed = client.check()?.stdout;
        rate_at_receiver(&printed).ok_or_else(|| Error::Failed {
            command: format!("iperf3 --client {address}"),
            status: "no rate of the receiver".to_owned(),
            printed,
        })
    }
}

/// Returns the rate of the last line that stands for the receiver: the sum, of several streams.
fn rate_at_receiver(printed: &str) -> Option<f64> {
    let receiver = printed.lines().rfind(|line| line.trim_end().ends_with("receiver"))?;
    receiver.split(" Mbits/sec").next()?.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::rate_at_receiver;

    #[test]
    fn the_sum_of_streams_is_the_rate() {
        let printed = "\
            [  5]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec    0             sender\n\
            [  5]   0.00-1.04   sec  1.00 MBytes  8.07 Mbits/sec                  receiver\n\
            [SUM]   0.00-1.04   sec  2.00 MBytes  16.1 Mbits/sec                  receiver\n\n\
            iperf Done.\n";
        assert_eq!(rate_at_receiver(printed), Some(16.1));
        assert_eq!(rate_at_receiver("iperf3: error - the server is busy\n"), None);
    }
}
