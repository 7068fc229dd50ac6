//! The shell of `castanet ctl NAME`: lines of standard input, and of a person on a terminal.

use super::{COUNTING, RuntimeFolder, ends_well, fails};
use crate::shell::{Shell, fresh};

const TAB: &str = "\t";
const ENTER: &str = "\r";
const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const PROMPT: &str = "castanet> ";

/// A shell on a terminal that is attached to the instance `one`.
fn attached(it: &RuntimeFolder, state: &str) -> Shell {
    let words = format!("ctl {}", it.socket("one").display());
    let mut shell = Shell::start(&words, &fresh(state));
    shell.sees(PROMPT);
    shell
}

/// Presses keys, and waits until something is seen and the next line can be typed.
fn says(shell: &mut Shell, keys: &str, text: &str) {
    shell.press(keys);
    shell.sees(text);
    shell.sees(PROMPT);
}

#[test]
fn lines_of_standard_input_are_commands() {
    let it = RuntimeFolder::new("pipe");
    let one = it.instance("one", COUNTING);
    let input = "# a comment\n\n  read   c.class  \nwrite q.capacity '12'\nread \"q.capacity\"\n\
                 read q.capacity --json\n";
    let result = it.client(&["ctl", "one"], input);
    let expected = "Counter\n12\n{\n  \"handler\": \"q.capacity\",\n  \"value\": \"12\"\n}\n";
    assert_eq!((result.status, result.out.as_str(), result.err.as_str()), (Some(0), expected, ""));
    // A quoted value keeps its blanks.
    let result =
        it.client(&["ctl", "one"], "write s.config \"LENGTH   61, RATE   999\"\nread s.rate\n");
    assert_eq!((result.status, result.out.as_str()), (Some(0), "999\n"), "{}", result.err);
    // `quit` ends, and what is behind it is not read; the last line may have no end.
    for quit in ["quit", "exit"] {
        let input = format!("read c.class\n{quit}\nread s.class");
        assert_eq!(it.client(&["ctl", "one"], &input).out, "Counter\n");
    }
    assert_eq!(it.client(&["ctl", "one"], "read s.class").out, "RatedSource\n");
    // All errors are told, and the lines behind them are commands all the same.
    let input = "read x.one\nraed y\nread \"open\nwrite q.capacity many\nread c.class\n";
    let result = it.client(&["ctl", "one"], input);
    fails(&result, 1, &["No element named 'x'", "raed", "is not closed", "invalid number"]);
    assert_eq!(result.out, "Counter\n");
    let result = it.client(&["ctl", "one"], "read \"open\nread x.one\n");
    assert_eq!(result.status, Some(2), "the status is that of the first error");
    // The router ends, and so does the shell.
    let result = it.client(&["ctl", "one"], "stop\n");
    assert_eq!((result.status, result.err.as_str()), (Some(0), ""));
    ends_well(one);
}

#[test]
fn a_router_that_ends_is_told_to_lines_of_standard_input() {
    let it = RuntimeFolder::new("pipe-gone");
    let mut one = it.instance("one", COUNTING);
    let mut client = it.command(&["ctl", "one"]).pipe_stdin().spawn().unwrap();
    client.write_line("read c.class").unwrap();
    client.wait_for("Counter\n", crate::control::PATIENCE).unwrap();
    one.kill();
    one.wait(crate::control::PATIENCE).unwrap();
    client.write_line("read c.class").unwrap();
    let output = client.finish(crate::control::PATIENCE).unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", output.printed());
    assert!(output.stderr.contains("the router has gone"), "{}", output.stderr);
}

#[test]
fn words_are_completed_on_a_terminal() {
    let it = RuntimeFolder::new("complete");
    let _one = it.instance("one", COUNTING);
    let mut shell = attached(&it, "ctl-complete");
    // One candidate is completed, with a space behind it.
    shell.press(&format!("ha{TAB}"));
    shell.sees("handlers ");
    shell.press(&format!("q{TAB}"));
    shell.sees("q ");
    says(&mut shell, ENTER, "capacity");
    // A handler of an element, and its value.
    shell.press(&format!("read q.cap{TAB}"));
    shell.sees("q.capacity ");
    says(&mut shell, ENTER, "\n7\r\n");
    shell.press(&format!("wri{TAB}"));
    shell.sees("write ");
    shell.press(&format!("q.cap{TAB}"));
    shell.sees("q.capacity ");
    shell.press(TAB);
    shell.sees("7 ");
    says(&mut shell, CTRL_C, "\n");
    // A handler of the router.
    shell.press(&format!("read element_c{TAB}"));
    shell.sees("element_cycles.csv ");
    says(&mut shell, ENTER, "name,class,");
    // Several: all of them.
    shell.press(&format!("re{TAB}{TAB}"));
    shell.sees("reload");
    shell.sees(PROMPT);
    shell.sees("re");
    says(&mut shell, CTRL_C, "\n");
    // A file.
    shell.press(&format!("reload {}/on{TAB}", it.0.display()));
    shell.sees("/one.click ");
    says(&mut shell, ENTER, "\n");
    says(&mut shell, &format!("info{ENTER}"), "hot swaps      1\r\n");
    says(&mut shell, &format!("read x.y{ENTER}"), "No element named 'x'");
    says(&mut shell, &format!("raed{ENTER}"), "unrecognized subcommand");
    says(&mut shell, &format!("help{ENTER}"), "List the running instances");
    shell.press(&format!("quit{ENTER}"));
    assert_eq!(shell.ends(), Some(0));
    // The instance goes on; the end of the input ends a shell as well.
    let mut shell = attached(&it, "ctl-complete");
    shell.press(CTRL_D);
    assert_eq!(shell.ends(), Some(0));
    assert_eq!(it.read("one", "c.class"), "Counter");
}

#[test]
fn elements_of_a_new_configuration_are_completed() {
    let it = RuntimeFolder::new("complete-new");
    let _one = it.instance("one", COUNTING);
    let mut shell = attached(&it, "ctl-new");
    it.write("one.click", &format!("{COUNTING} Idle -> newcomer :: Counter -> Discard;"));
    says(&mut shell, &format!("reload{ENTER}"), "\n");
    shell.press(&format!("read newc{TAB}"));
    shell.sees("newcomer.");
    shell.press(&format!("cla{TAB}"));
    shell.sees("class ");
    says(&mut shell, ENTER, "Counter");
    shell.press(&format!("quit{ENTER}"));
    assert_eq!(shell.ends(), Some(0));
}

#[test]
fn what_follows_is_ended_by_ctrl_c_and_the_shell_goes_on() {
    let it = RuntimeFolder::new("shell-follow");
    let _one = it.instance("one", COUNTING);
    let mut shell = attached(&it, "ctl-follow");
    shell.press(&format!("log --follow{ENTER}"));
    shell.sees("castanet: running");
    // A terminal discards what it has not shown yet when Ctrl-C is pressed.
    shell.sees("\n");
    shell.press(CTRL_C);
    shell.sees(PROMPT);
    says(&mut shell, &format!("read c.class{ENTER}"), "Counter");
    shell.press(CTRL_D);
    assert_eq!(shell.ends(), Some(0));
}

#[test]
fn a_router_that_ends_is_told_on_a_terminal() {
    let it = RuntimeFolder::new("shell-gone");
    let one = it.instance("one", COUNTING);
    let mut shell = attached(&it, "ctl-gone");
    says(&mut shell, &format!("read c.class{ENTER}"), "Counter");
    drop(one);
    shell.press(&format!("read c.class{ENTER}"));
    shell.sees("the router has gone");
    assert_eq!(shell.ends(), Some(1));
}
