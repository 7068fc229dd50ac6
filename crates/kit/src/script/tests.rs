//! Tests of scripts in an environment with a few handlers.

use super::*;
use std::collections::BTreeMap;

/// An environment whose handlers are entries of a map, and which records its output.
#[derive(Default)]
struct TestEnvironment {
    handlers: BTreeMap<String, String>,
    files: BTreeMap<String, String>,
    now: i64,
    out: String,
    err: String,
    is_stopping: bool,
}

impl Environment for TestEnvironment {
    fn name(&self) -> &str {
        "s"
    }
    fn label(&self) -> String {
        "s :: Script".into()
    }
    fn full_name(&self, handler: &str) -> String {
        handler.into()
    }
    fn steady(&self) -> i64 {
        self.now
    }
    fn kill(&mut self, process: i32, signal: i32) -> Result<(), String> {
        self.out += &format!("{process} gets {signal}\n");
        if process == 1 { Err("Operation not permitted".into()) } else { Ok(()) }
    }
    fn read(&mut self, handler: &str) -> Result<String, String> {
        self.handlers.get(handler).cloned().ok_or_else(|| format!("no handler '{handler}'"))
    }
    fn write(&mut self, handler: &str, value: &str) -> Result<(), WriteError> {
        let message = format!("no handler '{handler}'");
        let slot = self.handlers.get_mut(handler).ok_or(WriteError { message, status: -1 })?;
        value.clone_into(slot);
        Ok(())
    }
    fn exists(&mut self, handler: &str, _: bool) -> bool {
        let own = handler.strip_prefix("s.");
        let is_function = |name| FUNCTIONS.iter().any(|(function, _)| *function == name);
        self.handlers.contains_key(handler) || own.is_some_and(is_function)
    }
    fn now(&self) -> i64 {
        self.now
    }
    fn random(&mut self) -> u32 {
        1_234_567_890
    }
    fn peek(&self) -> i64 {
        self.now
    }
    fn process(&self) -> u32 {
        42
    }
    fn print(&mut self, text: &str) {
        self.out += text;
    }
    fn report(&mut self, text: &str) {
        self.err += text;
    }
    fn report_error(&mut self, message: &str) {
        self.err += &format!("! {message}\n");
    }
    fn errors(&self) -> usize {
        self.err.matches("! ").count()
    }
    fn request_stop(&mut self) {
        self.is_stopping = true;
    }
    fn is_stopping(&self) -> bool {
        self.is_stopping
    }
    fn save(&mut self, file: &str, text: &str, append: bool) -> Result<(), String> {
        let slot = self.files.entry(file.into()).or_default();
        if !append {
            slot.clear();
        }
        *slot += text;
        Ok(())
    }
    fn load(&mut self, _: &str, file: &str) -> Result<String, String> {
        self.files.get(file).cloned().ok_or_else(|| format!("no file {file}"))
    }
}

fn environment() -> TestEnvironment {
    let handlers = [("c.count", "0"), ("c.reset", ""), ("list", "2\na\nb\n")];
    let handlers = handlers.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    TestEnvironment { handlers, ..TestEnvironment::default() }
}

fn parse(lines: &[&str]) -> Program {
    Program::parse(lines.iter().copied(), false).unwrap()
}

/// Runs a script until it blocks or ends; its output, errors and state.
fn run(lines: &[&str]) -> (String, String, State) {
    let (program, mut env, mut interp) = (parse(lines), environment(), Interpreter::default());
    interp.initialize(&program, &mut env);
    let state = interp.run(&program, &mut env).clone();
    (env.out, env.err, state)
}

fn assert_prints(lines: &[&str], expected: &str) {
    let (out, err, _) = run(lines);
    assert_eq!((out.as_str(), err.as_str()), (expected, ""), "{lines:?}");
}

#[test]
fn quotes_are_kept_or_removed_as_documented() {
    assert_prints(&["set x $(c.count)", "print $x"], "0\n");
    assert_prints(&["set x \"$(c.count)\"", "print $x"], "\"0\"\n");
    assert_prints(&["setq x \"$(c.count)\"", "print $x"], "0\n");
    assert_prints(&["print c.count"], "0\n");
    assert_prints(&["print \"c.count\""], "c.count\n");
    assert_prints(&["print '\"c.count\"'"], "\"c.count\"\n");
    assert_prints(&["set x c.count", "print $x", "print $($x)"], "c.count\n0\n");
    assert_prints(&["print '$x'", "print \"a\\$b\"", "print $unknown"], "$x\na$b\n$unknown\n");
    assert_prints(&["set x a\"b", "print \"<$x>\" ${x}"], "<a\"b> a\"b\n");
}

