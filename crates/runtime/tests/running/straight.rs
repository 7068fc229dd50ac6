//! Sources that hand packets to the element next to them, which nobody looks at on the way.

use crate::bed::{balance, build, clean, number};
use crate::elements::CountState;
use castanet_element::class::{Class, per_batch, source};
use castanet_element::prelude::*;

/// Makes packets, or hands over as many without making any.
#[derive(Element)]
struct Pour {
    /// How many packets.
    #[arg]
    limit: u64,
}

impl Source for Pour {
    type Local = CountState;
    type Fate = ();
    fn produce(&self, poured: &mut CountState, n: usize, cx: &mut Cx) -> NextRun {
        let n = n.min((self.limit - poured.count) as usize);
        poured.count += n as u64;
        let handed = cx.bypass(|_: &Drain, drained, _, cx| {
            drained.unseen += n as u64;
            cx.count_consumed(n);
            Some(PacketTotals { packets: n as u64, bytes: 10 * n as u64 })
        });
        if n == 0 {
            return NextRun::Done;
        }
        if handed.is_none() {
            let packets: Batch = (0..n).filter_map(|_| cx.copy_in(b"some bytes")).collect();
            cx.emit_batch((), packets);
        }
        NextRun::Again
    }
}

/// Takes packets, and what nobody has looked at.
#[derive(Element)]
#[element(ports = "1/0")]
struct Drain;

#[derive(Default, Local)]
struct DrainState {
    /// Packets that came as packets.
    #[read]
    seen: u64,
    /// Others.
    #[read]
    unseen: u64,
}

impl PerBatch for Drain {
    type On = on::Any;
    type Local = DrainState;
    type Fate = Never;
    fn batch(&self, drained: &mut DrainState, _: usize, batch: Batch, cx: &mut Cx) {
        drained.seen += batch.len() as u64;
        cx.consume(batch);
    }
}

/// Only counts packets, unless LOOKS.
#[derive(Clone, Element)]
#[element(methods)]
struct Tally {
    /// Whether it looks at packets.
    #[arg]
    looks: bool,
}

#[derive(Default, Local)]
struct TallyState {
    /// Packets.
    #[read]
    packets: u64,
    /// Their bytes.
    #[read]
    bytes: u64,
    /// How often some were counted.
    #[read]
    counts: u64,
}

#[handlers]
impl Tally {
    /// Whether it looks at packets.
    #[write]
    fn looks(&self, text: &str, names: &Names) -> Result<Tally, ArgError> {
        Ok(Tally { looks: bool::from_arg(text, names)? })
    }
}

impl PerBatch for Tally {
    type On = on::Any;
    type Local = TallyState;
    type Fate = ();
    const COUNTS_ONLY: bool = true;
    fn batch(&self, tally: &mut TallyState, _: usize, batch: Batch, cx: &mut Cx) {
        self.count(tally, batch.totals(), cx);
        cx.emit_batch((), batch);
    }
    fn counts_only(&self) -> bool {
        !self.looks
    }
    fn count(&self, tally: &mut TallyState, totals: PacketTotals, _: &mut Cx) {
        tally.packets += totals.packets;
        tally.bytes += totals.bytes;
        tally.counts += 1;
    }
}

pub(crate) static CLASSES: &[Class] =
    &[source::<Pour>().with_bypass(&["Drain"]), per_batch::<Drain>(), per_batch::<Tally>()];

/// How many of 320 packets came seen and unseen, where `before` was written first.
fn came(text: &str, before: Option<(&str, &str)>) -> [u64; 2] {
    let mut router = build(text, 1, true);
    if let Some((handler, value)) = before {
        router.write(handler, value).unwrap();
    }
    router.settle(100);
    balance(&mut router);
    assert_eq!(number(&mut router, "p.count"), 320);
    let came = ["d.seen", "d.unseen"].map(|handler| number(&mut router, handler));
    clean(router);
    came
}

#[test]
fn neighbours_hand_over_what_nobody_looks_at() {
    assert_eq!(came("p :: Pour(320) -> d :: Drain", None), [0, 320]);
}

#[test]
fn elements_that_only_count_do_so_for_packets_that_nobody_looks_at() {
    let text = "p :: Pour(320) -> t :: Tally(false) -> u :: Tally(false) -> d :: Drain";
    let mut router = build(text, 1, true);
    router.settle(100);
    balance(&mut router);
    // A look that finds none is not counted.
    let names = ["t.packets", "t.bytes", "u.packets", "u.bytes", "d.seen", "d.unseen", "t.counts"];
    let read = names.map(|handler| number(&mut router, handler));
    assert_eq!(read, [320, 3200, 320, 3200, 0, 320, 10]);
    clean(router);
}

#[test]
fn packets_are_seen_where_an_element_looks_at_them_or_does_not_only_count() {
    assert_eq!(came("p :: Pour(320) -> Tally(false) -> Tally(true) -> d :: Drain", None), [320, 0]);
    let looks = Some(("t.looks", "true"));
    assert_eq!(came("p :: Pour(320) -> t :: Tally(false) -> d :: Drain", looks), [320, 0]);
}

#[test]
fn packets_are_seen_when_costs_are_counted() {
    assert_eq!(came("p :: Pour(320) -> Count -> d :: Drain", None), [320, 0]);
    // Each element's cost is asked for.
    let asked = Some(("count_cycles", "true"));
    assert_eq!(came("p :: Pour(320) -> d :: Drain", asked), [320, 0]);
    // Another has its packets, too.
    assert_eq!(came("p :: Pour(320) -> d :: Drain; Make(32) -> d", None), [32, 320]);
    assert_eq!(came("p :: Pour(320) -> End; Make(32) -> d :: Drain", None), [32, 0]);
}
