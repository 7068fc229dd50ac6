//! `castanet capture`: packets at places of a running router, as lines, JSON and pcapng.

use super::trace::no_session_is_left;
use super::{RuntimeFolder, ends_well, fails, has_members};
use crate::control::{PATIENCE, talk};
use crate::program::{RunResult, wait_until};
use castanet_lab::{Command, Process};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

/// Longer than it takes until packets that come all the time are seen.
const SOON: Duration = Duration::from_secs(15);

/// ICMP by two outputs of a switch, and UDP that expires.
const PLACES: &str = "
    s :: RatedSource(\\<4500001c00000000400166e10a000001 0a0000020800f7ff00000000>, 500)
        -> MarkIPHeader -> c :: Counter -> rr :: RoundRobinSwitch; rr[0] -> d :: Discard; rr[1] -> e :: Discard;
    u :: RatedSource(\\<4500001c00000000011100000a000003 0a0000040009000900080000>, 200)
        -> MarkIPHeader -> ttl :: DecIPTTL -> f :: Discard;\n";

/// 3000 packets of a kilobyte in a second.
const MANY: &str = "s :: RatedSource(LENGTH 1000, RATE 3000) -> c :: Counter -> d :: Discard;\n";

/// Each line as JSON, but for that about packets that a busy machine had no time for.
#[track_caller]
pub(super) fn lines_of(text: &str) -> Vec<Value> {
    let is_miss =
        |line: &&str| line.starts_with("castanet: ") && line.contains("came too fast to be");
    let value = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    text.lines().filter(|line| !is_miss(line)).map(value).collect()
}

/// These fields of each packet of a file, as tshark reads it.
#[track_caller]
pub(super) fn tshark(it: &RuntimeFolder, file: &str, fields: &[&str]) -> Vec<Vec<String>> {
    let tshark = Command::on_host("tshark").current_dir(&it.0).timeout(PATIENCE);
    let tshark = tshark.args(["-n", "-T", "json", "-r", file]);
    let tshark = tshark.args(fields.iter().flat_map(|field| ["-e", field]));
    let output = tshark.output().unwrap_or_else(|error| panic!("{error}; the package is tshark"));
    // It prints all packets before a block that is cut, too.
    assert!(output.success(), "{file}: {}", output.printed());
    let packets: Vec<Value> = serde_json::from_str(&output.stdout).unwrap();
    let field = |packet: &Value, name: &str| {
        packet["_source"]["layers"][name][0].as_str().unwrap_or_default().to_owned()
    };
    packets.iter().map(|it| fields.iter().map(|name| field(it, name)).collect()).collect()
}

/// The second word of each line, which is the place.
fn places(text: &str) -> Vec<&str> {
    text.lines().map(|line| line.split(' ').nth(1).unwrap()).collect()
}

/// `castanet capture` with these words and a limit.
fn capture(it: &RuntimeFolder, words: &[&str]) -> RunResult {
    it.client(&[&["capture"], words].concat(), "")
}

#[test]
fn places_are_sources_elements_and_ports() {
    let it = RuntimeFolder::new("capture");
    let _one = it.instance("one", PLACES);
    let text = |words: &[&str]| it.output(&[&["capture", "--text", "-n", "12"], words].concat());
    let all = |text: &str, place: &str, packet: &str| {
        assert_eq!(places(text), [place; 12], "{text}");
        assert!(
            text.lines().all(|it| it.contains(packet) && it.ends_with("   (28 bytes)")),
            "{text}"
        );
    };
    // Where packets enter and leave the graph, without devices: its sources.
    let ends = it.output(&["capture", "--text", "-n", "200"]);
    let ends = places(&ends);
    assert!(ends.iter().all(|it| ["s[0]", "u[0]"].contains(it)), "{ends:?}");
    assert!(ends.contains(&"s[0]") && ends.contains(&"u[0]"), "{ends:?}");
    all(&text(&["ttl"]), "[0]ttl", "  10.0.0.3:9 > 10.0.0.4:9 udp ttl 1 ");
    all(&text(&["[0]c"]), "[0]c", "  10.0.0.1 > 10.0.0.2 icmp echo");
    all(&text(&["c[0]"]), "c[0]", "  10.0.0.1 > 10.0.0.2 icmp echo");
    all(&text(&["rr[1]"]), "rr[1]", "icmp");
    all(&text(&["s"]), "s[0]", "icmp");
    let several = text(&["rr[0]", "e"]);
    assert!(places(&several).iter().all(|it| ["rr[0]", "[0]e"].contains(it)), "{several}");
    // One that no packet leaves by stays silent.
    let none = it.client(&["capture", "--text", "--duration", "0.3", "ttl[0]"], "");
    assert_eq!((none.status, none.out.as_str()), (Some(0), ""), "{}", none.err);
    no_session_is_left(&it, "one");
}

