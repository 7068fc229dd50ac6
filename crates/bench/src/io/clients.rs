//! Clients of a running router that read its handlers, one after another, as fast as they are answered.

use super::cores;
use castanet_io::control::ControlClient;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Clients that read handlers until they are ended.
pub(super) struct PollingClients {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<u64, String>>,
}

impl PollingClients {
    /// Connects `count` clients to the control socket at `path`; all of them have a request there at any
    /// time. Their thread is on this core.
    pub(super) fn start(path: &Path, count: usize, core: usize) -> Result<PollingClients, String> {
        let clients: Result<Vec<_>, String> =
            (0..count).map(|_| ControlClient::connect(path, "the router")).collect();
        let mut clients = clients?;
        let handlers = clients.first_mut().map_or(Ok(Vec::new()), handlers)?;
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
fn poll(
    clients: &mut [ControlClient],
    handlers: &[String],
    stop: &AtomicBool,
) -> Result<u64, String> {
    let mut reads = 0;
    for handler in handlers.iter().cycle() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        for client in &mut *clients {
            client.request(handler)?;
        }
        for client in &mut *clients {
            // Some handlers have no value without a parameter.
            if let Err(message) = client.value()
                && client.is_gone()
            {
                return Err(message);
            }
            reads += 1;
        }
    }
    Ok(reads)
}

/// The handlers of all elements that can be read, without those whose read begins to count cycles.
fn handlers(client: &mut ControlClient) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    // The first line is the number of elements.
    for element in client.read("list")?.lines().skip(1) {
        let told = client.read(&format!("{element}.handlers"))?;
        let readable = told.lines().filter_map(|line| {
            let (name, rights) = line.split_once('\t')?;
            let is_wanted = rights.contains('r') && name != "cycles";
            is_wanted.then(|| format!("{element}.{name}"))
        });
        all.extend(readable);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixListener;

    #[test]
    fn handlers_are_those_that_can_be_read() {
        let socket = std::env::temp_dir().join(format!("castanet-clients-{}", std::process::id()));
        let listener = UnixListener::bind(&socket).unwrap();
        let router = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let answers = "Click::ControlSocket/1.3\r\n200 Read handler 'list' OK\r\nDATA 3\r\n1\nc\
                 200 Read handler 'c.handlers' OK\r\nDATA 30\r\ncount\tr\nreset\tw\ncycles\tr\nf\trw\n\n";
            stream.write_all(answers.as_bytes()).unwrap();
            stream
        });
        let mut client = ControlClient::connect(&socket, "the router").unwrap();
        let _stream = router.join().unwrap();
        std::fs::remove_file(&socket).unwrap();
        assert_eq!(handlers(&mut client).unwrap(), ["c.count", "c.f"]);
    }
}
