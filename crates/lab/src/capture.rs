//! Captures packets on an interface with `tcpdump`, as text.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::namespace::Namespace;
use crate::process::Process;

/// Timeout for `tcpdump` to start and to end.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Options for the kernel's ring: about a thousand slots, each as large as the largest segment that
/// an interface with offloads passes on. The default is eight slots of 256 KiB.
const RING_OPTIONS: [&str; 4] = ["-s", "66000", "-B", "65536"];

/// Texts by which `tcpdump -vv` reports a wrong checksum.
const WRONG_CHECKSUM: &[&str] = &["incorrect", "bad cksum", "wrong icmp cksum", "bad udp cksum"];

/// A running `tcpdump`.
pub struct Capture {
    process: Process,
}

impl Namespace {
    /// Captures packets that match `filter` on `device`, in both directions; returns when the
    /// capture has started.
    pub fn capture(&self, device: &str, filter: &str) -> Result<Capture> {
        Capture::start(self, device, filter, "inout")
    }

    /// Captures only packets that arrive at `device`, as another machine has sent them, with
    /// complete checksums.
    pub fn capture_arriving(&self, device: &str, filter: &str) -> Result<Capture> {
        Capture::start(self, device, filter, "in")
    }
}

impl Capture {
    fn start(
        namespace: &Namespace,
        device: &str,
        filter: &str,
        direction: &str,
    ) -> Result<Capture> {
        let mut process = namespace
            .command("tcpdump")
            .args(["-i", device, "-Q", direction, "-n", "-e", "-vv", "-l", "--immediate-mode"])
            .args(RING_OPTIONS)
            .arg(filter)
            .spawn()?;
        process.wait_for("listening on", TIMEOUT)?;
        Ok(Capture { process })
    }

    /// Waits until a line with `text` has been captured.
    pub fn wait_for(&mut self, text: &str, timeout: Duration) -> Result<()> {
        self.process.wait_for(text, timeout)
    }

    /// Ends the capture and returns its text; fails if `tcpdump` has lost packets.
    pub fn finish(mut self) -> Result<String> {
        self.wait_for_output();
        self.process.interrupt();
        self.process.wait(TIMEOUT)?;
        let (text, closing) = (self.process.stdout(), self.process.stderr());
        if !closing.contains("\n0 packets dropped by kernel") {
            let command = "tcpdump".to_owned();
            return Err(Error::Failed { command, status: "lost packets".into(), printed: closing });
        }
        Ok(text)
    }

    /// Waits until `tcpdump` prints nothing more, at most three seconds.
    fn wait_for_output(&self) {
        let mut before = usize::MAX;
        for _ in 0..50 {
            std::thread::sleep(Duration::from_millis(60));
            let now = self.process.stdout().len();
            if now == before {
                return;
            }
            before = now;
        }
    }

    /// Returns the lines of a captured text that report a wrong checksum.
    pub fn wrong_checksums(text: &str) -> Vec<&str> {
        text.lines().filter(|line| WRONG_CHECKSUM.iter().any(|word| line.contains(word))).collect()
    }
}
