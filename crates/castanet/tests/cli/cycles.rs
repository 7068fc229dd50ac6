//! Cycles and waiting times of elements, read from a running router's handlers.

use crate::program::click;

/// 32 packets at a time from a source that waits for its start, through a queue.
const PATH: &str = "s :: InfiniteSource(ACTIVE false, LIMIT 320, BURST 32)
    -> c :: Counter -> q :: Queue(1000) -> n :: Null -> u :: Unqueue(BURST 32) -> d :: Discard;
    t :: TimedSource(0.5, LIMIT 3) -> e :: Discard;\n";

/// Runs the path by a program; returns its output.
fn run(options: &[&str], program: &str) -> String {
    let text = format!("{PATH} DriverManager({program}, stop)");
    let result = click(&[options, &["-e", &text]].concat(), b"");
    assert_eq!((result.status, result.err.as_str()), (Some(0), ""), "{program}");
    result.out
}

/// Lines `tasks N C` and their like: what ran, and how often; all have cost something.
fn calls(text: &str) -> Vec<(&str, u64)> {
    let line = |line: &'_ str| -> Option<(usize, u64, u64)> {
        let (why, rest) = line.split_once(' ')?;
        let (calls, cycles) = rest.split_once(' ')?;
        Some((why.len(), calls.parse().ok()?, cycles.parse().ok()?))
    };
    let of = |text| {
        let (why, calls, cycles) = line(text).unwrap_or_else(|| panic!("{text}"));
        assert!(cycles > 0, "{text}");
        (&text[..why], calls)
    };
    text.lines().map(of).collect()
}

#[test]
fn every_element_has_a_cycles_handler() {
    let cost = |element: &str| {
        let ask =
            format!("write reset_cycles, write s.active true, wait 2s, print $({element}.cycles)");
        run(&["--simtime"], &ask)
    };
    // An element with a task has at least as many turns as bursts.
    let (s, u) = (cost("s"), cost("u"));
    assert!(matches!(calls(&s)[..], [("tasks", 10..)]), "{s}");
    assert!(matches!(calls(&u)[..], [("tasks", 10..)]), "{u}");
    // Packets come one at a time in simulated time; what is pulled for nothing counts too, as in Click.
    assert_eq!(calls(&cost("c")), [("xfer", 320)]);
    assert_eq!(calls(&cost("n")), [("xfer", 320)]);
    assert_eq!(calls(&cost("d")), [("xfer", 320)]);
    let q = cost("q");
    assert!(matches!(calls(&q)[..], [("xfer", 640..)]), "{q}");
    assert_eq!(calls(&cost("e")), [("xfer", 3)]);
}

#[test]
fn cycle_counts_start_at_the_first_read_and_can_be_reset() {
    let go = "write s.active true, wait 1s";
    let nobody = run(&["--simtime"], &format!("{go}, print $(count_cycles)$(c.cycles)"));
    assert_eq!(nobody, "false\n");
    let again = "write s.reset, write s.active true, wait 1s";
    let asked = run(&["--simtime"], &format!("print $(c.cycles), {go}, print $(c.cycles)"));
    assert_eq!(calls(asked.trim_start()), [("xfer", 320)]);
    let one = format!("print $(c.cycles), {go}, write c.cycles, {again}, print $(c.cycles)");
    assert_eq!(calls(run(&["--simtime"], &one).trim_start()), [("xfer", 320)]);
    let both = format!("print $(c.cycles), {go}, write d.cycles, {again}, print $(c.cycles)");
    assert_eq!(calls(run(&["--simtime"], &both).trim_start()), [("xfer", 640)]);
    let ended = format!(
        "write count_cycles true, {go}, write count_cycles false, {again},
         print $(count_cycles), print $(c.cycles)"
    );
    assert_eq!(run(&["--simtime"], &ended), "false\n\n");
}

