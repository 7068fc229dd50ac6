//! `InfiniteSource`: makes equal packets at full speed.

use super::end_action::{self, EndAction};
use super::pattern::{self, Datasize, Pattern};
use castanet_element::prelude::*;

/// Generates equal packets as fast as the elements downstream take them.
///
/// If its output pushes and all its packets end in queues, it waits while these are full. If its
/// output is pulled, it makes as many packets as the pull asks for, regardless of BURST.
///
/// As in Click it makes one packet per turn unless BURST is larger: several sources alternate, and
/// a COUNT_CALL that stops the router is exact. Use `BURST 32` for speed: the cost per packet is
/// then a sixth.
///
/// ```click
/// s :: InfiniteSource(DATA "abcdefgh", LIMIT 3, LENGTH 10, BURST 2, TIMESTAMP false) -> out
/// < out eth hex 61 62 63 64 65 66 67 68 61 62 ; time 0.000000000
/// < out eth hex 61 62 63 64 65 66 67 68 61 62
/// < out eth hex 61 62 63 64 65 66 67 68 61 62
/// = s.count 3
/// = s.burst 2
/// = s.burstsize 2
/// ! s.burstsize 3
/// = s.burst 3
/// = s.datasize 10
/// ! s.limit 4
/// < out eth hex 61 62 63 64 65 66 67 68 61 62
/// ! s.active false
/// ! s.data xy
/// ! s.datasize -1
/// = s.length -1
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
#[element(room = "source", args = InfiniteSource, methods, headers = Gives(FirstHeader::Unknown, MarkedHeader::None))]
pub struct InfiniteSource {
    /// Contents of the packets.
    #[arg(live, default = Data::from("Random bullshit in a packet, at least 64 bytes long. Well, now it is."))]
    data: Data,
    /// Total number of packets to make; no limit if negative.
    #[arg(live, default = -1)]
    limit: i64,
    /// Number of packets per turn, at most the burst size of the engine.
    #[arg(live, default = 1)]
    burst: i64,
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
    /// Write handler to call after the last packet, and its value.
    #[arg(keyword)]
    end_call: Option<String>,
    /// Headroom of the packets in bytes.
    #[arg(keyword, default = 28, range = ..=65535)]
    headroom: usize,
    /// Whether packets carry the time at which they were made as their timestamp.
    #[arg(keyword, default = true)]
    timestamp: bool,
    /// The name of LENGTH in older configurations.
    #[arg(keyword)]
    datasize: Option<Datasize>,
}

/// Counter, cached contents, and end of the source.
#[derive(Default, Local)]
#[write(reset)]
pub struct InfiniteSourceState {
    /// Number of packets made since the last reset.
    #[read]
    #[portable]
    count: u64,
    pattern: Pattern,
    end_action: EndAction,
}

#[handlers]
impl InfiniteSource {
    /// The same as `burst`.
    #[read]
    fn burstsize(&self) -> i64 {
        self.burst
    }
    /// Sets `burst`.
    #[write(burstsize)]
    fn set_burstsize(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(InfiniteSource { burst: i64::from_arg(text, names)?, ..self.clone() })
    }
    /// The same as `length`.
    #[read]
    fn datasize(&self) -> i64 {
        self.length
    }
    /// Sets `length`.
    #[write(datasize)]
    fn set_datasize(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(InfiniteSource { length: Datasize::from_arg(text, names)?.0, ..self.clone() })
    }
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
    /// The handler of END_CALL, for the check of the configuration.
    pub(super) fn calls(
        config: &str,
        names: &Names,
    ) -> Option<Vec<(Option<&'static str>, String)>> {
        end_action::end_call_handlers(<InfiniteSource as Args>::parse(config, names).ok()?.end_call)
    }
}

impl Source for InfiniteSource {
    type Local = InfiniteSourceState;
    type Fate = ();

    fn packets_a_turn(&self) -> usize {
        usize::try_from(self.burst).unwrap_or(1)
    }

    fn produce(&self, state: &mut InfiniteSourceState, n: usize, cx: &mut Cx) -> NextRun {
        if !self.active {
            return NextRun::Done;
        }
        let left = end_action::packets_left(self.limit, state.count);
        if left == 0 {
            return state.end_action.run(self.stop, self.end_call.as_ref(), cx);
        }
        state.end_action.rearm();
        let burst = match cx.is_pulled() {
            true => n,
            false => usize::try_from(self.burst).unwrap_or(1).max(1).min(cx.burst()),
        };
        let n = cx.grant(burst.min(left).min(cx.room()));
        if n == 0 {
            return NextRun::Empty;
        }
        let stamp = self.timestamp.then(|| cx.now());
        let bytes = state.pattern.bytes_of(&self.data, self.length);
        state.count += pattern::emit(bytes, self.headroom, stamp, n, cx) as u64;
        NextRun::Again
    }
}
