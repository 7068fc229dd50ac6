//! `RandomSource`: makes packets of random bytes.

use super::end_action::{self, EndAction};
use castanet_element::prelude::*;

/// Generates packets of random bytes as fast as the elements downstream take them.
///
/// ```click
/// s :: RandomSource(64, LIMIT 3, ACTIVE false) -> c :: Counter -> t :: TimedSink(1us)
/// ! s.active true
/// + 1ms
/// = s.count 3
/// = c.byte_count 192
/// ```
#[derive(Clone, Element, Args)]
#[element(room = "source", args = RandomSource, headers = Gives(FirstHeader::Unknown, MarkedHeader::None))]
pub struct RandomSource {
    /// Length of the packets in bytes.
    #[arg(live, range = ..=1048576)]
    length: u32,
    /// Total number of packets to make; no limit if negative.
    #[arg(live, default = -1)]
    limit: i64,
    /// Number of packets per turn.
    #[arg(live, default = 1)]
    burst: i64,
    /// Whether the source makes packets.
    #[arg(live, default = true)]
    active: bool,
    /// Whether to stop the router after the last packet.
    #[arg(keyword, default = false)]
    stop: bool,
    /// Write handler to call after the last packet, and its value.
    #[arg(keyword)]
    end_call: Option<String>,
}

/// Counter and end of the source.
#[derive(Default, Local)]
#[write(reset)]
pub struct RandomSourceState {
    /// Number of packets made since the last reset.
    #[read]
    #[portable]
    count: u64,
    end_action: EndAction,
}

impl Build for RandomSource {
    type Args = RandomSource;

    fn build(args: Self, _: &Setup) -> Result<Self, ArgError> {
        if args.length > 64 * 1024 {
            return Err(ArgError::new("length must be between 0 and 65536").at("LENGTH"));
        }
        match args.burst < 1 {
            true => Err(ArgError::new("burst size must be >= 1")),
            false => Ok(args),
        }
    }
}

impl RandomSource {
    /// The handler of END_CALL, for the check of the configuration.
    pub(super) fn calls(
        config: &str,
        names: &Names,
    ) -> Option<Vec<(Option<&'static str>, String)>> {
        end_action::end_call_handlers(<RandomSource as Args>::parse(config, names).ok()?.end_call)
    }
}

impl Source for RandomSource {
    type Local = RandomSourceState;
    type Fate = ();

    fn packets_a_turn(&self) -> usize {
        usize::try_from(self.burst).unwrap_or(1)
    }

    fn produce(&self, state: &mut RandomSourceState, n: usize, cx: &mut Cx) -> NextRun {
        if !self.active {
            return NextRun::Done;
        }
        let left = end_action::packets_left(self.limit, state.count);
        if left == 0 {
            return state.end_action.run(self.stop, self.end_call.as_ref(), cx);
        }
        state.end_action.rearm();
        let most = if cx.is_pulled() { n } else { cx.burst() };
        let burst = usize::try_from(self.burst).unwrap_or(1).max(1).min(most);
        let n = cx.grant(burst.min(left).min(cx.room()));
        if n == 0 {
            return NextRun::Empty;
        }
        for _ in 0..n {
            let Some(mut packet) = cx.alloc() else { break };
            cx.random_numbers().fill(packet.put_back(self.length as usize));
            cx.emit((), packet);
            state.count += 1;
        }
        NextRun::Again
    }
}
