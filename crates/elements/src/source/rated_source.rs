//! `RatedSource`: makes equal packets at a rate.

use super::end_action::{self, EndAction};
use super::pattern::{self, Datasize, Pattern};
use castanet_element::prelude::*;
use castanet_kit::rate::GapRate;

/// Generates equal packets at an even rate, exact over time.
///
/// At rates of many thousands per second it makes the packets of a few hundred microseconds at a
/// time, so that the worker can sleep in between.
///
/// ```click
/// s :: RatedSource(DATA abcd, RATE 2, LIMIT 5) -> out
/// < out eth hex 61 62 63 64 ; time 1000000000.000000000
/// + 0.5s
/// < out eth hex 61 62 63 64 ; time 1000000000.500000000
/// + 1s
/// = s.count 4
/// < out eth hex 61 62 63 64 ; time 1000000001.000000000
/// < out eth hex 61 62 63 64 ; time 1000000001.500000000
/// + 5s
/// = s.count 5
/// < out eth hex 61 62 63 64
/// ! s.active false
/// ! s.limit -1
/// ! s.rate 1000
/// ! s.reset
/// + 10s
/// = s.count 0
/// = s.rate 1000
/// ```
///
/// ```click
/// s :: RatedSource(LENGTH 1000, BANDWIDTH 8Mbps, ACTIVE false) -> out
/// = s.rate 1000
/// = s.datasize 1000
/// ! s.datasize 500
/// = s.length 500
/// ```
#[derive(Clone, Element, Args)]
#[element(room = "source", args = RatedSource, methods, headers = Gives(FirstHeader::Unknown, MarkedHeader::None))]
pub struct RatedSource {
    /// Contents of the packets.
    #[arg(live, default = Data::from("Random bullshit in a packet, at least 64 bytes long. Well, now it is."))]
    data: Data,
    /// Rate in packets per second.
    #[arg(live, default = 10)]
    rate: u64,
    /// Total number of packets to make; no limit if negative.
    #[arg(live, default = -1)]
    limit: i64,
    /// Whether the source makes packets.
    #[arg(live, default = true)]
    active: bool,
    /// Length of the packets in bytes, to which the data is cut or repeated; the length of the data
    /// if negative.
    #[arg(keyword, live, default = -1, range = ..=1048576)]
    length: i64,
    /// Whether to stop the router after the last packet.
    #[arg(keyword, default = false)]
    stop: bool,
    /// Bandwidth, instead of a rate in packets.
    #[arg(keyword)]
    bandwidth: Option<Bandwidth>,
    /// Write handler to call after the last packet, and its value.
    #[arg(keyword)]
    end_call: Option<String>,
    /// Headroom of the packets in bytes.
    #[arg(keyword, default = 28, range = ..=65535)]
    headroom: usize,
    /// The name of LENGTH in older configurations.
    #[arg(keyword)]
    datasize: Option<Datasize>,
}

/// Counter, cached contents, end and pace of the source.
#[derive(Default, Local)]
#[write(reset)]
pub struct RatedSourceState {
    /// Number of packets made since the last reset.
    #[read]
    #[portable]
    count: u64,
    pattern: Pattern,
    end_action: EndAction,
    gap_rate: Option<GapRate>,
}

#[handlers]
impl RatedSource {
    /// The same as `length`.
    #[read]
    fn datasize(&self) -> i64 {
        self.length
    }
    /// Sets `length`.
    #[write(datasize)]
    fn set_datasize(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(RatedSource { length: Datasize::from_arg(text, names)?.0, ..self.clone() })
    }
}

impl Build for RatedSource {
    type Args = RatedSource;

    fn build(mut args: Self, _: &Setup) -> Result<Self, ArgError> {
        if args.stop && args.end_call.is_some() {
            return Err(ArgError::new("END_CALL and STOP are mutually exclusive"));
        }
        args.length = args.datasize.as_ref().map_or(args.length, |it| it.0);
        if let Some(Bandwidth(bytes)) = args.bandwidth {
            let length = u64::try_from(args.length).unwrap_or(args.data.0.len() as u64);
            args.rate = bytes / length.max(1);
        }
        Ok(args)
    }
}

impl RatedSource {
    /// The handler of END_CALL, for the check of the configuration.
    pub(super) fn calls(
        config: &str,
        names: &Names,
    ) -> Option<Vec<(Option<&'static str>, String)>> {
        end_action::end_call_handlers(<RatedSource as Args>::parse(config, names).ok()?.end_call)
    }
}

impl Source for RatedSource {
    type Local = RatedSourceState;
    type Fate = ();

    fn produce(&self, state: &mut RatedSourceState, n: usize, cx: &mut Cx) -> NextRun {
        let left = end_action::packets_left(self.limit, state.count);
        if !self.active || left == 0 {
            // Packets that would have been due while the source makes none are not made up for.
            state.gap_rate = None;
            return match self.active {
                true => state.end_action.run(self.stop, self.end_call.as_ref(), cx),
                false => NextRun::Done,
            };
        }
        state.end_action.rearm();
        let now = cx.now();
        let gap_rate = state.gap_rate.get_or_insert_with(|| GapRate::new(self.rate));
        gap_rate.set_rate(self.rate, now.nanos());
        let due = usize::try_from(gap_rate.allowance(now.nanos())).unwrap_or(n);
        let n = n.min(left).min(due);
        if n == 0 {
            let Some(next) = gap_rate.expiry() else { return NextRun::Done };
            let next = Time::from_nanos(next);
            cx.retry_at(next);
            return NextRun::At(next);
        }
        let n = cx.grant(n);
        if n == 0 {
            return NextRun::Empty;
        }
        let bytes = state.pattern.bytes_of(&self.data, self.length);
        let emitted = pattern::emit(bytes, self.headroom, Some(now), n, cx);
        gap_rate.update_with(emitted as i64);
        state.count += emitted as u64;
        NextRun::Again
    }
}