#[test]
fn wrong_places_are_refused() {
    let it = RuntimeFolder::new("capture-wrong");
    let _one = it.instance("one", PLACES);
    let wrong = |place: &str| capture(&it, &["-n", "1", "--text", place]);
    fails(&wrong("ttll"), 1, &["no element named 'ttll'"]);
    fails(&wrong("rr[2]"), 1, &["'rr' has 2 outputs"]);
    fails(&wrong("[1]c"), 1, &["'c' has 1 input"]);
    fails(&wrong("[0]s"), 1, &["'s' has 0 inputs"]);
    for place in ["c[]", "c[x]", "[0]", "[0]c[0]", "c[-1]", "c[99999999999999999999]"] {
        fails(&wrong(place), 1, &[place, "is no place"]);
    }
    fails(&capture(&it, &["--dropped", "nobody"]), 1, &["'nobody'"]);
    fails(&capture(&it, &["-e", "dts port 5"]), 1, &["dts"]);
    fails(&capture(&it, &["--tcpdump", "udp prt 5"]), 1, &["syntax error"]);
    for words in [
        &["-n", "0"][..],
        &["--duration=-1"],
        &["--duration=nan"],
        &["--ring-size", "1"],
        &["--ring-files", "2", "-w", "x"],
        &["--ring-size", "0", "-w", "x"],
        &["--text", "--json"],
        &["--text", "-w", "x"],
    ] {
        assert_eq!(capture(&it, words).status, Some(2), "{words:?}");
    }
    for (file, why) in [("none/x.pcapng", "No such file"), (".", "Is a directory")] {
        fails(&capture(&it, &["-n", "1", "-w", file]), 1, &[file, why]);
    }
    no_session_is_left(&it, "one");
}

#[test]
fn help_says_what_would_be_right_for_a_capture() {
    let it = RuntimeFolder::new("capture-help");
    let _one = it.instance("one", PLACES);
    let wrong = |words: &[&str]| capture(&it, &[&["-n", "1", "--text"], words].concat());
    fails(&wrong(&["ttll"]), 1, &["did you mean 'ttl'?"]);
    fails(&wrong(&["c[]"]), 1, &["ELEMENT[OUTPUT]"]);
}

#[test]
fn a_capture_ends_after_its_time() {
    let it = RuntimeFolder::new("capture-time");
    let _one = it.instance("one", PLACES);
    // Packets come all the time.
    let text = it.output(&["capture", "--text", "--duration", "0.3"]);
    assert!(!text.is_empty());
    let client = it.command(&["capture", "--json"]).spawn().unwrap();
    wait_until("nothing is captured", || client.stdout().lines().count() > 10);
    client.interrupt();
    ends_well(client);
    no_session_is_left(&it, "one");
}

