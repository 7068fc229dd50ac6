//! Numbers that nobody should write, as arguments and to handlers of every class: each is taken or
//! refused in words; none ends the process, and none makes an element panic.

// A panic hook has no other place for what it sees; time is what a clock says.
#![allow(clippy::unwrap_used, clippy::disallowed_types, clippy::disallowed_methods)]

use castanet_elements::{ROOMS, library};
use castanet_engine::class::{Class, Library, Role};
use castanet_engine::{example, memory};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const NUMBERS: &[&str] = &[
    "2147483647",
    "2147483648",
    "4294967295",
    "9223372036854775808",
    "18446744073709551615",
    "-1",
    "0",
];

/// In the environment of the child process: that it is the one that tries.
const CHILD: &str = "CASTANET_NUMBERS";
/// The memory that the child process may have, in bytes, beside the half of the free memory that a
/// number may ask for.
const MEMORY: u64 = 4 << 30;
const PATIENCE: Duration = Duration::from_secs(600);

/// An example without its waits: where packets come every nanosecond, a second is long, and where
/// a source makes them without an end, any time is.
fn example_of(class: &Class) -> Option<String> {
    let longest = example::blocks(class.spec.doc).max_by_key(|text| text.matches("\n>").count())?;
    let lines = longest.lines().filter(|line| class.role != Role::Source || !line.starts_with('+'));
    let line = |line: &str| if line.starts_with('+') { "+ 1us".into() } else { line.to_owned() };
    Some(lines.map(|it| line(it) + "\n").collect())
}

/// Where an element of the class is in a text: before its name, behind it, and its arguments.
fn place(text: &str, class: &str) -> Option<(usize, usize, Vec<String>, usize)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let alone = |at: usize| {
        let behind = text[at + class.len()..].chars().next();
        !text[..at].ends_with(is_name) && !behind.is_some_and(is_name)
    };
    let (start, _) = text.match_indices(class).find(|&(at, _)| alone(at))?;
    let end = start + class.len();
    let Some(inner) = text[end..].strip_prefix('(') else {
        return Some((start, end, Vec::new(), end));
    };
    let (mut args, mut depth, mut quoted) = (vec![String::new()], 0, false);
    for (at, c) in inner.char_indices() {
        quoted ^= c == '"';
        match c {
            '(' if !quoted => depth += 1,
            ')' if !quoted && depth == 0 => return Some((start, end, args, end + at + 2)),
            ')' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                args.push(String::new());
                continue;
            }
            _ => {}
        }
        args.last_mut()?.push(c);
    }
    None
}

/// The example with each argument in turn as each number.
fn with_arguments(class: &Class, text: &str, all: &mut Vec<String>) {
    let Some((_, end, args, behind)) = place(text, class.spec.class) else { return };
    let mut with = |args: &[String]| {
        all.push(format!("{}({}){}", &text[..end], args.join(", "), &text[behind..]));
    };
    for number in NUMBERS {
        for at in 0..args.len() {
            let mut changed = args.clone();
            changed[at] = match args[at].trim().split_once(' ') {
                Some((word, _)) if word.chars().all(|c| c.is_ascii_uppercase() || c == '_') => {
                    format!("{word} {number}")
                }
                _ => (*number).to_owned(),
            };
            with(&changed);
        }
        for spec in class.args {
            let is_there = |arg: &String| arg.trim().starts_with(&format!("{} ", spec.name));
            let mut more: Vec<_> = args.iter().filter(|arg| !is_there(arg)).cloned().collect();
            more.push(format!("{} {number}", spec.name));
            with(&more);
        }
    }
}

