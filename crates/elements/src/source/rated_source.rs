//! `RatedSource`: equal packets, at a rate.

use super::copies::{self, Datasize, Ending, Pattern};
use castanet_engine::prelude::*;
use castanet_kit::rate::GapRate;

/// Makes equal packets at an even rate, exact over time.
///
/// At rates of many thousands a second it makes what is due a few hundred
/// microseconds' worth at a time, so that the machine can sleep in between.
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
/// ```
#[derive(Clone, Element, Args)]
#[element(room = "source", args = RatedSource)]
pub struct RatedSource {
    /// Contents of the packets.
    #[arg(live, default = Data::from("A packet of this source holds this text, of sixty-four bytes or more."))]
    data: Data,
    /// Packets a second.
    #[arg(live, default = 10)]
    rate: u64,
    /// How many packets to make in all; no limit if negative.
    #[arg(live, default = -1)]
    limit: i64,
    /// Whether to make packets.
    #[arg(live, default = true)]
    active: bool,
    /// Length of the packets, the data repeated or cut; that of the data if negative.
    #[arg(keyword, live, default = -1, range = ..=1048576)]
    length: i64,
    /// Whether to stop the router after the last packet.
    #[arg(keyword, default = false)]
    stop: bool,
    /// Bits a second, in place of a rate in packets.
    #[arg(keyword)]
    bandwidth: Option<Bandwidth>,
    /// Handler to write after the last packet, and the value.
    #[arg(keyword)]
    end_call: Option<String>,
    /// Bytes free before the contents.
    #[arg(keyword, default = 28, range = ..=65535)]
    headroom: usize,
    /// Length as older configurations spell it.
    #[arg(keyword)]
    datasize: Option<Datasize>,
}

/// What has been made so far, and the pace.
#[derive(Default, Local)]
#[write(reset)]
pub struct Made {
    /// Packets.
    #[read]
    count: u64,
    pattern: Pattern,
    ending: Ending,
    pace: Option<GapRate>,
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
    /// The handler that it calls at its end.
    pub(super) fn calls(
        config: &str,
        names: &Names,
    ) -> Option<Vec<(Option<&'static str>, String)>> {
        copies::calls(<RatedSource as Args>::parse(config, names).ok()?.end_call)
    }
}

impl Source for RatedSource {
    type Local = Made;
    type Fate = ();

    fn ask(&self, made: &mut Made, n: usize, cx: &mut Cx) -> Asked {
        let left = copies::left(self.limit, made.count);
        if !self.active || left == 0 {
            // What falls due while nothing is made is not made up for.
            made.pace = None;
            return match self.active {
                true => made.ending.now(self.stop, self.end_call.as_ref(), cx),
                false => Asked::Done,
            };
        }
        made.ending.not_yet();
        let now = cx.now();
        let pace = made.pace.get_or_insert_with(|| GapRate::new(self.rate));
        pace.set_rate(self.rate, now.nanos());
        let due = usize::try_from(pace.allowance(now.nanos())).unwrap_or(n);
        let n = n.min(left).min(due);
        if n == 0 {
            let Some(next) = pace.expiry() else { return Asked::Done };
            let next = Time::from_nanos(next);
            cx.retry_at(next);
            return Asked::At(next);
        }
        let n = cx.grant(n);
        if n == 0 {
            return Asked::Empty;
        }
        let bytes = made.pattern.of(&self.data, self.length);
        let emitted = copies::emit(bytes, self.headroom, Some(now), n, cx);
        pace.update_with(emitted as i64);
        made.count += emitted as u64;
        Asked::Again
    }
}
