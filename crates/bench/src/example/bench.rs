//! A test bench for one example: a router, the script, and the final balance.

use super::compare::side_by_side;
use super::ports::{self, INPUT, OUTPUT, REFUSAL};
use castanet_element::args::{FromArg, Names};
use castanet_element::class::Library;
use castanet_element::example::{Script, at};
use castanet_element::files::HandlerFiles;
use castanet_lang::{Diagnostics, FlatGraph, SourceMap, nearest, parse};
use castanet_packet::Batch;
use castanet_runtime::console::Console;
use castanet_runtime::graph::target::Target;
use castanet_runtime::router::{ConfigReader, HotSwapSource, Options, Router};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A console that keeps the lines that elements write.
#[derive(Default)]
struct Lines(Mutex<VecDeque<String>>);

impl Console for Lines {
    fn chatter(&self, lines: &str) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(lines.lines().map(str::to_owned));
    }
    fn print(&self, text: &str) {
        self.chatter(text);
    }
}

/// Runs one example with that many workers and bursts of that length.
pub fn run(text: &str, library: &Library, workers: usize, burst: usize) -> Result<(), String> {
    let script = Script::new(text);
    let mut bench = Bench::new(&script, library, workers, burst)?;
    for &(n, line) in &script.lines {
        bench.obey(line).map_err(|e| at(n, line, &e))?;
    }
    bench.finish()
}

/// Runs an example's script, right or wrong, and compares nothing: for fuzzers, which look for
/// panics, hangs and packets that are lost without a count. A configuration that cannot be built,
/// or a text that is no script, is no finding.
pub fn survive(text: &str, library: &Library, burst: usize) -> Result<(), String> {
    let mut parts = text.split("\n%\n").map(Script::new);
    let Some(script) = parts.next() else { return Ok(()) };
    let bench = Bench::within(&script, library, 1, burst, FOR_FUZZERS);
    let Ok(mut bench) = bench else { return Ok(()) };
    bench.obey_all(&script);
    for script in parts {
        // A refused configuration changes nothing; the script goes on with the one before.
        _ = bench.replace(&script);
        bench.obey_all(&script);
    }
    bench.audit()
}

/// Builds an example's configuration and drops it; an error says why it cannot be built.
pub(super) fn builds(text: &str, library: &Library) -> Result<(), String> {
    Bench::new(&Script::new(text), library, 1, 4)?.audit()
}

/// Feeds an example's configuration bursts of hostile packets instead of its own. No bytes may lead
/// to a panic or a hang. After each burst the packets of each element balance, and the packets that
/// came out have their headers within their bytes.
pub fn storm(text: &str, library: &Library, seed: u64, bursts: usize) -> Result<(), String> {
    let script = Script::new(text);
    let fed: Vec<(usize, &str, &str)> = script.fed().collect();
    let mut bench = Bench::new(&script, library, 1, 32)?;
    let mut hostile = super::hostile::Hostile::new(seed);
    for burst in 0..if fed.is_empty() { 0 } else { bursts } {
        // Elements need not mend wild offsets.
        hostile.has_wild_offsets = burst >= bursts - bursts / 4;
        let (n, name, sketch) = fed[burst % fed.len()];
        bench.waiting_for = bench.feeds.get(name).copied();
        let model = ports::build(sketch).map_err(|e| at(n, sketch, &e))?;
        for _ in 0..32 {
            let mut packet = hostile.packet(&model);
            if !packet.is_shared() {
                // As if from a device; a packet that is too long stays on the heap.
                packet.move_to(bench.router.pool());
            }
            bench.waiting.push(packet);
        }
        bench.flush();
        let bounds = if hostile.has_wild_offsets { Ok(()) } else { bench.bounds() };
        bench.balance().and(bounds).map_err(|e| format!("burst {burst}: {e}"))?;
        bench.seen.values_mut().for_each(VecDeque::clear);
        if burst % 8 == 7 {
            bench.router.advance(Duration::from_millis(300));
        }
    }
    drop(hostile);
    bench.audit()
}

