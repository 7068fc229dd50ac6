//! Copies a batch into a module's memory, and the module's answers out of it.
//!
//! Only the bytes that the module asks for (`snap`) go in, and only those that it has marked as
//! changed come out: the rest of a packet never leaves its frame.

use crate::abi::{ANNOTATIONS, DESCRIPTOR, DROP_VERDICT, Descriptor, NO_HEADER};
use crate::exit::WasmExit;
use crate::fault::Fault;
use crate::interface::ModuleInterface;
use castanet_element::fate::Fate;
use castanet_packet::Packet;

/// Copies packets that came on input `port` into the memory of a module: no more than
/// [`ModuleInterface`] has room for.
pub fn copy_in(memory: &mut [u8], interface: &ModuleInterface, packets: &[Packet], port: u8) {
    // For frequent lengths the compiler knows how many bytes it copies.
    match interface.snap {
        16 => copy_heads::<16, 8>(memory, interface, packets, port),
        32 => copy_heads::<32, 16>(memory, interface, packets, port),
        48 => copy_heads::<48, 24>(memory, interface, packets, port),
        64 => copy_heads::<64, 32>(memory, interface, packets, port),
        128 => copy_heads::<128, 64>(memory, interface, packets, port),
        _ => copy_heads::<0, 0>(memory, interface, packets, port),
    }
    if !interface.annotations.is_empty() {
        copy_annotations(memory, interface, packets);
    }
}

/// Writes the descriptor and the first bytes of each packet: `N`, or `snap` of the module if that is 0. `HALF`
/// is half of `N`.
#[inline]
fn copy_heads<const N: usize, const HALF: usize>(
    memory: &mut [u8],
    interface: &ModuleInterface,
    packets: &[Packet],
    port: u8,
) {
    let (first, stride) = (interface.first_byte(), interface.stride());
    let slots = memory[interface.slots.clone()].chunks_exact_mut(stride);
    for (packet, slot) in packets.iter().zip(slots) {
        let (front, room) = slot.split_at_mut(first);
        let bytes = packet.bytes();
        match (room.first_chunk_mut::<N>(), bytes.first_chunk::<N>()) {
            (Some(to), Some(from)) if N > 0 => *to = *from,
            // Fewer bytes, but more than half: both halves overlap.
            _ if N > 0 && bytes.len() >= HALF => copy_by::<HALF>(bytes, &mut room[..bytes.len()]),
            _ => copy_first(bytes, room),
        }
        let network = packet.network_offset().and_then(|offset| u16::try_from(offset).ok());
        let descriptor = Descriptor {
            length: packet.len() as u32,
            data: first as u16,
            network: network.unwrap_or(NO_HEADER),
            paint: packet.paint(),
            input: port,
            ..Descriptor::default()
        };
        if let Some(place) = front.first_chunk_mut::<DESCRIPTOR>() {
            *place = descriptor.to_bytes();
        }
    }
}

/// Copies as many bytes as there are and fit. Apart, or the compiler makes one call of `memcpy` of both
/// ways to copy, which takes twice as long as all the rest.
#[inline(never)]
fn copy_first(from: &[u8], to: &mut [u8]) {
    let length = from.len().min(to.len());
    to[..length].copy_from_slice(&from[..length]);
}

