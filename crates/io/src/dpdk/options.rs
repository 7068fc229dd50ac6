//! What is wanted of a port, and of DPDK's environment.

pub use crate::sys::dpdk::{Checksums, Pause};

/// What is wanted of a port.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Options {
    /// Which queues to receive from.
    pub receive: Option<RxQueues>,
    /// Which queues to send to.
    pub transmit: Option<TxQueues>,
    /// How many queues the port is to have at least, to receive from and to
    /// send to, for all who will use it: it need not be set up anew for each,
    /// and some drivers cannot have more later.
    pub reserved: (u16, u16),
    /// Descriptors of each queue; zero for the driver's own choice.
    pub descriptors: u16,
    /// Whether to receive packets for other hosts too.
    pub promiscuous: bool,
    /// Longest packet without its Ethernet header; zero for what it is.
    pub mtu: u16,
    /// Whether packets are spread over the queues by a hash of their
    /// addresses; by itself, where there are several.
    pub rss: Option<bool>,
    /// Whether received packets get the hash as their annotation `AGGREGATE`.
    pub aggregate: bool,
    /// Whether they get the number of their queue as their paint.
    pub paint_queue: bool,
    /// Which checksums the port is to check, if it can.
    pub rx_checksums: Checksums,
    /// Which checksums it is to complete, if it can, where packets leave that.
    pub tx_checksums: Checksums,
    /// Whether TCP packets longer than the MTU are cut: by the port, if it can.
    pub tso: bool,
    /// The port's Ethernet address, if it is to have another.
    pub mac: Option<[u8; 6]>,
    /// Which pause frames it sends and obeys, if not as it is by itself.
    pub pause: Option<Pause>,
    /// Over how many queues packets are spread by their hash; zero for all.
    pub spread: u16,
    /// Whether queues interrupt when packets come: see [`Dpdk::arm`](super::Dpdk::arm).
    pub interrupts: bool,
}

impl Options {
    /// Whether who has opened a port so has what `other` wants; others see to what is reserved
    /// for them.
    pub fn serve(&self, other: &Options) -> bool {
        Options { reserved: self.reserved, ..*other } == *self
    }
}

/// Which queues to receive from; nobody else may have them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RxQueues {
    /// The first; the first that nobody has if not given.
    pub first: Option<u16>,
    /// How many.
    pub queues: u16,
}

/// Which queues to send to; several may share one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TxQueues {
    /// The first.
    pub first: u16,
    /// How many; fewer if the port has no more.
    pub queues: u16,
    /// Which of them this one uses, counted around.
    pub mine: u16,
}

/// Options that say which cores to use.
const CORES: &[&str] = &["-l", "-c", "-S", "--lcores"];

/// The options with what makes DPDK leave the cores to the engine: one core of
/// its own, which may be anywhere, unless the user says which. The engine's
/// workers then enter as they come.
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

/// The value of an option, said in one word or two.
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

/// The words of a line; quotes keep words together.
pub(super) fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (c, quote) {
            (c, Some(q)) if c == q => quote = None,
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
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
