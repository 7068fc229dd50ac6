//! `AggregateFilter`: filters packets by aggregate.

use castanet_element::prelude::*;
use castanet_kit::ranges::Ranges;

/// Filters packets by aggregate: the first matching rule chooses the output or drops.
///
/// A rule is an output's number, `allow` (output 0), `drop` or `deny`, then
/// aggregates: numbers, ranges such as `5-9`, or `all`.
///
/// ```click
/// in -> AggregatePaint -> f :: AggregateFilter(deny 7, 1 1 5-9, allow 20) -> a;  f[1] -> b
/// > in 1.0.0.1 > 2.0.0.2 udp ; paint 20
/// > in 1.0.0.2 > 2.0.0.2 udp ; paint 9
/// > in 1.0.0.3 > 2.0.0.2 udp ; paint 7
/// > in 1.0.0.4 > 2.0.0.2 udp ; paint 21
/// > in 1.0.0.5 > 2.0.0.2 udp ; paint 1
/// < a  1.0.0.1 > 2.0.0.2 udp ; paint 20
/// < b  1.0.0.2 > 2.0.0.2 udp ; paint 9
/// < b  1.0.0.5 > 2.0.0.2 udp ; paint 1
/// = f.drops.unmatched 2
/// ```
#[derive(Element)]
#[element(room = "aggregate", args = AggregateFilterArgs, ports = "1/1-")]
pub struct AggregateFilter {
    ranges: Ranges,
}

#[derive(Args)]
pub struct AggregateFilterArgs {
    /// An action and the aggregates that it applies to.
    #[arg(rest)]
    rules: Vec<Words>,
}

/// The action of a rule that drops packets.
const DROP: u8 = u8::MAX;

/// Parses a rule: ranges of aggregates and an output.
fn rule(words: &Words, outputs: usize) -> Result<(Vec<(u32, u32)>, u8), ArgError> {
    let Some((action, aggregates)) = words.words.split_first() else {
        return Err(ArgError::new("an empty rule").click("empty pattern"));
    };
    let port = match action.as_str() {
        "allow" => 0,
        "drop" | "deny" => DROP,
        number => {
            let unknown = || ArgError::new(format!("unknown slot ID '{number}'"));
            let port: u8 = number.parse().map_err(|_| unknown())?;
            if usize::from(port) >= outputs {
                return Err(ArgError::new(format!("slot '{number}' out of range")));
            }
            port
        }
    };
    let range = |text: &String| {
        if text == "all" || text == "-" {
            return Ok((0, u32::MAX));
        }
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let number = |text: &str| u32::from_arg(text, &Names::default()).ok();
        let range = number(first).zip(number(last)).filter(|(first, last)| first <= last);
        range.ok_or_else(|| ArgError::new(format!("bad aggregate number '{text}'")))
    };
    Ok((aggregates.iter().map(range).collect::<Result<_, _>>()?, port))
}

impl Build for AggregateFilter {
    type Args = AggregateFilterArgs;

    fn build(args: AggregateFilterArgs, setup: &Setup) -> Result<Self, ArgError> {
        let rules = args.rules.iter().enumerate();
        let rules = rules.map(|(n, it)| match it.words.len() {
            1 => Err(ArgError::new(format!("pattern {n} has no aggregates"))
                .help("`all` stands for every aggregate")),
            _ => rule(it, setup.outputs).map_err(|e| e.at(format_args!("pattern {n}"))),
        });
        Ok(AggregateFilter { ranges: Ranges::new(&rules.collect::<Result<Vec<_>, _>>()?) })
    }
}

impl PerPacket for AggregateFilter {
    type On = on::Any;
    type Local = ();
    type Fate = Port;

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) -> Port {
        let aggregate = packet.anno_u32(castanet_element::packet::anno::AGGREGATE);
        Port::known(self.ranges.find(aggregate).unwrap_or(DROP))
    }
}
