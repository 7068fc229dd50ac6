//! What `tcpdump` sees on an interface, as text.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::namespace::Namespace;
use crate::process::Process;

/// How long `tcpdump` may take to begin and to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// The ring in which packets wait for `tcpdump`: a thousand slots, each as large as the largest
/// segment that an interface with offloads hands over. The default has 256 KiB a slot, and eight.
const RING: [&str; 4] = ["-s", "66000", "-B", "65536"];

/// Words of `tcpdump -vv` for a checksum that is wrong.
const WRONG: &[&str] = &["incorrect", "bad cksum", "wrong icmp cksum", "bad udp cksum"];

/// A running `tcpdump`.
pub struct Capture {
    process: Process,
}

impl Namespace {
    /// Captures what matches `filter` on `device`, in both directions, and returns once it has begun.
    pub fn capture(&self, device: &str, filter: &str) -> Result<Capture> {
        Capture::start(self, device, filter, "inout")
    }

    /// Captures only what arrives at `device`: as another machine sent it, checksums complete.
    pub fn capture_arriving(&self, device: &str, filter: &str) -> Result<Capture> {
        Capture::start(self, device, filter, "in")
    }
}

impl Capture {
    fn start(namespace: &Namespace, device: &str, filter: &str, way: &str) -> Result<Capture> {
        let mut process = namespace
            .command("tcpdump")
            .args(["-i", device, "-Q", way, "-n", "-e", "-vv", "-l", "--immediate-mode"])
            .args(RING)
            .arg(filter)
            .spawn()?;
        process.wait_for("listening on", PATIENCE)?;
        Ok(Capture { process })
    }

    /// Waits until a line with `text` has been captured.
    pub fn wait_for(&mut self, text: &str, patience: Duration) -> Result<()> {
        self.process.wait_for(text, patience)
    }

    /// Ends the capture and returns its text; fails if `tcpdump` lost packets.
    pub fn finish(mut self) -> Result<String> {
        self.settle();
        self.process.interrupt();
        self.process.wait(PATIENCE)?;
        let (text, closing) = (self.process.stdout(), self.process.stderr());
        if !closing.contains("\n0 packets dropped by kernel") {
            let command = "tcpdump".to_owned();
            return Err(Error::Failed { command, status: "lost packets".into(), printed: closing });
        }
        Ok(text)
    }

    /// Gives `tcpdump` the time to print what has already arrived.
    fn settle(&self) {
        let mut seen = usize::MAX;
        for _ in 0..50 {
            std::thread::sleep(Duration::from_millis(60));
            let now = self.process.stdout().len();
            if now == seen {
                return;
            }
            seen = now;
        }
    }

    /// The lines of a captured text that report a wrong checksum.
    pub fn wrong_checksums(text: &str) -> Vec<&str> {
        text.lines().filter(|line| WRONG.iter().any(|word| line.contains(word))).collect()
    }
}
