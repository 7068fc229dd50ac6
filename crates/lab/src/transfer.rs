//! Transfers a file of random bytes from one namespace to another, over HTTP by `curl` or plain
//! TCP.

use std::fs::{self, File};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::namespace::Namespace;
use crate::process::Process;

/// A file of random bytes in a lab's directory, with its SHA-256.
#[derive(Debug, Clone)]
pub struct RandomFile {
    /// Its path.
    pub path: PathBuf,
    /// Its SHA-256 in hexadecimal.
    pub sha256: String,
    /// Its size.
    pub bytes: u64,
}

/// A completed transfer of a file.
#[derive(Debug, Clone)]
pub struct Transfer {
    /// The SHA-256 of the received file, in hexadecimal.
    pub sha256: String,
    /// Size of the received file.
    pub bytes: u64,
    /// Duration of the transfer.
    pub elapsed: Duration,
}

impl Transfer {
    /// The mean rate of the transfer, in megabits per second.
    pub fn megabits_per_second(&self) -> f64 {
        self.bytes as f64 * 8.0 / 1e6 / self.elapsed.as_secs_f64().max(1e-6)
    }
}

impl Lab {
    /// Creates a file of so many random megabytes (of 1024 × 1024 bytes).
    pub fn random_file(&self, name: &str, megabytes: u64) -> Result<RandomFile> {
        let path = self.directory().join(name);
        let action = format!("write {}", path.display());
        let random = File::open("/dev/urandom").map_err(Error::io("open /dev/urandom"))?;
        let mut file = File::create(&path).map_err(Error::io(action.clone()))?;
        let bytes = io::copy(&mut io::Read::take(random, megabytes << 20), &mut file)
            .map_err(Error::io(action))?;
        let sha256 = sha256(&path)?;
        Ok(RandomFile { path, sha256, bytes })
    }
}

impl Namespace {
    /// Serves a lab's directory over HTTP on `address:port`; returns when the server is ready.
    pub fn serve(&self, address: &str, port: u16) -> Result<Process> {
        let mut server = self
            .command("python3")
            .args(["-u", "-m", "http.server", &port.to_string(), "--bind", address])
            .arg("--directory")
            .arg(self.directory())
            .spawn()?;
        server.wait_for("Serving HTTP", Duration::from_secs(20))?;
        Ok(server)
    }

    /// Fetches a URL with `curl` and computes the SHA-256 of the received file.
    pub fn fetch(&self, url: &str, timeout: Duration) -> Result<Transfer> {
        let name = format!("fetched-by-{}", self.name());
        let path = self.directory().join(name);
        let started = Instant::now();
        self.command("curl")
            .args(["--silent", "--show-error", "--fail", "--noproxy", "*", "--output"])
            .arg(&path)
            .arg(url)
            .timeout(timeout)
            .check()?;
        let elapsed = started.elapsed();
        let action = || format!("read {}", path.display());
        let bytes = fs::metadata(&path).map_err(Error::io(action()))?.len();
        let sha256 = sha256(&path)?;
        fs::remove_file(&path).map_err(Error::io(action()))?;
        Ok(Transfer { sha256, bytes, elapsed })
    }
}

impl RandomFile {
    /// Sends the file over one TCP connection, without another program, and computes the SHA-256 of
    /// the received file.
    ///
    /// The sender listens on `at`, one of its own addresses. Each side fails if no byte moves for
    /// `timeout`.
    pub fn send(
        &self,
        sender: &Namespace,
        at: SocketAddr,
        receiver: &Namespace,
        timeout: Duration,
    ) -> Result<Transfer> {
        let listening = move || Error::io(format!("listen on {at}"));
        let listener = join(sender.enter(move || TcpListener::bind(at).map_err(listening())))?;
        let source = self.path.clone();
        let sender = thread::spawn(move || send_file(&listener, &source, timeout));
        let path = self.path.with_extension(format!("for-{}", receiver.name()));
        let target = path.clone();
        let started = Instant::now();
        let received = join(receiver.enter(move || receive_file(at, &target, timeout)));
        let elapsed = started.elapsed();
        join(sender)?;
        let bytes = received?;
        let sha256 = sha256(&path)?;
        fs::remove_file(&path).map_err(Error::io(format!("remove {}", path.display())))?;
        Ok(Transfer { sha256, bytes, elapsed })
    }
}

/// Sends a file to the first client that connects.
fn send_file(listener: &TcpListener, path: &Path, timeout: Duration) -> Result<()> {
    let io_error = || Error::io("send a file over TCP");
    listener.set_nonblocking(true).map_err(io_error())?;
    let deadline = Instant::now() + timeout;
    let mut stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                return Err(io_error()(error));
            }
            Err(_) if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
            Err(error) => return Err(Error::Io("see a TCP client connect".into(), error)),
        }
    };
    stream.set_nonblocking(false).map_err(io_error())?;
    stream.set_write_timeout(Some(timeout)).map_err(io_error())?;
    let mut file = File::open(path).map_err(io_error())?;
    io::copy(&mut file, &mut stream).map_err(io_error())?;
    Ok(())
}

/// Connects to `from` and receives a file to its end; returns its size.
fn receive_file(from: SocketAddr, path: &Path, timeout: Duration) -> Result<u64> {
    let io_error = || Error::io(format!("fetch a file over TCP from {from}"));
    let mut stream = TcpStream::connect_timeout(&from, timeout).map_err(io_error())?;
    stream.set_read_timeout(Some(timeout)).map_err(io_error())?;
    let mut file = File::create(path).map_err(io_error())?;
    io::copy(&mut stream, &mut file).map_err(io_error())
}

/// Waits for a thread and returns its result; a panic of the thread continues in the caller.
fn join<T>(thread: JoinHandle<Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Computes the SHA-256 of a file with `sha256sum`, a program independent of Castanet.
fn sha256(path: &Path) -> Result<String> {
    let output =
        Command::new("sha256sum").arg(path).output().map_err(Error::io("run sha256sum"))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    match printed.split_whitespace().next() {
        Some(sum) if output.status.success() => Ok(sum.to_owned()),
        _ => {
            let status = output.status.to_string();
            Err(Error::Failed { command: format!("sha256sum {}", path.display()), status, printed })
        }
    }
}
