//! Scripts from outside: their output, the handlers that they read and write, and their errors.

use crate::program::{castanet, click, folder};

/// Standard output and standard error of a script.
fn run(config: &str) -> (String, String) {
    let result = click(&["--simtime", "-e", config], b"");
    assert_eq!(result.status, Some(0), "{config}\n{}", result.err);
    (result.out, result.err)
}

fn prints(config: &str, want: &str) {
    let (out, err) = run(config);
    assert_eq!((out.as_str(), err.as_str()), (want, ""), "{config}");
}

fn complains(config: &str, want: &str) {
    let (_, err) = run(config);
    assert_eq!(err, want, "{config}");
}

/// Error message for an invalid configuration.
fn refused(config: &str, want: &str) {
    let result = click(&["-e", config], b"");
    assert_eq!(result.status, Some(1), "{config}");
    assert!(result.err.contains(want), "{config}: {}", result.err);
}

#[test]
fn passive_scripts_have_arguments_and_values() {
    let sum = "s :: Script(TYPE PASSIVE, init n 0, goto done $(eq $# 0), label more,
                 set n $(add $n $(shift)), goto more $(gt $# 0), label done, return $n/$0);";
    prints(&format!("{sum} Script(print s.run 1 2 3, print $(s.run 4), stop)"), "6/run\n10/run\n");
    // An error without words fails the call, and says nothing.
    prints("s :: Script(TYPE PASSIVE, error); Script(write s.run, print $?, stop)", "-1\n");
    let hears = "s :: Script(TYPE PASSIVE, print \"$write $args $2\");";
    prints(
        &format!("{hears} Script(write s.run a b, print s.run c, stop)"),
        "true a b b\nfalse c \n\n",
    );
    // Run with `goto`, and stepped past what it waits for.
    let waits = "s :: Script(TYPE PASSIVE, print a, pause 2, print b, label c, wait 1h, print d);";
    let drives = "Script(write s.run, print 1, write s.step, print 2, write s.step, print 3,
                  write s.goto c, write s.step, stop)";
    let waits = waits.replace("print a", "print 'a'").replace("print b", "print 'b'");
    let waits = waits.replace("print d", "print 'd'");
    prints(&format!("{waits} {drives}"), "a\n1\n2\nb\n3\nd\n");
}

#[test]
fn proxies_answer_to_every_name() {
    let proxy = "s :: Script(TYPE PROXY, goto nota $(ne $0 a), returnq \"you called 'a'\",
        label nota, goto notb $(ne $0 b), returnq \"$write: $args\", label notb, error bad handler);";
    prints(
        &format!("{proxy} Script(print s.a, print s.b x y, write s.b z, print $?, stop)"),
        "you called 'a'\nfalse: x y\n0\n",
    );
    complains(
        &format!("{proxy} t :: Script(print s.c, printn $(s.d), write s.e, stop)"),
        "While executing 't :: Script':\n  While calling 's.c':\n    bad handler\n  bad handler\n  \
         While calling 's.e':\n    bad handler\n",
    );
}

#[test]
fn names_are_those_of_the_own_compound_first() {
    let inner = "elementclass Inner { c :: Counter; input -> c -> output;
        s :: Script(set x $(c.name), print $x, print c.count, read c.count, print $(o.name), print name) }
        o :: Counter; i :: TimedSource(1, LIMIT 3, STOP true) -> n :: Inner -> o -> Discard;
        DriverManager(pause, write n/s.goto begin, write n/s.step, stop)";
    let (out, err) = run(inner);
    assert_eq!(out, "n/c\n0\no\nn/s\nn/c\n3\no\nn/s\n");
    assert_eq!(err, "n/c.count:\n0\nn/c.count:\n3\n");
}