pub(super) struct Bench {
    pub(super) router: Router,
    library: Library,
    lines: Arc<Lines>,
    feeds: BTreeMap<String, Target>,
    turn: usize,
    burst: usize,
    limits: Limits,
    waiting: Batch,
    waiting_for: Option<Target>,
    seen: BTreeMap<String, VecDeque<String>>,
}

/// Limits of the time that a router has to come to rest after a line.
#[derive(Clone, Copy)]
struct Limits {
    turns: usize,
    /// Turns at the end, and at each timer on the way, when time passes.
    turns_in_time: usize,
    /// Timers on the way.
    stops: usize,
}

/// Limits for examples.
const FOR_EXAMPLES: Limits = Limits { turns: 20_000, turns_in_time: 100_000, stops: usize::MAX };
/// Limits for texts of fuzzers, many of whose sources never rest.
const FOR_FUZZERS: Limits = Limits { turns: 200, turns_in_time: 200, stops: 10_000 };

impl Bench {
    pub(super) fn new(
        script: &Script,
        library: &Library,
        workers: usize,
        burst: usize,
    ) -> Result<Bench, String> {
        Bench::within(script, library, workers, burst, FOR_EXAMPLES)
    }

    fn within(
        script: &Script,
        library: &Library,
        workers: usize,
        burst: usize,
        limits: Limits,
    ) -> Result<Bench, String> {
        let mut library = library.clone();
        library.add(&INPUT);
        library.add(&OUTPUT);
        library.add(&REFUSAL);
        let (declarations, outputs) = script.ports(&library)?;
        let lines = Arc::new(Lines::default());
        let mut options = Options::new(lines.clone());
        (options.workers, options.burst) = (workers, burst);
        (options.simulated, options.frames) = (true, Some(4096));
        options.handler_files = HandlerFiles::any(Box::new(|_| ()));
        let mut router = build(&declarations, &script.config, &library, &options)?;
        let read = reader(library.clone());
        router.allow_replacements(HotSwapSource { library: library.clone(), options, read });
        let feeds = feeds(&router, script).ok_or("a feeding port is not connected")?;
        router.settle(limits.turns);
        Ok(Bench {
            router,
            library,
            lines,
            feeds,
            turn: 0,
            burst,
            limits,
            waiting: Batch::new(),
            waiting_for: None,
            seen: outputs.into_iter().map(|name| (name, VecDeque::new())).collect(),
        })
    }

    /// Replaces the running configuration.
    fn replace(&mut self, script: &Script) -> Result<(), String> {
        self.flush();
        let (declarations, outputs) = script.ports(&self.library)?;
        let text = format!("{declarations}\0{}", script.config);
        self.router.write("hotconfig", &text).map_err(|e| e.to_string())?;
        self.router.settle(self.limits.turns);
        self.feeds = feeds(&self.router, script).unwrap_or_default();
        self.waiting_for = None;
        self.seen = outputs.into_iter().map(|name| (name, VecDeque::new())).collect();
        Ok(())
    }

    /// Its classes.
    pub(super) fn library(&self) -> &Library {
        &self.library
    }

    /// Runs a script, and drops the packets that come out.
    fn obey_all(&mut self, script: &Script) {
        for (_, line) in &script.lines {
            _ = self.obey(line);
            self.seen.values_mut().for_each(VecDeque::clear);
        }
    }

