//! What `Script` and `DriverManager` are: the language, at a desk.

use castanet_engine::class::{Change, Read};
use castanet_engine::prelude::*;
use castanet_kit::script::{End, FUNCTIONS, Machine, Program, State as Wait, World, call};

#[derive(Args)]
pub struct Instructions {
    /// What starts the program: `ACTIVE` itself, `PASSIVE` its `run` handler,
    /// `PROXY` any handler; `DRIVER` also decides what stop requests mean.
    #[arg(keyword, name = "TYPE")]
    kind: Option<Kind>,
    /// Instructions, in order.
    #[arg(rest)]
    instructions: Vec<Words>,
}

/// What starts a script.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Active,
    Passive,
    Proxy,
    Driver,
}

impl FromArg for Kind {
    const SYNTAX: &'static str = "ACTIVE, PASSIVE, PROXY or DRIVER";

    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        match text {
            "ACTIVE" => Ok(Kind::Active),
            "PASSIVE" => Ok(Kind::Passive),
            "PROXY" => Ok(Kind::Proxy),
            "DRIVER" => Ok(Kind::Driver),
            _ => Err(ArgError::new(format!("`{text}` is not {}", Self::SYNTAX))
                .click("bad TYPE; expected 'ACTIVE', 'PASSIVE', 'PROXY', or 'DRIVER'")),
        }
    }
}

/// A program and what starts it.
pub(super) struct Scripted {
    class: &'static str,
    kind: Kind,
    program: Program,
}

/// Where a script stands.
#[derive(Default)]
pub struct State {
    machine: Machine,
    begun: bool,
    /// Whether its end has been acted on.
    over: bool,
    seed: u64,
}

/// Handlers as the manual lists them; [`Scripted::call`] answers them.
const LISTED: [Read<State>; FUNCTIONS.len() + 1] = {
    const NONE: fn(&State, &Ask) -> Value = |_, _| Value::Text(String::new());
    let run = "The value that the program returns, called with these arguments.";
    let mut all = [const { Read { name: "run", doc: "", get: NONE } }; FUNCTIONS.len() + 1];
    all[FUNCTIONS.len()].doc = run;
    let mut n = 0;
    while n < FUNCTIONS.len() {
        (all[n].name, all[n].doc) = FUNCTIONS[n];
        n += 1;
    }
    all
};

impl Local for State {
    const READS: &'static [&'static [Read<Self>]] = &[&LISTED];
    const WRITES: &'static [&'static [Change<Self>]] = &[&[
        Change { name: "run", doc: "Runs the program with these arguments.", apply: |_, _| Ok(()) },
        Change { name: "step", doc: "Goes past what the program waits for.", apply: |_, _| Ok(()) },
        Change { name: "goto", doc: "Goes on at a label.", apply: |_, _| Ok(()) },
        Change { name: "set", doc: "Sets a variable to a value.", apply: |_, _| Ok(()) },
    ]];
}

impl Scripted {
    pub(super) fn new(
        class: &'static str,
        args: Instructions,
        usual: Kind,
    ) -> Result<Scripted, ArgError> {
        let kind = args.kind.unwrap_or(usual);
        let texts = args.instructions.iter().map(|words| words.text.as_str());
        let program = Program::parse(texts, kind == Kind::Driver).map_err(|mistakes| {
            let first = mistakes.into_iter().next();
            first.map_or(ArgError::new("wrong instructions"), |first| {
                let error =
                    ArgError::new(format!("instruction {}: {}", first.argument + 1, first.message))
                        .click(first.click);
                first.help.map_or(error.clone(), |help| error.help(help))
            })
        })?;
        Ok(Scripted { class, kind, program })
    }

    pub(super) fn drives(&self) -> bool {
        self.kind == Kind::Driver
    }

    pub(super) fn step(&self, state: &mut State, desk: &mut dyn Desk) -> Step {
        self.begin(state, desk);
        let is_blocked = matches!(state.machine.state(), Wait::Paused | Wait::Until(_));
        if is_blocked && self.drives() && desk.take_stop() {
            state.machine.step(1);
        }
        let waits_for_call = matches!(self.kind, Kind::Passive | Kind::Proxy);
        if !(waits_for_call && *state.machine.state() == Wait::Ready) {
            self.run(state, desk);
        }
        match (state.machine.state(), self.drives()) {
            (Wait::Paused, true) => Step::Stopped,
            (Wait::Until(time), true) => Step::AtOrStopped(Time(*time)),
            (Wait::Until(time), false) => Step::At(Time(*time)),
            (Wait::Paused | Wait::Ready, _) => Step::Prodded,
            (Wait::Done(_), _) => Step::Ended,
        }
    }

