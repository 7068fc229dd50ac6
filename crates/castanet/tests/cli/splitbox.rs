//! `castanet splitbox`: files of parties, what they tell, and what is refused.

use crate::control::socket;
use crate::program::{RunResult, castanet, folder, root, run};
use crate::shell::Shell;
use castanet_splitbox::party_file::{self, Unlock};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

const RULES: &str = "# a firewall\n\
    deny src net 10.0.0.0/8 and dst host 1.2.3.4 and udp\n\
    allow src host 1.2.3.4 and dst host 5.6.7.8 and dst tcp port 80 # web\n\n\
    allow all\n";

/// The files of all parties of a setup for two clouds.
const FILES: [&str; 4] =
    ["client.splitbox", "entry.splitbox", "processor-1.splitbox", "processor-2.splitbox"];

/// A directory with a policy and a key, empty otherwise.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let place = Place(folder("splitbox").join(name));
        _ = std::fs::remove_dir_all(&place.0);
        std::fs::create_dir_all(place.0.join("out")).unwrap();
        std::fs::write(place.0.join("rules"), RULES).unwrap();
        assert_eq!(castanet(&["splitbox", "key", &place.path("key")], b"").status, Some(0));
        place
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// Runs `castanet splitbox` with a file, more words and the key.
    fn run(&self, command: &str, file: &str, words: &[&str]) -> RunResult {
        let (file, key) = (self.path(file), self.path("key"));
        castanet(&[&["splitbox", command, &file, "--key-file", &key], words].concat(), b"")
    }

    fn setup(&self, words: &[&str]) -> RunResult {
        let out = self.path("out");
        self.run("setup", "rules", &[&["--out", &out, "--clouds", "2"], words].concat())
    }

    fn made(&self) -> RunResult {
        let result = self.setup(&["--blinds", "100"]);
        assert_eq!((result.status, result.err.as_str()), (Some(0), ""));
        result
    }

    /// The names in the directory of party files.
    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.join("out")).unwrap().flatten();
        let mut names: Vec<String> =
            entries.map(|it| it.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn bytes(&self) -> Vec<Vec<u8>> {
        let path = |name: &String| self.0.join("out").join(name);
        self.names().iter().map(|name| std::fs::read(path(name)).unwrap()).collect()
    }
}

/// Asserts that a command was refused for a reason.
fn assert_refused(result: &RunResult, status: i32, reason: &str) {
    assert_eq!((result.status, result.out.as_str()), (Some(status), ""), "{}", result.err);
    assert!(result.err.contains(reason), "no {reason} in\n{}", result.err);
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}:\n{text}"))
}

fn mode(path: impl AsRef<Path>) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_setup_makes_a_file_for_each_party_and_each_tells_its_own() {
    let place = Place::new("setup");
    let out = place.made().out;
    assert_eq!(place.names(), FILES);
    assert!(FILES.iter().all(|name| mode(place.0.join("out").join(name)) == 0o600));
    assert_eq!(mode(place.path("key")), 0o600);
    for words in [
        "processor-2.splitbox",
        "4 rules in a list",
        "100 blinds × 4 matches × 16 bytes = 6.4 kB",
        "used again (chosen)",
        "costs 4 × 16 = 64 bytes to each processor",
        "1 Gbit/s to each processor carries 2.0 Mpackets/s",
        "ns a hash",
    ] {
        assert!(out.contains(words), "no {words} in\n{out}");
    }
    for (file, party, words) in [
        (FILES[0], "the client", "everything: rules"),
        (FILES[1], "the entry", "n = 216 bits"),
        (FILES[2], "processor 1 of 2", "2^101 guesses"),
        (FILES[3], "processor 2 of 2", "its own share of each of the 4 actions"),
    ] {
        let file = format!("out/{file}");
        let result = place.run("inspect", &file, &[]);
        assert_eq!(result.status, Some(0), "{}", result.err);
        assert!(result.out.starts_with(&format!("party: {party} of setup ")), "{}", result.out);
        assert!(result.out.contains(words), "no {words} in\n{}", result.out);
        let report = json(&place.run("inspect", &file, &["--json"]).out);
        assert_eq!((&report["party"], &report["blinds"]), (&party.into(), &100.into()));
        let knows_function = party != "the entry";
        assert_eq!(report["function"].is_object(), knows_function, "{report}");
        // Without the key.
        let clear = castanet(&["splitbox", "inspect", &place.path(&file)], b"");
        assert_eq!(clear.status, Some(0), "{}", clear.err);
        assert!(clear.out.contains("sealed with a key file"), "{}", clear.out);
        assert!(!clear.out.contains("100") && !clear.out.contains("216"), "{}", clear.out);
        let clear = castanet(&["splitbox", "inspect", &place.path(&file), "--json"], b"");
        assert_eq!(json(&clear.out)["setup"], report["setup"]);
    }
}

