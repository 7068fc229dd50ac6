//! Answers Click's low-level remote procedure calls (LLRPC): counts and switches as bytes.

use super::protocol::{Answer, LLRPC_ERROR, SYNTAX, Session, UNIMPLEMENTED};
use super::protocol::{message, message_with_data};
use castanet_element::control::ControlContext;

// Bits of a call's number, in Click's network form: the direction of the data.
const OUT: u32 = 0x4000_0000;
const IN: u32 = 0x8000_0000;
/// The data contain no pointers.
const FLAT: u32 = 0x4000;
/// The bits that identify the call, without direction and size.
const NUMBER: u32 = 0x3fff;

/// A call, and the handler that gives the same answer.
struct Call {
    number: u32,
    handler: &'static str,
}

// Numbers of calls that have flat data.
const GET_RATE: u32 = 1;
const GET_COUNT: u32 = 3;
const GET_SWITCH: u32 = 5;
const SET_SWITCH: u32 = 6;

const CALLS: &[Call] = &[
    Call { number: GET_RATE, handler: "rate" },
    Call { number: GET_COUNT, handler: "count" },
    Call { number: GET_SWITCH, handler: "switch" },
    Call { number: SET_SWITCH, handler: "switch" },
];

/// The classes whose elements answer a call.
fn classes(number: u32) -> &'static [&'static str] {
    match number {
        GET_RATE | GET_COUNT => &["Counter"],
        _ => &["Switch", "PullSwitch"],
    }
}

impl Session<'_> {
    /// Answers `LLRPC ELEMENT#NUMBER`.
    pub(super) fn call(&mut self, name: &str, data: &[u8]) -> Answer {
        let (element, number) = name.split_once('#').unwrap_or((name, ""));
        let Ok(command) = u32::from_str_radix(number, 16) else {
            return Err(message(SYNTAX, &format!("Syntax error in LLRPC name '{name}'")));
        };
        let path = self.find(&format!("{element}.name"))?;
        let size = (command >> 16 & 0xfff) as usize;
        if size == 0 || command & (IN | OUT) == 0 || command & FLAT == 0 {
            return Err(message(UNIMPLEMENTED, &format!("Cannot call LLRPC '{name}' remotely")));
        }
        // The number does not say whether a call only reads.
        self.permit_writes(name)?;
        if command & IN != 0 && data.len() != size {
            let text = format!("LLRPC '{name}' requires {size} bytes input data");
            return Err(message(LLRPC_ERROR, &text));
        }
        let element = path.strip_suffix(".name").unwrap_or(&path);
        let Some(said) = call(element, command & NUMBER, data, self.cx) else {
            // The answer of an element of Click to an unknown call.
            let text = format!("LLRPC '{name}' error: Invalid argument");
            return Err(message(LLRPC_ERROR, &text));
        };
        let said = if command & OUT == 0 { &[][..] } else { &said };
        Ok(message_with_data(&format!("LLRPC '{name}' OK"), said))
    }
}

/// Calls the handler with the same meaning; numbers are in the machine's byte order. `None` if the
/// element does not answer the call.
fn call(element: &str, number: u32, data: &[u8], cx: &mut dyn ControlContext) -> Option<Vec<u8>> {
    let call = CALLS.iter().find(|call| call.number == number)?;
    let class = cx.read(&format!("{element}.class")).ok()?;
    if !classes(number).contains(&class.as_str()) {
        return None;
    }
    let given = || data.try_into().ok().map(i32::from_ne_bytes);
    let path = format!("{element}.{}", call.handler);
    match number {
        SET_SWITCH => {
            cx.write(&path, &given()?.to_string()).ok()?;
            return Some(data.to_vec());
        }
        // The argument selects a count; a Counter has only number 0.
        GET_RATE | GET_COUNT if given()? != 0 => return None,
        _ => {}
    }
    let value: f64 = cx.read(&path).ok()?.trim().parse().ok()?;
    // Converted as in C: the upper bits are cut off.
    Some((value as i64 as i32).to_ne_bytes().to_vec())
}
