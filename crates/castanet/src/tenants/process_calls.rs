//! Commands of clients that the process of a tenant answers.

use castanet_element::control::ControlWaker;
use castanet_element::error::ArgError;
use castanet_element::time::Time;
use castanet_io::control::remote::{CallEnd, MOST_ANSWER, RemoteReply};
use castanet_io::control::{InstanceRequest, InstanceSocket};
use castanet_runtime::router::Router;
use castanet_tenants::process_element;
use castanet_tenants::sandbox::handler_calls;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Time that a process has to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The process has ended.
pub(super) const GONE: &str = "has ended";
/// The process has sent bytes that are no answer, or that to another request.
const NO_ANSWER: &str = "answers with bytes that are no answer";

/// The commands of one socket's clients that wait for the answers of processes.
pub(crate) struct ProcessCalls {
    waiting: Vec<ProcessCall>,
    next_number: u64,
    sender: Sender<(u64, ProcessReply)>,
    replies: Receiver<(u64, ProcessReply)>,
}

/// The answer of a process, or the reason why there is none, as the end of a sentence about the process.
pub(super) type ProcessReply = Result<RemoteReply, String>;

/// The reason why a process is not called, as the end of a sentence about the process.
pub(super) enum CallFailure {
    /// There is no process that runs.
    NotRunning(String),
    /// The process runs, and takes no further call.
    Refused(String),
}

/// A command that waits for the answer of a process.
struct ProcessCall {
    number: u64,
    tenant: String,
    request: InstanceRequest,
    deadline: Time,
}

impl Default for ProcessCalls {
    fn default() -> ProcessCalls {
        let (sender, replies) = channel();
        ProcessCalls { waiting: Vec::new(), next_number: 0, sender, replies }
    }
}

impl ProcessCalls {
    /// Passes a command to the process of a tenant, about the handler that has this name there. The answer
    /// comes by [`ProcessCalls::answer`], or at once if the command cannot be passed.
    pub(crate) fn start(
        &mut self,
        router: &mut Router,
        socket: &InstanceSocket,
        (tenant, handler): (&str, &str),
        request: InstanceRequest,
    ) {
        match self.pass(router, (tenant, handler), &request) {
            Ok(number) => {
                let deadline = router.clock().now() + PATIENCE;
                self.waiting.push(ProcessCall {
                    number,
                    tenant: tenant.to_owned(),
                    request,
                    deadline,
                });
            }
            Err(why) => socket.answer_failure(request, of_process(tenant, &why)),
        }
    }

    /// Passes the bytes of a command; returns the number by which its answer comes.
    fn pass(
        &mut self,
        router: &mut Router,
        (tenant, handler): (&str, &str),
        request: &InstanceRequest,
    ) -> Result<u64, String> {
        let bytes = request.remote_bytes(handler).ok_or("answers no such command")?;
        let (number, sender) = (self.next_number, self.sender.clone());
        // A socket that was closed has no clients any more.
        let recipient = move |reply| _ = sender.send((number, reply));
        call_process(router, tenant, (&bytes, PATIENCE), recipient).map_err(
            |failure| match failure {
                CallFailure::NotRunning(why) | CallFailure::Refused(why) => why,
            },
        )?;
        self.next_number += 1;
        Ok(number)
    }

    /// Answers the commands whose answers have come, or whose time is over; returns the time at which that of
    /// another one is, if any wait.
    pub(crate) fn answer(&mut self, now: Time, socket: &InstanceSocket) -> Option<Time> {
        while let Ok((number, reply)) = self.replies.try_recv() {
            // The command of a late answer was answered already.
            if let Some(at) = self.waiting.iter().position(|call| call.number == number) {
                let ProcessCall { tenant, request, .. } = self.waiting.swap_remove(at);
                finish(socket, &tenant, request, reply);
            }
        }
        for call in self.waiting.extract_if(.., |call| call.deadline <= now) {
            socket.answer_failure(call.request, of_process(&call.tenant, "does not answer"));
        }
        self.waiting.iter().map(|call| call.deadline).min()
    }
}

/// Sends a request to the process of a tenant, which has so much time to answer. `recipient` is called with the answer, or
/// never, by the thread of the process's supervisor, on which long answers cost clients of others nothing; the router's
/// services have a step afterwards.
///
/// # Errors
/// The process is not called.
pub(super) fn call_process(
    router: &mut Router,
    tenant: &str,
    (request, patience): (&[u8], Duration),
    recipient: impl FnOnce(ProcessReply) + Send + 'static,
) -> Result<(), CallFailure> {
    let of_process = |router: &mut Router, name: &str| {
        router.read(&format!("{}.{name}", process_element(tenant))).unwrap_or_default()
    };
    let state = of_process(router, "state");
    let calls = handler_calls(tenant).filter(|_| state == "running");
    let Some(calls) = calls else {
        let last_end = of_process(router, "last_end");
        let why = if last_end.is_empty() { String::new() } else { format!(": it {last_end}") };
        let state = if state.is_empty() { "not there" } else { &state };
        return Err(CallFailure::NotRunning(format!("does not run, but is {state}{why}")));
    };
    let waker: ControlWaker = router.service_waker();
    let recipient = move |end| {
        recipient(reply(end));
        waker.wake();
    };
    let called = calls.call(request, Instant::now() + patience, recipient);
    called.map_err(|refusal| CallFailure::Refused(refusal.to_string()))
}

/// The answer with which a call has ended; the process may have sent anything.
fn reply(end: CallEnd) -> ProcessReply {
    match end {
        CallEnd::Answer(bytes) => RemoteReply::parse(&bytes).ok_or_else(|| NO_ANSWER.to_owned()),
        CallEnd::TooLong => Err(format!("answers with more than {MOST_ANSWER} bytes")),
        CallEnd::Gone => Err(GONE.to_owned()),
    }
}

/// Answers a command as the process has done.
fn finish(socket: &InstanceSocket, tenant: &str, request: InstanceRequest, reply: ProcessReply) {
    let (request, why) = match reply {
        Err(why) => (request, why),
        Ok(reply) => match socket.answer_remote(request, reply) {
            Ok(()) => return,
            Err(request) => (request, NO_ANSWER.to_owned()),
        },
    };
    socket.answer_failure(request, of_process(tenant, &why));
}

fn of_process(tenant: &str, why: &str) -> ArgError {
    ArgError::new(format!("the process of tenant {tenant} {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_a_process_are_checked() {
        let answer = |text: &str| reply(CallEnd::Answer(text.into()));
        assert_eq!(answer("200 OK\r\nDATA 1\r\n7"), Ok(RemoteReply::Value("7".to_owned())));
        assert_eq!(answer("200 OK\r\nDATA 9\r\n7"), Err(NO_ANSWER.to_owned()));
        let too_long = "answers with more than 1048576 bytes".to_owned();
        assert_eq!(reply(CallEnd::TooLong), Err(too_long));
        assert_eq!(reply(CallEnd::Gone), Err("has ended".to_owned()));
    }
}