#[test]
fn loops_and_the_jump_limit() {
    let count = [
        "set x 0",
        "label again",
        "printn $x",
        "set x $(add $x 1)",
        "goto again $(lt $(s.mul $x 1) 5)",
        "print",
        "print list",
    ];
    assert_prints(&count, "01234\n2\na\nb\n");
    let (_, err, state) = run(&["loop"]);
    assert_eq!(
        (err.as_str(), state),
        ("s :: Script: too many jumps, giving up\n", State::Done(ExitReason::Exit))
    );
}

#[test]
fn values_variables_and_nesting_are_limited() {
    let doubling = ["set x 0123456789", "label again", "set x $x$x", "goto again"];
    let (_, err, state) = run(&doubling);
    let message = "a value would be longer than 1048576 bytes";
    assert_eq!(err, format!("! {message}\n"));
    assert_eq!(state, State::Done(ExitReason::Error(message.into())));
    // The variables together are limited, too.
    let mut interp = Interpreter::default();
    let value = "x".repeat(MAX_VALUE_LEN);
    let stored = (0..100).filter(|n| interp.set(&format!("x{n}"), &value).is_ok()).count();
    assert_eq!(stored, 15);
    assert!(interp.set("x0", "").is_ok() && interp.set("y", &value).is_ok());
    assert!(interp.set("z", &(value + "x")).unwrap_err().contains("1048576"));
    // The nesting of calls is limited, too.
    let deep = format!("print {}1{}", "$(first ".repeat(100_000), ")".repeat(100_000));
    let (_, err, _) = run(&[&deep]);
    assert!(err.contains("more than 64 calls in one another"), "{err:.200}");
}

#[test]
fn reads_writes_and_their_status() {
    let (out, err, _) = run(&["read c.count", "write c.reset now", "print $?", "print c.reset"]);
    assert_eq!((out.as_str(), err.as_str()), ("0\nnow\n", "c.count:\n0\n"));
    let (out, err, _) = run(&["write d.reset", "print $?", "print d.count", "goto end maybe"]);
    assert_eq!(out, "-1\n");
    assert_eq!(err, "! no handler 'd.reset'\n! no handler 'd.count'\n! bad condition 'maybe'\n");
}

#[test]
fn waits_for_time_and_steps() {
    let program = parse(&["pause 2", "wait $(add 0.5 1)", "print 'over'", "wait 10ms", "stop"]);
    let (mut env, mut interp) = (environment(), Interpreter::default());
    assert_eq!(interp.run(&program, &mut env), &State::Paused);
    interp.step(1);
    assert_eq!(interp.run(&program, &mut env), &State::Paused);
    interp.step(1);
    assert_eq!(interp.run(&program, &mut env), &State::Until(1_500_000_000));
    env.now = 1_000_000_000;
    assert_eq!(interp.run(&program, &mut env), &State::Until(1_500_000_000));
    env.now = 1_500_000_000;
    assert_eq!(interp.run(&program, &mut env), &State::Until(1_510_000_000));
    interp.step(1);
    assert_eq!(interp.run(&program, &mut env), &State::Done(ExitReason::Stop));
    assert!(interp.jump("begin", &program));
    assert_eq!(interp.run(&program, &mut env), &State::Paused);
    assert!(!interp.jump("nowhere", &program));
}

#[test]
fn calls_have_arguments_and_values() {
    let program =
        parse(&["goto no $(ne $# 2)", "returnq \"$2 $0 $write\"", "label no", "error few"]);
    let (mut env, mut interp) = (environment(), Interpreter::default());
    interp.call("run", "a \"b c\"", false);
    let value = State::Done(ExitReason::Return("\"b c\" run false".into()));
    assert_eq!(interp.run(&program, &mut env), &value);
    interp.call("run", "a", false);
    assert_eq!(interp.run(&program, &mut env), &State::Done(ExitReason::Error("few".into())));
    assert_eq!(env.err, "! few\n");
}

#[test]
fn prints_to_files_and_exports() {
    let lines = ["init x 1", "export y $x", "print >f $x", "print >>f \"2\"", "append list f"];
    let (program, mut env, mut interp) = (parse(&lines), environment(), Interpreter::default());
    interp.initialize(&program, &mut env);
    interp.run(&program, &mut env);
    assert_eq!(env.files["f"], "1\n2\n2\na\nb\n");
    assert_eq!((interp.exported("y"), interp.exported("x")), (Some("1"), None));
    assert_eq!(call("cat", "f", &mut interp, &mut env), Some(Ok("1\n2\n2\na\nb\n".into())));
}