    pub(super) fn obey(&mut self, line: &str) -> Result<(), String> {
        let rest = line[1..].trim();
        // A parameter in brackets may have blanks.
        let close = rest.find('(').and_then(|open| Some(open + rest[open..].find(')')?));
        let first = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let end = close.filter(|_| rest[..first].contains('(')).map_or(first, |close| close + 1);
        let (name, value) = (&rest[..end], rest[end..].trim_start());
        let value = value.trim();
        match line.as_bytes()[0] {
            b'>' => self.feed(name, value),
            b'<' => self.expect(name, value),
            b'=' => self.answer(name, value),
            b'!' => {
                self.flush();
                self.router.write(name, value).map_err(|e| e.to_string())?;
                self.router.settle(self.limits.turns);
                Ok(())
            }
            b'~' => self.expect_line(rest),
            _ => {
                self.flush();
                let time = Duration::from_arg(rest, &Names::default());
                let (time, limits) = (time.map_err(|e| e.to_string())?, self.limits);
                self.router.advance_within(time, limits.turns_in_time, limits.stops);
                Ok(())
            }
        }
    }

    fn feed(&mut self, name: &str, packet: &str) -> Result<(), String> {
        let target = self.feeds.get(name).copied();
        if self.waiting_for != target {
            self.flush();
        }
        self.waiting_for = target;
        self.waiting.push(ports::build(packet)?);
        if self.waiting.len() == self.burst {
            self.flush();
        }
        Ok(())
    }

    /// Pushes the waiting packets on the next worker in turn, and runs until everything rests.
    pub(super) fn flush(&mut self) {
        let batch = std::mem::take(&mut self.waiting);
        if let (Some(to), false) = (self.waiting_for, batch.is_empty()) {
            let workers: Vec<usize> = self.router.assigned().reaching(to.node).collect();
            if let Some(worker) = self.router.worker(workers[self.turn % workers.len()]) {
                worker.inject(to.node, to.port, batch);
            }
            self.turn += 1;
        }
        self.router.settle(self.limits.turns);
        for (name, seen) in &mut self.seen {
            let handler = format!("{name}.seen");
            let text = self.router.read(&handler).unwrap_or_default();
            seen.extend(text.lines().map(str::to_owned));
            _ = self.router.write(&format!("{name}.forget"), "");
        }
    }

    fn expect(&mut self, port: &str, want: &str) -> Result<(), String> {
        self.flush();
        match self.seen.get_mut(port).and_then(VecDeque::pop_front) {
            Some(got) => ports::compare(&got, want),
            None if self.seen.contains_key(port) => Err(self.missing(&ports::sketched(want)?.0)),
            None => {
                let names = || self.seen.keys().map(String::as_str);
                let near = nearest(port, names()).map(|near| format!("; did you mean `{near}`?"));
                let all = names().collect::<Vec<_>>().join(", ");
                let near = near.unwrap_or_default();
                Err(format!("no output is called `{port}`, only {all}{near}"))
            }
        }
    }

    /// The error that a packet did not come, with where it may have gone instead.
    fn missing(&mut self, expected: &str) -> String {
        let mut text = format!("  expected {expected}\n  got      nothing");
        for (port, seen) in &self.seen {
            seen.iter().for_each(|got| text += &format!("\n  but at {port} {got}"));
        }
        let dropped = self.router.read("drops").unwrap_or_default();
        dropped.lines().for_each(|line| text += &format!("\n  dropped: {line}"));
        text
    }

    fn answer(&mut self, handler: &str, want: &str) -> Result<(), String> {
        self.flush();
        // A parameter stands in brackets: `= rt.lookup(1.2.3.4) 0`.
        let handler = handler.replacen('(', " ", 1).replace(')', "");
        let got = self.router.read(&handler).map_err(|e| e.to_string())?;
        let got = got.trim_end().replace('\n', "\\n").replace('\t', "\\t");
        (got == want).then_some(()).ok_or_else(|| side_by_side(want, &got))
    }

    fn expect_line(&mut self, want: &str) -> Result<(), String> {
        self.flush();
        let mut lines = self.lines.0.lock().unwrap_or_else(PoisonError::into_inner);
        match lines.pop_front() {
            Some(got) if got.trim() == want => Ok(()),
            Some(got) => Err(side_by_side(want, got.trim())),
            None => Err(format!("  expected {want}\n  got      no line")),
        }
    }