#[test]
fn drops_are_captured_by_element_and_reason() {
    let it = RuntimeFolder::new("capture-drops");
    let _one = it.instance(
        "one",
        &format!("{PLACES} t :: RatedSource(LENGTH 99, RATE 200) -> q :: Queue(2) -> Idle;"),
    );
    let text = it.output(&["capture", "--dropped", "--text", "-n", "200"]);
    let (ttl, queue) =
        (" ttl dropped: expired  10.0.0.3:9 > 10.0.0.4:9 udp ttl 1 ", " q dropped: full  ");
    assert!(text.contains(ttl) && text.contains(queue), "{text}");
    assert!(text.lines().all(|line| line.contains(ttl) || line.contains(queue)), "{text}");
    for words in [&["--dropped=full"][..], &["--dropped", "q"], &["--dropped=full", "q"]] {
        let text = it.output(&[&["capture", "--text", "-n", "9"], words].concat());
        assert_eq!(text.matches(queue).count(), 9, "{text}");
    }
    let list = lines_of(&it.output(&["capture", "--dropped", "ttl", "--json", "-n", "3"]));
    for drop in &list {
        assert_eq!((&drop["place"], &drop["reason"]), (&"dropped".into(), &"expired".into()));
        assert!(drop["meaning"].as_str().unwrap().starts_with("Packets whose TTL"), "{drop}");
    }
    it.output(&["capture", "--dropped=expired", "-n", "2", "-w", "d.pcapng"]);
    let table = tshark(&it, "d.pcapng", &["frame.interface_name", "frame.comment"]);
    assert_eq!((table.len(), table[0][0].as_str()), (2, "ttl"));
    assert!(table[0][1].starts_with("dropped by ttl :: DecIPTTL: expired. Packets"), "{table:?}");
    no_session_is_left(&it, "one");
}

#[test]
fn packets_are_chosen_by_patterns_and_told_as_json() {
    let it = RuntimeFolder::new("capture-json");
    let _one = it.instance("one", PLACES);
    for words in [
        &["-e", "udp && src host 10.0.0.3"][..],
        &["--tcpdump", "udp port 9"],
        &["-e", "src net 10.0.0.0/8", "--tcpdump", "not icmp"],
    ] {
        let words = [&["capture", "--json", "-n", "5", "-s", "20"], words].concat();
        let list = lines_of(&it.output(&words));
        assert_eq!(list.len(), 5);
        for packet in &list {
            let members = ["time", "worker", "element", "class", "place", "port", "packet"];
            has_members(packet, &members);
            assert_eq!(
                (&packet["element"], &packet["class"]),
                (&json!("u"), &json!("RatedSource"))
            );
            assert_eq!((&packet["place"], &packet["port"]), (&json!("output"), &json!(0)));
            let image = &packet["packet"];
            assert_eq!((image["length"].as_u64(), &image["layer"]), (Some(28), &json!("ip")));
            assert_eq!(image["bytes"], "4500001c00000000011100000a0000030a000004");
        }
        assert!(list.is_sorted_by_key(|it| it["time"].as_i64()));
    }
}

/// `castanet capture` with these words in front of another command, by a shell.
fn piped(it: &RuntimeFolder, words: &str, reader: &str) -> (String, String) {
    let program = env!("CARGO_BIN_EXE_castanet");
    let script = format!("set -o pipefail; '{program}' capture {words} | {reader}");
    let shell = Command::on_host("bash").current_dir(&it.0).timeout(PATIENCE);
    let shell = shell.env("RUNTIME_DIRECTORY", it.0.join("run"));
    let output = shell.args(["-c", &script]).check().unwrap_or_else(|error| panic!("{error}"));
    (output.stdout, output.stderr)
}

#[test]
fn a_pipe_gets_pcapng_and_may_close() {
    let it = RuntimeFolder::new("capture-pipe");
    let _one = it.instance("one", PLACES);
    for words in ["-n 10 ttl", "-n 10 ttl -w -"] {
        let (lines, _) = piped(&it, words, "tshark -n -r -");
        assert_eq!(lines.matches("UDP").count(), 10, "{lines}");
    }
    let (infos, _) = piped(&it, "-n 20 c[0]", "capinfos -");
    for words in ["pcapng", "Number of packets:   20", "Name = c[0]", "Description = Counter"] {
        assert!(infos.contains(words), "no {words:?} in {infos}");
    }
    // A reader that goes ends it, and it succeeds.
    for words in ["", "--json", "--text"] {
        let (_, said) = piped(&it, words, "head -c 100");
        assert_eq!(said, "", "{words}");
    }
    no_session_is_left(&it, "one");
}

