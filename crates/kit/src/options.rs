//! IP options in a gateway (RFC 791, section 3.1): records the gateway's address and the time.
//! Source routes and other options are left alone, as in Click.

use castanet_wire::Ipv4Header;
use castanet_wire::ipv4::{OPTION_RECORD_ROUTE, OPTION_TIMESTAMP};
use castanet_wire::options::{NOP, RawOptions};

/// Whether the options have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionsChange {
    /// No option needed processing.
    Unchanged,
    /// The header has changed, with its checksum.
    Changed,
}

/// A malformed option: the byte of the header that an ICMP parameter problem points at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The offset from the header's first byte.
    pub pointer: u8,
}

/// The gateway's own addresses, in host byte order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayAddresses {
    /// The address that it records.
    pub preferred: u32,
    /// Further addresses for which it accepts requests for a time stamp.
    pub others: Vec<u32>,
}

/// Milliseconds since midnight UTC, from nanoseconds since 1970.
pub fn milliseconds_of_day(now: u64) -> u32 {
    (now / 1_000_000 % 86_400_000) as u32
}

/// Processes the options of a `header`, which must have exactly its header length, at `time`
/// milliseconds since midnight. In case of a problem, options before it may have been changed; the
/// packet must not be forwarded then.
pub fn process(
    header: &mut [u8],
    own: &GatewayAddresses,
    time: u32,
) -> Result<OptionsChange, Problem> {
    let mut changed = false;
    let mut at = Ipv4Header::LEN;
    // Each step looks for the next option again, because the previous one may have written to the
    // header.
    while let Some(option) = next(header, at)? {
        at = option.at + option.length;
        match option.kind {
            OPTION_RECORD_ROUTE => changed |= record_route(header, option, own)?,
            OPTION_TIMESTAMP => changed |= timestamp(header, option, own, time)?,
            _ => {}
        }
    }
    if !changed {
        return Ok(OptionsChange::Unchanged);
    }
    if let Some((header, options)) = Ipv4Header::from_prefix_mut(header) {
        header.update_checksum(options);
    }
    Ok(OptionsChange::Changed)
}

/// An option and its offset in the header.
#[derive(Clone, Copy)]
struct IpOption {
    kind: u8,
    at: usize,
    length: usize,
}

/// The first option from offset `at` on, at which one starts. An impossible length is a problem.
fn next(header: &[u8], at: usize) -> Result<Option<IpOption>, Problem> {
    let mut options = RawOptions::new(header.get(at..).unwrap_or_default());
    let option = options.find(|option| option.kind != NOP);
    if options.malformed() {
        return Err(problem(at + options.position() + 1));
    }
    Ok(option.map(|it| IpOption { kind: it.kind, at: at + it.offset, length: it.len() }))
}

fn problem(at: usize) -> Problem {
    Problem { pointer: at as u8 }
}

/// Writes the gateway's address at the option's pointer, if there is room.
fn record_route(
    header: &mut [u8],
    option: IpOption,
    own: &GatewayAddresses,
) -> Result<bool, Problem> {
    let pointer_at = option.at + 2;
    // The pointer starts at 1.
    let free = pointer(header, option, 3).ok_or(problem(pointer_at))?;
    if free == option.length {
        return Ok(false);
    }
    if free + 4 > option.length {
        return Err(problem(pointer_at));
    }
    write(header, option.at + free, own.preferred);
    header[pointer_at] += 4;
    Ok(true)
}

/// Writes the time: alone, after the gateway's address, or after a requested address.
fn timestamp(
    header: &mut [u8],
    option: IpOption,
    own: &GatewayAddresses,
    time: u32,
) -> Result<bool, Problem> {
    let (pointer_at, flags_at) = (option.at + 2, option.at + 3);
    let free = pointer(header, option, 4).ok_or(problem(pointer_at))?;
    let flags = header[flags_at] & 0x0F;
    let position = option.at + free;
    let size = match flags {
        0 => 4,
        1 | 3 => 8,
        _ => return Err(problem(flags_at)),
    };
    if free + size > option.length {
        // A completed list of requested addresses is no problem. Click treats a full list as
        // malformed, but RFC 791 lets it pass.
        return if flags == 3 { Ok(false) } else { overflow(header, flags_at) };
    }
    match flags {
        0 => write(header, position, time),
        1 => {
            write(header, position, own.preferred);
            write(header, position + 4, time);
        }
        _ => {
            let requested =
                header[position..].first_chunk().map_or(0, |it| u32::from_be_bytes(*it));
            if requested != own.preferred && !own.others.contains(&requested) {
                return Ok(false);
            }
            write(header, position + 4, time);
        }
    }
    header[pointer_at] += size as u8;
    Ok(true)
}

/// The offset of the option's next free byte; `None` if it is before byte `first` or the option has
/// no pointer.
fn pointer(header: &[u8], option: IpOption, first: usize) -> Option<usize> {
    let free = usize::from(header[option.at + 2..].first()?.checked_sub(1)?);
    (option.length >= first && free >= first).then_some(free)
}