    /// Checks that no output has more packets, and that the counters balance.
    fn finish(mut self) -> Result<(), String> {
        self.flush();
        match self.seen.iter().find(|(_, seen)| !seen.is_empty()) {
            Some((port, left)) => {
                Err(format!("after the last line\n  unexpected at {port}: {}", left[0]))
            }
            None => self.audit(),
        }
    }

    /// Checks that every element's packets balance: all that came in or were made have gone out,
    /// were dropped by name, or are kept.
    fn balance(&mut self) -> Result<(), String> {
        for it in 0..self.router.graph().elements.len() {
            let (counters, held) = (self.router.counters(it), self.router.held(it) as u64);
            let entered = counters.input + counters.made;
            let left = counters.output + counters.consumed + counters.lost() + held;
            if entered != left {
                let name = &self.router.graph().elements[it].name;
                return Err(format!(
                    "packets of {name} do not balance: {entered} in, {left} out ({counters:?}, \
                     {held} kept)"
                ));
            }
        }
        Ok(())
    }

    /// Checks that the packets that came out have their headers within their bytes.
    fn bounds(&mut self) -> Result<(), String> {
        for port in self.seen.keys() {
            let lines = self.router.read(&format!("{port}.out_of_bounds")).unwrap_or_default();
            if let Some(line) = lines.lines().next() {
                return Err(format!("out of bounds at {port}: {line}"));
            }
        }
        Ok(())
    }

    /// Checks that every element's packets balance, and that every frame has come back.
    pub(super) fn audit(mut self) -> Result<(), String> {
        self.flush();
        self.balance()?;
        let report = self.router.dismantle();
        match (report.leaked_frames, report.panics) {
            (0, 0) => Ok(()),
            (0, panics) => Err(format!("{panics} panics")),
            (frames, _) => Err(format!("{frames} frames did not come back to the pool")),
        }
    }
}

/// The targets of packets that a script feeds, by the names of their ports.
fn feeds(router: &Router, script: &Script) -> Option<BTreeMap<String, Target>> {
    let targets = script.fed().map(|(_, name, _)| {
        let node = router.graph().find(name)?;
        Some((name.to_owned(), router.graph().out_edges(node).next()?.to))
    });
    targets.collect()
}

/// A configuration with declarations of its ports; an error has all that is wrong with it.
pub(super) fn flatten(
    declarations: &str,
    config: &str,
    library: &Library,
) -> (FlatGraph, Diagnostics, SourceMap) {
    let mut sources = SourceMap::new();
    let file = sources.add("ports (without `>` lines they collect)", declarations);
    let (ports, mut found) = parse(&mut sources, file);
    let file = sources.add("example", config);
    let (mut tree, more) = parse(&mut sources, file);
    found.append(more);
    tree.body.splice(0..0, ports.body);
    let (flat, more) = library.expand(&tree);
    found.append(more);
    (flat, found, sources)
}

/// Reads what [`Bench::replace`] writes: declarations, a zero, a configuration.
fn reader(library: Library) -> ConfigReader {
    Box::new(move |text, build| {
        let (declarations, config) = text.split_once('\0').unwrap_or(("", text));
        let (flat, mut found, sources) = flatten(declarations, config, &library);
        if !found.has_errors() {
            build(&flat, &mut found);
        }
        match found.has_errors() {
            true => Err(found.render_rich(&sources, false)),
            false => Ok(()),
        }
    })
}

/// Builds an example's configuration, with declarations of its ports.
pub(super) fn build(
    declarations: &str,
    config: &str,
    library: &Library,
    options: &Options,
) -> Result<Router, String> {
    let (flat, mut found, sources) = flatten(declarations, config, library);
    let router = match found.has_errors() {
        true => None,
        false => Router::build(&flat, library, options, &mut found),
    };
    router.ok_or_else(|| found.render_rich(&sources, false))
}
