//! Clients of a running router that read its handlers, one after another, as fast as they are answered.

use super::cores;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time limit for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Clients that read handlers until they are ended.
pub(super) struct PollingClients {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<u64, String>>,
}

impl PollingClients {
    /// Connects `count` clients to the control socket at `path`; all of them have a request there at any
    /// time. Their thread is on this core.
    pub(super) fn start(path: &Path, count: usize, core: usize) -> Result<PollingClients, String> {
        let clients: Result<Vec<_>, String> = (0..count).map(|_| Client::connect(path)).collect();
        let mut clients = clients?;
        let handlers = clients.first_mut().map_or(Ok(Vec::new()), Client::handlers)?;
        let stop = Arc::new(AtomicBool::new(false));
        let sign = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            cores::pin(0, core)?;
            poll(&mut clients, &handlers, &sign)
        });
        Ok(PollingClients { stop, thread })
    }

    /// Ends them; returns how many values they have read.
    pub(super) fn end(self) -> Result<u64, String> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "the thread of the clients died".to_owned())?
    }
}

/// Has each client request the next handler, and then reads all answers, again and again.
fn poll(clients: &mut [Client], handlers: &[String], stop: &AtomicBool) -> Result<u64, String> {
    let mut reads = 0;
    for handler in handlers.iter().cycle() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        for client in &mut *clients {
            client.request(handler)?;
        }
        for client in &mut *clients {
            client.answer()?;
            reads += 1;
        }
    }
    Ok(reads)
}

/// One client.
struct Client(BufReader<UnixStream>);

impl Client {
    fn connect(path: &Path) -> Result<Client, String> {
        let said = |error: std::io::Error| format!("{}: {error}", path.display());
        let stream = UnixStream::connect(path).map_err(said)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(said)?;
        let mut client = Client(BufReader::new(stream));
        let greeting = client.line()?;
        match greeting.starts_with("Click::ControlSocket/") {
            true => Ok(client),
            false => Err(format!("a greeting of {greeting}")),
        }
    }

    fn request(&mut self, handler: &str) -> Result<(), String> {
        let request = format!("READ {handler}\r\n");
        self.0.get_mut().write_all(request.as_bytes()).map_err(|error| error.to_string())
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(0) => Err("the router has gone".into()),
            Ok(_) => Ok(line.trim_end().to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The next answer: a value, or nothing where a handler has none without a parameter.
    fn answer(&mut self) -> Result<String, String> {
        loop {
            let line = self.line()?;
            // Each line of an answer but the last has a hyphen behind its code.
            match line.as_bytes() {
                [b'2', ..] => break,
                [b'5', _, _, b'-', ..] => {}
                [b'5', ..] => return Ok(String::new()),
                _ => return Err(format!("an answer of {line}")),
            }
        }
        let length = self.line()?;
        let length = length.strip_prefix("DATA ").and_then(|it| it.parse().ok());
        let mut value = vec![0; length.ok_or("an answer without its length")?];
        self.0.read_exact(&mut value).map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(&value).into_owned())
    }

    fn read(&mut self, handler: &str) -> Result<String, String> {
        self.request(handler)?;
        self.answer()
    }

    /// The handlers of all elements that can be read, without those whose read begins to count cycles.
    fn handlers(&mut self) -> Result<Vec<String>, String> {
        let mut all = Vec::new();
        // The first line is the number of elements.
        for element in self.read("list")?.lines().skip(1) {
            let told = self.read(&format!("{element}.handlers"))?;
            let readable = told.lines().filter_map(|line| {
                let (name, rights) = line.split_once('\t')?;
                let is_wanted = rights.contains('r') && name != "cycles";
                is_wanted.then(|| format!("{element}.{name}"))
            });
            all.extend(readable);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client whose router answers with these bytes, whatever it is asked.
    fn client(answers: &str) -> (Client, UnixStream) {
        let (here, mut there) = UnixStream::pair().unwrap();
        there.write_all(answers.as_bytes()).unwrap();
        (Client(BufReader::new(here)), there)
    }

    #[test]
    fn handlers_are_those_that_can_be_read() {
        let (mut client, _router) = client(
            "200 Read handler 'list' OK\r\nDATA 3\r\n1\nc\
             200 Read handler 'c.handlers' OK\r\nDATA 30\r\ncount\tr\nreset\tw\ncycles\tr\nf\trw\n\n",
        );
        assert_eq!(client.handlers().unwrap(), ["c.count", "c.f"]);
    }

    #[test]
    fn answers_without_a_value_are_read_to_their_end() {
        let (mut client, _router) =
            client("530-no\r\n530 no\r\n200 OK\r\nDATA 2\r\n42510 no\r\nwhat\r\n");
        let mut next = || client.read("c.x");
        assert_eq!(next().unwrap(), "");
        assert_eq!(next().unwrap(), "42");
        assert_eq!(next().unwrap(), "");
        assert!(next().unwrap_err().contains("what"));
    }
}
