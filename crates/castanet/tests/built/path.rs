//! A router's path over a capture: packets and counts, the program's description of itself, and a hot
//! swap.

use crate::builds;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A router's path from a capture to a capture, with exits on the way.
const TEXT: &str = "
require(library sides.click)
FromDump($in, STOP true) -> c :: Classifier(12/0800, -);
c[0] -> p :: Paint(1) -> s :: Strip(14) -> i :: CheckIPHeader -> g :: GetIPAddress(16)
    -> r :: RadixIPLookup(0.0.0.0/0 0, 10.0.2.0/24 1);
c[1] -> other :: Counter -> Discard;
i[1] -> bad :: Counter -> Discard;
r[0] -> left :: Side -> a :: ToDump($out-left.pcap, ENCAP IP);
r[1] -> right :: Side -> b :: ToDump($out-right.pcap, ENCAP IP);
";

const SIDE: &str = "elementclass Side {
    input -> t :: DecIPTTL -> f :: CheckLength(1000) -> m :: Strip(0) -> n :: Counter -> output;
    t[1] -> expired :: Counter -> Discard; f[1] -> long :: Counter -> Discard
}";

/// Handlers that tell what happened to the packets.
const HANDLERS: [&str; 8] = [
    "other.count",
    "bad.count",
    "left/n.count",
    "right/n.count",
    "left/expired.count",
    "i.drops",
    "left/t.icounts",
    "b.count",
];

fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"))
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Builds the program.
fn built(folder: &Path) -> PathBuf {
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conf/sample.pcap");
    std::fs::write(folder.join("path.click"), TEXT).unwrap();
    std::fs::write(folder.join("sides.click"), SIDE).unwrap();
    let mut build = builds::command();
    build.args(["path.click", "-o", "program"]);
    build.arg(format!("in={}", capture.display())).arg("out=default");
    let done = output(&mut build);
    let errors = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{errors}");
    assert!(errors.contains("castanet: 1 chain of 12 elements "), "{errors}");
    // The program has its own texts.
    std::fs::write(folder.join("path.click"), "Idle -> Discard").unwrap();
    std::fs::remove_file(folder.join("sides.click")).unwrap();
    folder.join("program")
}

#[test]
fn a_built_program_is_the_same_program() {
    let folder = builds::folder();
    let (program, castanet) = (built(&folder), Path::new(env!("CARGO_BIN_EXE_castanet")));
    std::fs::write(folder.join("plain.click"), TEXT).unwrap();
    std::fs::write(folder.join("sides.click"), SIDE).unwrap();
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conf/sample.pcap");
    let input = format!("in={}", capture.display());
    let handlers: Vec<&str> = HANDLERS.iter().flat_map(|name| ["--handler", name]).collect();
    let run = |program: &Path, words: &[&str]| {
        let mut command = Command::new(program);
        text(&output(command.current_dir(&folder).args(words).args(&handlers)))
    };
    let plain = run(castanet, &["run", "-q", "plain.click", &input, "out=plain"]);
    std::fs::remove_file(folder.join("sides.click")).unwrap();
    assert_eq!(run(&program, &["-q"]), plain);
    assert_eq!(run(&program, &["run", "--quiet", "--burst", "3", "out=other"]), plain);
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    for side in ["left", "right"] {
        let [plain, default, other] =
            ["plain", "default", "other"].map(|name| read(&format!("{name}-{side}.pcap")));
        assert!(plain.len() > 100, "{side}");
        // In words, these would be thousands of numbers.
        assert!(default == plain && other == plain, "{side}");
    }
    says_what_it_is(&folder, &program);
    swaps(&folder, &program);
}

/// Its version, its steps and its errors.
fn says_what_it_is(folder: &Path, program: &Path) {
    let here = |words: &[&str]| output(Command::new(program).current_dir(folder).args(words));
    let version = text(&here(&["--version"]));
    assert!(version.contains(", built from path.click (hash "), "{version}");
    let steps = text(&here(&["explain"]));
    assert!(steps.starts_with("built from path.click (hash "), "{steps}");
    let chains = steps.rsplit("rows of elements that run as one pass").next().unwrap();
    assert!(chains.contains("c -> p -> s -> i -> g -> r\n"), "{chains}");
    assert!(chains.contains("left/t -> left/f -> left/m\n"), "{chains}");
    // An error about another value shows the text as it was.
    let wrong = here(&["check", "in=x", "nothing=1"]);
    let message = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(message.contains("the configuration has no variable 'nothing'"), "{message}");
    // By the name `click` it is click, with its configuration.
    let click = folder.join("click");
    _ = std::fs::remove_file(&click);
    std::os::unix::fs::symlink(program, &click).unwrap();
    let mut command = Command::new(&click);
    let count = text(&output(command.current_dir(folder).args(["-h", "left/n.count"])));
    assert!(count.trim().parse::<u64>().is_ok_and(|count| count > 0), "{count}");
}

/// A hot swap in the program to a text that has nothing to do with its own.
fn swaps(folder: &Path, program: &Path) {
    let text = "s :: Script(writeq hotconfig \"c :: Counter; t :: Script(wait 0, stop); \
                InfiniteSource(LIMIT 7) -> Paint(1) -> Strip(14) -> c -> Discard\")";
    let mut command = Command::new(program);
    command.current_dir(folder).args(["run", "-q", "-R", "-e", text, "--handler", "c.class"]);
    assert_eq!(self::text(&output(&mut command)), "Counter\n");
}
