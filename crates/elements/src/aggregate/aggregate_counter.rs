//! `AggregateCounter`: counts packets or bytes by aggregate.

use super::aggregate_counts::AggregateCounterState;
use super::packet_weight::PacketWeightArgs;
use crate::measure::limit::{Limit, one_of};
use castanet_element::files::HandlerFiles;
use castanet_element::packet::anno;
use castanet_element::prelude::*;

/// Counts packets or bytes by their aggregate annotation.
///
/// A frozen counter counts no aggregate that it has not counted before; for packets of the
/// second input the counter is always frozen. A second output gets the packets that were not
/// counted. No more than CAPACITY aggregates are counted; packets of others are counted as
/// `uncounted` only. The limits are checked for each packet, and their handlers called before
/// the packet leaves. Handlers that write files take `-` for standard output, and files that the
/// configuration names, or that lie below the folders of `--handler-files`.
///
/// ```click
/// in -> Paint(7, 23) -> c :: AggregateCounter -> out
/// frozen -> [1] c;  c[1] -> other
/// > in     1.0.0.1 > 2.0.0.2 udp
/// > frozen 1.0.0.2 > 2.0.0.2 udp
/// < out    1.0.0.1 > 2.0.0.2 udp
/// < other  1.0.0.2 > 2.0.0.2 udp
/// = c.count 1
/// = c.nagg 1
/// ! c.freeze true
/// = c.freeze true
/// ! c.banner # mine
/// = c.banner # mine
/// ! c.write_text_file /dev/null
/// ! c.write_ascii_file /dev/null
/// ! c.write_ip_file /dev/null
/// ! c.write_pdf_file /dev/null
/// ! c.write_file /dev/null
/// = c.counts_pdf 1 1
/// ! c.reaggregate_counts
/// ! c.counts_pdf
/// = c.nagg 1
/// ! c.clear
/// = c.count 0
/// ! c.active false
/// = c.active false
/// > in     1.0.0.3 > 2.0.0.2 udp
/// < other  1.0.0.3 > 2.0.0.2 udp
/// ```
///
/// ```click
/// in -> c :: AggregateCounter(BYTES true, AGGREGATE_FREEZE 1, COUNT_CALL 50 p.color 9)
///    -> p :: Paint(1) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp len 60
/// < out 1.0.0.1 > 2.0.0.2 udp len 60 ; paint 9
/// = c.count 60
/// = p.color 9
/// = c.count_call
/// ! c.count_call 100 p.color 3
/// = c.count_call 100 p.color 3
/// ! c.aggregate_call 7 p.color 4
/// = c.aggregate_call 7 p.color 4
/// ! c.stop
/// = c.active false
/// ```
///
/// ```click
/// in -> AggregatePaint -> c :: AggregateCounter(CAPACITY 1, BANNER "# mine") -> out;  c[1] -> other
/// > in    1.0.0.1 > 2.0.0.2 udp ; paint 1
/// > in    1.0.0.1 > 2.0.0.2 udp ; paint 2
/// > in    1.0.0.1 > 2.0.0.2 udp ; paint 1
/// < out   1.0.0.1 > 2.0.0.2 udp ; paint 1
/// < other 1.0.0.1 > 2.0.0.2 udp ; paint 2
/// < out   1.0.0.1 > 2.0.0.2 udp ; paint 1
/// = c.count 2
/// = c.nagg 1
/// = c.uncounted 1
/// = c.banner # mine
/// ```
#[derive(Element)]
#[element(room = "aggregate", args = AggregateCounterArgs, ports = "1-2/1-2", processing = "a/a")]
pub struct AggregateCounter {
    pub(super) name: String,
    weight: PacketWeightArgs,
    two_outputs: bool,
    pub(super) capacity: usize,
    pub(super) limits: [Option<Limit>; 2],
    pub(super) banner: String,
    pub(super) files: HandlerFiles,
}

/// The default of CAPACITY, for which the counts take some 30 MB.
const CAPACITY: u32 = 1 << 20;

