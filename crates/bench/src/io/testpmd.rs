//! `dpdk-testpmd`, which forwards what it receives and does nothing else.

use super::cores;
use super::meter::{Meter, Sample, in_parts};
use castanet_lab::{Command, Process};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The program.
pub(super) const PROGRAM: &str = "dpdk-testpmd";

/// Time limit for the start, for an answer, and for packets to come.
const PATIENCE: Duration = Duration::from_secs(20);

/// The beginnings of the lines with what a port has sent, and how much a second.
const SENT: &str = "TX-packets:";
const RATE: &str = "Tx-pps:";

/// Packets at once, as the engine's burst.
const BURST: usize = castanet_packet::BURST;

/// A running `dpdk-testpmd`.
pub(super) struct Testpmd {
    process: Process,
    lines: Receiver<String>,
}

impl Testpmd {
    /// Starts on one core, with the options of DPDK's environment.
    pub(super) fn start(core: usize, environment: &[String]) -> Result<Testpmd, String> {
        let (sender, lines) = channel();
        let settings = super::dpdk::SETTINGS;
        // Without `stdbuf`, the program writes to a pipe only in blocks of a page.
        let command = Command::on_host("stdbuf")
            .args(["-oL", PROGRAM])
            .args(environment)
            // One thread listens, and one forwards.
            .arg(format!("--lcores=0@{core},1@{core}"))
            .args(["--", "-i", "--auto-start", "--forward-mode=io", "--disable-link-check"])
            .arg(format!("--burst={BURST}"))
            .arg(format!("--rxd={}", settings.descriptors))
            .arg(format!("--txd={}", settings.descriptors))
            .arg(format!("--total-num-mbufs={}", settings.mbufs))
            .arg(format!("--mbuf-size={}", settings.mbuf_size))
            .arg(format!("--mbcache={}", settings.cache))
            .pipe_stdin()
            .on_line(move |line| _ = sender.send(line.to_owned()));
        let process = cores::on(core, || command.spawn())?.map_err(|error| error.to_string())?;
        let mut started = Testpmd { process, lines };
        started.ask()?;
        Ok(started)
    }

    /// Has it wait where a port has no room, instead of dropping.
    pub(super) fn wait_for_room(&mut self) -> Result<(), String> {
        let mut say = |words| self.process.write_line(words).map_err(|error| error.to_string());
        ["stop", "set fwd io retry", "start"].into_iter().try_for_each(&mut say)
    }

    /// Packets that the first port has sent, and their rate since the last call.
    fn ask(&mut self) -> Result<(u64, f64), String> {
        self.process.write_line("show port stats 0").map_err(|error| error.to_string())?;
        let deadline = Instant::now() + PATIENCE;
        let mut sent = 0;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).map_err(|_| self.failure())?;
            if let Some(number) = number(&line, SENT) {
                sent = number;
            }
            if let Some(rate) = number(&line, RATE) {
                return Ok((sent, rate as f64));
            }
        }
    }

    /// Why it does not answer.
    fn failure(&mut self) -> String {
        let running = self.process.is_running();
        let messages = self.process.stderr() + &self.process.stdout();
        let last = messages.lines().rfind(|line| line.contains("EAL:") || line.contains("rror"));
        let what = if running { "does not answer" } else { "has ended" };
        format!("{PROGRAM} {what}: {}", last.unwrap_or("it does not say why").trim())
    }

    /// Waits for packets to flow, and a little longer.
    pub(super) fn warm_up(&mut self, time: Duration) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        while self.ask()?.0 == 0 {
            if Instant::now() > deadline {
                return Err("no packets came".into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(time);
        Ok(())
    }

    /// Measures what the first port sends. `feeder` must not be disturbed either.
    pub(super) fn measure(&mut self, time: Duration, feeder: &Meter) -> Result<Sample, String> {
        let meter = self.meter();
        self.ask()?;
        in_parts(time, (&meter, feeder), |time| {
            std::thread::sleep(time);
            Ok(self.ask()?.1 / 1e6)
        })
    }

    /// Its time.
    pub(super) fn meter(&self) -> Meter {
        Meter::default().process(self.process.id())
    }
}

/// The number that follows a word.
fn number(line: &str, word: &str) -> Option<u64> {
    line.split_once(word)?.1.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_in_a_port_s_statistics() {
        let line = "  TX-packets: 40609920   TX-errors: 0          TX-bytes:  0";
        assert_eq!(number(line, SENT), Some(40_609_920));
        assert_eq!(
            number("  Tx-pps:     30172283          Tx-bps:            0", RATE),
            Some(30_172_283)
        );
        assert_eq!(number("  Rx-pps:            7", RATE), None);
    }
}
