//! Shells: lines of a person, with completion and history.

use super::{CommandError, CommandResult};
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{CompletionType, Config, Editor, Helper};
use signal_hook::consts::SIGINT;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The step of a shell after a line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ShellStep {
    /// It reads the next one.
    Next,
    /// It ends, as the user wishes.
    Quit,
    /// It ends, because the other side has gone.
    Gone,
}

/// Talks with a person until `obey` says otherwise, or the input ends. `name` is the prompt, and the
/// name of the history file. `obey` gets a line, and what says that Ctrl-C was pressed while it is at
/// work; pressed twice, that ends the process.
pub(super) fn converse<H: Helper>(
    name: &str,
    helper: H,
    mut obey: impl FnMut(&str, &AtomicBool, &mut H) -> ShellStep,
) -> CommandResult {
    let (mut editor, stop) = ready(helper)?;
    let history = history(name);
    if let Some(path) = &history {
        // The first time there is none.
        _ = editor.load_history(path);
    }
    let prompt = format!("{name}> ");
    loop {
        match editor.readline(&prompt) {
            Ok(line) => {
                if !["", "quit", "exit"].contains(&line.trim()) {
                    _ = editor.add_history_entry(line.as_str());
                }
                if let Some(path) = &history {
                    // At once, however this ends; others may write there too.
                    _ = editor.append_history(path);
                }
                stop.store(false, Ordering::Relaxed);
                let Some(helper) = editor.helper_mut() else { return Ok(()) };
                // Pasted text may have several lines.
                for line in line.lines() {
                    match obey(line, &stop, helper) {
                        ShellStep::Next => {}
                        ShellStep::Quit => return Ok(()),
                        ShellStep::Gone => return Err(CommandError::REPORTED),
                    }
                }
            }
            Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => {}
            Err(_) => return Ok(()),
        }
    }
}

/// Waits; `false` if the user wishes to stop.
pub(super) fn pause(time: Duration, stop: &AtomicBool) -> bool {
    /// Interval at which Ctrl-C is polled.
    const STEP: Duration = Duration::from_millis(20);
    let began = Instant::now();
    while began.elapsed() < time {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        std::thread::sleep(STEP.min(time.saturating_sub(began.elapsed())));
    }
    !stop.load(Ordering::Relaxed)
}

/// Completes the word that ends at byte `at` of a line: where it begins, and its completions, of which
/// an only one has a space behind it, unless more of the word may follow. `candidates` gets the line
/// before the word, and the word.
pub(super) fn complete(
    line: &str,
    at: usize,
    candidates: impl FnOnce(&str, &str) -> Vec<String>,
) -> (usize, Vec<String>) {
    let before = line.get(..at).unwrap_or_default();
    let start = before.rfind(char::is_whitespace).map_or(0, |space| space + 1);
    let mut found = candidates(&before[..start], &before[start..]);
    if let [only] = &mut found[..]
        && !only.ends_with(['.', '/'])
    {
        only.push(' ');
    }
    (start, found)
}

/// An editor of lines, and what says that Ctrl-C was pressed while a command was at work.
fn ready<H: Helper>(helper: H) -> Result<(Editor<H, DefaultHistory>, Arc<AtomicBool>), String> {
    let config = Config::builder().completion_type(CompletionType::List).build();
    let mut editor = Editor::with_config(config).map_err(|error| error.to_string())?;
    // After the editor, which would have it for itself.
    let stop = Arc::new(AtomicBool::new(false));
    let twice = signal_hook::flag::register_conditional_shutdown;
    twice(SIGINT, crate::exit::INTERRUPTED, Arc::clone(&stop))
        .and_then(|_| signal_hook::flag::register(SIGINT, Arc::clone(&stop)))
        .map_err(|error| crate::load::io_error_text(&error))?;
    editor.set_helper(Some(helper));
    Ok((editor, stop))
}

/// Path of the history file.
fn history(name: &str) -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state"));
    let folder = state.or_else(home)?.join("castanet");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder.join(format!("{name}_history")))
}
