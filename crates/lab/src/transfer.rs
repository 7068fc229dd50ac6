//! A file of random bytes, and its way from one namespace to another: over HTTP by `curl`, or bare TCP.

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
    /// Where it lies.
    pub path: PathBuf,
    /// Its SHA-256 in hexadecimal.
    pub sha256: String,
    /// Its size.
    pub bytes: u64,
}

/// A file that a client has fetched.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// The SHA-256 of what arrived, in hexadecimal.
    pub sha256: String,
    /// Its size.
    pub bytes: u64,
    /// How long it took.
    pub elapsed: Duration,
}

impl Fetched {
    /// The rate at which it arrived, in megabits a second.
    pub fn megabits_per_second(&self) -> f64 {
        self.bytes as f64 * 8.0 / 1e6 / self.elapsed.as_secs_f64().max(1e-6)
    }
}

impl Lab {
    /// Makes a file of so many random megabytes (of 1024 × 1024 bytes).
    pub fn random_file(&self, name: &str, megabytes: u64) -> Result<RandomFile> {
        let path = self.directory().join(name);
        let doing = format!("write {}", path.display());
        let random = File::open("/dev/urandom").map_err(Error::io("open /dev/urandom"))?;
        let mut file = File::create(&path).map_err(Error::io(doing.clone()))?;
        let bytes = io::copy(&mut io::Read::take(random, megabytes << 20), &mut file)
            .map_err(Error::io(doing))?;
        let sha256 = sha256(&path)?;
        Ok(RandomFile { path, sha256, bytes })
    }
}

impl Namespace {
    /// Serves a lab's directory over HTTP on `address:port`, and returns once it answers.
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

    /// Fetches a URL with `curl` and takes the SHA-256 of what came.
    pub fn fetch(&self, url: &str, patience: Duration) -> Result<Fetched> {
        let name = format!("fetched-by-{}", self.name());
        let path = self.directory().join(name);
        let started = Instant::now();
        self.command("curl")
            .args(["--silent", "--show-error", "--fail", "--noproxy", "*", "--output"])
            .arg(&path)
            .arg(url)
            .timeout(patience)
            .check()?;
        let elapsed = started.elapsed();
        let doing = || format!("read {}", path.display());
        let bytes = fs::metadata(&path).map_err(Error::io(doing()))?.len();
        let sha256 = sha256(&path)?;
        fs::remove_file(&path).map_err(Error::io(doing()))?;
        Ok(Fetched { sha256, bytes, elapsed })
    }
}

impl RandomFile {
    /// Sends the file over one TCP connection and takes the SHA-256 of what came: no program needed.
    ///
    /// The sender listens on `at`, an address of its own; neither waits for the other beyond
    /// `patience` without a byte moving.
    pub fn send(
        &self,
        sender: &Namespace,
        at: SocketAddr,
        receiver: &Namespace,
        patience: Duration,
    ) -> Result<Fetched> {
        let listening = move || Error::io(format!("listen on {at}"));
        let listener = join(sender.enter(move || TcpListener::bind(at).map_err(listening())))?;
        let source = self.path.clone();
        let sending = thread::spawn(move || offer(&listener, &source, patience));
        let path = self.path.with_extension(format!("for-{}", receiver.name()));
        let target = path.clone();
        let started = Instant::now();
        let received = join(receiver.enter(move || take(at, &target, patience)));
        let elapsed = started.elapsed();
        join(sending)?;
        let bytes = received?;
        let sha256 = sha256(&path)?;
        fs::remove_file(&path).map_err(Error::io(format!("remove {}", path.display())))?;
        Ok(Fetched { sha256, bytes, elapsed })
    }
}

/// Sends a file to the first who connects.
fn offer(listener: &TcpListener, path: &Path, patience: Duration) -> Result<()> {
    let doing = || Error::io("send a file over TCP");
    listener.set_nonblocking(true).map_err(doing())?;
    let deadline = Instant::now() + patience;
    let mut stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(doing()(error)),
            Err(_) if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
            Err(error) => return Err(Error::Io("see a TCP client connect".into(), error)),
        }
    };
    stream.set_nonblocking(false).map_err(doing())?;
    stream.set_write_timeout(Some(patience)).map_err(doing())?;
    let mut file = File::open(path).map_err(doing())?;
    io::copy(&mut file, &mut stream).map_err(doing())?;
    Ok(())
}

/// Receives a file to its end.
fn take(from: SocketAddr, path: &Path, patience: Duration) -> Result<u64> {
    let doing = || Error::io(format!("fetch a file over TCP from {from}"));
    let mut stream = TcpStream::connect_timeout(&from, patience).map_err(doing())?;
    stream.set_read_timeout(Some(patience)).map_err(doing())?;
    let mut file = File::create(path).map_err(doing())?;
    io::copy(&mut stream, &mut file).map_err(doing())
}

/// Waits for a thread; a panic in it goes on here.
fn join<T>(thread: JoinHandle<Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The SHA-256 of a file, by a program that has nothing to do with ours.
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
