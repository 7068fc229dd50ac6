//! All parties in one graph: what each of them lets pass, and why it drops what it drops.

mod common;

use castanet_bench::example::{self, WAYS};
use castanet_element::class::Library;
use castanet_element::fate::FateKind;
use castanet_splitbox::CLASSES;

fn library() -> Library {
    common::enter("splitbox-parties");
    let mut library = castanet_elements::library();
    CLASSES.iter().for_each(|class| library.add(class));
    library
}

/// The parties, with their files in a folder. Datagrams of the entry to processor 1 pass `to_b1`, its
/// shares `from_b1`, those of processor 2 `from_b2`, rows for processor 1 `rows`, and grants `grants`.
const PARTIES: &str = "
a :: SplitBoxEntry(FOLDER/entry.splitbox, KEY_FILE key, MTU 300);
b1 :: SplitBoxProcessor(FOLDER/processor-1.splitbox, KEY_FILE key);
b2 :: SplitBoxProcessor(FOLDER/processor-2.splitbox, KEY_FILE key);
c :: SplitBoxClient(FOLDER/client.splitbox, KEY_FILE key, CLIENT);
in -> a -> rest :: Null -> c -> out;
a[1] -> to_b1 :: Null -> b1 -> from_b1 :: Null -> c;
a[2] -> b2 -> from_b2 :: Switch(0) -> c;  from_b2[1] -> Discard;
c[1] -> grants :: Null -> [1]a;  c[2] -> rows :: Null -> b1;  c[3] -> b2;
";

fn parties(folder: &str, client: &str) -> String {
    PARTIES.replace("FOLDER", folder).replace("CLIENT", client)
}

/// Lets datagrams of a place pass twice: as they are, and through `also`, to where they go.
fn doubled(text: &str, place: &str, from: &str, also: &str, to: &str) -> String {
    let once = format!("{from} -> {place} :: Null -> {to}");
    assert!(text.contains(&once), "{once}");
    let twice = format!("{from} -> {place} :: Tee -> {to};  {place}[1] -> {also} -> {to}");
    text.replace(&once, &twice)
}

/// Runs a script in bursts of every size, on one worker and on three.
fn run(text: &str) {
    let library = library();
    for (workers, burst) in WAYS {
        example::run(text, &library, workers, burst).unwrap_or_else(|error| {
            panic!("{workers} workers, bursts of {burst}: {error}\n{text}")
        });
    }
}

const PASSES: &str = "
> in 1.0.0.1:5 > 2.0.0.2:80 tcp syn
< out 1.0.0.1:5 > 2.0.0.2:80 tcp syn
";

/// A script for each reason to drop.
fn refusals() -> Vec<(&'static str, String)> {
    let plain = parties(".", "");
    let foreign = format!("01070000 {} {}", "00000000".repeat(5), "00".repeat(16));
    let forge = "StoreData(30, \\<0011223344556677>)";
    // Of another packet, which has not come.
    let other = "StoreData(16, \\<0000000000000099>)";
    let late = "Queue -> DelayUnqueue(20s)";
    let short = parties(".", "ROTATION 1s");
    let of = |text: &str, script: &str| format!("{text}{script}");
    vec![
        ("a.no_epoch", of(&plain, "> in 1.0.0.1:5 > 2.0.0.2:80 tcp syn\n= a.drops.no_epoch 1\n")),
        ("a.not_ip", of(&plain, "+ 1s\n> in hex 00010203\n= a.drops.not_ip 1\n")),
        (
            "a.cut",
            of(
                &plain,
                "+ 1s\n> in hex 4500001600000000400600000100000102000002 0005\n= a.drops.cut 1\n",
            ),
        ),
        ("c.policy", of(&plain, "+ 1s\n> in 1.0.0.1:5 > 2.0.0.2:23 tcp syn\n= c.drops.policy 1\n")),
        (
            "a.malformed a.foreign",
            of(
                &format!("{plain}x -> [1]a;"),
                &format!(
                    "\n+ 1s{PASSES}> x hex 0102\n= a.drops.malformed 1\n> x hex {foreign}\n= a.drops.foreign 1\n"
                ),
            ),
        ),
        (
            "b1.malformed b1.foreign",
            of(
                &format!("{plain}x -> b1;"),
                &format!(
                    "\n+ 1s{PASSES}> x hex 0102\n= b1.drops.malformed 1\n> x hex {foreign}\n= b1.drops.foreign 1\n"
                ),
            ),
        ),
        (
            "c.malformed c.foreign",
            of(
                &format!("{plain}x -> c;"),
                &format!(
                    "\n+ 1s{PASSES}> x hex 0102\n= c.drops.malformed 1\n> x hex {foreign}\n= c.drops.foreign 1\n"
                ),
            ),
        ),
        (
            "a.forged",
            of(
                &doubled(&plain, "grants", "c[1]", forge, "[1]a"),
                &format!("+ 1s{PASSES}= a.drops.forged 1\n"),
            ),
        ),
        (
            "a.replayed",
            of(
                &doubled(&plain, "grants", "c[1]", "Null", "[1]a"),
                &format!("+ 1s{PASSES}= a.drops.replayed 1\n"),
            ),
        ),
        (
            "a.old",
            of(
                &doubled(&plain, "grants", "c[1]", "StoreData(8, \\<0011223344556677>)", "[1]a"),
                &format!("+ 1s{PASSES}= a.drops.old 1\n"),
            ),
        ),
        (
            "b1.replayed",
            of(
                &doubled(&plain, "to_b1", "a[1]", "Null", "b1"),
                &format!("+ 1s{PASSES}= b1.drops.replayed 1\n"),
            ),
        ),
        (
            "b1.no_epoch",
            of(
                &doubled(&short, "to_b1", "a[1]", late, "b1"),
                &format!("+ 500ms{PASSES}+ 30s\n= b1.drops.no_epoch 1\n{PASSES}"),
            ),
        ),
        (
            "b1.forged",
            of(
                &doubled(&plain, "to_b1", "a[1]", &format!("Classifier(1/01) -> {other}"), "b1"),
                &format!("+ 1s{PASSES}= b1.drops.forged 1\n"),
            ),
        ),
        (
            "c.forged",
            of(
                &doubled(&plain, "from_b1", "b1", &format!("Classifier(1/03) -> {other}"), "c"),
                &format!("+ 1s{PASSES}= c.drops.forged 1\n"),
            ),
        ),
        (
            "c.replayed",
            of(
                &doubled(&plain, "from_b1", "b1", "Classifier(1/03)", "c"),
                &format!("+ 1s{PASSES}= c.drops.replayed 1\n"),
            ),
        ),
        (
            "c.no_epoch",
            of(
                &doubled(&short, "from_b1", "b1", &format!("Classifier(1/03) -> {late}"), "c"),
                &format!("+ 500ms{PASSES}+ 30s\n= c.drops.no_epoch 1\n{PASSES}"),
            ),
        ),
        (
            "c.incomplete",
            of(
                &plain,
                &format!(
                    "+ 1s{PASSES}! from_b2.switch 1\n> in 1.0.0.1:5 > 2.0.0.2:80 tcp syn\n+ 1s\n\
                     = c.drops.incomplete 1\n= c.waiting 0\n! from_b2.switch 0{PASSES}"
                ),
            ),
        ),
    ]
}

