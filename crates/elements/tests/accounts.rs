//! `CPUAccount` and `VStaticThreadSched`: accounts of processor time. Under simulated time each visit
//! of an element takes ten microseconds, so shares are the same in each run.
#![allow(clippy::unwrap_used)] // a test

mod common;

use castanet_runtime::router::Router;
use common::{build, build_simulated, clean, number, replaceable, run_until, run_until_count};

/// Seconds that a handler says.
fn seconds(router: &mut Router, handler: &str) -> f64 {
    router.read(handler).unwrap().parse().unwrap()
}

fn errors(text: &str) -> String {
    let options = castanet_runtime::router::Options::new(std::sync::Arc::new(
        castanet_runtime::console::SilentConsole,
    ));
    let built = Router::from_text(text, &castanet_elements::library(), &options);
    built.err().map(|wrong| wrong.to_string()).unwrap_or_default()
}

#[test]
fn guarantees_divide_the_time_of_those_with_work() {
    // The packets of `b` visit more elements, so it sends fewer of them in its time.
    let text = "a :: { s :: InfiniteSource(BURST 32) -> c :: Counter -> Discard };
                b :: { s :: InfiniteSource(BURST 32, LIMIT 1000000, STOP true) -> Null -> Null -> Null -> c :: Counter -> Discard };
                x :: CPUAccount(a, GUARANTEE 20%);
                y :: CPUAccount(b, GUARANTEE 60%);";
    let mut router = build_simulated(text, 1);
    router.run(None);
    let (a, b) = (seconds(&mut router, "x.cpu_time"), seconds(&mut router, "y.cpu_time"));
    assert!((b / a - 3.0).abs() < 0.01, "{a} {b}");
    assert!(number(&mut router, "y.runs") > 10_000);
    assert_eq!(seconds(&mut router, "x.limited_time"), 0.0);
    assert_eq!(seconds(&mut router, "x.device_time"), 0.0);
    clean(router);
}

#[test]
fn limits_hold_though_the_processor_is_idle() {
    let text = "a :: { s :: InfiniteSource(BURST 32) -> c :: Counter -> Discard };
                b :: { s :: InfiniteSource(BURST 32) -> Null -> Null -> Null -> c :: Counter -> Discard };
                x :: CPUAccount(a, LIMIT 15%); y :: CPUAccount(b, LIMIT 30%);
                DriverManager(wait 20s, stop);";
    let mut router = build_simulated(text, 1);
    router.run(None);
    let (a, b) = (seconds(&mut router, "x.cpu_time"), seconds(&mut router, "y.cpu_time"));
    assert!((a / 20.0 - 0.15).abs() < 0.0005, "{a}");
    assert!((b / 20.0 - 0.30).abs() < 0.0005, "{b}");
    // The runs themselves take no simulated time.
    let limited = seconds(&mut router, "x.limited_time");
    assert!((limited - 20.0).abs() < 0.01, "{limited}");
    clean(router);
}

#[test]
fn a_limit_that_a_handler_changes_holds_from_then_on() {
    let text = "a :: { s :: InfiniteSource -> Discard }; x :: CPUAccount(a, LIMIT 10%);
                DriverManager(wait 10s, write x.limit 50%, write x.reset_counts, wait 10s, stop);";
    let mut router = build_simulated(text, 1);
    router.run(None);
    let used = seconds(&mut router, "x.cpu_time");
    assert!((used / 10.0 - 0.5).abs() < 0.005, "{used}");
    for (wrong, why) in [("0", "could not run"), ("120%", "not a part"), ("x", "not a part")] {
        let error = router.write("x.limit", wrong).unwrap_err().message().to_owned();
        assert!(error.contains(why), "{error}");
    }
    router.write("x.guarantee", "40%").unwrap();
    let error = router.write("x.limit", "30%").unwrap_err().message().to_owned();
    assert!(error.contains("lower than the guarantee"), "{error}");
    assert_eq!(router.read("x.limit").unwrap(), "50%");
    router.write("x.limit", "none").unwrap();
    assert_eq!(router.read("x.limit").unwrap(), "none");
    clean(router);
}