/// The example with each number written to each handler, its packets once more, and all reads.
fn with_writes(class: &Class, text: &str, all: &mut Vec<String>) {
    let Some((start, ..)) = place(text, class.spec.class) else { return };
    let named = text[..start].trim_end().strip_suffix("::");
    let word = named.and_then(|before| {
        before.trim_end().rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()
    });
    let (name, text) = match word {
        Some(name) => (name.to_owned(), text.to_owned()),
        None => ("tried".into(), format!("{}tried :: {}", &text[..start], &text[start..])),
    };
    let again: String = text
        .lines()
        .filter(|it| it.starts_with('>'))
        .fold(String::new(), |all, line| all + line + "\n");
    let reads = (class.reads)().into_iter().map(|doc| format!("= {name}.{} ?\n", doc.name));
    let reads: String = reads.collect();
    let live = class.args.iter().filter(|arg| arg.live).map(|arg| arg.name.to_lowercase());
    let writes = (class.writes)().into_iter().map(|doc| doc.name.trim_end_matches('_').to_owned());
    let wait = if class.role == Role::Source { "" } else { "+ 1us\n" };
    for handler in writes.chain(live) {
        for number in NUMBERS {
            let write = format!("! {name}.{handler} {number}\n");
            all.push(format!("{text}{write}{again}{wait}{reads}"));
        }
    }
}

/// The example that is being tried, for the message of a failure.
static TRIED: Mutex<String> = Mutex::new(String::new());
/// Texts that made something panic, by where.
static PANICS: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());

fn tried() -> String {
    TRIED.lock().unwrap().clone()
}

fn try_all(library: &Library) {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        PANICS.lock().unwrap().entry(place).or_insert_with(|| format!("{info}\n{}", tried()));
    }));
    let mut failures = Vec::new();
    for class in ROOMS.iter().flat_map(|(_, classes)| classes.iter()) {
        // It keeps a worker from its work for as long as it is told.
        if class.spec.class == "BlockThread" {
            continue;
        }
        let Some(text) = example_of(class) else { continue };
        let mut all = Vec::new();
        with_arguments(class, &text, &mut all);
        with_writes(class, &text, &mut all);
        let begun = Instant::now();
        for text in all {
            eprintln!("{}\0{text}", class.spec.class);
            TRIED.lock().unwrap().clone_from(&text);
            let done = std::panic::catch_unwind(|| example::survive(&text, library, 4));
            if let Ok(Err(error)) = done {
                failures.push(format!("{error}\n{text}"));
            }
        }
        if begun.elapsed() > Duration::from_secs(5) {
            println!("{}: {:?}", class.spec.class, begun.elapsed());
        }
    }
    let panics = PANICS.lock().unwrap();
    let panics: Vec<_> = panics.values().cloned().chain(failures).collect();
    assert!(panics.is_empty(), "{}", panics.join("\n\n"));
}

#[test]
fn numbers_end_nothing() {
    if std::env::var_os(CHILD).is_some() {
        return try_all(&library());
    }
    // The shell counts in kB.
    let memory = (MEMORY + memory::free() / 2) / 1024;
    // Where elements write files of such names.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("numbers");
    std::fs::create_dir_all(&folder).unwrap();
    let mut child = Command::new("sh")
        .current_dir(&folder)
        .args(["-c", &format!("ulimit -v {memory}; exec \"$0\" \"$@\"")])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "numbers_end_nothing", "--nocapture", "--test-threads", "1"])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let said = std::thread::spawn(move || {
        let mut text = Vec::new();
        out.read_to_end(&mut text).map(|_| String::from_utf8_lossy(&text).into_owned())
    });
    let tried = std::thread::spawn(move || {
        let mut text = Vec::new();
        err.read_to_end(&mut text).map(|_| String::from_utf8_lossy(&text).into_owned())
    });
    let start = Instant::now();
    let ended = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if start.elapsed() > PATIENCE {
            child.kill().unwrap();
            break None;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    std::fs::remove_dir_all(&folder).unwrap();
    let (said, tried) = (said.join().unwrap().unwrap(), tried.join().unwrap().unwrap());
    let last = tried.rfind('\0').map_or("", |at| &tried[at + 1..]);
    assert!(ended.is_some_and(|it| it.success()), "{ended:?}\n{said}\nlast tried:\n{last}");
}
