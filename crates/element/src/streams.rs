//! The process's standard streams, written so that a reader that stopped reading does not block the
//! process for ever.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, LineWriter, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that a pipe, a terminal or a socket takes at once if it takes any.
const PIECE: usize = 256;

/// A descriptor that the process shares with other processes, whose mode it therefore must not change.
pub struct Stream {
    shared: BorrowedFd<'static>,
    mode: WriteMode,
}

/// How a stream is written without waiting.
enum WriteMode {
    /// A file takes what it gets.
    AtOnce,
    /// By another descriptor of the same pipe or terminal, which is the process's own.
    Apart(File),
    /// In small pieces, once it is known to take some.
    InPieces,
}

impl Stream {
    /// A standard stream.
    pub fn new(shared: BorrowedFd<'static>) -> Stream {
        use std::os::fd::AsRawFd;
        let path = format!("/proc/self/fd/{}", shared.as_raw_fd());
        let kind = std::fs::metadata(&path).map(|it| it.file_type());
        let mode = match kind {
            Ok(kind) if kind.is_file() => WriteMode::AtOnce,
            Ok(kind) if kind.is_fifo() || kind.is_char_device() => {
                let flags = nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY;
                let own = OpenOptions::new().write(true).custom_flags(flags).open(&path);
                own.map_or(WriteMode::InPieces, WriteMode::Apart)
            }
            _ => WriteMode::InPieces,
        };
        Stream { shared, mode }
    }

    /// Writes as many bytes as the stream takes at once; an error of the kind `WouldBlock` if it takes none.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let shared = |bytes: &[u8]| Ok(nix::unistd::write(self.shared, bytes)?);
        match &self.mode {
            WriteMode::AtOnce => shared(bytes),
            WriteMode::Apart(own) => (&*own).write(bytes),
            WriteMode::InPieces if self.wait(Some(Duration::ZERO)) => {
                shared(&bytes[..bytes.len().min(PIECE)])
            }
            WriteMode::InPieces => Err(ErrorKind::WouldBlock.into()),
        }
    }

    /// Waits until the stream takes bytes, at most so long; returns whether it does.
    pub fn wait(&self, longest: Option<Duration>) -> bool {
        let timeout = longest.map_or(PollTimeout::NONE, |time| {
            PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX)
        });
        let mut fds = [PollFd::new(self.shared.as_fd(), PollFlags::POLLOUT)];
        // An interrupted poll says nothing.
        poll(&mut fds, timeout).is_ok_and(|ready| ready > 0)
    }
}

/// Standard output, for data: a writer waits for the reader, until the process is to end
/// ([`interrupt`]).
pub struct StandardOutput;

/// The standard output of all threads, line by line.
static OUTPUT: LazyLock<Mutex<LineWriter<BlockingStream>>> =
    LazyLock::new(|| Mutex::new(LineWriter::new(BlockingStream(Stream::new(out_fd())))));

/// Time at which the user asked for the end.
static INTERRUPTED: OnceLock<Instant> = OnceLock::new();

/// How long a reader of standard output may still take its time then.
const GRACE: Duration = Duration::from_secs(1);

/// Interval at which a waiting writer looks whether the process is to end.
const LOOK: Duration = Duration::from_millis(50);

/// The descriptor of standard output; it is never closed.
fn out_fd() -> BorrowedFd<'static> {
    static OUT: LazyLock<io::Stdout> = LazyLock::new(io::stdout);
    OUT.as_fd()
}

/// Announces that the process is to end: a writer that waits for a reader of standard output gives up a
/// second from now.
pub fn interrupt() {
    INTERRUPTED.get_or_init(Instant::now);
}

/// A stream that waits for its reader.
struct BlockingStream(Stream);

impl Write for BlockingStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.0.try_write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                written => return written,
            }
            if INTERRUPTED.get().is_some_and(|since| since.elapsed() > GRACE) {
                return Err(io::Error::new(ErrorKind::TimedOut, "nobody reads it"));
            }
            self.0.wait(Some(LOOK));
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        OUTPUT.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    /// Writes all, without another's words in between.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        OUTPUT.lock().unwrap_or_else(PoisonError::into_inner).write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        OUTPUT.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }
}