#[derive(Args)]
pub struct AggregateCounterArgs {
    /// The weight of each packet.
    #[arg(flatten)]
    weight: PacketWeightArgs,
    /// The most aggregates to count.
    #[arg(keyword, default = CAPACITY, shown = "1048576")]
    capacity: u32,
    /// Number of aggregates beyond which the router is stopped.
    #[arg(keyword)]
    aggregate_stop: Option<u64>,
    /// Number of aggregates beyond which the counter freezes.
    #[arg(keyword)]
    aggregate_freeze: Option<u64>,
    /// Number of aggregates beyond which a handler is written, then the handler and its value.
    #[arg(keyword)]
    aggregate_call: Option<Limit>,
    /// Total count at which the router is stopped.
    #[arg(keyword)]
    count_stop: Option<u64>,
    /// Total count at which the counter freezes.
    #[arg(keyword)]
    count_freeze: Option<u64>,
    /// Total count at which a handler is written, then the handler and its value.
    #[arg(keyword)]
    count_call: Option<Limit>,
    /// Text at the beginning of files, a line of which should begin with `!` or `#`.
    #[arg(keyword, default = String::new())]
    banner: String,
}

impl Build for AggregateCounter {
    type Args = AggregateCounterArgs;

    fn build(args: AggregateCounterArgs, setup: &Setup) -> Result<Self, ArgError> {
        let (me, it) = (setup.name, &args);
        let (stop, freeze) = (it.aggregate_stop, it.aggregate_freeze);
        let agg = one_of("AGGREGATE", me, stop, freeze, &it.aggregate_call)?;
        let count = one_of("COUNT", me, it.count_stop, it.count_freeze, &it.count_call)?;
        let two_outputs = setup.outputs > 1;
        let name = setup.name.to_owned();
        let files = setup.names.files().clone();
        let (weight, capacity, limits) = (args.weight, args.capacity as usize, [agg, count]);
        let banner = args.banner;
        Ok(AggregateCounter { name, weight, two_outputs, capacity, limits, banner, files })
    }
}

impl AggregateCounter {
    /// The handlers that a configuration string makes the element call.
    pub(super) fn calls(
        config: &str,
        names: &Names,
    ) -> Option<Vec<(Option<&'static str>, String)>> {
        let it = <AggregateCounterArgs as Args>::parse(config, names).ok()?;
        let calls = [it.aggregate_call, it.count_call].into_iter().flatten();
        let handlers: Vec<_> = calls.map(|it| (None, it.call.handler)).collect();
        (!handlers.is_empty()).then_some(handlers)
    }
}

#[derive(Fate)]
pub enum AggregateCounterExit {
    /// All packets or, with a second output, those that were counted.
    Counted,
    /// Packets that were not counted.
    #[optional]
    Other,
}

impl PerBatch for AggregateCounter {
    type On = on::Any;
    type Local = AggregateCounterState;
    type Fate = AggregateCounterExit;
    // One file has the counts of all workers, and limits apply to all of them together.
    const SHARED: bool = true;

    fn can_take_state(&self, _: &AggregateCounter) -> bool {
        true
    }

    fn init(&self, state: &mut AggregateCounterState, _: &mut Cx) -> Result<(), ArgError> {
        state.begin(self);
        Ok(())
    }

    fn batch(&self, state: &mut AggregateCounterState, port: usize, batch: Batch, cx: &mut Cx) {
        for packet in batch {
            let (aggregate, amount) = (packet.anno_u32(anno::AGGREGATE), self.weight.of(&packet));
            let counted = state.update(aggregate, amount, port == 1, self, cx);
            // A pulled packet leaves by the output that was pulled.
            let other =
                cx.pulling_output().map_or(self.two_outputs && !counted, |output| output == 1);
            cx.emit(
                if other { AggregateCounterExit::Other } else { AggregateCounterExit::Counted },
                packet,
            );
        }
    }
}
