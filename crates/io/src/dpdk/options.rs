//! Options of a port, and of DPDK's environment abstraction layer (EAL).

pub use crate::sys::dpdk::{Checksums, Pause, Vmdq};

/// Options with which an element opens a port.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Options {
    /// Queues to receive from.
    pub receive: Option<RxQueues>,
    /// Queues to send to.
    pub transmit: Option<TxQueues>,
    /// Least number of receive and transmit queues of the port, for all elements that will use it:
    /// then the port is not configured again for each, and some drivers cannot add queues later.
    pub reserved: (u16, u16),
    /// Descriptors of each queue; zero for the driver's own choice.
    pub descriptors: u16,
    /// Whether to receive packets for other hosts too.
    pub promiscuous: bool,
    /// Longest packet without its Ethernet header; zero to leave the MTU unchanged.
    pub mtu: u16,
    /// Whether packets are spread over the queues by a hash of their addresses (RSS); `None` for RSS
    /// where there are several queues.
    pub rss: Option<bool>,
    /// Whether received packets get the hash as their annotation `AGGREGATE`.
    pub aggregate: bool,
    /// Whether received packets get the number of their queue as their paint.
    pub paint_queue: bool,
    /// Checksums of received packets that the port is to check, if it can.
    pub rx_checksums: Checksums,
    /// Checksums of sent packets that the port is to complete, if it can, where packets have partial
    /// checksums.
    pub tx_checksums: Checksums,
    /// Whether TCP packets longer than the MTU are cut into segments: by the port, if it can.
    pub tso: bool,
    /// A new Ethernet address of the port.
    pub mac: Option<[u8; 6]>,
    /// Pause frames that the port sends and obeys; `None` for the driver's default.
    pub pause: Option<Pause>,
    /// Number of queues over which RSS spreads packets; zero for all.
    pub spread: u16,
    /// Pools of queues for virtual machines.
    pub vmdq: Option<Vmdq>,
    /// Whether the port receives only what its flow rules assign to queues.
    pub isolated: bool,
    /// Whether received packets get the port's time of reception as their timestamp.
    pub timestamps: bool,
    /// Whether receive queues raise interrupts: see [`Dpdk::arm`](super::Dpdk::arm).
    pub interrupts: bool,
}

impl Options {
    /// Whether a port opened with these options also serves `other`; `reserved` is not compared.
    pub fn serve(&self, other: &Options) -> bool {
        Options { reserved: self.reserved, ..*other } == *self
    }
}

/// Queues to receive from; no other element may have them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RxQueues {
    /// The first; `None` for the first that no element has.
    pub first: Option<u16>,
    /// How many.
    pub queues: u16,
}

/// Queues to send to; several elements may share one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TxQueues {
    /// The first.
    pub first: u16,
    /// How many; fewer if the port has fewer.
    pub queues: u16,
    /// Index of the queue that this device uses, modulo `queues`.
    pub mine: u16,
}

/// EAL options that select cores.
const CORES: &[&str] = &["-l", "-c", "-S", "--lcores"];

/// The EAL options, with one lcore that may run on any CPU unless the user selects cores: so DPDK
/// leaves the cores to the engine, and the engine's workers register themselves as threads.
pub(super) fn with_cores(words: &[String]) -> Vec<String> {
    let names = |word: &String| {
        // `-l0-3` is as good as `-l 0-3`.
        CORES.iter().any(|option| match option.starts_with("--") {
            true => word.split('=').next() == Some(*option),
            false => word.starts_with(option) && !word.starts_with("--"),
        })
    };
    let mut words = words.to_vec();
    if !words.iter().any(names) {
        let last = std::thread::available_parallelism().map_or(1, usize::from) - 1;
        words.push(format!("--lcores=0@(0-{last})"));
    }
    words
}

/// The value of an option, given as `option=value` or as `option value`.
pub(super) fn value<'a>(words: &'a [String], option: &str) -> Option<&'a str> {
    words.iter().enumerate().find_map(|(n, word)| {
        let rest = word.strip_prefix(option)?;
        match rest.strip_prefix('=') {
            Some(value) => Some(value),
            None if rest.is_empty() => words.get(n + 1).map(String::as_str),
            None => None,
        }
    })
}

/// The words of a line; quotes keep words together, to the end of the line if need be.
pub(super) fn words(line: &str) -> Vec<String> {
    castanet_lang::shell_words(line).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fall_into_words() {
        assert_eq!(words(" --no-huge  -m 512 "), ["--no-huge", "-m", "512"]);
        assert_eq!(
            words(r#"--vdev 'net_pcap0,rx_pcap=a b.pcap' --x="1 2"'3' ''"#),
            ["--vdev", "net_pcap0,rx_pcap=a b.pcap", "--x=1 23", ""]
        );
        assert!(words("  ").is_empty());
    }

    #[test]
    fn options_have_values() {
        let of = |line: &str| value(&words(line), "--file-prefix").map(str::to_owned);
        assert_eq!(of("--no-pci --file-prefix a").as_deref(), Some("a"));
        assert_eq!(of("--file-prefix=b --no-pci").as_deref(), Some("b"));
        assert_eq!(of("--file-prefixes b"), None);
        assert_eq!(of("--file-prefix"), None);
    }

    #[test]
    fn cores_are_left_to_the_engine_unless_named() {
        let count = |line: &str| with_cores(&words(line)).len();
        assert_eq!(count("-l 0-1 --no-pci"), 3);
        assert_eq!(count("-c3"), 1);
        assert_eq!(count("--lcores=0-1"), 1);
        assert_eq!(count("--lcores 0-1"), 2);
        assert_eq!(count("--no-pci --log-level=3"), 3);
        assert!(with_cores(&[])[0].starts_with("--lcores=0@(0-"));
    }
}
