//! `IPRateMonitor`: measures the rates of traffic from and to addresses.

use super::ip_rate_monitor_state::{IPRateMonitorState, memory_bound};
use castanet_element::packet::anno::{FWD_RATE, REV_RATE};
use castanet_element::prelude::*;
use castanet_kit::ip_rates::{self, Direction, RateLimits, RateSample};

/// Measures the rates of traffic from and to IPv4 addresses, in detail where they are high.
///
/// Packets of input 0 count for their source (forward), those of input 1 for
/// their destination (reverse); each leaves by the output of its input's number.
/// Rates belong to the first byte of an address; where a rate exceeds THRESH a
/// second, the second byte has rates of its own, and so on. Packets get the rates
/// of the longest part of their address as annotations. A rate is a moving average
/// over some 250 ms.
///
/// ```click
/// in -> m :: IPRateMonitor(PACKETS, 1, 100) -> out;  back -> [1] m;  m[1] -> home
/// > in   1.2.0.1 > 2.0.0.2 udp
/// + 8ms
/// > in   1.2.0.1 > 2.0.0.2 udp
/// + 8ms
/// > in   1.2.0.2 > 2.0.0.2 udp
/// > back 2.0.0.2 > 1.2.0.2 udp
/// < out  1.2.0.1 > 2.0.0.2 udp
/// < out  1.2.0.1 > 2.0.0.2 udp
/// < out  1.2.0.2 > 2.0.0.2 udp
/// < home 2.0.0.2 > 1.2.0.2 udp
/// = m.look 2\n1\t7.69\t0
/// = m.thresh 100
/// = m.mem 2120
/// = m.memmax 0
/// ! m.anno_level 1.2.0.0, 0, 10
/// ! m.memmax 10
/// = m.memmax 102400
/// ! m.reset
/// = m.look 0
/// = m.drops.unmatched 0
/// ```
#[derive(PartialEq, Element)]
#[element(room = "measure", args = IPRateMonitorArgs, ports = "1-2/1-2", processing = "a/a")]
pub struct IPRateMonitor {
    counts_bytes: bool,
    annotates: bool,
    /// Of 65536 packets, so many change the rates, but for one.
    ratio: u64,
    threshold: u64,
    memory: usize,
}

#[derive(Args)]
pub struct IPRateMonitorArgs {
    /// The events to count: `PACKETS` or `BYTES`.
    #[arg(name = "TYPE")]
    kind: String,
    /// Probability, from 0 to 1, that a packet changes the rates.
    #[arg]
    ratio: f64,
    /// Events a second from which on the next byte has rates of its own; as if RATIO were 1.
    #[arg]
    thresh: i32,
    /// Most kilobytes of memory, at least 100; 0 means 262144.
    #[arg(default = 0)]
    memory: u32,
    /// Whether to set the annotations `FWD_RATE` and `REV_RATE` of packets.
    #[arg(default = true)]
    anno: bool,
}

/// A RATIO of one.
const ONE: f64 = 65_536.0;

impl Build for IPRateMonitor {
    type Args = IPRateMonitorArgs;
    fn build(args: IPRateMonitorArgs, _: &Setup) -> Result<Self, ArgError> {
        let counts_bytes = match args.kind.to_ascii_uppercase().as_str() {
            "PACKETS" => false,
            "BYTES" => true,
            _ => return Err(ArgError::new("monitor type should be \"PACKETS\" or \"BYTES\"")),
        };
        if !(0.0..=1.0).contains(&args.ratio) {
            return Err(ArgError::new("ratio must be between 0 and 1"));
        }
        let ratio = (args.ratio * ONE) as u64;
        let threshold = (args.thresh.max(0).unsigned_abs() as u64 * ratio) >> 16;
        let (annotates, memory) = (args.anno, memory_bound(args.memory));
        Ok(IPRateMonitor { counts_bytes, annotates, ratio, threshold, memory })
    }
}

impl PerBatch for IPRateMonitor {
    type On = on::Ipv4;
    type Local = IPRateMonitorState;
    type Fate = Port;
    const SHARED: bool = true;

    fn start(&self, state: &mut IPRateMonitorState, cx: &mut Cx) -> Result<(), ArgError> {
        if state.limits.is_some() {
            return Ok(()); // those of the element before this one
        }
        state.limits = Some(RateLimits { threshold: self.threshold, memory: self.memory });
        state.epoch = ip_rates::epoch(cx.now().nanos());
        state.reset_epoch = state.epoch;
        Ok(())
    }

    fn can_take_state(&self, before: &Self) -> bool {
        self == before
    }

    fn batch(&self, state: &mut IPRateMonitorState, port: usize, mut batch: Batch, cx: &mut Cx) {
        let epoch = ip_rates::epoch(cx.now().nanos());
        let configured = RateLimits { threshold: self.threshold, memory: self.memory };
        let limits = *state.limits.get_or_insert(configured);
        state.epoch = epoch;
        for packet in &mut batch {
            let Some(ip) = packet.ipv4_header() else { continue };
            let (address, direction) = match port {
                0 => (ip.src(), Direction::Forward),
                _ => (ip.dst(), Direction::Reverse),
            };
            let events = if self.counts_bytes { ip.total_len().into() } else { 1 };
            let changes = u64::from(cx.random_numbers().number()) & 0xffff <= self.ratio;
            let events = changes.then_some(events);
            let sample = RateSample { address, direction, events, epoch };
            let rates = state.tree.update(&limits, &sample, || cx.random());
            if let Some([forward, reverse]) = rates.filter(|_| self.annotates) {
                packet.set_anno_u32(FWD_RATE, u32::try_from(forward).unwrap_or(u32::MAX));
                packet.set_anno_u32(REV_RATE, u32::try_from(reverse).unwrap_or(u32::MAX));
            }
        }
        cx.emit_batch(Port::nth(port as u8), batch);
    }
}
