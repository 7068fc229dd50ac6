//! Handlers of a router in another process, which is not trusted.
//!
//! One side calls ([`RemoteCalls`]), the other one answers ([`CallSocket`], [`RemoteRequest`]). Requests
//! and answers are those of Click's control protocol, each with a number, so that a late answer is that
//! of its own request and of no other. The calling side takes only what is one whole answer
//! ([`RemoteReply`]), of a limited size, and never waits for the socket.

mod calls;
mod reply;
mod request;
mod socket;

pub use calls::{CallEnd, CallRefusal, RemoteCalls};
pub use reply::RemoteReply;
pub(super) use request::request_bytes;
pub use request::{RemoteRequest, read_request};
pub use socket::{CallSocket, MOST_ANSWER, MOST_REQUEST};