#[test]
fn tables_by_element_and_by_class() {
    let ask = "write reset_cycles, write s.active true, wait 2s";
    let of = |table: &str| run(&["--simtime"], &format!("{ask}, print $({table})"));
    let (elements, classes) = (of("element_cycles.csv"), of("class_cycles.csv"));
    let heading = "name,class,task_calls,task_cycles,cycles_per_task,timer_calls,timer_cycles,\
                   cycles_per_timer,xfer_calls,xfer_cycles,cycles_per_xfer,any_cycles,cycles_per_any";
    assert_eq!(elements.lines().next(), Some(heading));
    let heading = heading.replace("name,class", "class,nelements");
    assert_eq!(classes.lines().next(), Some(heading.as_str()));
    for text in [&elements, &classes] {
        assert!(text.lines().all(|row| row.split(',').count() == 13), "{text}");
    }
    let row = |table: &str, begin: &str| -> Vec<u64> {
        let row = table.lines().find_map(|line| line.strip_prefix(begin));
        row.unwrap_or_else(|| panic!("{begin} in {table}"))
            .split(',')
            .map(|number| number.parse().unwrap())
            .collect()
    };
    let counter = row(&elements, "c,Counter,");
    assert_eq!((counter[0], counter[3], counter[6]), (0, 0, 320));
    assert_eq!(counter[7], counter[9]);
    assert_eq!(counter[8], counter[7] / 320);
    // Of two elements that discard.
    let discard = row(&classes, "Discard,2,");
    assert_eq!((discard[0], discard[6]), (0, 323));
    assert!(!elements.contains("DriverManager"), "{elements}");
}

#[test]
fn rows_that_run_as_one_pass_have_a_bill_for_each_element() {
    let text = "i :: Idle -> p :: Paint(2) -> s :: Strip(14) -> k :: CheckIPHeader
                  -> g :: GetIPAddress(16) -> r :: StaticIPLookup(0.0.0.0/0 0) -> n :: Counter -> Discard;
                t :: TimedSource(0.1, DATA \\<
                  000000000001 000000000002 0800
                  4500001c 00000000 401166cf 0a000001 0a000002 00350035 00080000>) -> p;
                DriverManager(wait 0.55s, write reset_cycles, wait 0.5s,
                  print $(p.cycles)$(s.cycles)$(k.cycles)$(g.cycles)$(r.cycles),
                  print \"$(k.drops), of $(n.count)\", stop)";
    let result = click(&["--simtime", "-e", text], b"");
    assert_eq!((result.status, result.err.as_str()), (Some(0), ""));
    let (cycles, drops) = result.out.trim_end().rsplit_once('\n').unwrap();
    assert_eq!(calls(cycles), [("xfer", 5); 5], "{}", result.out);
    assert_eq!(drops, "0, of 10", "on either way");
}

#[test]
fn workers_add_up() {
    let ask = "write reset_cycles, write s.active true, wait 0.3s, print $(c.cycles)";
    assert_eq!(calls(&run(&["-j", "2"], ask)), [("xfer", 10)]);
}

#[test]
fn elements_with_tasks_say_which_stores_they_hear_of() {
    let text = "s :: InfiniteSource(ACTIVE false, LIMIT 3) -> q :: Queue(3)
        -> u :: Unqueue(ACTIVE false) -> c :: Counter -> r :: Queue -> Idle;
        DriverManager(print $(s.notifiers)$(u.notifiers), write s.active true, wait 1s,
            print $(s.notifiers)$(u.notifiers), write u.active true, wait 1s,
            print $(s.notifiers)$(u.notifiers), stop)";
    let result = click(&["--simtime", "-e", text], b"");
    let at = |empty, full| format!("q.full {full}\nq.empty {empty}\nr.full active");
    let wanted = [at("inactive", "active"), at("active", "inactive"), at("inactive", "active")];
    assert_eq!(result.out.trim(), wanted.join("\n"), "{}", result.err);
}