/// Increments the overflow count; an overflow of the count itself is a problem.
fn overflow(header: &mut [u8], flags_at: usize) -> Result<bool, Problem> {
    match header[flags_at].checked_add(0x10) {
        Some(counted) => {
            header[flags_at] = counted;
            Ok(true)
        }
        None => Err(problem(flags_at)),
    }
}

fn write(header: &mut [u8], at: usize, word: u32) {
    header[at..at + 4].copy_from_slice(&word.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use castanet_wire::checksum;
    use proptest::prelude::*;

    const TIME: u32 = 0x0102_0304;

    fn own() -> GatewayAddresses {
        GatewayAddresses { preferred: 0x0a00_0001, others: vec![0x0a00_0002] }
    }

    /// The options after processing.
    fn run(options: &[u8]) -> Result<(OptionsChange, Vec<u8>), u8> {
        let mut header = vec![0x40; Ipv4Header::LEN];
        header.extend(options);
        header.resize(header.len().next_multiple_of(4), 0);
        header[0] |= (header.len() / 4) as u8;
        let before = header.clone();
        match process(&mut header, &own(), TIME) {
            Ok(OptionsChange::Unchanged) => {
                assert_eq!(header, before);
                Ok((OptionsChange::Unchanged, options.to_vec()))
            }
            Ok(OptionsChange::Changed) => {
                assert_eq!(checksum::of(&header), 0);
                Ok((OptionsChange::Changed, header[Ipv4Header::LEN..][..options.len()].to_vec()))
            }
            Err(problem) => Err(problem.pointer),
        }
    }

    fn changed(options: &[u8]) -> Vec<u8> {
        let (processed, after) = run(options).unwrap();
        assert_eq!(processed, OptionsChange::Changed);
        after
    }

    fn unchanged(options: &[u8]) -> bool {
        matches!(run(options), Ok((OptionsChange::Unchanged, _)))
    }

    #[test]
    fn records_routes() {
        assert_eq!(changed(&[1, 7, 7, 4, 0, 0, 0, 0]), [1, 7, 7, 8, 10, 0, 0, 1]);
        assert!(unchanged(&[7, 7, 8, 9, 9, 9, 9]), "full");
        assert_eq!(run(&[7, 7, 5, 0, 0, 0, 0]), Err(22), "half a position");
        assert_eq!(run(&[7, 7, 3, 0, 0, 0, 0]), Err(22));
        assert_eq!(run(&[7, 7, 0, 0, 0, 0, 0]), Err(22));
        assert_eq!(run(&[7, 7, 12, 0, 0, 0, 0]), Err(22));
        assert_eq!(run(&[7, 9, 4, 0, 0, 0, 0]), Err(21), "longer than the header");
        assert_eq!(run(&[1, 1, 1, 7]), Err(24));
    }

    #[test]
    fn writes_timestamps() {
        assert_eq!(changed(&[68, 8, 5, 0, 0, 0, 0, 0]), [68, 8, 9, 0, 1, 2, 3, 4]);
        let both = [68, 12, 5, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(changed(&both), [68, 12, 13, 1, 10, 0, 0, 1, 1, 2, 3, 4]);
        let requested = [68, 12, 5, 3, 10, 0, 0, 2, 0, 0, 0, 0];
        assert_eq!(changed(&requested), [68, 12, 13, 3, 10, 0, 0, 2, 1, 2, 3, 4]);
        assert!(unchanged(&[68, 12, 5, 3, 10, 0, 0, 9, 0, 0, 0, 0]), "another's address");
        assert!(unchanged(&[68, 12, 13, 3, 10, 0, 0, 9, 0, 0, 0, 0]), "all given");
        assert_eq!(changed(&[68, 4, 5, 0]), [68, 4, 5, 0x10], "overflow is counted");
        assert_eq!(run(&[68, 4, 5, 0xF0]), Err(23), "until it is full");
        assert_eq!(run(&[68, 8, 5, 2, 0, 0, 0, 0]), Err(23));
        assert_eq!(run(&[68, 8, 4, 0, 0, 0, 0, 0]), Err(22));
        assert_eq!(run(&[68, 3, 5, 0]), Err(22));
    }

    #[test]
    fn leaves_other_options_alone() {
        assert!(unchanged(&[131, 7, 4, 1, 2, 3, 4]) && unchanged(&[137, 7, 4, 1, 2, 3, 4]));
        assert!(unchanged(&[]) && unchanged(&[0, 7, 7, 7]), "nothing counts after the end");
        let two = [131, 3, 4, 7, 7, 4, 0, 0, 0, 0];
        assert_eq!(changed(&two), [131, 3, 4, 7, 7, 8, 10, 0, 0, 1]);
        assert_eq!(milliseconds_of_day(86_400_000_000_000 * 3 + 5_000_000), 5);
    }

    proptest! {
        #[test]
        fn processing_never_panics(options in prop::collection::vec(
            prop_oneof![any::<u8>(), Just(7), Just(68), 0u8..12], 0..=40,
        )) {
            if let Err(pointer) = run(&options) {
                prop_assert!((Ipv4Header::LEN..=60).contains(&usize::from(pointer)));
            }
        }
    }
}
