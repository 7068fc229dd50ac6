//! Scripts, messages and handlers under the name `click`: what Click and FastClick print.

use crate::program::{RunResult, click};

/// Exit status, standard output and standard error in simulated time.
fn simulated(config: &str) -> (Option<i32>, String, String) {
    let RunResult { status, out, err } = click(&["--simtime", "-e", config], b"");
    (status, out, err)
}

fn prints(config: &str, want: &str) {
    assert_eq!(simulated(config), (Some(0), want.into(), String::new()), "{config}");
}

fn complains(config: &str, out: &str, err: &str) {
    assert_eq!(simulated(config), (Some(0), out.into(), err.into()), "{config}");
}

/// The message of a configuration that cannot be initialised.
fn refused(config: &str, want: &str) {
    let want = format!("{want}\nRouter could not be initialized!\n");
    assert_eq!(simulated(config), (Some(1), String::new(), want), "{config}");
}

#[test]
fn names_of_the_configuration_are_expanded_in_calls() {
    let helper = "helper :: Script(TYPE PASSIVE, return 7);";
    let calls = "print $($f 3 4), print $($e.run), print $(add $($e.run) $($f 1 2)), stop";
    prints(&format!("define($f mul, $e helper); {helper} Script({calls})"), "12\n7\n9\n");
    prints(
        &format!("elementclass C {{ $f, $e | Script({calls}) }} {helper} C(mul, helper)"),
        "12\n7\n9\n",
    );
    // Variables of the script come when it runs, and nothing is expanded in single quotes.
    prints(
        "define($f mul); Script(set g 5, print $($f $g 2), print '$($f 1 1)', stop)",
        "10\n$($f 1 1)\n",
    );
}

#[test]
fn a_parameter_is_unquoted_once_and_keeps_its_bytes() {
    complains(
        r#"s :: Script(readq length "\<20 0a 41 20>", printq length "\<20 0a 41 20>", stop)"#,
        "4\n",
        "s.length:\n4\n",
    );
}

#[test]
fn numbers_are_rounded_and_jumps_end_when_the_router_stops() {
    prints(
        "Script(print \"$(floor 2.7) $(floor -2.5) $(floor 4) $(round 2.5) $(round -2.5) $(round 2.4)\", stop)",
        "2 -3 4 3 -3 2\n",
    );
    prints(
        "Script(gotoa x, print \"no\", label x, gotoa y false, please_stop, print \"on\",
            gotoa y, print \"still\", label y, print \"end\")",
        "on\nstill\nend\n",
    );
}

#[test]
fn what_fails_expands_to_nothing_and_what_is_not_there_stays() {
    // The line ends only if nothing was complained about.
    complains(
        "s :: Script(print \"<$(add 1 x)>\", print \"|\", print \"<$(x.y)>\", print add 1 x, print \"a\", stop)",
        "<>|\n<$(x.y)>a\n",
        "While executing 's :: Script':\n  expected list of numbers\n  no element named 'x'\n  \
         While calling 's.add 1 x':\n    expected list of numbers\n",
    );
}

#[test]
fn complaints_have_their_context() {
    let table = "rt :: LinearIPLookup(9.0.0.0/8 0); Idle -> rt -> Discard;";
    let add = "write rt.add 9.0.0.0/8 0";
    let conflict = "conflict with existing route '9.0.0.0/8 - 0'";
    // A timer has made the script go on.
    complains(
        &format!("{table} r :: Script({add}, print $?, wait 1, {add}, {add}, stop)"),
        "-17\n",
        &format!(
            "While executing 'r :: Script':\n  While calling 'rt.add 9.0.0.0/8 0':\n    {conflict}\n\
             While executing 'r :: Script':\n  While calling 'rt.add 9.0.0.0/8 0':\n    {conflict}\n  \
             While calling 'rt.add 9.0.0.0/8 0':\n    {conflict}\n"
        ),
    );
    // A driver begins by itself, and goes on by itself at a stop request.
    complains(
        &format!(
            "{table} d :: DriverManager({add}, pause, {add}, wait 1, {add}, stop); Script(stop)"
        ),
        "",
        &format!(
            "While calling 'rt.add 9.0.0.0/8 0':\n  {conflict}\n\
             While calling 'rt.add 9.0.0.0/8 0':\n  {conflict}\n\
             While executing 'd :: DriverManager':\n  While calling 'rt.add 9.0.0.0/8 0':\n    {conflict}\n"
        ),
    );
    // A script that is called complains in its caller's context.
    complains(
        &format!("{table} s :: Script(TYPE PASSIVE, {add}); DriverManager(write s.run, stop)"),
        "",
        &format!("While calling 's.run':\n  While calling 'rt.add 9.0.0.0/8 0':\n    {conflict}\n"),
    );
    // No handler's name stands before its message.
    complains(
        "s :: Switch; Idle -> s -> Discard; DriverManager(write s.switch x, print $?, stop)",
        "-1\n",
        "While calling 's.switch x':\n  Switch output must be integer\n",
    );
}