#[test]
fn summaries_are_json_too() {
    let place = Place::new("json");
    let words =
        ["--json", "--once", "--lanes", "3", "--dummies", "1%", "--hash", "sha1", "--blinds", "99"];
    let summary = json(&place.setup(&words).out);
    assert_eq!(summary["files"].as_array().unwrap().len(), 4);
    assert_eq!(summary["uses_blinds_once"], true);
    assert_eq!(summary["blinds_once"]["bytes_per_packet"], 64);
    let epoch_bytes = summary["blinds_again"]["epoch_bytes"].as_u64().unwrap();
    assert!(epoch_bytes > 99 * 64, "digests and tables: {epoch_bytes}");
    let entry = json(&place.run("inspect", "out/entry.splitbox", &["--json"]).out);
    assert_eq!((&entry["lanes"], &entry["hash"]), (&3.into(), &"SHA-1".into()));
    assert_eq!(entry["dummies_per_million"], 10_000);
    assert_eq!(entry["setup"], summary["setup"]);
}

#[test]
fn wrong_keys_and_changed_files_are_refused() {
    let place = Place::new("changed");
    place.made();
    let file = place.0.join("out/processor-1.splitbox");
    let inspect = || place.run("inspect", "out/processor-1.splitbox", &[]);
    let right = std::fs::read(&file).unwrap();
    let last = right.len() - 1;
    for (at, reason) in [
        (0, "no file of a SplitBox party"),
        (9, "a party file of version 0; this is version 1"),
        (10, "the key is wrong, or the party file has been changed"),
        (11, "the key is wrong, or the party file has been changed"),
        (13, "it is sealed with a passphrase, and there is none"),
        (25, "the key is wrong, or the party file has been changed"),
        (40, "no file of a SplitBox party"),
        (60, "the key is wrong, or the party file has been changed"),
        (84, "the key is wrong, or the party file has been changed"),
        (last, "the key is wrong, or the party file has been changed"),
    ] {
        let mut bytes = right.clone();
        bytes[at] ^= 1;
        std::fs::write(&file, bytes).unwrap();
        assert_refused(&inspect(), 1, reason);
    }
    std::fs::write(&file, &right[..last]).unwrap();
    assert_refused(&inspect(), 1, "the party file is truncated");
    std::fs::write(&file, &right).unwrap();
    assert_eq!(inspect().status, Some(0));
    // Keys that are another one, missing, or for all to read.
    let with_key = |key: &str| {
        let file = file.display().to_string();
        castanet(&["splitbox", "inspect", &file, "--key-file", &place.path(key)], b"")
    };
    castanet(&["splitbox", "key", &place.path("other")], b"");
    assert_refused(&with_key("other"), 1, "the key is wrong");
    assert_refused(&with_key("missing"), 1, "`castanet splitbox key FILE` makes one");
    std::fs::set_permissions(place.path("other"), PermissionsExt::from_mode(0o644)).unwrap();
    assert_refused(&with_key("other"), 1, "(mode 0644); its mode must be 0600");
    let again = castanet(&["splitbox", "key", &place.path("key")], b"");
    assert_refused(&again, 1, "it exists, and is not overwritten");
    assert_refused(&place.run("inspect", "rules", &[]), 1, "no file of a SplitBox party");
    assert_refused(&place.run("inspect", "nothing", &[]), 1, "No such file or directory");
}