/// Writes the annotations that a module has asked for.
fn copy_annotations(memory: &mut [u8], interface: &ModuleInterface, packets: &[Packet]) {
    let (places, _) = memory[interface.annotations.clone()].as_chunks_mut::<ANNOTATIONS>();
    for (packet, place) in packets.iter().zip(places) {
        place[..4].copy_from_slice(&packet.dst().octets());
        let timestamp = if interface.has_timestamps { packet.timestamp() } else { 0 };
        place[8..].copy_from_slice(&timestamp.to_le_bytes());
    }
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
    let first = interface.first_byte();
    let slots = memory[interface.slots.clone()].chunks_exact(interface.stride());
    for ((packet, slot), fate) in packets.iter_mut().zip(slots).zip(fates) {
        let Some(answer) = slot.first_chunk::<DESCRIPTOR>() else { continue };
        let answer = Descriptor::from_bytes(answer);
        let verdict = usize::from(answer.verdict);
        *fate = match verdict < outputs {
            true => verdict as u8,
            false => reason(verdict, interface.reasons.len())?,
        };
        if answer.length != packet.len() as u32 || usize::from(answer.data) != first {
            change_bounds(packet, interface, &answer)?;
        }
        if answer.dirty_from < answer.dirty_to {
            let (from, to) = (usize::from(answer.dirty_from), usize::from(answer.dirty_to));
            let source = slot.get(usize::from(answer.data) + from..usize::from(answer.data) + to);
            let place = packet.bytes_mut().get_mut(from..to);
            let (Some(source), Some(place)) = (source, place) else {
                return Err(Fault::Answer("changed bytes outside of the packet or its slot"));
            };
            copy_few(source, place);
        }
        packet.set_paint(answer.paint);
    }
    if !interface.annotations.is_empty() {
        take_annotations(memory, interface, packets);
    }
    Ok(())
}

/// The index of the fate that a verdict means which is no output.
#[cold]
fn reason(verdict: usize, reasons: usize) -> Result<u8, Fault> {
    match verdict.checked_sub(usize::from(DROP_VERDICT)) {
        Some(reason) if reason < reasons => Ok(WasmExit::Reason(reason as u8).index()),
        Some(_) => Err(Fault::Answer("a reason to drop that the module does not declare")),
        None => Err(Fault::Answer("an output that is not connected")),
    }
}

/// Moves the front and the end of a packet to where the module says.
#[inline(never)]
fn change_bounds(
    packet: &mut Packet,
    interface: &ModuleInterface,
    answer: &Descriptor,
) -> Result<(), Fault> {
    const OUTSIDE: Fault = Fault::Answer("a packet outside of its slot");
    let (first, data) = (interface.first_byte(), usize::from(answer.data));
    let before = packet.len();
    let was_visible = before.min(interface.snap);
    if data < DESCRIPTOR || data > first + was_visible {
        return Err(OUTSIDE);
    }
    packet.pull_front(data.saturating_sub(first));
    if data < first {
        packet.push_front(first - data).fill(0);
    }
    let (length, now) = (answer.length as usize, packet.len());
    if length <= now {
        packet.truncate(length);
        return Ok(());
    }
    // More bytes at the end: only where the module has seen the end, and within the slot.
    if was_visible < before || data + length > interface.stride() {
        return Err(OUTSIDE);
    }
    packet.put_back(length - now);
    Ok(())
}

/// Copies bytes of equal length, mostly a few: a call of `memcpy` would take longer than they do.
#[inline(always)]
fn copy_few(from: &[u8], to: &mut [u8]) {
    match from.len() {
        4..=8 => copy_by::<4>(from, to),
        9..=16 => copy_by::<8>(from, to),
        _ => copy_others(from, to),
    }
}

/// Copies the first `N` and the last `N` of `N` to twice `N` bytes: the two may overlap.
#[inline(always)]
fn copy_by<const N: usize>(from: &[u8], to: &mut [u8]) {
    if let (Some(to), Some(from)) = (to.first_chunk_mut::<N>(), from.first_chunk::<N>()) {
        *to = *from;
    }
    if let (Some(to), Some(from)) = (to.last_chunk_mut::<N>(), from.last_chunk::<N>()) {
        *to = *from;
    }
}

/// The same for other numbers.
#[inline(never)]
fn copy_others(from: &[u8], to: &mut [u8]) {
    to.copy_from_slice(from);
}

/// Takes the annotations over.
fn take_annotations(memory: &[u8], interface: &ModuleInterface, packets: &mut [Packet]) {
    let (places, _) = memory[interface.annotations.clone()].as_chunks::<ANNOTATIONS>();
    for (packet, place) in packets.iter_mut().zip(places) {
        let destination = [place[0], place[1], place[2], place[3]];
        if packet.dst().octets() != destination {
            packet.set_dst(destination.into());
        }
    }
}