    fn begin(&self, state: &mut State, desk: &mut dyn Desk) {
        if !std::mem::replace(&mut state.begun, true) {
            state.seed = desk.now().0.unsigned_abs();
            let mut site = Site { class: self.class, seed: &mut state.seed, desk };
            state.machine.initialize(&self.program, &mut site);
        }
    }

    /// Runs on, and does what an end by `stop` asks for.
    fn run(&self, state: &mut State, desk: &mut dyn Desk) {
        let mut site = Site { class: self.class, seed: &mut state.seed, desk: &mut *desk };
        let ended = matches!(state.machine.run(&self.program, &mut site), Wait::Done(_));
        if !ended || std::mem::replace(&mut state.over, ended) {
            return;
        }
        match (state.machine.state(), self.drives()) {
            (Wait::Done(End::Stop), true) => desk.stop(0),
            (Wait::Done(End::Stop), false) => desk.request_stop(),
            _ => {}
        }
    }

    pub(super) fn call(
        &self,
        state: &mut State,
        handler: &str,
        text: &str,
        write: bool,
        desk: &mut dyn Desk,
    ) -> Option<Result<String, ArgError>> {
        self.begin(state, desk);
        let text = text.trim();
        match (handler, write) {
            ("step", true) => {
                let count = if matches!(text, "" | "router") { Ok(1) } else { text.parse() };
                let Ok(count) = count else { return Some(Err(ArgError::new("syntax error"))) };
                if matches!(state.machine.state(), Wait::Paused | Wait::Until(_)) {
                    state.machine.step(count);
                    self.run(state, desk);
                }
                return Some(Ok(String::new()));
            }
            ("goto", true) if !state.machine.jump(text, &self.program) => {
                return Some(Err(ArgError::new("jump to nonexistent label")));
            }
            ("goto", true) => {}
            ("set", true) => {
                let (variable, value) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
                state.machine.set(variable, value.trim());
                return Some(Ok(String::new()));
            }
            ("run", _) => state.machine.call(handler, text, write),
            _ => {
                let mut site = Site { class: self.class, seed: &mut state.seed, desk: &mut *desk };
                if !write {
                    if let Some(answer) = call(handler, text, &state.machine, &mut site) {
                        return Some(answer.map_err(ArgError::new));
                    }
                    if let Some(value) = state.machine.exported(handler) {
                        return Some(Ok(value.to_owned()));
                    }
                }
                if self.kind != Kind::Proxy {
                    return None;
                }
                state.machine.call(handler, text, write);
            }
        }
        state.over = false;
        self.run(state, desk);
        Some(match state.machine.state() {
            Wait::Done(End::Return(value)) => Ok(value.clone()),
            Wait::Done(End::Error(message)) => Err(ArgError::new(message.clone())),
            _ => Ok(String::new()),
        })
    }
}

/// The desk as the language sees it.
struct Site<'a> {
    class: &'static str,
    seed: &'a mut u64,
    desk: &'a mut dyn Desk,
}

impl World for Site<'_> {
    fn name(&self) -> &str {
        self.desk.name()
    }
    fn read(&mut self, handler: &str) -> Result<String, String> {
        self.desk.read(handler).map_err(|e| e.to_string())
    }
    fn write(&mut self, handler: &str, value: &str) -> Result<(), String> {
        self.desk.write(handler, value).map_err(|e| e.to_string())
    }
    fn exists(&mut self, handler: &str, write: bool) -> bool {
        self.desk.exists(handler, write)
    }
    fn now(&self) -> i64 {
        self.desk.now().0
    }
    /// SplitMix64: the same sequence every time under simulated time.
    fn random(&mut self) -> u64 {
        *self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (*self.seed ^ (*self.seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    fn process(&self) -> u32 {
        std::process::id()
    }
    fn print(&mut self, text: &str) {
        self.desk.print(text);
    }
    fn report(&mut self, text: &str) {
        self.desk.chatter(text);
    }
    fn complain(&mut self, message: &str) {
        let name = self.desk.name().to_owned();
        let context = format!("While executing '{name} :: {}':", self.class);
        self.desk.chatter(&format!("{context}\n  {message}\n"));
    }
    fn save(&mut self, file: &str, text: &str, append: bool) -> Result<(), String> {
        use std::io::Write;
        let mut options = std::fs::OpenOptions::new();
        let opened = options.create(true).write(true).append(append).truncate(!append).open(file);
        let saved = opened.and_then(|mut it| it.write_all(text.as_bytes()));
        saved.map_err(|e| format!("{file}: {e}"))
    }
    fn load(&mut self, file: &str) -> Result<String, String> {
        std::fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))
    }
}