#[test]
fn a_party_loads_its_own_file_alone() {
    let place = Place::new("parties");
    place.made();
    let unlock = Unlock::KeyFile(place.path("key").into());
    let file = |name: &str| place.0.join("out").join(name);
    let error = party_file::load_entry(&file("processor-2.splitbox"), &unlock).unwrap_err();
    let expected = "this is the file of processor 2 of 2, where that of the entry is needed";
    assert!(error.to_string().ends_with(expected), "{error}");
    assert!(party_file::load_processor(&file("processor-2.splitbox"), &unlock, Some(1)).is_ok());
    assert!(party_file::load_client(&file("entry.splitbox"), &unlock).is_err());
}

#[test]
fn setups_that_are_refused_write_nothing() {
    let place = Place::new("refused");
    let out = place.path("out");
    let clouds = |count: &str| place.run("setup", "rules", &["--out", &out, "--clouds", count]);
    let one = "1 processors: at least 2 are needed, as the only share of an action would be the \
               action itself";
    assert_refused(&clouds("1"), 1, one);
    assert_refused(&clouds("65"), 1, "at most 64 are possible");
    assert_refused(&clouds("two"), 2, "invalid value 'two'");
    assert_refused(&place.setup(&["--lanes", "0"]), 1, "0 lanes: there are 1 to 64");
    assert_refused(&place.setup(&["--dummies", "100%"]), 2, "no share from 0 to below 1");
    let missing = place.path("missing");
    let result = place.run("setup", "rules", &["--out", &missing, "--clouds", "2"]);
    assert_refused(&result, 1, "/missing: No such file or directory");
    let policy = |text: &str| std::fs::write(place.0.join("rules"), text).unwrap();
    policy("allow tcp\n# and\n  allow ip vers 4 and sport 99999\nether proto ip\n");
    let result = place.setup(&[]);
    assert_refused(&result, 1, "rules:3:");
    assert_refused(&result, 1, "rules:4:");
    std::fs::remove_file(place.0.join("rules")).unwrap();
    assert_refused(&place.setup(&[]), 1, "rules: No such file or directory");
    assert!(place.names().is_empty(), "{:?}", place.names());
}

#[test]
fn files_that_exist_stay() {
    let place = Place::new("exist");
    place.made();
    let before = place.bytes();
    assert_refused(&place.setup(&[]), 1, "entry.splitbox: it exists, and is not overwritten");
    assert_eq!(place.bytes(), before);
    std::fs::remove_file(place.path("out/entry.splitbox")).unwrap();
    assert_refused(&place.setup(&[]), 1, "processor-1.splitbox: it exists");
    assert_eq!(place.names().len(), 3, "none is written if one exists");
    assert_eq!(place.setup(&["--force"]).status, Some(0));
    let after = place.bytes();
    assert!(after.len() == 4 && after.iter().zip(&before).all(|(a, b)| a != b));
}

/// A limit on the size of files stands in for a full disk: the entry's file fits, the others do not.
#[test]
fn a_disk_that_is_full_leaves_no_files() {
    let place = Place::new("full");
    let rule = |n: u32| format!("allow src host 1.2.3.{n} and dst host 5.6.7.8 and udp\n");
    std::fs::write(place.0.join("rules"), (0..200).map(rule).collect::<String>()).unwrap();
    let mut command = Command::new("sh");
    command.current_dir(root()).args([
        "-c",
        "trap '' XFSZ; ulimit -f 4; exec \"$@\"",
        "sh",
        env!("CARGO_BIN_EXE_castanet"),
        "splitbox",
        "setup",
        &place.path("rules"),
        "--clouds",
        "2",
        "--out",
        &place.path("out"),
        "--key-file",
        &place.path("key"),
    ]);
    assert_refused(&run(&mut command, b""), 1, "/out: File too large");
    assert!(place.names().is_empty(), "{:?}", place.names());
    assert_eq!(place.setup(&[]).status, Some(0));
}