#[test]
fn all_arguments_are_looked_at() {
    refused(
        "rw :: UDPRewriter(pattern x - - - 0 0, pattern 1.1.1.1 z - - 0 0, pattern 1.1.1.1 1 - - 3 0);
         Idle -> rw -> Discard; Idle -> [1] rw; Idle -> [2] rw",
        "config:1: While configuring 'rw :: UDPRewriter':\n  input spec 0: bad source address\n  \
         input spec 1: bad source port\n  input spec 2: output port out of range",
    );
    refused(
        "rt :: LinearIPLookup(1.0.0.0/8 0, nonsense, 2.0.0.0/8 9); Idle -> rt -> Discard",
        "config:1: While configuring 'rt :: LinearIPLookup':\n  \
         argument 2 should be 'ADDR/MASK [GATEWAY] OUTPUT'\n  argument 3 bad OUTPUT",
    );
    refused(
        "Idle -> q :: Queue(FOO 3) -> Discard",
        "config:1: While configuring 'q :: Queue':\n  FOO: unknown argument",
    );
    refused(
        "Idle -> q :: Queue(foo) -> Discard",
        "config:1: While configuring 'q :: Queue':\n  CAPACITY: invalid number",
    );
}

#[test]
fn written_arguments_are_shown() {
    prints(
        "Idle -> q :: Queue -> Discard; Idle -> r :: Queue(50) -> Discard;
         Idle -> t :: Queue(CAPACITY 7) -> Discard;
         Script(print \"<$(q.config)>\", write q.capacity 30, print q.config, write r.capacity 30,
            print r.config, write t.capacity 8, print t.config, write q.config, print \"<$(q.config)>\", stop)",
        "<>\nCAPACITY 30\n30\nCAPACITY 8\n<>\n",
    );
    prints(
        "Idle -> Queue -> s :: Shaper(RATE 10) -> Discard; Idle -> p :: RatedSplitter(10) -> Discard;
         p[1] -> Queue -> u :: RatedUnqueue(5, ACTIVE true) -> Discard;
         Script(print s.config, print p.config, print u.config, write u.rate 17, print u.config, stop)",
        "10\n10\n5\n17\n",
    );
    let (_, out, _) = simulated(
        "Idle -> q :: Queue -> Discard; Script(write q.capacity 30, printn flatconfig, stop)",
    );
    assert!(out.contains("q :: Queue(CAPACITY 30);\n"), "{out}");
}

#[test]
fn elements_know_their_threads() {
    let config = |switch: &str| {
        format!(
            "a :: InfiniteSource(LIMIT 1) -> s :: {switch} -> c :: Counter -> q :: Queue -> p :: Null
                -> u :: Unqueue -> d :: Discard; s[1] -> e :: Counter -> Discard;
             b :: InfiniteSource(LIMIT 1) -> s; StaticThreadSched(a 0, b 2, u 3)"
        )
    };
    let read = |switch: &str, handlers: &[&str]| -> Vec<String> {
        let config = config(switch);
        let values = handlers.iter().map(|handler| {
            let result = click(&["-j4", "-q", "-e", &config, "-h", handler], b"");
            assert_eq!(result.status, Some(0), "{handler}: {}", result.err);
            result.out.trim_end().to_owned()
        });
        values.collect()
    };
    assert_eq!(
        read(
            "CPUSwitch",
            &[
                "s.passing_threads",
                "c.passing_threads",
                "e.passing_threads",
                "q.passing_threads",
                "p.passing_threads",
                "d.passing_threads",
                "c.spawning_threads",
                "b.spawning_threads",
                "u.spawning_threads",
                "b.home_thread",
                "c.mt_safe"
            ],
        ),
        ["0,2", "0,2", "", "0,2-3", "3", "3", "", "2", "3", "2", "true"]
    );
    assert_eq!(read("ExactCPUSwitch", &["c.passing_threads", "e.passing_threads"]), ["0", "2"]);
    let pushed = ["c.is_fullpush", "q.is_fullpush", "p.is_fullpush", "d.is_fullpush"];
    assert_eq!(read("CPUSwitch", &pushed), ["true", "true", "false", "false"]);
}

#[test]
fn tasks_are_at_home_on_thread_0() {
    let config = "i :: InfiniteSource(LIMIT 1) -> c :: Counter -> q :: Queue -> u :: Unqueue -> d :: Discard;
                  j :: InfiniteSource(LIMIT 1) -> e :: Counter -> f :: Counter -> q;
                  k :: InfiniteSource(LIMIT 1) -> Discard; StaticThreadSched(j 2, f 1)";
    let read = |handler: &str| {
        let result = click(&["-j4", "-q", "-e", config, "-h", handler], b"");
        assert_eq!(result.status, Some(0), "{handler}: {}", result.err);
        result.out.trim_end().to_owned()
    };
    let homes =
        ["i", "u", "k", "c", "j", "e", "f"].map(|name| read(&format!("{name}.home_thread")));
    assert_eq!(homes, ["0", "0", "0", "0", "2", "0", "1"]);
    let passing = ["q", "u", "e"].map(|name| read(&format!("{name}.passing_threads")));
    assert_eq!(passing, ["0,2", "0", "2"]);
    assert_eq!(read("u.spawning_threads"), "0");
}

#[test]
fn sources_of_flows_draw_clicks_numbers() {
    // As a program in C draws them after `srandom(5)`, by the rules of FastClick's element.
    let (_, out, err) = simulated(
        "RandomSeed(5); FastUDPFlows(0, 10, 60, 0:0:0:0:0:1, 1.0.0.1, 0:0:0:0:0:2, 2.0.0.2, 3, 2, STOP true)
             -> Strip(14) -> MarkIPHeader -> ToIPSummaryDump(-, FIELDS sport dport, HEADER false)",
    );
    assert_eq!(
        out,
        "4288 29611\n\
         38114 34933\n\
         38114 34933\n\
         26310 39016\n\
         26310 39016\n\
         4288 29611\n\
         24262 37278\n\
         27470 10285\n\
         24262 37278\n\
         36396 9213\n",
        "{err}"
    );
}

#[test]
fn simulated_time_moves_when_somebody_looks() {
    prints(
        "Script(print $(now), print $(now), stop)",
        "1000000000.000000005\n1000000000.000000006\n",
    );
    let result = click(
        &["--simtime", "--simtick", "500", "-e", "Script(print $(now), print $(now), stop)"],
        b"",
    );
    assert_eq!(result.out, "1000000000.000002500\n1000000000.000003\n");
    // Six digits if they are enough.
    let still = [
        "--simtime",
        "--simtick",
        "0",
        "-e",
        "Script(wait 1.5, print $(now), wait 1ns, print $(now), stop)",
    ];
    assert_eq!(click(&still, b"").out, "1000000001.500000\n1000000001.500000001\n");
}

#[test]
fn time_can_be_warped() {
    let config = "Script(print timewarp, write timewarp 4, print timewarp, set a $(now), wait 2s,
            print $(ge $(sub $(now) $a) 2), write timewarp nowait, print timewarp, wait 1h,
            print $(ge $(sub $(now) $a) 3602), stop)";
    let start = std::time::Instant::now();
    let result = click(&["-e", config], b"");
    assert_eq!(result.out, "1\n4\ntrue\nnowait\ntrue\n", "{}", result.err);
    assert!(start.elapsed() >= std::time::Duration::from_millis(500));
    assert!(start.elapsed() < std::time::Duration::from_secs(1800));
    // Elements do not wait either.
    let timer = "Script(write timewarp nowait); TimedSource(100, LIMIT 5, STOP true) -> c :: Counter -> Discard;
        DriverManager(pause, print c.count)";
    for words in [&["-e", timer][..], &["-j2", "-e", timer]] {
        assert_eq!(click(words, b"").out, "5\n", "{words:?}");
    }
    let wrong = "DriverManager(write timewarp 0, write timewarp soon, print timewarp, stop)";
    let result = click(&["-e", wrong], b"");
    assert_eq!(
        (result.out.as_str(), result.err.as_str()),
        (
            "1\n",
            "While calling 'timewarp 0':\n  timefactor must be > 0\n\
             While calling 'timewarp soon':\n  expected double\n"
        )
    );
    prints("Script(print timewarp, stop)", "simulation\n");
    let (_, _, err) = simulated("DriverManager(write timewarp 4, stop)");
    assert_eq!(err, "no 'timewarp' write handler\n");
}

