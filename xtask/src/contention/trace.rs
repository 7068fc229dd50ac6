//! The trace that lackey prints: the instructions and accesses of a program, and the thread that runs.

use super::lines::{Access, Lines};
use super::symbols::Mappings;
use std::collections::HashMap;
use std::io::BufRead;
use std::ops::Range;

/// One count: so many threads make bursts.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    pub(super) threads: usize,
    /// Bursts of each thread.
    pub(super) bursts: u64,
    /// Bursts of each thread before the count begins.
    pub(super) warm_up: u64,
}

/// The result of a count.
#[derive(Default)]
pub(super) struct Count {
    /// Bursts that were counted, of all threads.
    pub(super) bursts: u64,
    /// As if the turns of all threads ran at the same time.
    pub(super) lines: Lines,
    /// As if each turn had a lock.
    pub(super) in_turn: Lines,
    /// The process's memory at the end of the count.
    pub(super) mappings: Mappings,
}

/// Where the program lies in memory.
pub(super) struct Places {
    /// The first instruction of the function that is called before each burst.
    pub(super) mark: u64,
    /// The program's own instructions.
    pub(super) program: Range<u64>,
}

/// The reader of a trace.
pub(super) struct Reader {
    extents: std::vec::IntoIter<Extent>,
    now: Option<Extent>,
    /// Bursts begun, by thread.
    begun: HashMap<u32, u64>,
    /// Whether bursts are counted at present.
    counts: bool,
    count: Count,
    thread: u32,
    /// Instructions of the thread's turn, and the last one of the program.
    time: u32,
    code: u64,
    turn: Vec<Access>,
    /// Turns of different threads, which run together.
    turns: Vec<(u32, Vec<Access>)>,
    done: Vec<Count>,
    /// Lines that are no part of the trace.
    other: String,
}

impl Reader {
    /// A reader of counts that follow each other.
    pub(super) fn new(extents: Vec<Extent>) -> Reader {
        let mut extents = extents.into_iter();
        let now = extents.next();
        Reader {
            extents,
            now,
            begun: HashMap::new(),
            counts: false,
            count: Count::default(),
            thread: 0,
            time: 0,
            code: 0,
            turn: Vec::new(),
            turns: Vec::new(),
            done: Vec::new(),
            other: String::new(),
        }
    }

    /// Reads a trace to its end; returns the counts, and the lines that are no part of the trace.
    /// `look` is called once the program is in memory, and at the end of each count.
    pub(super) fn read(
        mut self,
        mut trace: impl BufRead,
        look: impl Fn() -> Result<(Mappings, Places), String>,
    ) -> Result<(Vec<Count>, String), String> {
        let mut places = None;
        let mut line = Vec::new();
        while trace.read_until(b'\n', &mut line).map_err(|e| e.to_string())? > 0 {
            if places.is_none() && line.starts_with(b"I ") {
                places = Some(look()?.1);
            }
            let done = self.done.len();
            self.line(&line, places.as_ref());
            for count in &mut self.done[done..] {
                count.mappings = look()?.0;
            }
            line.clear();
        }
        Ok((self.done, self.other))
    }

    fn line(&mut self, line: &[u8], places: Option<&Places>) {
        match line {
            [b'I', b' ', b' ', rest @ ..] => {
                let (Some((address, _)), Some(places)) = (numbers(rest), places) else { return };
                self.time += 1;
                if places.program.contains(&address) {
                    self.code = address;
                }
                if address == places.mark {
                    self.mark();
                }
            }
            [b' ', kind @ (b'L' | b'S' | b'M'), b' ', rest @ ..] if self.counts => {
                let Some((address, length)) = numbers(rest) else { return };
                let (time, code) = (self.time, self.code);
                self.turn.push(Access { time, writes: *kind != b'L', address, length, code });
            }
            [b' ', b'L' | b'S' | b'M', ..] => {}
            [b'-', b'-', ..] => self.schedule(&String::from_utf8_lossy(line)),
            [b'=', b'=', ..] => {}
            other => self.other += &String::from_utf8_lossy(other),
        }
    }

