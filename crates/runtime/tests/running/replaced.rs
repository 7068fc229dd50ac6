//! Hot swaps: settings that handlers have changed go over, and a configuration that lacks frames is
//! warned of.

use crate::bed::{balance, build_replaceable, build_warning, clean, number, run_until};
use castanet_element::class::{Class, per_batch};
use castanet_element::prelude::*;

/// Has a number that goes over to another configuration.
#[derive(Clone, Element)]
struct Tune {
    /// The number.
    #[arg(live)]
    number: u64,
    /// Something else.
    #[arg(live, keyword, default = 0)]
    other: u64,
}

impl PerBatch for Tune {
    type On = on::Any;
    type Local = ();
    type Fate = ();
    fn batch(&self, _: &mut (), _: usize, batch: Batch, cx: &mut Cx) {
        cx.emit_batch((), batch);
    }
    fn can_take_state(&self, _: &Tune) -> bool {
        true
    }
    fn merged_config(&self, before: &Tune) -> Option<Tune> {
        Some(Tune { number: before.number, ..self.clone() })
    }
}

pub(crate) static CLASSES: &[Class] = &[per_batch::<Tune>()];

#[test]
fn what_handlers_change_until_a_configuration_is_replaced_goes_over() {
    for workers in [1, 2] {
        let text = |other| format!("m :: Make(10) -> t :: Tune(1, OTHER {other}) -> e :: End");
        let mut router = build_replaceable(&text(0), workers);
        // The same element first, then one with other arguments; what is written comes between.
        for (other, number) in [(0, 7), (0, 8), (5, 9), (5, 10), (6, 11)] {
            router.write("hotconfig", &text(other)).unwrap();
            router.write("t.number", &number.to_string()).unwrap();
            let mut looks = 0;
            run_until(&mut router, |_| {
                looks += 1;
                looks > 1
            });
            let now = ["t.number", "t.other"].map(|handler| router.read(handler).unwrap());
            assert_eq!(now, [number.to_string(), other.to_string()]);
        }
        balance(&mut router);
        clean(router);
    }
}

#[test]
fn a_configuration_whose_devices_lack_frames_says_so() {
    let (mut router, warnings) = build_warning("Make(10) -> End");
    let said = |router: &mut castanet_runtime::router::Router, text: &str| {
        router.write("hotconfig", text).unwrap();
        std::mem::take(&mut *warnings.lock().unwrap())
    };
    assert_eq!(said(&mut router, "Make(20) -> End"), "");
    let text = said(&mut router, "Queues(a, 4, 1) -> e :: End");
    assert!(text.contains("to have 24576 frames, and there are 8192 from the start"), "{text}");
    assert!(text.contains("start with --frames 24576"), "{text}");
    run_until(&mut router, |router| router.read("e.count").is_ok_and(|count| count == "4"));
    assert_eq!(number(&mut router, "e.count"), 4);
    clean(router);
}

#[test]
fn one_state_goes_over_whether_one_worker_uses_it_or_several() {
    let text = |maker, mover, active| {
        format!(
            "m :: Make(10) -> k :: Keep -> v :: Move({active}) -> e :: End;
             Home(m, {maker}); Home(v, {mover})"
        )
    };
    let mut router = build_replaceable(&text(1, 1, false), 2);
    run_until(&mut router, |router| number(router, "m.count") == 10);
    let store = |router: &castanet_runtime::router::Router| router.graph().find("k").unwrap();
    for (maker, mover) in [(1, 0), (0, 0), (0, 1), (1, 1)] {
        router.write("hotconfig", &text(maker, mover, false)).unwrap();
        router.settle(100);
        let (k, workers) = (store(&router), if maker == mover { 1 } else { 2 });
        assert_eq!((router.held(k), router.assigned().reaching(k).count()), (10, workers));
    }
    router.write("hotconfig", &text(1, 1, true)).unwrap();
    router.settle(100);
    assert_eq!(number(&mut router, "e.count"), 10);
    balance(&mut router);
    clean(router);
}
