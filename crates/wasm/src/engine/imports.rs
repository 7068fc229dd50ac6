//! Imports of modules: log, clock and random numbers of Castanet.

use castanet_element::time::Time;
use wasmtime::{Caller, Linker, StoreLimits};

/// Instructions that a call of an import is charged.
const CALL_COST: u64 = 300;
/// Most lines that a module logs in one call; further lines are lost.
const MOST_LINES: usize = 8;
/// Most bytes of a line.
const MOST_BYTES: usize = 256;

/// State of an instance outside of its memory.
pub(super) struct HostState {
    /// Limits of memory and tables.
    pub(super) limits: StoreLimits,
    /// The time of the burst.
    pub(super) now: Time,
    /// State of the random numbers; never 0.
    pub(super) random: u64,
    /// Lines that the module has logged.
    pub(super) log: Vec<String>,
}

impl HostState {
    pub(super) fn new(limits: StoreLimits, now: Time) -> HostState {
        HostState { limits, now, random: 0x9e37_79b9_7f4a_7c15, log: Vec::new() }
    }

    /// The next random number (xorshift64*).
    fn next_random(&mut self) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// Charges a call of an import: what it does takes longer than the instruction that makes it.
fn charge(caller: &mut Caller<'_, HostState>) -> wasmtime::Result<()> {
    // Without fuel another meter limits the call.
    let Ok(fuel) = caller.get_fuel() else { return Ok(()) };
    match fuel.checked_sub(CALL_COST) {
        Some(rest) => caller.set_fuel(rest),
        None => Err(wasmtime::Trap::OutOfFuel.into()),
    }
}

/// Defines the imports.
pub(super) fn define(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    linker.func_wrap("castanet", "now", |mut caller: Caller<'_, HostState>| {
        charge(&mut caller)?;
        Ok(caller.data().now.nanos())
    })?;
    linker.func_wrap("castanet", "random", |mut caller: Caller<'_, HostState>| {
        charge(&mut caller)?;
        Ok(caller.data_mut().next_random())
    })?;
    linker.func_wrap("castanet", "log", log)?;
    Ok(())
}

/// Keeps a line; one outside of the memory is a fault of the module.
fn log(mut caller: Caller<'_, HostState>, address: u32, length: u32) -> wasmtime::Result<()> {
    charge(&mut caller)?;
    if caller.data().log.len() >= MOST_LINES {
        return Ok(());
    }
    let memory = caller.get_export("memory").and_then(|it| it.into_memory());
    let bytes = memory.and_then(|memory| {
        let end = (address as usize).checked_add(length as usize)?;
        memory.data(&caller).get(address as usize..end)
    });
    let bytes = bytes.ok_or(wasmtime::Trap::MemoryOutOfBounds)?;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MOST_BYTES)]);
    // A line is one line, and writes nothing on a terminal but text.
    let line = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    caller.data_mut().log.push(line);
    Ok(())
}