#[test]
fn errors_are_reported_once_with_their_script() {
    let c = "Idle -> c :: Counter -> Discard;";
    for (script, want) in [
        ("print d.count", "no element named 'd'"),
        ("print c.cout", "no 'c.cout' read handler"),
        ("print c.reset", "no 'c.reset' read handler"),
        ("write c.count 3", "no 'c.count' write handler"),
        ("print frob", "no 'frob' read handler"),
        ("goto end maybe", "bad condition 'maybe'"),
        ("set x $(add 1 x)", "expected list of numbers"),
        ("read sprintf %d", "While calling 's.sprintf %d':\n    syntax error"),
        (
            "print cat no/such/file",
            "While calling 's.cat no/such/file':\n    no/such/file: No such file or directory",
        ),
        ("print >no/such/file 'x'", "no/such/file: No such file or directory"),
        ("error it broke", "it broke"),
        ("errorq \"it broke\"", "it broke"),
        ("set t soon, wait $t", "syntax error at 'wait'"),
    ] {
        let config = format!("{c} s :: Script({script}, stop); Script(wait 1s, stop)");
        complains(&config, &format!("While executing 's :: Script':\n  {want}\n"));
    }
    complains(
        "s :: Script(loop); Script(wait 1s, stop)",
        "s :: Script: too many jumps, giving up\n",
    );
    complains(
        &format!("{c} s :: Script(print d.count, print d.rate, stop)"),
        "While executing 's :: Script':\n  no element named 'd'\n  no element named 'd'\n",
    );
}

#[test]
fn mistakes_are_told_all_at_once() {
    let result =
        click(&["-e", "s :: Script(wiat 1s, print 'x', goto nowhere, label, stop now)"], b"");
    assert_eq!(
        result.err,
        "config:1: While configuring 's :: Script':\n  syntax error at 'wiat'\n  \
         syntax error at 'label'\n  syntax error at 'stop'\n  no such label 'nowhere'\n\
         Router could not be initialized!\n"
    );
    refused("Script(TYPE LAZY)", "bad TYPE");
    refused("Script(TYPE ACTIVE now)", "bad TYPE");
    refused("Script(TYPE SIGNAL)", "bad signal number");
    refused("Script(TYPE SIGNAL INT NOSUCH)", "bad signal number");
    refused("Script(TYPE SIGNAL 9)", "bad signal number");
    refused("Script(TYPE PACKET)", "PACKET script must have inputs");
    refused("Idle -> Script(TYPE ACTIVE) -> Discard", "ports allowed only on PACKET scripts");
    refused(
        "DriverManager(stop); d :: Script(TYPE DRIVER)",
        "While configuring 'd :: Script':\n  router has more than one driver script",
    );
}

#[test]
fn files_are_written_appended_to_and_read() {
    let file = folder("script").join("file");
    let file = file.to_str().unwrap();
    let script = format!(
        "Idle -> c :: Counter -> Discard; Script(print >{file} \"one\", printn >>{file} 'two', save c.name {file}.2,
         append c.class {file}.2, print >>{file}.2 c.count, print cat {file}, print $(catq {file}.2),
         save c.count -, append c.name, print cat {file}.2, stop)"
    );
    prints(&script, "one\ntwo\n\"c\\nCounter\\n0\\n\"\n0\nc\nc\nCounter\n0\n");
}

#[test]
fn exported_variables_are_handlers_and_others_can_be_asked_for() {
    prints(
        "s :: Script(TYPE PASSIVE, export a 1, exportq b \"x y\", init c 3);
         Script(print s.a, print s.b, print $(s.get c), write s.set a 5, print s.a, write s.set d e f,
                print $(s.get d), print $(readable s.a s.b), print $(readable s.a s.c), print $(writable s.set), stop)",
        "1\nx y\n3\n5\ne f\ntrue\nfalse\ntrue\n",
    );
}