#[test]
fn a_compact_configuration_keeps_no_text() {
    let text = "require(compact_config, package fastclick) // words\nIdle\n->   Discard";
    let flat = "require(compact_config, package fastclick);\n\nIdle@1 :: Idle;\nDiscard@2 :: Discard;\n\n\
                Idle@1 -> Discard@2;\n";
    for handler in ["config", "flatconfig"] {
        assert_eq!(click(&["-q", "-e", text, "-h", handler], b"").out, flat, "{handler}");
    }
}

#[test]
fn a_name_is_a_class_from_its_first_use_as_one_on() {
    let errors = |config: &str| {
        let result = click(&["-q", "-e", config], b"");
        assert_eq!(result.status, Some(1), "{config}");
        result.err
    };
    let used = "class 'K' used as element name";
    let inside = errors("elementclass C { K -> M } K :: Idle");
    assert!(inside.ends_with(&format!("config:1: {used}\n")), "{inside}");
    for fine in [
        "elementclass C { K :: KK -> M } K :: Idle",
        "elementclass C { K :: Idle -> M } K -> Discard",
    ] {
        assert!(!errors(fine).contains(used), "{fine}");
    }
    assert_eq!(
        errors("K :: Idle; a :: K"),
        "config:1: 'K' was previously used as an element name\n"
    );
    let own = errors("K :: K; K :: Idle");
    assert_eq!(own.matches(used).count(), 2, "{own}");
}

