//! The positional arguments of `AddressTranslator`, and its reports.

use castanet_element::prelude::*;
use castanet_kit::nat6::{Config, Direction, Endpoint, Pool};

#[derive(Args)]
pub struct AddressTranslatorArgs {
    /// Static mappings and the pool of dynamic ones, in the order that is described above.
    #[arg(rest)]
    words: Vec<String>,
    /// For how long without a packet a dynamic mapping keeps its address or port.
    #[arg(keyword, default = Duration::from_secs(300))]
    timeout: Duration,
}

/// The arguments from left to right.
struct ArgCursor<'a> {
    words: &'a [String],
    at: usize,
    names: &'a Names,
}

impl ArgCursor<'_> {
    /// Parses the next argument; `what` is the type to name in an error.
    fn next<T: FromArg>(&mut self, what: &str) -> Result<T, ArgError> {
        let (at, word) = (self.at, self.words.get(self.at));
        self.at += 1;
        let value = word.and_then(|word| T::from_arg(word, self.names).ok());
        value.ok_or_else(|| wrong(at, what))
    }

    /// The words of the next argument.
    fn list(&mut self) -> Vec<&str> {
        self.at += 1;
        self.words.get(self.at - 1).map_or_else(Vec::new, |w| w.split_whitespace().collect())
    }

    fn address(&self, word: Option<&&str>) -> Option<Ipv6Addr> {
        Ipv6Addr::from_arg(word?, self.names).ok()
    }

    fn port(&self, word: Option<&&str>) -> Option<u16> {
        u16::from_arg(word?, self.names).ok()
    }

    /// A static mapping.
    fn mapping(&mut self, by_port: bool) -> Result<(Endpoint, Endpoint), ArgError> {
        let at = self.at;
        let words = self.list().into_iter().map(str::to_owned).collect::<Vec<_>>();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let port = |n: usize| if by_port { self.port(words.get(n)) } else { Some(0) };
        let second = if by_port { 2 } else { 1 };
        let pair = || {
            let inner = Endpoint { address: self.address(words.first())?, port: port(1)? };
            let outer = Endpoint { address: self.address(words.get(second))?, port: port(3)? };
            (words.len() == 2 * second).then_some((inner, outer))
        };
        let form = if by_port { "INNER PORT OUTER PORT" } else { "INNER OUTER" };
        pair().ok_or_else(|| wrong(at, form))
    }

    /// One address and its first and last port.
    fn ports(&mut self) -> Result<Pool, ArgError> {
        let at = self.at;
        let words = self.list().into_iter().map(str::to_owned).collect::<Vec<_>>();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let pool = || {
            let address = self.address(words.first())?;
            let (low, high) = (self.port(words.get(1))?, self.port(words.get(2))?);
            (words.len() == 3 && low <= high).then_some(Pool::Ports { address, low, high })
        };
        pool().ok_or_else(|| wrong(at, "<IP6Address> <unsigned char> <unsigned char>"))
    }
}

fn wrong(at: usize, what: &str) -> ArgError {
    ArgError::new(format!("argument {at} should be : {what}"))
}

impl AddressTranslatorArgs {
    /// Parses the positional arguments.
    pub(crate) fn plan(&self, names: &Names) -> Result<Config, ArgError> {
        let mut words = ArgCursor { words: &self.words, at: 0, names };
        let count: usize = words.next("integer")?;
        let by_port = count > 0 && words.next("bool")?;
        let left = words.words.len();
        let fixed: Result<Vec<_>, _> =
            (0..count.min(left)).map(|_| words.mapping(by_port)).collect();
        let (fixed, mut allocates) = (fixed?, Direction::Outward);
        let mut pool = Pool::None;
        if words.next("bool")? {
            let ports: bool = words.next("bool")?;
            if words.next("bool")? {
                allocates = Direction::Inward;
            }
            pool = if ports { words.ports()? } else { Pool::Addresses(Vec::new()) };
            if let Pool::Addresses(addresses) = &mut pool {
                while words.at < self.words.len() {
                    addresses.push(words.next("<IP6Address>")?);
                }
            }
        }
        if words.at < self.words.len() {
            return Err(ArgError::new("too many arguments"));
        }
        let timeout = u64::try_from(self.timeout.as_nanos()).unwrap_or(u64::MAX);
        Ok(Config::new(&fixed, by_port, pool, allocates, timeout))
    }
}

/// Refusals that are reported the first time that they happen.
#[derive(Default)]
pub(crate) struct RefusalReports {
    protocol: ReportState,
    exhausted: ReportState,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum ReportState {
    #[default]
    Never,
    Due,
    Reported,
}

impl ReportState {
    fn due(&mut self) {
        if *self == ReportState::Never {
            *self = ReportState::Due;
        }
    }

    fn take(&mut self) -> bool {
        let due = *self == ReportState::Due;
        if due {
            *self = ReportState::Reported;
        }
        due
    }
}

impl RefusalReports {
    /// A packet's protocol is not translated.
    pub(crate) fn protocol(&mut self) {
        self.protocol.due();
    }

    /// The pool has no free address or port for a packet.
    pub(crate) fn exhausted(&mut self) {
        self.exhausted.due();
    }

    /// Writes the reports that are due.
    pub(crate) fn report(&mut self, cx: &mut Cx) {
        if self.exhausted.take() {
            cx.chatter("AddressTranslator ran out of addresses");
        }
        if self.protocol.take() {
            cx.chatter(" discard the packet, protocol unrecognized");
        }
    }
}