#[test]
fn functions() {
    for (text, expected) in [
        ("add 10 5 2", "17"),
        ("sub 10 5 2", "3"),
        ("mul 2 0.5", "1"),
        ("div 7 2", "3.5"),
        ("idiv 7 2", "3"),
        ("div 1 3", "0.333333333333"),
        ("mul 1e10 1e10", "1e+20"),
        ("mod 7 3", "1"),
        ("rem 7.5 2", "1.5"),
        ("neg 5", "-5"),
        ("abs -5.5", "5.5"),
        ("min 5 10 2", "2"),
        ("max 5 10 2", "10"),
        ("avg 5 10 3", "6"),
        ("count 5 0 2", "3"),
        ("popcount 5 0 2", "2"),
        ("gt_vec 5 0 2 7", "1"),
        ("eq 10 0xA", "true"),
        ("le 9 8", "false"),
        ("eq 10x 10x", "true"),
        ("lt a b", "true"),
        ("ge 2.5 2.5", "true"),
        ("not false", "true"),
        ("and true 1", "true"),
        ("or false 0", "false"),
        ("nand true true", "false"),
        ("nor false", "true"),
        ("if true a b", "a"),
        ("in foo bar foo", "true"),
        ("first x y", "x"),
        ("length abcde", "5"),
        ("unquote \"a b\"", "a b"),
        (
            "sprintf \"%05x|%-4d|%+d|%s|%%|%.3s|%#o\" 127 5 6 \"a b\" abcd 8",
            "0007f|5   |+6|a b|%|abc|010",
        ),
        ("sprintf \"%*d\" 4 7", "   7"),
        ("random 5", "2"),
        ("random 10 12", "11"),
        ("readable c.count list", "true"),
        ("writable nothing", "false"),
        ("now", "0.000000"),
        ("now_steady", "0.000000"),
        ("add", "0"),
        ("min", "1"),
        ("add 1 0x10 -2", "15"),
        ("add 1 2.5", "3.5"),
        ("div 1 0", "inf"),
        ("avg 1 2", "1.5"),
        ("rem -7 2", "-1"),
        ("ceil 2.1", "3"),
        ("floor -2.1", "-3"),
        ("round 2.5", "3"),
        ("round -2.5", "-3"),
        ("ceil -7", "-7"),
        ("eq 1.0 1", "true"),
        ("lt 10 9x", "true"),
        ("ne a 'a'", "false"),
        ("or true maybe", "true"),
        ("and", "true"),
        ("nor", "true"),
        ("nand true false maybe", "true"),
        ("if 0 a", ""),
        ("if yes a b c", "a"),
        ("in a", "false"),
        ("in 'a b' c \"a b\"", "true"),
        ("sprintf \"%hd %hu\" 65537 65537", "1 1"),
        (
            "sprintf \"%x %lx %qu\" 0xffffffffffffffff 16 18446744073709551615",
            "ffffffffffffffff 10 18446744073709551615",
        ),
        ("sprintf \"%.d|%5.2d|%-5s|%c\" 3 4 ab", "syntax error"),
        ("sprintf \"%.d|%5.2d|%-5s|% d\" 3 4 ab 5", "3|   04|ab   | 5"),
        ("htons 1", "256"),
        ("ntohl 0x01020304", "67305985"),
        ("htonl 0x10000000000", "0"),
        ("kill 0", ""),
    ] {
        let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
        let answer = call(name, rest, &mut Interpreter::default(), &mut environment());
        match expected {
            "syntax error" => assert_eq!(answer, Some(Err(expected.to_owned())), "{text}"),
            _ => assert_eq!(answer, Some(Ok(expected.to_owned())), "{text}"),
        }
    }
    for text in ["add 1 x", "mod 1 0", "eq 1", "not maybe", "sprintf %d", "random 0"] {
        let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
        assert!(
            call(name, rest, &mut Interpreter::default(), &mut environment()).unwrap().is_err(),
            "{text}"
        );
    }
    assert!(FUNCTIONS.iter().all(|(name, _)| {
        call(name, "", &mut Interpreter::default(), &mut environment()).is_some()
    }));
    assert_eq!(call("nonsense", "", &mut Interpreter::default(), &mut environment()), None);
}

