//! Answers about the handlers of a tenant's process, which the parent asks for.

use crate::instance::observation;
use castanet_element::time::Time;
use castanet_io::control::RequestKind;
use castanet_io::control::remote::{CallSocket, RemoteRequest};
use castanet_runtime::router::{Router, Service};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

/// Requests that wait for the control thread; further ones wait in the socket.
const MOST_WAITING: usize = 8;

/// The service that answers the parent's requests on the control thread.
pub(super) struct HandlerAnswers {
    socket: Arc<CallSocket>,
    requests: Receiver<(u64, Vec<u8>)>,
}

impl HandlerAnswers {
    /// The service of a router, for the requests of this socket.
    ///
    /// # Errors
    /// There can be no thread.
    pub(super) fn new(socket: CallSocket, router: &Router) -> io::Result<HandlerAnswers> {
        let (sender, requests) = sync_channel(MOST_WAITING);
        let (socket, waker) = (Arc::new(socket), router.service_waker());
        let theirs = socket.clone();
        let thread = std::thread::Builder::new().name("handlers".into());
        thread.spawn(move || {
            while let Ok(Some(request)) = theirs.next_request() {
                if sender.send(request).is_err() {
                    return;
                }
                waker.wake();
            }
        })?;
        Ok(HandlerAnswers { socket, requests })
    }
}

impl Service for HandlerAnswers {
    fn step(&mut self, router: &mut Router) -> Option<Time> {
        // The thread waits with further requests, so that there is an end.
        for (number, request) in self.requests.try_iter().take(MOST_WAITING) {
            // A parent that has gone ends this process, too.
            _ = self.socket.answer(number, &answer(&RemoteRequest::parse(&request), router));
        }
        None
    }
}

/// The answer to a request.
fn answer(request: &RemoteRequest, router: &mut Router) -> Vec<u8> {
    if let RequestKind::Read(handler, param) = request.kind()
        && let Some(text) = observation(router, handler, &String::from_utf8_lossy(param))
    {
        return request.answer_read(text);
    }
    request.answer(&mut router.control_context())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // In a test it is an assertion.
mod tests {
    use super::*;
    use crate::library::library;
    use castanet_io::control::remote::{CallEnd, RemoteCalls, RemoteReply};
    use castanet_runtime::console::SilentConsole;
    use castanet_runtime::router::Options;
    use std::sync::mpsc::channel;
    use std::time::{Duration, Instant};

    #[test]
    fn requests_are_answered_as_at_a_control_socket() {
        let text = "InfiniteSource(LIMIT 5) -> c :: Counter -> s :: Switch(0) -> Discard;";
        let options = Options::new(Arc::new(SilentConsole));
        let mut router = Router::from_text(text, &library(), &options).unwrap();
        let (calls, socket) = RemoteCalls::pair().unwrap();
        let mut answers = HandlerAnswers::new(socket, &router).unwrap();
        let mut ask = |request: &[u8]| {
            let (sender, end) = channel();
            let until = Instant::now() + Duration::from_secs(60);
            calls.call(request, until, move |it| sender.send(it).unwrap()).unwrap();
            loop {
                answers.step(&mut router);
                assert!(calls.take());
                match end.try_recv() {
                    Ok(CallEnd::Answer(bytes)) => return RemoteReply::parse(&bytes).unwrap(),
                    Ok(end) => panic!("{end:?}"),
                    Err(_) => std::thread::sleep(Duration::from_millis(1)),
                }
            }
        };
        let value = |text: &str| RemoteReply::Value(text.to_owned());
        let failure =
            |code, line: &str| RemoteReply::Failure { code, lines: vec![line.to_owned()] };
        assert_eq!(ask(b"READDATA c.class 0\r\n"), value("Counter"));
        assert_eq!(ask(b"WRITEDATA s.switch 2\r\n-1"), RemoteReply::Success);
        assert_eq!(ask(b"READDATA s.switch 0\r\n"), value("-1"));
        assert_eq!(ask(b"CHECKREAD c.count\r\n"), RemoteReply::Success);
        let none = failure(511, "No handler named 'c.nothing'");
        assert_eq!(ask(b"READDATA c.nothing 0\r\n"), none);
        assert_eq!(ask(b"CHECKWRITE x.y\r\n"), failure(510, "No element named 'x'"));
        let RemoteReply::Value(snapshot) = ask(b"READDATA snapshot 0\r\n") else { panic!() };
        assert!(snapshot.contains("\"c\""), "{snapshot}");
    }
}