#[test]
fn matches_with_few_bits_are_refused_or_accepted_with_a_warning() {
    let place = Place::new("weight");
    std::fs::write(place.0.join("rules"), "deny dst port 53\nallow src net 9.0.0.0/8\nallow all\n")
        .unwrap();
    let result = place.setup(&[]);
    assert_refused(&result, 1, "a processor finds these matches with fewer than 2^40 guesses");
    assert_refused(&result, 1, "1 match on IP version, src/8: 2^8 guesses (less than 1 ms)");
    assert_refused(&result, 1, "--allow-low-weight");
    assert!(place.names().is_empty());
    let result = place.setup(&["--allow-low-weight", "--json"]);
    assert_eq!(result.status, Some(0), "{}", result.err);
    assert!(result.err.starts_with("castanet: warning: "), "{}", result.err);
    assert!(result.err.contains("2^8 guesses"), "{}", result.err);
    assert_eq!(json(&result.out)["low_weight"][0]["guess_bits"], 8);
    let result = place.setup(&["--min-weight", "8", "--force"]);
    assert_eq!((result.status, result.err.as_str()), (Some(0), ""));
}

#[test]
fn passphrases_come_from_files_or_terminals() {
    let place = Place::new("passphrase");
    let (rules, out, file) = (place.path("rules"), place.path("out"), place.path("passphrase"));
    let setup = ["splitbox", "setup", &rules, "--clouds", "2", "--out", &out];
    assert_refused(&castanet(&setup, b""), 2, "--key-file or --passphrase-file");
    std::fs::write(&file, "correct horse\n").unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    let with_file =
        |words: &[&str]| castanet(&[words, &["--passphrase-file", &file]].concat(), b"");
    let result = with_file(&setup);
    assert_eq!(result.status, Some(0), "{}", result.err);
    let entry = place.path("out/entry.splitbox");
    let inspect = ["splitbox", "inspect", &entry];
    assert!(with_file(&inspect).out.contains("it can know"));
    let clear = castanet(&inspect, b"").out;
    assert!(clear.contains("sealed with a passphrase"), "{clear}");
    let key = place.run("inspect", "out/entry.splitbox", &[]);
    assert_refused(&key, 1, "it is sealed with a passphrase, and there is none");
    let both = with_file(&["splitbox", "inspect", &entry, "--key-file", &place.path("key")]);
    assert_refused(&both, 2, "cannot be used with");
    std::fs::write(&file, "correct horse battery\n").unwrap();
    assert_refused(&with_file(&inspect), 1, "the key is wrong, or the party file has been changed");
    std::fs::write(&file, "\n").unwrap();
    assert_refused(&with_file(&inspect), 1, "/passphrase: the passphrase is empty");
}

#[test]
fn passphrases_are_asked_on_a_terminal_without_echo() {
    let place = Place::new("terminal");
    let setup =
        format!("splitbox setup {} --clouds 2 --out {}", place.path("rules"), place.path("out"));
    let mut shell = Shell::start(&setup, &place.0);
    shell.sees("Passphrase of the party files: ");
    shell.hides_keys();
    shell.press("correct horse\r");
    let echo = shell.sees("The same passphrase again: ");
    assert!(!echo.contains("horse"), "{echo}");
    shell.hides_keys();
    shell.press("correct horsE\r");
    shell.sees("castanet: the passphrases differ");
    assert_eq!(shell.ends(), Some(1));
    assert!(place.names().is_empty());
    let mut shell = Shell::start(&setup, &place.0);
    for prompt in ["Passphrase of the party files: ", "The same passphrase again: "] {
        shell.sees(prompt);
        shell.hides_keys();
        shell.press("correct horse\r");
    }
    let rest = shell.sees("4 files");
    assert!(!rest.contains("horse"), "{rest}");
    assert_eq!(shell.ends(), Some(0));
    let inspect = format!("splitbox inspect {}", place.path("out/entry.splitbox"));
    for (passphrase, text, status) in
        [("correct horse", "it can know:", 0), ("wrong", "the key is wrong", 1)]
    {
        let mut shell = Shell::start(&inspect, &place.0);
        shell.sees("Passphrase of the party file: ");
        shell.hides_keys();
        shell.press(&format!("{passphrase}\r"));
        shell.sees(text);
        assert_eq!(shell.ends(), Some(status));
    }
}

