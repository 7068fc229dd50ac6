//! Devices of several queues: who has which, and that all of them have begun.

use crate::bed::{balance, build, clean, number};
use castanet_element::device::QueueShare;
use castanet_runtime::router::Router;

/// Each worker's share of an element's device: worker, queues, other elements that send there.
fn shares(router: &Router, element: &str) -> Vec<(usize, std::ops::Range<usize>, Vec<usize>)> {
    let element = router.graph().find(element).unwrap();
    let plain = |share: &QueueShare| (share.worker, share.queues.clone(), share.with.clone());
    router.assigned()[element].queue_shares.iter().map(plain).collect()
}

fn workers(router: &Router, element: &str) -> Vec<usize> {
    router.assigned().reaching(router.graph().find(element).unwrap()).collect()
}

#[test]
fn every_worker_begins_with_queues_of_its_own() {
    let text = "in :: Queues(a, 4, 100) -> c :: Count -> out :: Outlet(b, 2)";
    let mut router = build(text, 3, true);
    assert_eq!(shares(&router, "in"), [(0, 0..1, vec![]), (1, 1..2, vec![]), (2, 2..4, vec![])]);
    let sends = [(0, 0..1, vec![2]), (1, 1..2, vec![]), (2, 0..1, vec![0])];
    assert_eq!(shares(&router, "out"), sends);
    assert_eq!((number(&mut router, "in.begun"), number(&mut router, "out.begun")), (3, 3));
    router.settle(10_000);
    for handler in ["in.count", "c.count", "out.count"] {
        assert_eq!(number(&mut router, handler), 400, "{handler}");
    }
    balance(&mut router);
    clean(router);
}

#[test]
fn workers_that_receive_nothing_are_left_to_other_tasks() {
    let text =
        "in :: Queues(a, 2, 10) -> End; m :: Make(10) -> k :: Keep -> Move -> out :: Outlet(b, 8);
                lonely :: Outlet(c, 1); Make(0) -> lonely";
    let mut router = build(text, 4, true);
    assert_eq!((workers(&router, "in"), workers(&router, "m")), (vec![0, 1], vec![2]));
    // Packets that wait in a queue go on with the worker that pulls them.
    assert_eq!((workers(&router, "k"), workers(&router, "out")), (vec![2, 3], vec![3]));
    assert_eq!(shares(&router, "out"), [(3, 0..1, vec![])]);
    router.settle(10_000);
    assert_eq!((number(&mut router, "in.count"), number(&mut router, "out.count")), (20, 10));
    clean(router);
}

#[test]
fn who_is_told_where_to_run_runs_there_with_all_queues() {
    let text = "x :: Queues(a, 4, 10) -> e :: End; y :: Queues(b, 4, 10) -> e; m :: Make(10) -> e;
                Home(x, 2); Home(m, 1)";
    let mut router = build(text, 4, true);
    assert_eq!(shares(&router, "x"), [(2, 0..4, vec![])]);
    // The other device has the workers that nobody was told to be.
    assert_eq!(shares(&router, "y"), [(0, 0..2, vec![]), (3, 2..4, vec![])]);
    router.settle(10_000);
    assert_eq!((number(&mut router, "e.count"), workers(&router, "e")), (90, vec![0, 1, 2, 3]));
    clean(router);
}

#[test]
fn elements_of_one_device_do_not_give_different_workers_the_same_queue() {
    let text =
        "x :: Queues(a, 1, 10) -> o :: Outlet(z, 4); y :: Queues(b, 2, 10) -> p :: Outlet(z, 4)";
    let mut router = build(text, 3, true);
    assert_eq!(shares(&router, "o"), [(0, 0..1, vec![])]);
    assert_eq!(shares(&router, "p"), [(1, 1..2, vec![]), (2, 2..3, vec![])]);
    let used = |name: &str| router.assigned()[router.graph().find(name).unwrap()].device_queues;
    assert_eq!((used("o"), used("p"), used("y")), ((0, 3), (0, 3), (2, 0)));
    router.settle(10_000);
    assert_eq!((number(&mut router, "o.count"), number(&mut router, "p.count")), (10, 20));
    clean(router);
}