#[test]
fn function_errors_are_those_of_click() {
    for (text, expected) in [
        ("add 1 x", "expected list of numbers"),
        ("mod 1.5 2", "expected two numbers"),
        ("mod 1", "expected two numbers"),
        ("rem a b", "expected two numbers"),
        ("neg", "expected one number"),
        ("ceil x", "expected one number"),
        ("eq 1", "expected two numbers"),
        ("eq 1 2 3", "expected two numbers"),
        ("not true true", "syntax error"),
        ("and true maybe", "syntax error"),
        ("if maybe a b", "syntax error"),
        ("random 0", "bad N"),
        ("random 3 2", "bad N"),
        ("random -1 2", "bad N"),
        ("sprintf %d x", "syntax error"),
        ("sprintf %u -1", "syntax error"),
        ("sprintf %d 1 2", "syntax error"),
        ("htons x", "syntax error"),
        ("cat", "bad FILE"),
        ("kill FOO 1", "bad SIGNO"),
        ("kill 33 1", "bad SIGNO"),
        ("kill INT x", "bad PID"),
        ("kill TERM 1", "kill(1, 15): Operation not permitted"),
        ("get", "no variable"),
        ("get x", "undefined variable 'x'"),
        ("get x y", "too many arguments"),
    ] {
        let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
        let answer = call(name, rest, &mut Interpreter::default(), &mut environment());
        assert_eq!(answer, Some(Err(expected.to_owned())), "{text}");
    }
}

#[test]
fn arguments_can_be_shifted() {
    let program = parse(&[
        "set list 'a b' c",
        "print $(shift)/$(shift args)/$args/$#",
        "print $(shift list)/$list",
        "return $(get args)",
    ]);
    let (mut env, mut interp) = (environment(), Interpreter::default());
    interp.call("run", "1 \"2 3\" 4 5", false);
    let value = State::Done(ExitReason::Return("4 5".into()));
    assert_eq!(interp.run(&program, &mut env), &value);
    assert_eq!((env.out.as_str(), env.err.as_str()), ("1/\"2 3\"/4 5/2\n'a b'/c\n", ""));
    // A variable of that name hides them from all.
    let program = parse(&["set args x y z", "print $(shift)/$args", "return $(get args)/$#/$1"]);
    let (mut env, mut interp) = (environment(), Interpreter::default());
    interp.call("run", "1 2", false);
    let value = State::Done(ExitReason::Return("y z/2/1".into()));
    assert_eq!(interp.run(&program, &mut env), &value);
    assert_eq!((env.out.as_str(), env.err.as_str()), ("x/y z\n", ""));
}

#[test]
fn a_script_executes_its_own_handlers_in_place() {
    let lines = [
        "init n 0",
        "write set n $(add $n 1)",
        "write s.goto over $(ge $n 3)",
        "goto more $(lt $n 3)",
        "write goto over",
        "print 'never'",
        "label over",
        "write step 2",
        "pause 2",
        "print $n $?",
        "write goto nowhere",
        "print $?",
        "write step x",
        "end",
        "label more",
        "loop",
    ];
    let (out, err, state) = run(&lines);
    // `goto` takes its whole value, blanks included, as the label.
    assert_eq!(state, State::Done(ExitReason::End), "{out}{err}");
    assert_eq!(out, "3 0\n-1\n");
    assert!(err.ends_with("! jump to nonexistent label\n! syntax error\n"), "{err}");
}

#[test]
fn handler_errors_are_reported_with_the_call() {
    let (out, err, _) = run(&["print add 1 x", "printn $(add 1 x)", "read mod 1", "read add 1 2"]);
    // A function that fails has no value; a handler that does not exist stays in the text.
    assert_eq!(out, "");
    assert_eq!(run(&["printn <$(add 1 x)$(x.y)>"]).0, "<$(x.y)>");
    assert_eq!(
        err,
        "! While calling 's.add 1 x':\n  expected list of numbers\n\
         ! expected list of numbers\n\
         ! While calling 's.mod 1':\n  expected two numbers\n\
         s.add:\n3\n"
    );
}

#[test]
fn errors_are_found_before_the_script_runs() {
    let lines = ["wiat 1s", "wait", "goto lop", "label loop1", "wait x", "stop now", "set x"];
    let errors = Program::parse(lines, false).unwrap_err();
    let shown: Vec<_> = errors.iter().map(|m| (m.argument, m.click.as_str())).collect();
    assert_eq!(
        shown,
        [
            (0, "syntax error at 'wiat'"),
            (4, "syntax error at 'wait'"),
            (5, "syntax error at 'stop'"),
            (6, "syntax error at 'set'"),
            (2, "no such label 'lop'"),
        ]
    );
    assert_eq!(errors[0].help.as_deref(), Some("did you mean 'wait'?"));
}

#[test]
fn a_driver_waits_for_one_stop_and_stops() {
    let program = Program::parse([], true).unwrap();
    let (mut env, mut interp) = (environment(), Interpreter::default());
    assert_eq!(interp.run(&program, &mut env), &State::Paused);
    interp.step(1);
    assert_eq!(interp.run(&program, &mut env), &State::Done(ExitReason::Stop));
}