/// The files of a ring, in order.
fn ring(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().file_name());
    let mut files: Vec<String> = files.map(|it| it.into_string().unwrap()).collect();
    files.sort();
    files
}

#[test]
fn a_ring_keeps_the_last_files_and_each_is_whole() {
    let it = RuntimeFolder::new("capture-ring");
    let _one = it.instance("one", MANY);
    let folder = it.0.join("ring");
    std::fs::create_dir(&folder).unwrap();
    let words = ["--ring-size", "1", "--ring-files", "2", "-w", "ring/x.pcapng", "-n", "3500"];
    let result = capture(&it, &words);
    assert_eq!((result.status, result.out.as_str()), (Some(0), ""), "{}", result.err);
    assert!(result.err.contains("castanet: 3500 packets captured"), "{}", result.err);
    // A megabyte has less than a thousand packets of a kilobyte.
    assert_eq!(ring(&folder), ["x_00003.pcapng", "x_00004.pcapng"]);
    let packets: Vec<usize> = ring(&folder)
        .iter()
        .map(|file| tshark(&it, &format!("ring/{file}"), &["frame.number"]).len())
        .collect();
    assert!((800..1000).contains(&packets[0]) && packets[1] > 500, "{packets:?}");
    let length = std::fs::metadata(folder.join("x_00003.pcapng")).unwrap().len();
    assert!((1_000_000..1_200_000).contains(&length), "{length}");
    // By time, without a limit of files.
    let words = ["--ring-time", "1", "-w", "ring/t", "-n", "200", "--tcpdump", "len = 1000"];
    assert_eq!(capture(&it, &words).status, Some(0));
    assert!(ring(&folder).contains(&"t_00001".into()), "{:?}", ring(&folder));
}

#[test]
fn a_ring_whose_files_are_moved_away_goes_on() {
    let it = RuntimeFolder::new("capture-moved");
    let _one = it.instance("one", MANY);
    let words = ["--ring-size", "1", "--ring-files", "2", "-w", "x", "-n", "3500"];
    let client = it.command(&[&["capture"], &words[..]].concat()).spawn().unwrap();
    wait_until("no file of a ring is full", || it.0.join("x_00002").exists());
    std::fs::remove_file(it.0.join("x_00001")).unwrap();
    let said = ends_well(client);
    assert!(said.contains("3500 packets captured"), "{said}");
    assert!(it.0.join("x_00004").exists() && !it.0.join("x_00002").exists());
}

#[test]
fn a_full_disk_ends_a_capture_at_a_whole_block() {
    let it = RuntimeFolder::new("capture-disk");
    let one = it.instance("one", MANY);
    fails(&capture(&it, &["-n", "90", "-w", "/dev/full"]), 1, &["/dev/full", "No space left"]);
    // A disk of half a megabyte that only this shell has.
    let program = env!("CARGO_BIN_EXE_castanet");
    let script = format!(
        "mkdir disk && mount -t tmpfs -o size=512k none disk || exit 99
         '{program}' capture -w disk/x.pcapng; status=$?
         cp disk/x.pcapng x.pcapng && umount disk; exit $status"
    );
    let shell = Command::on_host("unshare").current_dir(&it.0).timeout(PATIENCE);
    let shell = shell.env("RUNTIME_DIRECTORY", it.0.join("run"));
    let words = ["--mount", "--propagation", "private", "sh", "-c", &script];
    let output = shell.args(words).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", output.printed());
    assert!(output.stderr.contains("disk/x.pcapng: No space left"), "{}", output.printed());
    let before = it.number("one", "c.count");
    wait_until("the router has stopped", || it.number("one", "c.count") > before + 100);
    no_session_is_left(&it, "one");
    it.output(&["ctl", "one", "stop"]);
    ends_well(one);
    let packets = tshark(&it, "x.pcapng", &["frame.len"]);
    assert!((100..520).contains(&packets.len()), "{}", packets.len());
    assert!(packets.iter().all(|it| it[0] == "1000"));
}