#[test]
fn accounts_pay_for_the_tasks_of_devices_by_their_packets() {
    let text = "elementclass Tenant { input -> q :: Queue -> Unqueue -> Discard }
                s :: RatedSource(RATE 4000) -> sw :: RoundRobinSwitch;
                sw[0] -> a :: Tenant; sw[1] -> b :: Tenant; sw[2] -> b; sw[3] -> Discard;
                x :: CPUAccount(a, GUARANTEE 10%); y :: CPUAccount(b, GUARANTEE 10%);
                DriverManager(wait 10s, stop);";
    let mut router = build_simulated(text, 1);
    router.run(None);
    let (a, b) = (seconds(&mut router, "x.device_time"), seconds(&mut router, "y.device_time"));
    assert!(a > 0.0 && (b / a - 2.0).abs() < 0.05, "{a} {b}");
    // The packets of nobody are the router's own.
    let table = router.read("accounts").unwrap();
    let own: Vec<&str> = table.lines().nth(1).unwrap().split('\t').collect();
    let own_time: f64 = own[3].parse().unwrap();
    assert_eq!(own[..2], ["-", "80%"]);
    assert!(own_time >= a * 0.9, "{table}");
    assert!(seconds(&mut router, "x.cpu_time") > a);
    clean(router);
}

#[test]
fn bursts_become_so_small_that_others_wait_no_longer_than_promised() {
    let text = "a :: { s :: InfiniteSource(BURST 32, LIMIT 10000, STOP true) -> Null -> c :: Counter -> Discard };
                b :: { s :: InfiniteSource(BURST 32) -> c :: Counter -> Discard };
                x :: CPUAccount(a); y :: CPUAccount(b, DELAY 20us);";
    let mut router = build_simulated(text, 1);
    router.run(None);
    // Under simulated time a run of one packet takes as long as a run of many.
    assert_eq!(router.read("x.burst").unwrap(), "1");
    assert!(number(&mut router, "y.burst") >= 64);
    assert!(number(&mut router, "x.overruns") > 100);
    assert_eq!(number(&mut router, "y.overruns"), 0);
    assert!(seconds(&mut router, "x.longest_run") > 0.00002);
    router.write("y.delay", "none").unwrap();
    assert!(number(&mut router, "x.burst") >= 64);
    clean(router);
}

#[test]
fn accounts_wait_for_whole_bursts_while_more_packets_wait_outside() {
    let tenants = |source: &str| {
        let mut text = format!(
            "elementclass Tenant {{ input -> Queue(4096) -> Unqueue -> c :: Counter -> Discard }}
             s :: {source} -> sw :: RoundRobinSwitch; DriverManager(wait 1s, stop);"
        );
        for n in 0..8 {
            text += &format!("sw[{n}] -> t{n} :: Tenant; a{n} :: CPUAccount(t{n}, GUARANTEE 10%);");
        }
        text
    };
    let of = |router: &mut Router, handler: &str| -> u64 {
        (0..8).map(|n| number(router, &handler.replace('N', &n.to_string()))).sum()
    };
    // Bursts of 64 are 8 packets for each.
    let mut router =
        build_simulated(&tenants("InfiniteSource(BURST 64, LIMIT 64000)").replace("1s", "10s"), 1);
    router.run(None);
    let (packets, runs) = (of(&mut router, "tN/c.count"), of(&mut router, "aN.runs"));
    assert!(packets > 10_000, "{packets}");
    // Without a wait there would be 8000 runs at least.
    assert!(runs < 4000, "{packets} packets in {runs} runs");
    clean(router);
    // Where no more wait, each packet goes on at once.
    let mut router = build_simulated(&tenants("RatedSource(RATE 800)"), 1);
    router.run(None);
    let (packets, runs) = (of(&mut router, "tN/c.count"), of(&mut router, "aN.runs"));
    assert!(runs >= packets && packets >= 800, "{packets} packets in {runs} runs");
    clean(router);
}

