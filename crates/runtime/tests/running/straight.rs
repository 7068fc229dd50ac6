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
        if n == 0 {
            return NextRun::Done;
        }
        poured.count += n as u64;
        let handed = cx.bypass(|_: &Drain, drained, cx| {
            drained.unseen += n as u64;
            cx.count_consumed(n);
            n
        });
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

pub(crate) static CLASSES: &[Class] =
    &[source::<Pour>().with_bypass(&["Drain"]), per_batch::<Drain>()];

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
fn packets_are_seen_when_costs_are_counted() {
    assert_eq!(came("p :: Pour(320) -> Count -> d :: Drain", None), [320, 0]);
    // Each element's cost is asked for.
    let asked = Some(("count_cycles", "true"));
    assert_eq!(came("p :: Pour(320) -> d :: Drain", asked), [320, 0]);
    // Another has its packets, too.
    assert_eq!(came("p :: Pour(320) -> d :: Drain; Make(32) -> d", None), [32, 320]);
    assert_eq!(came("p :: Pour(320) -> End; Make(32) -> d :: Drain", None), [32, 0]);
}