    /// A thread begins a burst.
    fn mark(&mut self) {
        let Some(extent) = self.now else { return };
        *self.begun.entry(self.thread).or_default() += 1;
        self.count.bursts += u64::from(self.counts);
        let are_all = self.begun.len() == extent.threads;
        let least = self.begun.values().copied().min().filter(|_| are_all).unwrap_or(0);
        if self.counts && self.begun.values().any(|&it| it == extent.bursts) {
            self.end_turns();
            self.counts = false;
        } else if !self.counts && self.count.bursts == 0 && least >= extent.warm_up {
            self.counts = true;
        }
        if least >= extent.bursts {
            self.done.push(std::mem::take(&mut self.count));
            self.begun.clear();
            self.now = self.extents.next();
        }
    }

    /// Another thread may have its turn.
    fn schedule(&mut self, line: &str) {
        let Some((_, rest)) = line.split_once("SCHED[") else { return };
        let Some((thread, what)) = rest.split_once(']') else { return };
        let Ok(thread) = thread.parse() else { return };
        if !what.contains("acquired lock") || thread == self.thread {
            return;
        }
        let turn = std::mem::take(&mut self.turn);
        if !turn.is_empty() {
            self.turns.push((self.thread, turn));
        }
        (self.thread, self.time) = (thread, 0);
        if self.turns.iter().any(|(it, _)| *it == thread) {
            self.run_turns();
        }
    }

    fn end_turns(&mut self) {
        let turn = std::mem::take(&mut self.turn);
        self.turns.push((self.thread, turn));
        self.run_turns();
    }

    fn run_turns(&mut self) {
        self.count.lines.run_together(&self.turns);
        self.count.in_turn.run_in_turn(&self.turns);
        self.turns.clear();
    }
}

/// Address and length, as `1ffeffe7a0,8`.
fn numbers(text: &[u8]) -> Option<(u64, u64)> {
    let mut address = 0;
    let mut digits = text.iter();
    for &digit in digits.by_ref() {
        if digit == b',' {
            let length = digits.as_slice().trim_ascii();
            return Some((address, std::str::from_utf8(length).ok()?.parse().ok()?));
        }
        address = address << 4 | u64::from((digit as char).to_digit(16)?);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    const MARK: u64 = 0x1000;

    /// A turn of a thread: the beginning of a burst, and then a write to an address.
    fn turn(trace: &mut String, thread: u32, written: u64) {
        _ = writeln!(trace, "--7--   SCHED[{thread}]:  acquired lock (VG_(client_syscall))");
        _ = writeln!(trace, "I  {MARK:08x},3\nI  00001003,4\n S {written:08x},8\nI  0fff0000,1");
        _ = writeln!(trace, "--7--   SCHED[{thread}]: releasing lock (yield) -> VgTs_Yielding");
    }

    fn read(trace: &str, extents: Vec<Extent>) -> (Vec<Count>, String) {
        let places = || Places { mark: MARK, program: 0x1000..0x2000 };
        let look = || Ok((Mappings::default(), places()));
        Reader::new(extents).read(trace.as_bytes(), look).unwrap()
    }

    #[test]
    fn bursts_after_the_warm_up_are_counted() {
        let mut trace = String::from("==7== Lackey\nan error\n");
        for address in [|_| 0x4000, |thread| 0x4000 + u64::from(thread) * 64] {
            for _ in 0..6 {
                (2..4).for_each(|thread| turn(&mut trace, thread, address(thread)));
            }
        }
        let extent = Extent { threads: 2, bursts: 6, warm_up: 2 };
        let (counts, other) = read(&trace, vec![extent; 2]);
        assert_eq!(other, "an error\n");
        assert_eq!(counts.iter().map(|count| count.bursts).collect::<Vec<_>>(), [7, 7]);
        // Three rounds in which both threads take the line, but for the first; then one has it still.
        assert_eq!(counts.iter().map(|it| it.lines.total()).collect::<Vec<_>>(), [5, 0]);
        assert!(counts[0].lines.transfers().all(|(it, _)| (it.code, it.line) == (0x1003, 0x4000)));
    }

    #[test]
    fn addresses_and_lengths_are_read() {
        assert_eq!(numbers(b"1ffeffe7a0,16\n"), Some((0x1f_feff_e7a0, 16)));
        assert_eq!(numbers(b"zz,1"), None);
    }
}