#[test]
fn accounts_wait_for_no_more_packets_than_their_queues_have_room_for() {
    let text = "InfiniteSource(BURST 64, LIMIT 64000) -> sw :: RoundRobinSwitch;
                sw[0] -> a :: { input -> Queue(100) -> Unqueue -> c :: Counter -> Discard };
                sw[1] -> Discard; CPUAccount(a, GUARANTEE 90%); DriverManager(wait 10s, stop);";
    let mut router = build_simulated(text, 1);
    router.run(None);
    assert_eq!(router.read("drops").unwrap(), "");
    assert_eq!(number(&mut router, "a/c.count"), 32_000);
    clean(router);
}

#[test]
fn no_more_packets_come_in_while_all_accounts_have_enough() {
    let path = "Null -> ".repeat(20);
    let text = format!(
        "elementclass Tenant {{ input -> q :: Queue(1000) -> Unqueue -> {path} Discard }}
         s :: InfiniteSource(BURST 64, LIMIT 100000, STOP true) -> sw :: RoundRobinSwitch;
         sw[0] -> a :: Tenant; sw[1] -> b :: Tenant;
         x :: CPUAccount(a, GUARANTEE 40%); y :: CPUAccount(b, GUARANTEE 40%);"
    );
    let mut router = build_simulated(&text, 1);
    router.run(None);
    assert_eq!(number(&mut router, "s.count"), 100_000);
    assert_eq!(router.read("drops").unwrap(), "");
    clean(router);
    // An account without packets gets them, though another has far too many.
    let text = format!(
        "elementclass Tenant {{ input -> q :: Queue(1000) -> Unqueue -> {path} c :: Counter -> Discard }}
         s :: InfiniteSource(BURST 64, LIMIT 640000, STOP true) -> sw :: StrideSwitch(63, 1);
         sw[0] -> a :: Tenant; sw[1] -> b :: Tenant;
         x :: CPUAccount(a, GUARANTEE 40%); y :: CPUAccount(b, GUARANTEE 40%);"
    );
    let mut router = build_simulated(&text, 1);
    router.run(None);
    assert!(number(&mut router, "a/q.drops") > 0);
    assert_eq!(number(&mut router, "b/q.drops"), 0);
    let (a, b) = (number(&mut router, "a/c.count"), number(&mut router, "b/c.count"));
    assert!(a < 600_000 && b + 256 >= 10_000, "{a} {b}");
    clean(router);
}