/// Sends a signal to a process.
fn signal(process: &Process, signal: nix::sys::signal::Signal) {
    let id = nix::unistd::Pid::from_raw(i32::try_from(process.id()).unwrap());
    nix::sys::signal::kill(id, signal).unwrap();
}

#[test]
fn clients_that_die_or_pause_lose_nobody_else_a_place() {
    let it = RuntimeFolder::new("capture-lease");
    let _one = it.instance("one", PLACES);
    let client = || it.command(&["capture", "--text", "ttl"]).spawn().unwrap();
    let is_refused = || {
        let result = capture(&it, &["-n", "1", "ttl"]);
        let is_refused = result.err.contains("there are 8 traces and captures already");
        assert_eq!(result.status, Some(i32::from(is_refused)), "{}", result.err);
        is_refused
    };
    let mut clients: Vec<Process> = (0..7).map(|_| client()).collect();
    clients.iter_mut().for_each(|it| it.wait_for("udp", PATIENCE).unwrap());
    let mut paused = client();
    paused.wait_for("udp", PATIENCE).unwrap();
    assert!(is_refused());
    signal(&paused, nix::sys::signal::Signal::SIGSTOP);
    clients.iter_mut().for_each(|it| it.kill());
    clients.iter_mut().for_each(|it| {
        it.wait(PATIENCE).unwrap();
    });
    // Their leases end, and so does that of a client that pauses for long.
    wait_until("captures of clients that are gone stay", || !is_refused());
    no_session_is_left(&it, "one");
    signal(&paused, nix::sys::signal::Signal::SIGCONT);
    // It is told that it is not served any more.
    let status = paused.wait(PATIENCE).unwrap();
    assert_eq!(status.code(), Some(1), "{}", paused.stderr());
    assert!(paused.stderr().contains("its client was silent for too long"), "{}", paused.stderr());
    let before = it.number("one", "c.count");
    wait_until("the router has stopped", || it.number("one", "c.count") > before);
}

