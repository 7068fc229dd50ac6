//! Copies a batch into a module's memory, and the module's answers out of it.
//!
//! Only the bytes that the module asks for (`snap`) go in, and only those that it has marked as
//! changed come out: the rest of a packet never leaves its frame.

use crate::abi::{DESCRIPTOR, DROP_VERDICT, Descriptor, NO_HEADER};
use crate::exit::WasmExit;
use crate::fault::Fault;
use crate::interface::ModuleInterface;
use castanet_element::fate::Fate;
use castanet_packet::Packet;

/// Copies packets that came on input `port` into the memory of a module: no more than
/// [`ModuleInterface`] has room for.
pub fn copy_in(memory: &mut [u8], interface: &ModuleInterface, packets: &[Packet], port: u8) {
    match interface.snap {
        16 => copy_heads::<16>(memory, interface, packets),
        32 => copy_heads::<32>(memory, interface, packets),
        48 => copy_heads::<48>(memory, interface, packets),
        64 => copy_heads::<64>(memory, interface, packets),
        128 => copy_heads::<128>(memory, interface, packets),
        _ => copy_bytes(memory, interface, packets),
    }
    let (places, _) = memory[interface.packets.clone()].as_chunks_mut::<DESCRIPTOR>();
    let mut data = first_data(interface);
    for (packet, place) in packets.iter().zip(places) {
        let timestamp = if interface.has_timestamps { packet.timestamp() as u64 } else { 0 };
        let network = packet.network_offset().and_then(|offset| u16::try_from(offset).ok());
        let descriptor = Descriptor {
            data,
            length: packet.len() as u32,
            visible: packet.len().min(interface.snap) as u16,
            network: network.unwrap_or(NO_HEADER),
            paint: packet.paint(),
            input: port,
            destination: packet.dst().octets(),
            timestamp,
            ..Descriptor::default()
        };
        descriptor.store(place);
        data += interface.stride() as u32;
    }
}

/// The address of the first packet's first byte.
#[inline]
fn first_data(interface: &ModuleInterface) -> u32 {
    (interface.slots.start + interface.headroom) as u32
}

/// Copies the first `N` bytes of each packet: the compiler knows the length.
#[inline]
fn copy_heads<const N: usize>(memory: &mut [u8], interface: &ModuleInterface, packets: &[Packet]) {
    let slots = memory[interface.slots.clone()].chunks_exact_mut(interface.stride());
    for (packet, slot) in packets.iter().zip(slots) {
        let to = &mut slot[interface.headroom..];
        match (to.first_chunk_mut::<N>(), packet.bytes().first_chunk::<N>()) {
            (Some(to), Some(from)) => *to = *from,
            _ => copy_some(to, packet.bytes(), N),
        }
    }
}

/// Copies as many bytes of each packet as the module wants.
fn copy_bytes(memory: &mut [u8], interface: &ModuleInterface, packets: &[Packet]) {
    let slots = memory[interface.slots.clone()].chunks_exact_mut(interface.stride());
    for (packet, slot) in packets.iter().zip(slots) {
        copy_some(&mut slot[interface.headroom..], packet.bytes(), interface.snap);
    }
}

/// Copies the first `most` bytes, or as many as there are.
fn copy_some(to: &mut [u8], from: &[u8], most: usize) {
    let length = from.len().min(most);
    to[..length].copy_from_slice(&from[..length]);
}

/// Takes the answers of a module over into the packets that [`copy_in`] has copied, and writes the
/// index of each packet's fate into `fates`; there are so many outputs.
///
/// # Errors
/// An answer makes no sense: the packets must be dropped, because some may be changed already.
pub fn copy_out(
    memory: &[u8],
    interface: &ModuleInterface,
    packets: &mut [Packet],
    outputs: usize,
    fates: &mut [u8],
) -> Result<(), Fault> {
    let (answers, _) = memory[interface.packets.clone()].as_chunks::<DESCRIPTOR>();
    let mut data = first_data(interface);
    for ((packet, answer), fate) in packets.iter_mut().zip(answers).zip(fates) {
        let answer = Descriptor::load(answer);
        *fate = fate_of(answer.verdict, outputs, interface.reasons.len())?;
        if (answer.data, answer.length) != (data, packet.len() as u32) {
            change_bounds(packet, interface, &answer, data)?;
        }
        if answer.dirty_from < answer.dirty_to {
            take_bytes(memory, interface, packet, &answer, data)?;
        }
        packet.set_paint(answer.paint);
        if packet.dst().octets() != answer.destination {
            packet.set_dst(answer.destination.into());
        }
        data += interface.stride() as u32;
    }
    Ok(())
}

/// The index of the fate that a verdict means.
#[inline]
fn fate_of(verdict: u16, outputs: usize, reasons: usize) -> Result<u8, Fault> {
    let verdict = usize::from(verdict);
    if verdict < outputs {
        return Ok(verdict as u8);
    }
    match verdict.checked_sub(usize::from(DROP_VERDICT)) {
        Some(reason) if reason < reasons => Ok(WasmExit::Reason(reason as u8).index()),
        Some(_) => Err(Fault::Answer("a reason to drop that the module does not declare")),
        None => Err(Fault::Answer("an output that is not connected")),
    }
}

/// Moves the front and the end of a packet to where the module says: `data` is where its front was.
fn change_bounds(
    packet: &mut Packet,
    interface: &ModuleInterface,
    answer: &Descriptor,
    data: u32,
) -> Result<(), Fault> {
    const OUTSIDE: Fault = Fault::Answer("a packet outside of its slot");
    let before = packet.len();
    let was_visible = before.min(interface.snap);
    let moved = i64::from(answer.data) - i64::from(data);
    let headroom = interface.headroom as i64;
    if moved < -headroom || moved > was_visible as i64 {
        return Err(OUTSIDE);
    }
    let pushed = usize::try_from(-moved).unwrap_or(0);
    let pulled = usize::try_from(moved).unwrap_or(0);
    packet.pull_front(pulled);
    if pushed > 0 {
        packet.push_front(pushed).fill(0);
    }
    let (length, now) = (answer.length as usize, packet.len());
    if length <= now {
        packet.truncate(length);
        return Ok(());
    }
    // More bytes at the end: only where the module has seen the end, and within the slot.
    let end = headroom + moved + length as i64;
    if was_visible < before || end > interface.stride() as i64 {
        return Err(OUTSIDE);
    }
    packet.put_back(length - now);
    Ok(())
}

/// Takes over the bytes that the module has marked as changed.
#[inline]
fn take_bytes(
    memory: &[u8],
    interface: &ModuleInterface,
    packet: &mut Packet,
    answer: &Descriptor,
    data: u32,
) -> Result<(), Fault> {
    const OUTSIDE: Fault = Fault::Answer("changed bytes outside of the packet or its slot");
    let (from, to) = (usize::from(answer.dirty_from), usize::from(answer.dirty_to));
    let start = answer.data as usize;
    let slot_end = data as usize - interface.headroom + interface.stride();
    if to > packet.len() || start + to > slot_end {
        return Err(OUTSIDE);
    }
    let source = memory.get(start + from..start + to).ok_or(OUTSIDE)?;
    packet.bytes_mut()[from..to].copy_from_slice(source);
    Ok(())
}
