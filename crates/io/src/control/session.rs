//! A client's session in memory, for fuzzers and tests, which have no socket.

use super::input::Input;
use super::protocol::{Command, GREETING, SessionPolicy, answer};
use castanet_element::control::ControlContext;

/// Returns the answers to all that a client sends before it closes its side, as a `ControlSocket`
/// with READONLY and PROXY would send them.
pub fn converse(
    said: &[u8],
    read_only: bool,
    proxy: Option<&str>,
    cx: &mut dyn ControlContext,
) -> Vec<u8> {
    let policy = SessionPolicy { read_only, proxy, own: &|_| None };
    let (mut input, mut output) = (Input::default(), GREETING.to_vec());
    input.extend(said);
    while let Some(command) = input.next(true) {
        output.extend(answer(&command, &policy, cx));
        if matches!(command, Command::Close(_)) || cx.is_replaced() {
            break;
        }
    }
    output
}