#[test]
fn a_party_file_gets_a_key_of_its_own() {
    let place = Place::new("reseal");
    place.made();
    let (file, own) = (place.path("out/entry.splitbox"), place.path("entry.key"));
    let reseal = || place.run("reseal", "out/entry.splitbox", &["--new-key-file", &own]);
    assert_refused(&reseal(), 1, "entry.key: there is no such key file");
    castanet(&["splitbox", "key", &own], b"");
    assert_eq!(reseal().status, Some(0));
    assert_eq!(place.names(), FILES);
    assert_refused(&reseal(), 1, "the key is wrong, or the party file has been changed");
    let result = castanet(&["splitbox", "inspect", &file, "--key-file", &own], b"");
    assert!(result.out.starts_with("party: the entry"), "{}", result.err);
    let nothing = place.run("reseal", "out/client.splitbox", &[]);
    assert_refused(&nothing, 2, "--new-key-file or --new-passphrase-file");
}

#[test]
fn a_rotation_keeps_the_function_and_changes_the_rest() {
    let place = Place::new("rotate");
    place.setup(&["--dummies", "2%", "--once"]);
    let report = |file: &str| json(&place.run("inspect", file, &["--json"]).out);
    let (before, bytes) = (report("out/processor-1.splitbox"), place.bytes());
    let out = place.path("out");
    let rotate = |words: &[&str]| {
        place.run("rotate", "out/client.splitbox", &[&["--out", &out], words].concat())
    };
    assert_refused(&rotate(&[]), 1, "it exists, and is not overwritten");
    let entry = place.run("rotate", "out/entry.splitbox", &["--out", &out, "--force"]);
    assert_refused(&entry, 1, "this is the file of the entry, where that of the client is needed");
    assert_eq!(place.bytes(), bytes);
    let result = rotate(&["--force"]);
    assert_eq!(result.status, Some(0), "{}", result.err);
    let old = before["setup"].as_str().unwrap();
    assert!(result.out.contains(&format!("replaces setup {old}")), "{}", result.out);
    let after = report("out/processor-1.splitbox");
    assert_eq!(after["function"], before["function"]);
    assert_eq!(after["uses_blinds_once"], true);
    assert_ne!(after["setup"], before["setup"]);
    assert_eq!(report("out/entry.splitbox")["dummies_per_million"], 20_000);
    assert_eq!(report("out/client.splitbox")["setup"], after["setup"]);
    for words in [&["rotate"][..], &["rotate", "file"], &["rotate", "--out", "dir"], &[]] {
        assert_eq!(castanet(&[&["splitbox"], words].concat(), b"").status, Some(2), "{words:?}");
    }
}

#[test]
fn a_running_client_is_told_to_rotate() {
    let path = socket("rotate");
    let listener = UnixListener::bind(&path).unwrap();
    let server = std::thread::spawn(move || {
        let answers = ["200 Write handler 'client.rotate' OK", "511 No element named 'c2'"];
        answers.map(|answer| {
            let mut stream = listener.accept().unwrap().0;
            stream.write_all(b"Click::ControlSocket/1.3\r\n").unwrap();
            let mut line = String::new();
            BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
            stream.write_all(format!("{answer}\r\n").as_bytes()).unwrap();
            line
        })
    });
    let place = path.display().to_string();
    let connect = ["splitbox", "rotate", "--connect", &place];
    let result = castanet(&connect, b"");
    assert_eq!((result.status, result.err.as_str()), (Some(0), ""));
    let result = castanet(&[&connect[..], &["--element", "c2"]].concat(), b"");
    assert_refused(&result, 1, "No element named 'c2'");
    assert_eq!(server.join().unwrap(), ["WRITE client.rotate\r\n", "WRITE c2.rotate\r\n"]);
    let nobody = castanet(&["splitbox", "rotate", "--connect", "/nowhere/socket"], b"");
    assert_refused(&nobody, 1, "/nowhere/socket: No such file or directory");
}
