//! A client's session in memory, for who has no socket: fuzzers and tests.

use super::input::Input;
use super::protocol::{Command, GREETING, SessionPolicy, answer};
use castanet_element::control::ControlContext;

/// Answers all that a client says before it closes its side, as a
/// `ControlSocket` with READONLY and PROXY would.
pub fn converse(
    said: &[u8],
    read_only: bool,
    proxy: Option<&str>,
    desk: &mut dyn ControlContext,
) -> Vec<u8> {
    let policy = SessionPolicy { read_only, proxy, own: &|_| None };
    let (mut input, mut output) = (Input::default(), GREETING.to_vec());
    input.extend(said);
    while let Some(command) = input.next(true) {
        output.extend(answer(&command, &policy, desk));
        if matches!(command, Command::Close(_)) || desk.is_replaced() {
            break;
        }
    }
    output
}
