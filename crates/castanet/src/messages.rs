//! Standard error. No thread waits for its reader while a router runs.

use castanet_element::streams::Stream;
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes of messages that may wait for their reader.
const ROOM: usize = 4 << 20;

/// Time after which the process ends although its reader has not taken the last messages.
const FAREWELL: Duration = Duration::from_millis(200);

/// Messages on their way to standard error.
struct Messages {
    stream: Stream,
    queue: Mutex<Queue>,
    /// Told whenever some of it has been written.
    progress: Condvar,
}

/// Messages that wait to be written.
#[derive(Default)]
struct Queue {
    waiting: VecDeque<u8>,
    /// Lines that found no room since the stream was last written.
    dropped: u64,
    /// Whether messages may wait here, rather than their writer for the reader.
    runs: bool,
    /// Whether a thread sees to what waits.
    is_drained: bool,
}

static MESSAGES: LazyLock<Messages> = LazyLock::new(|| {
    static ERROR: LazyLock<std::io::Stderr> = LazyLock::new(std::io::stderr);
    Messages {
        stream: Stream::new(ERROR.as_fd()),
        queue: Mutex::default(),
        progress: Condvar::new(),
    }
});

/// Writes text to standard error; while a router runs, without waiting for the reader.
pub(crate) fn write(text: &str) {
    MESSAGES.write(text);
}

/// Called when a router runs: from now on no thread waits until its message is written. That holds
/// for panic messages of the runtime too.
pub(crate) fn router_runs() {
    MESSAGES.queue().runs = true;
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("<unnamed>");
        crate::log::message(crate::log::Level::Error, &format!("thread '{name}' {panic}"));
    }));
}

/// Waits until the last messages are written, as long as their reader takes them.
pub(crate) fn finish() {
    MESSAGES.finish();
}

impl Messages {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&'static self, text: &str) {
        let mut queue = self.queue();
        if !queue.waiting.is_empty() {
            return queue.put(text.as_bytes(), text);
        }
        let rest = match queue.runs {
            true => self.write_some(text.as_bytes()),
            false => self.write_all(text.as_bytes()),
        };
        if rest.is_empty() {
            return;
        }
        queue.waiting.extend(rest);
        if !std::mem::replace(&mut queue.is_drained, true) {
            let thread = std::thread::Builder::new().name("messages".into());
            // Without a thread the next message tries again.
            queue.is_drained = thread.spawn(|| self.drain()).is_ok();
        }
    }

    /// Writes what goes at once; what is left. A reader that went away is no reason to stop.
    fn write_some<'t>(&self, mut text: &'t [u8]) -> &'t [u8] {
        while !text.is_empty() {
            match self.stream.try_write(text) {
                Ok(written) => text = &text[written..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return &[],
            }
        }
        text
    }

    /// Writes all, however long it takes.
    fn write_all<'t>(&self, mut text: &'t [u8]) -> &'t [u8] {
        loop {
            text = self.write_some(text);
            if text.is_empty() {
                return text;
            }
            self.stream.wait(None);
        }
    }

    /// Writes what waits, as its reader takes it.
    fn drain(&self) {
        loop {
            self.stream.wait(None);
            let mut queue = self.queue();
            let first = queue.waiting.as_slices().0;
            let written = first.len() - self.write_some(first).len();
            queue.waiting.drain(..written);
            self.progress.notify_all();
            if !queue.waiting.is_empty() {
                continue;
            }
            match std::mem::take(&mut queue.dropped) {
                0 => {
                    queue.is_drained = false;
                    return;
                }
                lines => queue.waiting.extend(dropped(lines).as_bytes()),
            }
        }
    }

    fn finish(&self) {
        let mut queue = self.queue();
        while queue.is_drained {
            let waited = self.progress.wait_timeout(queue, FAREWELL);
            let (next, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            if timeout.timed_out() {
                return;
            }
            queue = next;
        }
    }
}

impl Queue {
    /// Keeps a message, or counts it.
    fn put(&mut self, bytes: &[u8], text: &str) {
        match self.waiting.len() + bytes.len() <= ROOM {
            true => self.waiting.extend(bytes),
            false => self.dropped += text.lines().count() as u64,
        }
    }
}

fn dropped(lines: u64) -> String {
    format!("castanet: standard error was blocked; {lines} more lines were dropped\n")
}