#[test]
fn the_routers_own_tasks_have_their_part_if_they_do_more_than_to_bring_packets_in() {
    let path = "Null -> ".repeat(20);
    let tenants = "sw[0] -> a :: Tenant; sw[1] -> b :: Tenant;
         x :: CPUAccount(a, GUARANTEE 40%); y :: CPUAccount(b, GUARANTEE 40%);";
    // A task takes packets out, and keeps up.
    let text = format!(
        "elementclass Tenant {{ input -> Queue(1000) -> Unqueue -> {path} output }}
         s :: InfiniteSource(BURST 64, LIMIT 640000, STOP true) -> sw :: RoundRobinSwitch; {tenants}
         a, b -> out :: Queue(1000) -> u :: Unqueue -> Discard;"
    );
    let mut router = build_simulated(&text, 1);
    router.run(None);
    assert_eq!(number(&mut router, "out.drops"), 0);
    clean(router);
    // An account that takes packets out of the router's own queue has its time, beside those that have too many.
    let text = format!(
        "elementclass Tenant {{ input -> Queue(1000) -> Unqueue -> {path} c :: Counter -> Discard }}
         s :: InfiniteSource(BURST 64, LIMIT 640000, STOP true) -> sw :: RoundRobinSwitch;
         sw[0] -> a :: Tenant; sw[1] -> Queue(1000) -> b :: {{ input -> Unqueue -> c :: Counter -> Discard }};
         x :: CPUAccount(a, GUARANTEE 40%); y :: CPUAccount(b, GUARANTEE 40%);"
    );
    let mut router = build_simulated(&text, 1);
    router.run(None);
    let (a, b) = (number(&mut router, "a/c.count"), number(&mut router, "b/c.count"));
    assert!(a < 250_000 && b == 320_000, "{a} {b}");
    clean(router);
    // A held account has a full queue, and keeps no packets from another one.
    let text = format!(
        "elementclass Tenant {{ input -> q :: Queue(1000) -> Unqueue -> {path} c :: Counter -> Discard }}
         s :: InfiniteSource(BURST 64, LIMIT 64000, STOP true) -> sw :: RoundRobinSwitch;
         sw[0] -> a :: Tenant; sw[1] -> b :: Tenant;
         x :: CPUAccount(a, GUARANTEE 40%, HELD true); y :: CPUAccount(b, GUARANTEE 40%);"
    );
    let mut router = build_simulated(&text, 1);
    router.run(None);
    assert_eq!((number(&mut router, "a/c.count"), number(&mut router, "b/q.drops")), (0, 0));
    assert!(number(&mut router, "b/c.count") > 30_000);
    clean(router);
}

#[test]
fn a_task_rests_once_it_has_pulled_the_last_packet() {
    // The queue's account has a run for each packet, and the first looks of the task; with an element on the way
    // that keeps packets, or several queues, it has to look whether there are more.
    for (way, most) in [
        ("input -> Queue -> Unqueue -> c :: Counter -> Discard", 1002),
        ("input -> Queue -> c :: Counter -> Discard", 1002),
        ("input -> Queue -> Null -> u :: Unqueue; u -> c :: Counter -> Discard", 1002),
        (
            "input -> Queue -> [0] m :: RoundRobinSched -> Unqueue -> c :: Counter -> Discard;
          Idle -> Queue -> [1] m",
            3003,
        ),
        ("input -> Queue -> DelayShaper(0.0001) -> Unqueue -> c :: Counter -> Discard", 6006),
    ] {
        let text = format!(
            "RatedSource(RATE 1000, LIMIT 1000) -> a :: {{ {way} }}; x :: CPUAccount(a, GUARANTEE 50%);
             DriverManager(wait 2s, stop);"
        );
        let mut router = build_simulated(&text, 1);
        router.run(None);
        assert_eq!(number(&mut router, "a/c.count"), 1000, "{way}");
        let runs = number(&mut router, "x.runs");
        assert!((1000..=most).contains(&runs), "{way}: {runs} runs");
        clean(router);
    }
}

#[test]
fn a_flood_leaves_time_for_the_work_on_it() {
    let work = "-> Null ".repeat(30);
    let text = format!(
        "elementclass Tenant {{ input -> Queue -> Unqueue {work} -> c :: Counter -> Discard }}
                s :: InfiniteSource(BURST 64, LIMIT 2000000, STOP true) -> sw :: RoundRobinSwitch;
                sw[0] -> a :: Tenant; sw[1] -> b :: Tenant;
                x :: CPUAccount(a, GUARANTEE 30%); y :: CPUAccount(b, GUARANTEE 50%);"
    );
    let mut router = build_simulated(&text, 1);
    router.run(None);
    let own = |router: &mut Router, account: &str| {
        let [all, device] = ["cpu_time", "device_time"]
            .map(|handler| seconds(router, &format!("{account}.{handler}")));
        (all - device, device)
    };
    let (x, y) = (own(&mut router, "x"), own(&mut router, "y"));
    let all = x.0 + x.1 + y.0 + y.1;
    // The device has no more than its part, and only while one of the two needs packets, who pay for it.
    assert!((0.05..0.27).contains(&((x.1 + y.1) / all)), "{x:?} {y:?}");
    assert!((x.0 + x.1) / all > 0.3 && (y.0 + y.1) / all > 0.5, "{x:?} {y:?}");
    clean(router);
}

