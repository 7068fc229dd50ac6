//! `RandomSource`: packets of random bytes.

use super::copies::{self, Ending};
use castanet_engine::prelude::*;

/// Makes packets of random bytes as fast as they are taken.
///
/// ```click
/// s :: RandomSource(64, LIMIT 3, ACTIVE false) -> c :: Counter -> t :: TimedSink(1us)
/// ! s.active true
/// + 1ms
/// = s.count 3
/// = c.byte_count 192
/// ```
#[derive(Clone, Element, Args)]
#[element(room = "source", args = RandomSource)]
pub struct RandomSource {
    /// Length of the packets.
    #[arg(live, range = ..=1048576)]
    length: u32,
    /// How many packets to make in all; no limit if negative.
    #[arg(live, default = -1)]
    limit: i64,
    /// How many packets to make at a time.
    #[arg(live, default = 32)]
    burst: i64,
    /// Whether to make packets.
    #[arg(live, default = true)]
    active: bool,
    /// Whether to stop the router after the last packet.
    #[arg(keyword, default = false)]
    stop: bool,
    /// Handler to write after the last packet, and the value.
    #[arg(keyword)]
    end_call: Option<String>,
}

/// What has been made so far.
#[derive(Default, Local)]
#[write(reset)]
pub struct Made {
    /// Packets.
    #[read]
    count: u64,
    ending: Ending,
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
    /// The handler that it calls at its end.
    pub(super) fn calls(
        config: &str,
        names: &Names,
    ) -> Option<Vec<(Option<&'static str>, String)>> {
        copies::calls(<RandomSource as Args>::parse(config, names).ok()?.end_call)
    }
}

impl Source for RandomSource {
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
        let burst = usize::try_from(self.burst).unwrap_or(1).max(1);
        let n = cx.grant(n.min(burst).min(left).min(cx.room()));
        if n == 0 {
            return Asked::Empty;
        }
        for _ in 0..n {
            let Some(mut packet) = cx.alloc() else { break };
            for chunk in packet.put_back(self.length as usize).chunks_mut(size_of::<u64>()) {
                chunk.copy_from_slice(&cx.random().to_ne_bytes()[..chunk.len()]);
            }
            cx.emit((), packet);
            made.count += 1;
        }
        Asked::Again
    }
}