#[test]
fn each_party_drops_what_it_must_not_take() {
    for (name, script) in refusals() {
        println!("{name}");
        run(&script);
    }
}

/// Whether a script counts packets under a name, on one worker: then it fails where it expects none.
fn counts(script: &str, counter: &str) -> bool {
    let result = example::run(&format!("{script}= {counter} 0\n"), &library(), 1, 1);
    result.is_err_and(|error| error.contains(&format!("= {counter}")))
}

#[test]
fn datagrams_that_are_too_late_are_old() {
    // The client has room for one packet of a lane.
    let text = parties(".", "WINDOW 1");
    let late = "Classifier(1/03) -> Queue -> DelayUnqueue(100ms)";
    let script = doubled(&text, "from_b1", "b1", late, "c") + &format!("+ 1s{PASSES}{PASSES}");
    assert!(!counts(&script, "c.drops.old") && counts(&format!("{script}+ 1s\n"), "c.drops.old"));
    // A processor has the rows of four epochs.
    let text = parties(".", "ROTATION 1s");
    let late = "Queue -> DelayUnqueue(20s)";
    let script = doubled(&text, "rows", "c[2]", late, "b1") + &format!("+ 1s{PASSES}");
    assert!(
        !counts(&script, "b1.drops.old") && counts(&format!("{script}+ 30s\n"), "b1.drops.old")
    );
}

#[test]
fn dummies_end_at_the_client() {
    let script = parties("dummies", "") + "+ 1s\n" + &PASSES.repeat(100);
    run(&script);
    assert!(counts(&script, "c.drops.dummy"));
}

/// Reasons that depend on time or chance have tests of their own.
#[test]
fn every_exit_has_a_test() {
    let elsewhere = ["SplitBoxClient.dummy", "SplitBoxClient.old", "SplitBoxProcessor.old"];
    let shown: String = refusals().into_iter().map(|it| it.1).collect();
    for class in CLASSES {
        let element = match class.spec.class {
            "SplitBoxEntry" => "a",
            "SplitBoxProcessor" => "b1",
            _ => "c",
        };
        for fate in class.fates.iter().filter(|fate| fate.kind == FateKind::Drop) {
            let is_shown = shown.contains(&format!("{element}.drops.{} 1", fate.name));
            let exit = format!("{}.{}", class.spec.class, fate.name);
            assert!(is_shown != elsewhere.contains(&&*exit), "{exit}");
        }
    }
}

#[test]
fn long_packets_take_several_datagrams() {
    for folder in [".", "once"] {
        let mut script = parties(folder, "") + "+ 1s\n";
        for len in [40, 200, 211, 212, 213, 300, 600, 1500, 9000] {
            let packet = format!("1.0.0.1:5 > 2.0.0.2:80 tcp syn len {len}");
            script += &format!("> in {packet}\n< out {packet}\n");
        }
        run(&script);
    }
}

#[test]
fn all_packets_pass_where_blinds_are_used_once() {
    // An epoch has 32 blinds for each lane.
    let script = parties("once", "") + "+ 1s\n" + &format!("{PASSES}{PASSES}+ 100ms\n").repeat(100);
    run(&script);
}

#[test]
fn a_function_without_matches_lets_all_packets_pass() {
    let packet = "1.0.0.1:5 > 2.0.0.2:23 tcp syn";
    run(&format!("{}+ 1s\n> in {packet}\n< out {packet}\n", parties("open", "")));
}

#[test]
fn packets_may_wait_for_ever() {
    let text = parties(".", "TIMEOUT 18446744000");
    run(&format!("{text}+ 1s{PASSES}"));
}
