//! `InfiniteSource`: equal packets, at full speed.

use super::copies::{self, Datasize, Ending, Pattern};
use castanet_engine::prelude::*;

/// Makes equal packets as fast as they are taken.
///
/// Where its output pushes and all its packets come to rest in queues, it
/// waits while these are full; where its output is pulled, it makes what it is
/// asked for, whatever BURST says.
///
/// As in Click each turn makes one packet unless BURST says more: several
/// sources alternate, and a count that stops the router is exact. For speed say
/// `BURST 32`: a packet then costs a sixth.
///
/// ```click
/// s :: InfiniteSource(DATA "abcdefgh", LIMIT 3, LENGTH 10, BURST 2, TIMESTAMP false) -> out
/// < out eth hex 61 62 63 64 65 66 67 68 61 62 ; time 0.000000000
/// < out eth hex 61 62 63 64 65 66 67 68 61 62
/// < out eth hex 61 62 63 64 65 66 67 68 61 62
/// = s.count 3
/// = s.burst 2
/// ! s.limit 4
/// < out eth hex 61 62 63 64 65 66 67 68 61 62
/// ! s.active false
/// ! s.data xy
/// ! s.length -1
/// ! s.limit 1
/// ! s.reset
/// = s.count 0
/// ! s.active true
/// < out eth hex 78 79
/// ```
///
/// ```click
/// a :: InfiniteSource(DATA a, LIMIT 2) -> out; b :: InfiniteSource(DATA b, LIMIT 2) -> out
/// < out eth hex 61
/// < out eth hex 62
/// < out eth hex 61
/// < out eth hex 62
/// ```
///
/// It waits for room, and calls a handler when all is done:
///
/// ```click
/// s :: InfiniteSource(DATA abcd, LIMIT 3, END_CALL "u.active true")
///   -> q :: Queue(2) -> u :: Unqueue(ACTIVE false) -> out
/// = q.length 2
/// ! q.capacity 100
/// < out eth hex 61 62 63 64
/// < out eth hex 61 62 63 64
/// < out eth hex 61 62 63 64
/// = q.drops 0
/// ```
#[derive(Clone, Element, Args)]
#[element(room = "source", args = InfiniteSource)]
pub struct InfiniteSource {
    /// Contents of the packets.
    #[arg(live, default = Data::from("A packet of this source holds this text, of sixty-four bytes or more."))]
    data: Data,
    /// How many packets to make in all; no limit if negative.
    #[arg(live, default = -1)]
    limit: i64,
    /// How many packets to make at a time, up to the engine's burst.
    #[arg(live, default = 1)]
    burst: i64,
    /// Whether to make packets.
    #[arg(live, default = true)]
    active: bool,
    /// Length of the packets, the data repeated or cut; that of the data if negative.
    #[arg(keyword, live, default = -1, range = ..=1048576)]
    length: i64,
    /// Whether to stop the router after the last packet.
    #[arg(keyword, default = false)]
    stop: bool,
    /// Handler to write after the last packet, and the value.
    #[arg(keyword)]
    end_call: Option<String>,
    /// Bytes free before the contents.
    #[arg(keyword, default = 28, range = ..=65535)]
    headroom: usize,
    /// Whether packets carry the time when they were made.
    #[arg(keyword, default = true)]
    timestamp: bool,
    /// Length as older configurations spell it.
    #[arg(keyword)]
    datasize: Option<Datasize>,
}

/// What has been made so far.
#[derive(Default, Local)]
#[write(reset)]
pub struct Made {
    /// Packets.
    #[read]
    count: u64,
    pattern: Pattern,
    ending: Ending,
}

impl Build for InfiniteSource {
    type Args = InfiniteSource;

    fn build(mut args: Self, _: &Setup) -> Result<Self, ArgError> {
        if args.burst < 1 {
            return Err(ArgError::new("burst size must be >= 1"));
        }
        if args.stop && args.end_call.is_some() {
            return Err(ArgError::new("END_CALL and STOP are mutually exclusive"));
        }
        args.length = args.datasize.as_ref().map_or(args.length, |it| it.0);
        Ok(args)
    }
}

impl InfiniteSource {
    /// The handler that it calls at its end.
    pub(super) fn calls(
        config: &str,
        names: &Names,
    ) -> Option<Vec<(Option<&'static str>, String)>> {
        copies::calls(<InfiniteSource as Args>::parse(config, names).ok()?.end_call)
    }
}

impl Source for InfiniteSource {
    type Local = Made;
    type Fate = ();

    fn ask(&self, made: &mut Made, n: usize, cx: &mut Cx) -> Asked {
        if !self.active {
            return Asked::Done;
        }
        let left = copies::left(self.limit, made.count);
        if left == 0 {
            return made.ending.now(self.stop, self.end_call.as_ref(), cx);
        }
        made.ending.not_yet();
        let burst = match cx.is_pulled() {
            true => n,
            false => usize::try_from(self.burst).unwrap_or(1).max(1),
        };
        let n = cx.grant(n.min(burst).min(left).min(cx.room()));
        if n == 0 {
            return Asked::Empty;
        }
        let stamp = self.timestamp.then(|| cx.now());
        let bytes = made.pattern.of(&self.data, self.length);
        made.count += copies::emit(bytes, self.headroom, stamp, n, cx) as u64;
        Asked::Again
    }
}
