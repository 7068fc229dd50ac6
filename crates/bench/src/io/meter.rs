//! Processor time that a thread or process had, and time for which it waited for its core.

use crate::measure;
use std::fs::read_to_string;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Packets that waited for a core for more than this share of a run make it a
/// disturbed one, as in `castanet bench router`.
const DISTURBED: f64 = 0.03;

/// Result of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// Million packets a second of processor time.
    pub(crate) mpps: f64,
    /// Whether others used the cores too.
    pub(crate) disturbed: bool,
}

/// Number of parts in which a run is measured.
pub(super) const PARTS: u32 = 8;

/// With fewer packets in a run its parts say little, for packets come in bursts.
const ENOUGH: f64 = 20_000.0;

/// Measures a run in parts. `part` returns million packets a second of one part; the meters give
/// the processor time of the forwarder and of the packet generator. The run's rate is one that a
/// quarter of its parts reach: other processes, and a virtual machine's neighbours too, can only
/// make a part slower, and do so for a tenth of a second, or for a second or two. That holds for a
/// forwarder that always has packets to forward. Where there are few packets, all parts count. A
/// run without packets, or in which no thread had a core, gives 0.
pub(super) fn in_parts(
    time: Duration,
    (forwarder, feeder): (&Meter, &Meter),
    part: impl FnMut(Duration) -> Result<f64, String>,
) -> Result<Sample, String> {
    let (ours, theirs) = (forwarder.read(), feeder.read());
    let rates: Result<Vec<f64>, String> = (0..PARTS).map(|_| time / PARTS).map(part).collect();
    let (ours, theirs) = (forwarder.since(ours), feeder.since(theirs));
    let (rates, packets) = (rates?, 1e6 * time.as_secs_f64());
    let all = rates.iter().sum::<f64>() / f64::from(PARTS);
    let rate = if all * packets < ENOUGH { all } else { upper(rates) };
    // In its better parts the forwarder has had its core; without a core nothing was measured.
    let mpps = if ours.wanted > 0.0 { rate / ours.wanted } else { 0.0 };
    Ok(Sample { mpps, disturbed: ours.disturbed || theirs.disturbed })
}

/// The upper quartile of these numbers.
fn upper(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() * 3 / 4).copied().unwrap_or(f64::NAN)
}

/// The middle rate of several runs, and how many of them had their cores to
/// themselves.
pub(crate) fn middle(samples: &[Sample]) -> (f64, usize) {
    measure::middle(samples.iter().map(|sample| (sample.mpps, !sample.disturbed)))
}

/// Threads whose time is counted together.
#[derive(Clone, Default, Debug)]
pub(crate) struct Meter {
    /// Folders of threads in `/proc`.
    threads: Vec<PathBuf>,
    /// Folders with the folders of all threads of a process.
    processes: Vec<PathBuf>,
}

/// Seconds so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct CpuTimes {
    at: Instant,
    /// Had of a core.
    had: f64,
    /// Ready to run, but waiting for a core.
    waited: f64,
}

/// Shares of an interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct CpuShares {
    /// Share of a core that the threads had or waited for, at most 1.
    wanted: f64,
    /// Whether others had it too.
    pub(crate) disturbed: bool,
}

impl Meter {
    /// All threads of a process.
    pub(super) fn process(mut self, id: u32) -> Meter {
        self.processes.push(format!("/proc/{id}/task").into());
        self
    }

    /// A thread, by its folder in `/proc`.
    pub(super) fn thread(mut self, folder: PathBuf) -> Meter {
        self.threads.push(folder);
        self
    }

    /// The threads that work on the kernel's behalf on a core.
    pub(super) fn soft_interrupts(self, core: usize) -> Meter {
        match kernel_thread(&format!("ksoftirqd/{core}")) {
            Some((_, folder)) => self.thread(folder),
            None => self,
        }
    }

    /// Reads the clock, and all threads' time.
    pub(super) fn read(&self) -> CpuTimes {
        let mut reading = CpuTimes { at: Instant::now(), had: 0.0, waited: 0.0 };
        let inside = self.processes.iter().filter_map(|it| std::fs::read_dir(it).ok());
        let inside = inside.flatten().filter_map(|entry| Some(entry.ok()?.path()));
        for thread in self.threads.iter().cloned().chain(inside) {
            // Nanoseconds on a core, nanoseconds waiting for one, times.
            let text = read_to_string(thread.join("schedstat")).unwrap_or_default();
            let mut words = text.split_whitespace().map(|word| word.parse().unwrap_or(0.0) / 1e9);
            reading.had += words.next().unwrap_or(0.0);
            reading.waited += words.next().unwrap_or(0.0);
        }
        reading
    }