#[test]
fn a_run_that_visits_too_many_elements_is_cut() {
    // A packet becomes more and more of them, until it has visited as many elements as any may.
    let text = "bad :: { s :: InfiniteSource(LIMIT 1, STOP false) -> t :: Tee(2); t[0] -> t; t[1] -> t };
                good :: { s :: InfiniteSource(BURST 1, LIMIT 20000, STOP true) -> c :: Counter -> Discard };
                x :: CPUAccount(bad, GUARANTEE 40%); y :: CPUAccount(good, GUARANTEE 40%, DELAY 10ms);";
    let mut router = build_simulated(text, 1);
    router.run(None);
    // A run is cut at a quarter of the ten milliseconds that the other was promised: after 250 visits.
    let longest = seconds(&mut router, "x.longest_run");
    assert!((0.0020..0.0026).contains(&longest), "{longest}");
    assert!(number(&mut router, "x.runs") > 50, "{}", number(&mut router, "x.runs"));
    assert_eq!(number(&mut router, "good/c.count"), 20_000);
    let (bad, good) = (seconds(&mut router, "x.cpu_time"), seconds(&mut router, "y.cpu_time"));
    assert!((bad / good - 1.0).abs() < 0.05, "{bad} {good}");
    clean(router);
}

#[test]
fn a_run_that_was_cut_ends_as_another_would() {
    let way = "-> Null ".repeat(1000);
    let text = format!(
        "a :: {{ s :: InfiniteSource(LIMIT 64, BURST 32, STOP false) {way} -> c :: Counter -> Discard }};
         x :: CPUAccount(a, GUARANTEE 40%); y :: CPUAccount(b, GUARANTEE 40%, DELAY 1ms);
         b :: {{ s :: InfiniteSource(BURST 1, LIMIT 50000, STOP true) -> Discard }};"
    );
    let mut router = build_simulated(&text, 1);
    router.run(None);
    assert_eq!(number(&mut router, "a/c.count"), 64, "{}", router.read("drops").unwrap());
    // At most 64 visits a run, and at least one packet for each 16 of them.
    assert!(
        (32..=64 * 16).contains(&number(&mut router, "x.runs")),
        "{}",
        number(&mut router, "x.runs")
    );
    clean(router);
}

#[test]
fn a_hot_swap_ends_runs_that_were_cut() {
    let text = |more: &str| {
        format!(
            "a :: {{ s :: InfiniteSource(LIMIT 64, BURST 32, STOP false) -> p :: Tee(2); p[0] -> p; p[1] -> p }};
             x :: CPUAccount(a, GUARANTEE 40%);
             b :: {{ s :: RatedSource(RATE 1000) -> c :: Counter {more} -> Discard }};
             y :: CPUAccount(b, GUARANTEE 40%, DELAY 100us);"
        )
    };
    let mut router = replaceable(&text(""));
    run_until_count(&mut router, "b/c.count", 100);
    router.write("hotconfig", &text("-> Null")).unwrap();
    run_until(&mut router, |router| {
        router.has_handler("b/Null@3.count", false) || router.replaced() == 1
    });
    run_until_count(&mut router, "b/c.count", 200);
    let drops = router.read("drops").unwrap();
    assert!(drops.contains("a/p loop "), "{drops}");
    clean(router);
}

