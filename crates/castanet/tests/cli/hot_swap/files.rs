//! Files and sockets that stay open while another configuration replaces theirs.

use super::{Client, run};
use crate::control::{PATIENCE, socket};
use crate::program::{folder, wait_until};
use std::os::unix::net::UnixStream;

#[test]
fn elements_without_a_name_go_on_where_they_are_the_only_ones_of_their_kind() {
    let dump = folder("hot-swap").join("unnamed.pcap");
    let to = format!("ToDump({}, ENCAP IP, UNBUFFERED true)", dump.display());
    let first = format!("s :: InfiniteSource(LENGTH 60, LIMIT 5) -> c :: Counter -> {to}");
    let mut it = run("unnamed", &[], &first);
    it.client.wait_for("ToDump@4.count", "5");
    // They get other numbers, and would truncate the file if they began anew.
    let second = "InfiniteSource(LIMIT 3) -> Queue(7) -> Unqueue(ACTIVE false) -> Discard;";
    it.swap(&format!("{second} {first}")).unwrap();
    it.client.wait_for("Queue@3.length", "3");
    assert_eq!(it.client.read("ToDump@8.count"), "5");
    // Two of a kind have nothing that tells them apart.
    it.swap(&format!("{second} {second} {first}")).unwrap();
    it.client.wait_for("Queue@7.length", "3");
    assert_eq!(it.client.read("ToDump@12.count"), "5");
    it.end();
    assert_eq!(std::fs::metadata(&dump).unwrap().len(), 24 + 5 * 76);
}

#[test]
fn files_that_are_written_go_on() {
    let dump = folder("hot-swap").join("goes-on.pcap");
    let to = format!("ToDump({}, ENCAP IP, UNBUFFERED true)", dump.display());
    let config = |more: &str| {
        format!("s :: InfiniteSource(LENGTH 60, LIMIT 5) {more} -> c :: Counter -> d :: {to}")
    };
    let mut it = run("files", &[], &config(""));
    it.client.wait_for("d.count", "5");
    it.swap(&config("-> Null")).unwrap();
    it.client.write("s.reset", "");
    it.client.wait_for("d.count", "10");
    it.end();
    // A header, and ten packets of 60 bytes with their own.
    assert_eq!(std::fs::metadata(&dump).unwrap().len(), 24 + 10 * 76);
}

#[test]
fn a_refused_configuration_leaves_files_alone() {
    let folder = folder("hot-swap/refused");
    let [old, new] = ["old", "new"].map(|name| folder.join(name));
    for file in [&old, &new] {
        _ = std::fs::remove_file(file);
    }
    let [was, name] = [&old, &new].map(|file| file.display().to_string());
    let config = format!(
        "s :: InfiniteSource(LENGTH 60, LIMIT 5) -> c :: Counter -> d :: ToDump({was}, ENCAP IP);"
    );
    let mut it = run("refused", &[], &config);
    it.client.wait_for("d.count", "5");
    it.client.write("d.flush", "");
    let before = std::fs::read(&old).unwrap();
    assert_eq!(before.len(), 24 + 5 * 76);
    for file in [&was, &name] {
        for element in [
            format!("ToDump({file})"),
            format!("ToIPSummaryDump({file})"),
            format!("IPPrint(OUTFILE {file}) -> Discard"),
            format!("ARPPrint(OUTFILE {file}) -> Discard"),
            format!("MarkIPHeader -> AggregateIPFlows(TRACEINFO {file}) -> Discard"),
        ] {
            let wrong = format!("{config} Idle -> {element}; Idle -> ToDump(/no/such/folder/file)");
            let output = it.swap(&wrong).unwrap_err();
            assert!(output.contains("/no/such/folder/file"), "{output}");
            assert_eq!(std::fs::read(&old).unwrap(), before, "{element}");
            assert!(!new.exists(), "{element}");
        }
    }
    // In a valid configuration, another element takes the file over, and empties it.
    let other = config.replace(" d ::", " e ::").replace("s ::", "t ::");
    it.swap(&other).unwrap();
    it.client.wait_for("e.count", "5");
    it.end();
    assert_eq!(std::fs::read(&old).unwrap().len(), before.len());
}

#[test]
fn a_client_is_answered_when_the_new_configuration_has_started_or_failed_to() {
    let plain = "Idle -> c :: Counter -> Discard";
    let mut it = run("start-errors", &[], plain);
    // The header is longer than the buffer of the file, and the device is full.
    let dump = format!("ToIPSummaryDump(/dev/full, BANNER {})", "x".repeat(100_000));
    let said = it.swap(&format!("Idle -> c :: Counter -> d :: {dump}")).unwrap_err();
    let words = "Write handler 'hotconfig' error:\nthe new configuration runs, but not all of it:\n\
                 d :: ToIPSummaryDump: ";
    assert!(said.starts_with(words), "{said}");
    assert!(said.ends_with("No space left on device"), "{said}");
    assert!(it.client.read("list").contains("\nd\n"));
    it.swap(plain).unwrap();
    // Without its socket the client has an answer, too.
    it.client.swap(plain).unwrap();
    it.end();
}

#[test]
fn sockets_of_the_command_line_stay_and_settings_hold() {
    let path = socket("line");
    let by_name = folder("hot-swap").join("click");
    _ = std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_castanet"), &by_name);
    let config = "s :: InfiniteSource(LIMIT $n) -> c :: Counter -> Discard";
    let command = castanet_lab::Command::on_host(&by_name)
        .args(["-R", "-u", path.to_str().unwrap(), "n=30", "-e", config])
        .timeout(PATIENCE);
    let process = command.spawn().unwrap();
    wait_until("nobody listens", || UnixStream::connect(&path).is_ok());
    let mut client = Client::new(&path);
    client.wait_for("c.count", "30");
    client
        .swap("s :: InfiniteSource(LIMIT $n) -> d :: Counter -> c :: Counter -> Discard")
        .unwrap();
    assert_eq!(client.read("c.count"), "30");
    assert_eq!(client.swap("Idle -> x :: Foo -> Discard").unwrap_err(), {
        let words = "Write handler 'hotconfig' error:\nconfig:1: unknown element class 'Foo'";
        words.to_owned()
    });
    client.write("stop", "");
    assert!(process.finish(PATIENCE).unwrap().success());
}