#[test]
fn outputs_that_no_packet_reaches_and_senseless_relations_are_said() {
    let warned = |config: &str, want: &str| {
        let (status, _, err) = simulated(&format!("{config}; Script(stop)"));
        assert_eq!((status, err.as_str()), (Some(0), want), "{config}");
    };
    warned(
        "Idle -> c :: Classifier(12/0800, 12/0800 20/0001, -) -> Discard; c[1] -> Discard; c[2] -> Discard",
        "config:1: While configuring 'c :: Classifier':\n  warning: output 1 matches no packets\n",
    );
    warned(
        "Idle -> c :: IPClassifier(tcp, ip ttl > 255, -) -> Discard; c[1] -> Discard; c[2] -> Discard",
        "config:1: While configuring 'c :: IPClassifier':\n  \
         warning: pattern 1: relation '> 255' is always false (range 0-255)\n  \
         warning: output 1 matches no packets\n",
    );
}

#[test]
fn sockets_take_keywords() {
    prints(
        "Idle -> s :: Socket(TYPE UDP, ADDR 127.0.0.1, PORT 9, LOCAL_ADDR 127.0.0.1, LOCAL_PORT 0);
         Idle -> t :: Socket(UDP, 127.0.0.1, 9, LOCAL_ADDR 127.0.0.1); Script(print s.class, stop)",
        "Socket\n",
    );
    prints(
        "c :: ControlSocket(TYPE TCP, PORT 41900+, LOCALHOST true); Script(print $(gt $(c.port) 41899), stop)",
        "true\n",
    );
}

#[test]
fn addresses_have_the_names_of_the_hosts_devices() {
    prints(
        "AddressInfo(a lo, b lo:ip, e lo:eth); Idle -> s :: SetIPAddress(a) -> t :: SetIPAddress(lo)
            -> u :: SetIPAddress(b) -> v :: EtherEncap(0x0800, e, lo) -> Discard;
         Script(print \"$(s.addr) $(t.addr) $(u.addr) $(v.src) $(v.dst)\", stop)",
        "127.0.0.1 127.0.0.1 127.0.0.1 00-00-00-00-00-00 00-00-00-00-00-00\n",
    );
}

#[test]
fn an_ipv6_address_of_four_bytes_ends_in_an_ipv4_address() {
    prints(
        "Idle -> r :: LookupIP6Route(::1/128 ::2 0, 2001:db8::/32 0) -> s :: SetIP6Address(::3) -> Discard;
         Script(printn r.table, stop)",
        "::0.0.0.1/128\t\t::0.0.0.2\t0\n2001:db8::/32\t\t-\t\t0\n",
    );
}

#[test]
fn lines_on_standard_output_come_in_the_order_in_which_they_were_made() {
    let dump = "InfiniteSource(LIMIT 2, LENGTH 69, STOP true) -> Script(print \"p\")
            -> ToIPSummaryDump(-, DATA ip_len, HEADER false) -> Discard; DriverManager(pause, print \"end\")";
    for words in [&["--simtime", "-e", dump][..], &["-e", dump]] {
        let result = click(words, b"");
        assert_eq!(result.out, "p\n69\np\n69\nend\n", "{words:?}: {}", result.err);
    }
}