#[test]
fn threads_have_the_accounts_of_their_contexts() {
    let text = "StaticThreadSched(a 0, b 1, c 2); VStaticThreadSched(0 vs1, 1 vs2, 2 7);
                x :: CPUAccount(vs1, LIMIT 15%); y :: CPUAccount(vs2, LIMIT 30%);
                a :: InfiniteSource -> Discard; b :: InfiniteSource -> Discard;
                c :: RatedSource(RATE 10) -> Discard;
                DriverManager(wait 10s, stop);";
    let mut router = build_simulated(text, 1);
    router.run(None);
    let (a, b) = (seconds(&mut router, "x.cpu_time"), seconds(&mut router, "y.cpu_time"));
    assert!((a / 10.0 - 0.15).abs() < 0.001 && (b / 10.0 - 0.3).abs() < 0.001, "{a} {b}");
    let table = router.read("accounts").unwrap();
    let of_seven = table.lines().find(|line| line.starts_with("7\t0%\tnone\t0.")).unwrap();
    assert_ne!(of_seven.split('\t').nth(6).unwrap(), "0");
    clean(router);
}

#[test]
fn accounts_go_on_over_a_hot_swap() {
    let text = |more: &str| {
        format!(
            "a :: {{ s :: RatedSource(RATE 100000) -> c :: Counter -> Discard }};
             x :: CPUAccount(a, LIMIT 90%);
             b :: {{ s :: RatedSource(RATE 10) {more} -> Discard }}; y :: CPUAccount(b, LIMIT 80%);"
        )
    };
    let mut router = replaceable(&text(""));
    run_until_count(&mut router, "a/c.count", 1000);
    router.write("x.limit", "70%").unwrap();
    router.write("y.limit", "60%").unwrap();
    let before = (seconds(&mut router, "x.cpu_time"), number(&mut router, "x.runs"));
    assert!(before.0 > 0.0);
    router.write("hotconfig", &text("-> Null").replace("LIMIT 80%", "LIMIT 75%")).unwrap();
    run_until(&mut router, |router| router.read("y.limit").unwrap() == "75%");
    assert_eq!(router.read("x.limit").unwrap(), "70%");
    assert!(seconds(&mut router, "x.cpu_time") >= before.0);
    assert!(number(&mut router, "x.runs") >= before.1);
    clean(router);
}

#[test]
fn accounts_on_several_workers_are_charged_for_handlers() {
    let text = "a :: { s :: RatedSource(RATE 1000) -> c :: Counter -> Discard };
                StaticThreadSched(a/s 1); x :: CPUAccount(a, GUARANTEE 50%, LIMIT 100%)";
    let mut router = build(text, 2);
    run_until_count(&mut router, "a/c.count", 100);
    let before = seconds(&mut router, "x.cpu_time");
    router.write("a/s.active", "false").unwrap();
    // A read of a handler is a command that the account of its element pays for.
    run_until(&mut router, |router| {
        (0..100).for_each(|_| _ = router.read("a/c.count"));
        seconds(router, "x.cpu_time") > before
    });
    clean(router);
}

#[test]
fn wrong_accounts_are_errors() {
    for (text, why) in [
        ("Idle -> a :: Discard; CPUAccount(b)", "no element named 'b'"),
        ("Idle -> a :: Discard; CPUAccount(a); CPUAccount(a)", "'a' has an account already"),
        (
            "Idle -> a :: Discard; CPUAccount(a, GUARANTEE 60%, LIMIT 50%)",
            "lower than the guarantee",
        ),
        ("Idle -> a :: Discard; CPUAccount(a, LIMIT 0)", "could not run"),
        ("Idle -> a :: Discard; CPUAccount(a, GUARANTEE 120%)", "part of a processor"),
        (
            "Idle -> a :: Discard; Idle -> b :: Discard; CPUAccount(a, GUARANTEE 60%); CPUAccount(b, GUARANTEE 50%)",
            "the accounts before it leave 40%",
        ),
        ("VStaticThreadSched(0 a, 0 b)", "thread 0 has a context already"),
        ("VStaticThreadSched(a)", "no thread and context"),
        ("VStaticThreadSched(x a)", "THREAD"),
    ] {
        let error = errors(text);
        assert!(error.contains(why), "{text}: {error}");
    }
}
