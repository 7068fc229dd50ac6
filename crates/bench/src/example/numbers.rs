//! Extreme numbers as arguments and handler values of every class: each is accepted or refused with
//! an error; none ends the process or makes an element panic.

use super::bench::builds;
use super::survive;
use castanet_element::class::{Class, Library, Role};
use castanet_element::example::blocks;
use castanet_element::memory;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
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

/// Environment variable that marks the child process.
const CHILD: &str = "CASTANET_NUMBERS";
/// Memory of the child process in bytes, beside the half of the free memory that a number may take.
const MEMORY: u64 = 4 << 30;
const PATIENCE: Duration = Duration::from_secs(600);
/// File in the child process's folder with the example under test.
const TRIED: &str = "tried.click";

/// A test of elements with extreme numbers, in a child process: the test calls itself.
pub struct Numbers<'a> {
    /// Name of the test in its program.
    pub test: &'a str,
    /// Words before the child process's program, such as `unshare --net`.
    pub under: &'a [&'a str],
    /// A folder that is made for files that elements write under such names, and removed.
    pub folder: &'a Path,
    /// The classes that the examples use.
    pub library: &'a Library,
    /// The classes to try, each with an example that has an element of it.
    pub examples: Vec<(&'a Class, String)>,
}

/// The examples of a class without their waits: where packets come every nanosecond, a second is
/// long, and where a source never ends, any time is.
pub fn without_waits(class: &Class) -> impl Iterator<Item = String> + '_ {
    let stays = |line: &&str| class.role != Role::Source || !line.starts_with('+');
    let line =
        |line: &str| if line.starts_with('+') { "+ 1us\n".into() } else { format!("{line}\n") };
    blocks(class.spec.doc).map(move |text| text.lines().filter(stays).map(line).collect())
}

impl Numbers<'_> {
    /// Whether this is the child process.
    pub fn is_child(&self) -> bool {
        std::env::var_os(CHILD).is_some()
    }

    /// Tries every number as each argument and value of each handler; an error has all failures.
    /// The test calls this in the child process, too.
    pub fn end_nothing(&self) -> Result<(), String> {
        if self.is_child() {
            return self.try_all();
        }
        std::fs::create_dir_all(self.folder).map_err(|error| error.to_string())?;
        let ended = self.child().and_then(ChildOutput::of);
        // There is none if the process did not come so far.
        let last = std::fs::read_to_string(self.folder.join(TRIED)).unwrap_or_default();
        let removed = std::fs::remove_dir_all(self.folder);
        let ChildOutput { status, said } = ended.map_err(|error| error.to_string())?;
        removed.map_err(|error| error.to_string())?;
        if status.is_some_and(|it| it.success()) {
            return Ok(());
        }
        Err(format!("{status:?}\n{said}\nlast tried:\n{last}"))
    }

    /// The child process, with a limit to its memory.
    fn child(&self) -> io::Result<Child> {
        // The shell counts in kB.
        let memory = (MEMORY + memory::free() / 2) / 1024;
        Command::new("sh")
            .current_dir(self.folder)
            .args(["-c", &format!("ulimit -v {memory}; exec \"$@\""), "sh"])
            .args(self.under)
            .arg(std::env::current_exe()?)
            .args(["--exact", self.test, "--nocapture", "--test-threads", "1"])
            .env(CHILD, "1")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    }

    fn try_all(&self) -> Result<(), String> {
        let panics = Panics::default();
        panics.watch();
        let mut failures = Vec::new();
        for (class, example) in &self.examples {
            failures.extend(builds(example, self.library).err());
            let mut all = Vec::new();
            with_arguments(class, example, &mut all);
            with_words(class, example, &mut all);
            with_writes(class, example, &mut all);
            for text in all {
                std::fs::write(TRIED, &text).map_err(|error| error.to_string())?;
                panics.tried().clone_from(&text);
                let done = std::panic::catch_unwind(|| survive(&text, self.library, 4));
                if let Ok(Err(error)) = done {
                    failures.push(format!("{error}\n{text}"));
                }
            }
        }
        // The failures are reported with the usual panic hook.
        _ = std::panic::take_hook();
        failures.splice(0..0, panics.all());
        if failures.is_empty() { Ok(()) } else { Err(failures.join("\n\n")) }
    }
}

/// Texts that made an element panic, by position, and the text under test.
#[derive(Clone, Default)]
struct Panics {
    tried: Arc<Mutex<String>>,
    by_place: Arc<Mutex<BTreeMap<String, String>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Panics {
    /// Records all panics of this process from now on.
    fn watch(&self) {
        let it = self.clone();
        std::panic::set_hook(Box::new(move |info| {
            let place = info.location().map(ToString::to_string).unwrap_or_default();
            let said = || format!("{info}\n{}", it.tried());
            lock(&it.by_place).entry(place).or_insert_with(said);
        }));
    }

    fn tried(&self) -> MutexGuard<'_, String> {
        lock(&self.tried)
    }

    fn all(&self) -> Vec<String> {
        lock(&self.by_place).values().cloned().collect()
    }
}

/// End of the child process, and its output.
struct ChildOutput {
    /// Its exit status; `None` if it had to be killed.
    status: Option<ExitStatus>,
    said: String,
}

impl ChildOutput {
    /// Waits until the child process ends, or its time is over.
    fn of(mut child: Child) -> io::Result<ChildOutput> {
        let said = [read_all(child.stdout.take()), read_all(child.stderr.take())];
        let start = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break Some(status);
            }
            if start.elapsed() > PATIENCE {
                child.kill()?;
                child.wait()?;
                break None;
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        let said = said.map(|reader| reader.join().unwrap_or_default()).concat();
        Ok(ChildOutput { status, said: String::from_utf8_lossy(&said).into_owned() })
    }
}

/// Reads a pipe to its end, beside what else is done.
fn read_all(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // The bytes before an error are enough.
        _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        bytes
    })
}

/// Position of an element of the class in a text: before its name, behind it, and its arguments.
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

/// The example with each number in place of each number among the words of an argument, or of a
/// value that is written to a handler.
fn with_words(class: &Class, text: &str, all: &mut Vec<String>) {
    let arguments = place(text, class.spec.class).map_or(0..0, |(_, end, _, behind)| end..behind);
    let (mut at, mut writes) = (0, Vec::new());
    for line in text.split_inclusive('\n') {
        writes.extend(line.starts_with('!').then_some(at..at + line.len()));
        at += line.len();
    }
    for range in std::iter::once(arguments).chain(writes) {
        for place in numbers_in(&text[range.clone()]) {
            let (start, end) = (range.start + place.start, range.start + place.end);
            let with = |number| format!("{}{number}{}", &text[..start], &text[end..]);
            all.extend(NUMBERS.iter().map(with));
        }
    }
}

/// Positions of numbers in a text that are no part of addresses and names.
fn numbers_in(text: &str) -> Vec<Range<usize>> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '_');
    let (mut found, mut begun) = (Vec::new(), None);
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match (begun, is_word(c)) {
            (None, true) => begun = Some(at),
            (Some(start), false) => {
                let is_number = text[start..at].bytes().all(|byte| byte.is_ascii_digit());
                found.extend(is_number.then_some(start..at));
                begun = None;
            }
            _ => {}
        }
    }
    found
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