    /// Shares of a core since `before`.
    pub(super) fn since(&self, before: CpuTimes) -> CpuShares {
        shares(before, self.read())
    }
}

/// Shares of a core between two snapshots.
fn shares(before: CpuTimes, now: CpuTimes) -> CpuShares {
    let seconds = (now.at - before.at).as_secs_f64();
    let had = (now.had - before.had) / seconds;
    // A kernel that does not count gives no reason to doubt.
    let had = if now.had > 0.0 { had } else { 1.0 };
    let waited = (now.waited - before.waited) / seconds;
    CpuShares { wanted: (had + waited).min(1.0), disturbed: waited > DISTURBED }
}

/// A kernel's thread whose name begins so: its number, and its folder in `/proc`.
pub(super) fn kernel_thread(name: &str) -> Option<(i32, PathBuf)> {
    let folders = std::fs::read_dir("/proc").ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let mut numbered = folders.filter_map(|folder| {
        let number = folder.file_name()?.to_str()?.parse().ok()?;
        Some((number, folder))
    });
    numbered.find(|(_, folder)| {
        let is = read_to_string(folder.join("comm")).is_ok_and(|comm| comm.starts_with(name));
        // A program may call itself anything, but has a command line.
        is && read_to_string(folder.join("cmdline")).is_ok_and(|line| line.is_empty())
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_as_fast_as_a_quarter_of_its_parts() {
        assert!((upper(vec![8.0, 5.0, 1.0, 7.0, 2.0, 6.0, 3.0, 4.0]) - 7.0).abs() < 1e-9);
        assert!(upper(Vec::new()).is_nan());
        let mut parts = 0.0;
        let none = (&Meter::default(), &Meter::default());
        let mut part = |time: Duration| {
            assert_eq!(time.as_millis(), 1);
            parts += 1.0;
            if parts > 20.0 { Err("no more".to_owned()) } else { Ok(parts) }
        };
        let run = Duration::from_millis(8);
        let sample = in_parts(run, none, &mut part).unwrap();
        assert!((sample.mpps - 7.0).abs() < 1e-9 && !sample.disturbed, "{sample:?}");
        // 4.5 packets a millisecond: all count alike.
        let few = |_| Ok(0.0045);
        assert!((in_parts(run, none, few).unwrap().mpps - 0.0045).abs() < 1e-12);
        assert_eq!(in_parts(run, none, |_| Ok(0.0)).unwrap().mpps.to_bits(), 0);
        in_parts(run, none, &mut part).unwrap();
        assert!(in_parts(run, none, &mut part).is_err());
    }

    #[test]
    fn time_on_a_core_is_counted() {
        // Only this thread's: others of the process end, and their time with them.
        let folder = PathBuf::from("/proc").join(std::fs::read_link("/proc/thread-self").unwrap());
        let meter = Meter::default().thread(folder);
        let before = meter.read();
        // Linux writes it down by ticks and when a thread leaves its core, which may be at once.
        // Others may have the core meanwhile.
        while meter.read().had < before.had + 0.02 && before.at.elapsed().as_secs() < 10 {
            std::hint::spin_loop();
        }
        let had = meter.read().had - before.had;
        // The processor time is close to the elapsed time: a tick is 10 ms at most.
        assert!(had > 0.019 && had < before.at.elapsed().as_secs_f64() + 0.02, "{had} s");
    }

    #[test]
    fn cpu_time_and_waiting_time_add_up() {
        let at = Instant::now();
        let reading = |seconds, had, waited| CpuTimes {
            at: at + Duration::from_millis(seconds),
            had,
            waited,
        };
        let before = reading(0, 5.0, 1.0);
        for (had, waited, wanted, disturbed) in [
            (6.0, 1.0, 0.5, false),
            (6.0, 1.05, 0.525, false),
            (6.0, 1.5, 0.75, true),
            // Two threads of the same side, on one core.
            (7.0, 1.5, 1.0, true),
        ] {
            let shares = shares(before, reading(2000, had, waited));
            assert!((shares.wanted - wanted).abs() < 1e-9, "{shares:?}");
            assert_eq!(shares.disturbed, disturbed);
        }
        let silent = reading(0, 0.0, 0.0);
        assert!((shares(silent, reading(1000, 0.0, 0.0)).wanted - 1.0).abs() < 1e-9);
    }
}
