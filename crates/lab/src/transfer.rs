//! A file of random bytes, a server that offers it over HTTP, and a client that fetches it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
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
