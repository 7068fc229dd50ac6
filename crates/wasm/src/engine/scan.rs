//! Refuses instructions whose time has no bound that the count of instructions knows.
//!
//! `memory.copy`, `memory.fill` and the like count as one instruction, however many bytes they move. They
//! are accepted where a constant directly before them is their length.

use wasmtime::wasmparser::{FunctionBody, Operator, Parser, Payload};

/// Most bytes that one instruction may move.
const MOST_BYTES: i32 = 1024;

/// Checks all functions of a module.
///
/// # Errors
/// One of them has such an instruction, or the module is malformed.
pub(super) fn check(bytes: &[u8]) -> Result<(), String> {
    let mut function = 0usize;
    for payload in Parser::new(0).parse_all(bytes) {
        let payload =
            payload.map_err(|error| format!("is no WebAssembly module: {}", error.message()))?;
        if let Payload::CodeSectionEntry(body) = payload {
            check_function(&body, function)?;
            function += 1;
        }
    }
    Ok(())
}

fn check_function(body: &FunctionBody, number: usize) -> Result<(), String> {
    let malformed = |error: wasmtime::wasmparser::BinaryReaderError| {
        format!("is no WebAssembly module: {}", error.message())
    };
    let mut length = None;
    for operator in body.get_operators_reader().map_err(malformed)? {
        let operator = operator.map_err(malformed)?;
        let name = match operator {
            Operator::MemoryCopy { .. } => Some("memory.copy"),
            Operator::MemoryFill { .. } => Some("memory.fill"),
            Operator::MemoryInit { .. } => Some("memory.init"),
            Operator::TableCopy { .. } => Some("table.copy"),
            Operator::TableInit { .. } => Some("table.init"),
            Operator::TableFill { .. } => Some("table.fill"),
            Operator::TableGrow { .. } => Some("table.grow"),
            _ => None,
        };
        let is_short = length.is_some_and(|length| (0..=MOST_BYTES).contains(&length));
        if let (Some(name), false) = (name, is_short) {
            return Err(format!(
                "function {number} has `{name}` without a constant length of at most {MOST_BYTES} before \
                 it, which LIMIT cannot bound; compile without bulk memory operations \
                 (docs/wasm.md says how)"
            ));
        }
        length = match operator {
            Operator::I32Const { value } => Some(value),
            _ => None,
        };
    }
    Ok(())
}