#[test]
fn a_client_that_pauses_for_longer_than_its_lease_gets_packets_again() {
    let it = RuntimeFolder::new("capture-pause");
    let _one = it.instance("one", PLACES);
    let mut client = it.command(&["capture", "--json", "ttl"]).spawn().unwrap();
    client.wait_for("udp", PATIENCE).unwrap();
    signal(&client, nix::sys::signal::Signal::SIGSTOP);
    // Longer than a lease: a person has stopped it, or the one who reads its output.
    std::thread::sleep(Duration::from_secs(11));
    signal(&client, nix::sys::signal::Signal::SIGCONT);
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
    let is_new = |line: &str| {
        let packet = serde_json::from_str::<Value>(line).unwrap_or_default();
        packet["time"].as_u64().is_some_and(|time| u128::from(time) > since)
    };
    let began = Instant::now();
    // Packets of this time, or an error.
    while client.is_running() && !client.stdout().lines().next_back().is_some_and(is_new) {
        let said = client.stdout().lines().count();
        assert!(began.elapsed() < SOON, "after {said} packets, it is silent for ever");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_capture_goes_on_through_reloads() {
    let it = RuntimeFolder::new("capture-reload");
    let one = it.instance("one", PLACES);
    let mut client = it.command(&["capture", "--json", "ttl", "-n", "100000"]).spawn().unwrap();
    client.wait_for("\"time\"", PATIENCE).unwrap();
    let count = |client: &Process| client.stdout().lines().count();
    let reload = |text: &str| {
        it.write("one.click", text);
        it.output(&["ctl", "one", "reload"]);
    };
    // The numbers of all elements change.
    for n in 0..5 {
        reload(&format!("{} {PLACES}", "Idle -> Null -> Discard;".repeat(n)));
        let before = count(&client);
        wait_until("a capture ends with a reload", || count(&client) > before + 20);
    }
    // The element is of another class, then it has gone, then it is back.
    reload(&PLACES.replace("ttl :: DecIPTTL", "ttl :: Null"));
    wait_until("the new class is not told", || client.stdout().contains("\"class\":\"Null\""));
    reload(&PLACES.replace("ttl :: DecIPTTL", "other :: DecIPTTL"));
    std::thread::sleep(Duration::from_millis(200));
    let before = count(&client);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(count(&client), before);
    assert!(client.is_running(), "{}", client.stderr());
    reload(PLACES);
    wait_until("an element that is back stays unseen", || count(&client) > before + 20);
    client.interrupt();
    let list = lines_of(&ends_well(client));
    assert!(list.iter().all(|it| it["element"] == "ttl" && it["place"] == "input"));
    no_session_is_left(&it, "one");
    it.output(&["ctl", "one", "stop"]);
    ends_well(one);
}

#[test]
fn a_capture_tells_that_its_router_has_gone() {
    let it = RuntimeFolder::new("capture-gone");
    let mut one = it.instance("one", PLACES);
    let mut client = it.command(&["capture", "-w", "x.pcapng"]).spawn().unwrap();
    wait_until("nothing is captured", || {
        std::fs::metadata(it.0.join("x.pcapng")).is_ok_and(|it| it.len() > 2000)
    });
    one.kill();
    one.wait(PATIENCE).unwrap();
    let status = client.wait(PATIENCE).unwrap();
    assert_eq!(status.code(), Some(1), "{}", client.stderr());
    assert!(client.stderr().contains("the router has gone"), "{}", client.stderr());
    assert!(tshark(&it, "x.pcapng", &["frame.len"]).len() > 10);
}

#[test]
fn a_capture_of_all_that_comes_leaves_others_their_turn() {
    let it = RuntimeFolder::new("capture-fast");
    let one = it.instance("one", "s :: InfiniteSource(LENGTH 1500) -> c :: Counter -> Discard;");
    let client = it.command(&["capture", "-w", "x.pcapng"]).spawn().unwrap();
    wait_until("nothing is captured", || {
        std::fs::metadata(it.0.join("x.pcapng")).is_ok_and(|it| it.len() > 100_000)
    });
    let before = it.number("one", "c.count");
    wait_until("the router has stopped", || it.number("one", "c.count") > before);
    assert_eq!(talk(&it.socket("one"), "READ c.class\n").matches("Counter").count(), 1);
    client.interrupt();
    let said = ends_well(client);
    assert!(said.contains("packets captured") && said.contains("too fast"), "{said}");
    let infos = Command::on_host("capinfos").args(["-c", "-M"]).arg(it.0.join("x.pcapng"));
    let infos = infos.check().unwrap_or_else(|error| panic!("{error}")).stdout;
    let packets = said.split("castanet: ").nth(1).unwrap().split(' ').next().unwrap();
    assert!(infos.contains(&format!(" {packets}\n")), "{packets}: {infos}");
    it.output(&["ctl", "one", "stop"]);
    ends_well(one);
}

#[test]
fn no_place_is_passed_over_in_silence() {
    let it = RuntimeFolder::new("capture-two");
    let _one = it.instance(
        "one",
        &format!("{PLACES} t :: RatedSource(LENGTH 99, RATE 200) -> q :: Queue(2) -> Idle;"),
    );
    let result = capture(&it, &["--dropped", "--text", "-n", "300", "ttl", "q"]);
    let has_both = result.out.contains(" ttl dropped") && result.out.contains(" q dropped");
    assert!(result.status == Some(2) || has_both, "drops of the second element are left out");
}