#[test]
fn drivers_handle_stop_requests() {
    let source = "i :: InfiniteSource(LIMIT 5, STOP true) -> c :: Counter -> Discard;";
    prints(
        &format!("{source} DriverManager(pause, print c.count, wait 1s, print \"over\")"),
        "5\nover\n",
    );
    prints(&format!("{source} Script(TYPE DRIVER, wait 1s, print c.count)"), "5\n");
    // Several requests at once make as many steps.
    prints(
        "DriverManager(pause 2, print \"two\", pause, print \"three\"); Script(write stop 3)",
        "two\nthree\n",
    );
    prints(
        "DriverManager(label x, pause, print \"no\", goto x $(lt $(d.go) 2), stop);
            d :: Script(TYPE PROXY, init n 0, set n $(add $n 1), return $n);
            Script(write stop, wait 1s, write stop)",
        "no\nno\n",
    );
    prints("DriverManager; Script(print \"a\", stop)", "a\n");
}

#[test]
fn signals_run_scripts_as_often_as_they_end_well() {
    let run = |config: &str| {
        let result = click(&["-e", config], b"");
        (result.status, result.out, result.err)
    };
    // It is called again after `end`, and not after `exit`.
    let counts = "s :: Script(TYPE SIGNAL USR1 10 HUP, init n 0, set n $(add $n 1), print \"got $n\",
                    goto exit $(eq $n 2));
        Script(set x $(kill USR1 $$), wait 0.3s, set x $(kill HUP $$), wait 0.3s, print $(s.get n), stop)";
    assert_eq!(run(counts), (Some(0), "got 1\ngot 2\n2\n".into(), String::new()));
    // INT is the script's; once it has left that, it ends the router as ever.
    let ends = "s :: Script(TYPE SIGNAL INT, print \"not yet\", exit);
        Script(set x $(kill INT $$), wait 0.3s, set x $(kill INT $$), wait 1h, print \"never\")";
    assert_eq!(run(ends), (Some(0), "not yet\n".into(), String::new()));
    // While it waits it is not called again; both scripts of one signal are.
    let waits = "a :: Script(TYPE SIGNAL USR2, print \"a\", wait 0.5s, print \"b\");
        Script(TYPE SIGNAL USR2, print \"c\");
        Script(set x $(kill USR2 $$), wait 0.2s, set x $(kill USR2 $$), wait 0.8s, stop)";
    assert_eq!(run(waits), (Some(0), "a\nc\nc\nb\n".into(), String::new()));
}

#[test]
fn signals_that_scripts_raise_come_before_timers() {
    // Once, however often, before the one who raised it goes on, or stops.
    let raises =
        "s :: Script(TYPE SIGNAL USR2, init n 0, set n $(add $n 1), print \"got $n\", end);
        Script(set x $(kill USR2 $$), set x $(kill USR2 $$), wait 1, print \"on\",
            set x $(kill USR2 $$), wait 0, stop)";
    for words in [&["--simtime"][..], &[]] {
        let result = click(&[words, &["-e", raises]].concat(), b"");
        assert_eq!(
            (result.status, result.out.as_str()),
            (Some(0), "got 1\non\ngot 2\n"),
            "{words:?}"
        );
    }
    // After `exit` it has its effect again.
    let left = "Script(TYPE SIGNAL USR2, print \"got it\", exit);
        Script(set x $(kill USR2 $$), wait 0.1s, set x $(kill USR2 $$), wait 1h, print \"never\")";
    let result = click(&["--simtime", "-e", left], b"");
    assert_eq!((result.status, result.out.as_str()), (None, "got it\n"), "{}", result.err);
}

/// Asserts that a configuration prints `want` in simulated time, with one worker and with two.
fn prints_everywhere(config: &str, want: &str) {
    for words in [&["--simtime"][..], &["-j2"], &[]] {
        let result = click(&[words, &["-e", config]].concat(), b"");
        assert_eq!((result.out.as_str(), result.err.as_str()), (want, ""), "{words:?}: {config}");
    }
}

#[test]
fn a_handler_called_at_a_count_applies_to_that_packet() {
    let ends = "DriverManager(pause, print $(a.count) $(b.count) $(d.count))";
    let sinks = "sw[0] -> a :: Counter -> Discard; sw[1] -> b :: Counter -> Discard;
        first[1] -> d :: Counter -> Discard";
    for burst in [1, 3, 32] {
        let source = format!("InfiniteSource(LIMIT 10, BURST {burst}, STOP true)");
        let after = "first :: Switch -> Counter(COUNT_CALL 7 sw.switch 1) -> sw :: Switch";
        prints_everywhere(&format!("{source} -> {after}; {sinks}; {ends}"), "6 4 0\n");
        let before =
            "first :: Switch -> Null -> Counter(COUNT_CALL 7 first.switch 1) -> sw :: Switch";
        prints_everywhere(&format!("{source} -> {before}; {sinks}; {ends}"), "7 0 3\n");
    }
    // In a compound its own elements come first; what the handler says is not heard.
    let inside =
        "elementclass C { input -> Counter(COUNT_CALL 2 sw.switch 1) -> sw :: Switch -> output;
            sw[1] -> [1] output }
        InfiniteSource(LIMIT 5, STOP true) -> c :: C; c[0] -> a :: Counter -> Discard;
        c[1] -> b :: Counter(COUNT_CALL 2 c/sw.switch nowhere) -> Discard;
        DriverManager(pause, print $(a.count) $(b.count))";
    prints_everywhere(inside, "1 4\n");
}

#[test]
fn a_call_that_a_handler_sets_holds_for_the_packet_that_reaches_it() {
    let sinks = "sw[0] -> a :: Counter -> Discard; sw[1] -> b :: Counter -> Discard;
        first[1] -> d :: Counter -> Discard";
    for (c, write) in [
        ("c :: Counter", "write c.count_call 7"),
        ("c :: Counter", "write c.config COUNT_CALL 7"),
        ("c :: Counter", "write c.byte_count_call 601"),
        ("c :: AggregateCounter", "write c.count_call 7"),
        ("Paint(3) -> c :: AggregateCounter", "write c.count_call 7"),
    ] {
        for burst in [1, 3, 32] {
            let config = |handler: &str| {
                format!(
                    "s :: InfiniteSource(LIMIT 10, BURST {burst}, LENGTH 100, STOP true, ACTIVE false)
                     -> first :: Switch -> Null -> {c} -> sw :: Switch; {sinks};
                     DriverManager({write} {handler} 1, write s.active true, pause,
                        print $(a.count) $(b.count) $(d.count))"
                )
            };
            prints_everywhere(&config("sw.switch"), "6 4 0\n");
            prints_everywhere(&config("first.switch"), "7 0 3\n");
        }
    }
}

#[test]
fn calls_of_missing_handlers_are_found_without_a_run() {
    for (call, want) in [
        ("x.switch 1", "no element named 'x'"),
        ("c.cuont 1", "no write handler 'cuont'"),
        ("stpo", "global has no write handler 'stpo'"),
    ] {
        let config = format!("Idle -> c :: Counter(COUNT_CALL 7 {call}) -> Discard");
        let result = castanet(&["check", "-e", &config], b"");
        assert_eq!(result.status, Some(1), "{config}");
        assert!(result.err.contains(want), "{config}: {}", result.err);
    }
    let config = "Idle -> c :: Counter(COUNT_CALL 7 s.run, BYTE_COUNT_CALL 8 stop) -> Discard;
        s :: Script(TYPE PASSIVE, stop)";
    let result = castanet(&["check", "-e", config], b"");
    assert_eq!((result.status, &*result.err), (Some(0), ""));
}

#[test]
fn a_pull_ends_with_the_packet_whose_count_calls() {
    let pulled = "InfiniteSource(LIMIT 5) -> q :: Queue -> ps :: PullSwitch
            -> c :: Counter(COUNT_CALL 2 ps.switch 1) -> d :: Discard; Idle -> Queue -> [1] ps;
        DriverManager(label again, wait 10ms, goto again $(lt $(c.count) 2), wait 50ms,
            print $(c.count) $(q.length), stop)";
    prints_everywhere(pulled, "2 3\n");
}

#[test]
fn scripts_decide_about_the_very_packet() {
    let decides = "InfiniteSource(LIMIT 6, BURST 4, STOP true)
            -> Script(init n 0, set n $(add $n 1), write sw.switch $(mod $n 3)) -> sw :: Switch;
        sw[0] -> a :: Counter -> Discard; sw[1] -> b :: Counter -> Discard;
        sw[2] -> c :: Counter(COUNT_CALL 2 t.run) -> Discard;
        t :: Script(TYPE PASSIVE, print \"$(a.count) $(b.count) $(c.count)\");
        DriverManager(pause, print $(a.count) $(b.count) $(c.count))";
    prints_everywhere(decides, "1 2 2\n2 2 2\n");
}

#[test]
fn a_script_loses_no_packet_when_the_router_stops() {
    let config = "InfiniteSource -> a :: Counter -> s :: Script(TYPE PACKET, set x 1)
            -> b :: Counter -> Discard;
        InfiniteSource -> c :: Counter -> Script(TYPE PACKET, set x 1) -> d :: Counter -> Discard;
        DriverManager(label again, wait 10ms, goto again $(lt $(b.count) 20), stop)";
    for workers in ["-j1", "-j2"] {
        let counts = ["-h", "a.count", "-h", "b.count", "-h", "c.count", "-h", "d.count"];
        let result = click(&[&[workers, "-e", config][..], &counts].concat(), b"");
        let lines = result.out.lines().filter_map(|line| line.parse::<u64>().ok());
        let [a, b, c, d] = lines.collect::<Vec<_>>()[..] else {
            panic!("{}{}", result.out, result.err)
        };
        assert!(b >= 20, "{b} packets");
        assert_eq!((a, c), (b, d), "{workers}");
    }
}

#[test]
fn a_sleeping_task_ends_the_router() {
    let config = "i :: InfiniteSource(LIMIT 5) -> c :: Counter -> Discard;
                  j :: InfiniteSource(BURST 1) -> Discard; QuitWatcher(j, i)";
    let result = click(&["-e", config, "-h", "c.count"], b"");
    assert_eq!((result.status, &*result.out, &*result.err), (Some(0), "5\n", ""));
    let refused = castanet(&["check", "-e", "q :: Queue; Idle -> q -> Idle; QuitWatcher(q)"], b"");
    assert!(
        refused.err.contains("'q :: Queue' has no read handler 'scheduled'"),
        "{}",
        refused.err
    );
}

#[test]
fn scripts_are_pulled() {
    let counts = |pulled: &str| {
        let config = format!(
            "InfiniteSource(LIMIT 300, BURST 7) -> q :: Queue(300)
                -> s :: Script(init n 0, set n $(add $n 1), return $(mod $n 3)) -> {pulled}
             s[1] -> o :: Counter -> Discard;
             Script(label again, wait 10ms, goto again $(lt $(add $(c.count) $(o.count)) 200),
                print $(q.length) $(c.count) $(o.count) $(s.drops.unmatched), stop)"
        );
        let run = |words: &[&str]| {
            let result = click(&[words, &["-e", &config]].concat(), b"");
            assert_eq!((result.status, &*result.err), (Some(0), ""), "{pulled} {words:?}");
            result.out
        };
        [&["--simtime"][..], &["-j2"], &[]].map(run)
    };
    for pulled in [
        "c :: Counter -> Discard;",
        "Unqueue(BURST 5) -> c :: Counter -> Discard;",
        "Script(return 0) -> c :: Counter -> RatedUnqueue(1000000) -> Discard;",
        "r :: RoundRobinSched -> Unqueue -> c :: Counter -> Discard; Idle -> [1] r;",
        "Shaper(1000000) -> Unqueue -> c :: Counter -> Discard;",
    ] {
        // One of three has no output.
        assert_eq!(counts(pulled), ["0 100 100 100\n"; 3], "{pulled}");
    }
    let mixed = "Idle -> Queue -> s :: Script(TYPE PACKET) -> Queue -> Discard";
    let result = click(&["-e", mixed], b"");
    assert!(result.err.contains("'s :: Script' in mixed context: "), "{}", result.err);
}

#[test]
fn handlers_that_are_to_be_called_are_there() {
    let refused = |config: &str, want: &str| {
        let result = click(&["-e", config], b"");
        assert_eq!(result.status, Some(1), "{config}");
        let want = format!("{want}\nRouter could not be initialized!\n");
        assert!(result.err.ends_with(&want), "{config}: {}", result.err);
    };
    refused(
        "Idle -> Counter(COUNT_CALL 1 x.y) -> Discard",
        "While initializing 'Counter@2 :: Counter':\n  no element named 'x'",
    );
    refused(
        "Idle -> c :: Counter(BYTE_COUNT_CALL 1 d.colour) -> d :: Discard",
        "While initializing 'c :: Counter':\n  no 'd.colour' write handler",
    );
    refused(
        "i :: InfiniteSource(END_CALL x.y) -> Discard",
        "While initializing 'i :: InfiniteSource':\n  END_CALL: no element named 'x'",
    );
}

#[test]
fn packets_ask_scripts_where_to_go() {
    let config = "i :: InfiniteSource(LIMIT 10, STOP true) -> s :: Script(TYPE PACKET, init n 0, set n $(add $n 1),
            return $(mod $n 3)); s[0] -> a :: Counter -> Discard; s[1] -> b :: Counter -> Discard;
        j :: InfiniteSource(LIMIT 4) -> q :: Queue -> t :: Script(TYPE PUSH, return $(if $(eq $(b.count) 99) 1 0));
        t -> c :: Counter -> Discard; k :: InfiniteSource(LIMIT 2) -> [1] s;
        DriverManager(pause, wait 1s, print $(a.count) $(b.count) $(c.count) $(s.drops.unmatched) $(s.get input))";
    for words in [&["--simtime"][..], &["-j2"], &[]] {
        let result = click(&[words, &["-e", config]].concat(), b"");
        assert_eq!((result.status, result.err.as_str()), (Some(0), ""), "{words:?}");
        let numbers: Vec<&str> = result.out.split_whitespace().collect();
        assert_eq!(numbers[..4], ["4", "4", "4", "4"], "{words:?}: {}", result.out);
        assert!(["0", "1"].contains(&numbers[4]), "{}", result.out);
    }
}

#[test]
fn files_and_processes_are_not_for_strangers() {
    let words = ["-qe", "s :: Script(end)", "-h", "s.cat"];
    assert_eq!(click(&words, b"").err, "no 's.cat' handler\n");
    let listed = click(&["-qe", "s :: Script(end)", "-h", "s.handlers"], b"").out;
    assert!(
        listed.contains("add\tr\n") && !listed.contains("kill") && !listed.contains("catq"),
        "{listed}"
    );
}

#[test]
fn elements_get_other_arguments_while_they_run() {
    let config = "i :: TimedSource(1, DATA ab) -> q :: Queue(5) -> u :: Unqueue -> s :: Switch(0);
        s[0] -> a :: Counter -> Discard; s[1] -> b :: Counter -> Discard;
        Script(wait 1.5s, write s.config 1, print s.config, print $?, wait 1s, print $(a.count) $(b.count),
            write q.config 7, print q.capacity, writeq i.config \"1, DATA abcd\", stop)";
    prints(config, "1\n0\n1 1\n7\n");
    let flat =
        "q :: Queue(5); Idle -> q -> Idle; Script(write q.config 9, printn flatconfig, stop)";
    let (out, err) = run(flat);
    assert!(out.contains("q :: Queue(9);\n") && err.is_empty(), "{out}{err}");
    let refused = "q :: Queue(5); Idle -> q -> t :: ToDump(/dev/null); s :: Script(write q.config lots, print q.config,
        write t.config /dev/zero, write s.config x, stop)";
    let (out, err) = run(refused);
    assert_eq!(out, "5\n");
    assert_eq!(
        err,
        "While executing 's :: Script':\n  While calling 'q.config lots':\n    CAPACITY: invalid number\n  \
         While calling 't.config /dev/zero':\n    't :: ToDump' cannot go on under other arguments\n  \
         no 's.config' write handler\n"
    );
}
