//! What a gateway does to the options of packets it forwards (RFC 791, section 3.1):
//! records its address and the time. Source routes and all else it leaves alone, as Click does.

use crate::ipv4::*;

/// What became of the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processed {
    /// There was nothing to do.
    Unchanged,
    /// The header has changed, and its checksum with it.
    Changed,
}

/// A malformed option: the byte of the header that an ICMP parameter problem points at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Counted from the header's first byte.
    pub pointer: u8,
}

/// The gateway's own addresses, in host byte order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The one that it records.
    pub preferred: u32,
    /// The others under which it accepts requests for a time stamp.
    pub others: Vec<u32>,
}

/// Milliseconds since midnight, universal time, from nanoseconds since 1970.
pub fn milliseconds_of_day(now: u64) -> u32 {
    (now / 1_000_000 % 86_400_000) as u32
}

/// Processes the options of a `header`, which is exactly as long as it says, at `time`
/// milliseconds since midnight. If there is a problem, options before it may have changed
/// already; the packet is not forwarded then.
pub fn process(header: &mut [u8], own: &Addresses, time: u32) -> Result<Processed, Problem> {
    let mut changed = false;
    let mut at = PLAIN;
    // Each step looks for the next option afresh, because it may write to the header.
    while let Some(option) = next(header, at)? {
        at = option.at + option.length;
        match option.kind {
            RECORD_ROUTE => changed |= record_route(header, option, own)?,
            TIMESTAMP => changed |= timestamp(header, option, own, time)?,
            _ => {}
        }
    }
    if !changed {
        return Ok(Processed::Unchanged);
    }
    set_checksum(header);
    Ok(Processed::Changed)
}

fn next(header: &[u8], at: usize) -> Result<Option<IpOption>, Problem> {
    Options::from(header, at).next().transpose().map_err(problem)
}

fn problem(at: usize) -> Problem {
    Problem { pointer: at as u8 }
}

/// Adds the gateway's address where the pointer points, if there is room.
fn record_route(header: &mut [u8], option: IpOption, own: &Addresses) -> Result<bool, Problem> {
    let pointer_at = option.at + 2;
    // The pointer counts from one.
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

/// Adds the time, alone, after the gateway's address, or where its address is asked for.
fn timestamp(
    header: &mut [u8],
    option: IpOption,
    own: &Addresses,
    time: u32,
) -> Result<bool, Problem> {
    let (pointer_at, flags_at) = (option.at + 2, option.at + 3);
    let free = pointer(header, option, 4).ok_or(problem(pointer_at))?;
    let flags = header[flags_at] & 0x0F;
    let place = option.at + free;
    let size = match flags {
        0 => 4,
        1 | 3 => 8,
        _ => return Err(problem(flags_at)),
    };
    if free + size > option.length {
        // A list of given addresses that is used up is no problem for anyone; Click calls a
        // full one malformed, but RFC 791 lets it pass.
        return if flags == 3 { Ok(false) } else { overflow(header, flags_at) };
    }
    match flags {
        0 => write(header, place, time),
        1 => {
            write(header, place, own.preferred);
            write(header, place + 4, time);
        }
        _ => {
            let asked = u32_at(header, place);
            if asked != own.preferred && !own.others.contains(&asked) {
                return Ok(false);
            }
            write(header, place + 4, time);
        }
    }
    header[pointer_at] += size as u8;
    Ok(true)
}

/// Where the option has its next free byte, counted from its first; none if that is before
/// byte `first` or the option has no pointer.
fn pointer(header: &[u8], option: IpOption, first: usize) -> Option<usize> {
    let free = usize::from(header[option.at + 2..].first()?.checked_sub(1)?);
    (option.length >= first && free >= first).then_some(free)
}

/// Counts a gateway that could not register; a count that is full already is a problem.
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

    fn own() -> Addresses {
        Addresses { preferred: 0x0a00_0001, others: vec![0x0a00_0002] }
    }

    /// The options after processing.
    fn run(options: &[u8]) -> Result<(Processed, Vec<u8>), u8> {
        let mut header = vec![0x40; PLAIN];
        header.extend(options);
        header.resize(header.len().next_multiple_of(4), 0);
        header[0] |= (header.len() / 4) as u8;
        let before = header.clone();
        match process(&mut header, &own(), TIME) {
            Ok(Processed::Unchanged) => {
                assert_eq!(header, before);
                Ok((Processed::Unchanged, options.to_vec()))
            }
            Ok(Processed::Changed) => {
                assert_eq!(checksum::of(&header), 0);
                Ok((Processed::Changed, header[PLAIN..][..options.len()].to_vec()))
            }
            Err(problem) => Err(problem.pointer),
        }
    }

    fn changed(options: &[u8]) -> Vec<u8> {
        let (processed, after) = run(options).unwrap();
        assert_eq!(processed, Processed::Changed);
        after
    }

    fn unchanged(options: &[u8]) -> bool {
        matches!(run(options), Ok((Processed::Unchanged, _)))
    }

    #[test]
    fn records_routes() {
        assert_eq!(changed(&[1, 7, 7, 4, 0, 0, 0, 0]), [1, 7, 7, 8, 10, 0, 0, 1]);
        assert!(unchanged(&[7, 7, 8, 9, 9, 9, 9]), "full");
        assert_eq!(run(&[7, 7, 5, 0, 0, 0, 0]), Err(22), "half a place");
        assert_eq!(run(&[7, 7, 3, 0, 0, 0, 0]), Err(22));
        assert_eq!(run(&[7, 7, 0, 0, 0, 0, 0]), Err(22));
        assert_eq!(run(&[7, 7, 12, 0, 0, 0, 0]), Err(22));
        assert_eq!(run(&[7, 9, 4, 0, 0, 0, 0]), Err(21), "longer than the header");
        assert_eq!(run(&[1, 1, 1, 7]), Err(24));
    }

    #[test]
    fn stamps_times() {
        assert_eq!(changed(&[68, 8, 5, 0, 0, 0, 0, 0]), [68, 8, 9, 0, 1, 2, 3, 4]);
        let both = [68, 12, 5, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(changed(&both), [68, 12, 13, 1, 10, 0, 0, 1, 1, 2, 3, 4]);
        let asked = [68, 12, 5, 3, 10, 0, 0, 2, 0, 0, 0, 0];
        assert_eq!(changed(&asked), [68, 12, 13, 3, 10, 0, 0, 2, 1, 2, 3, 4]);
        assert!(unchanged(&[68, 12, 5, 3, 10, 0, 0, 9, 0, 0, 0, 0]), "another's address");
        assert!(unchanged(&[68, 12, 13, 3, 10, 0, 0, 9, 0, 0, 0, 0]), "all given");
        assert_eq!(changed(&[68, 4, 5, 0]), [68, 4, 5, 0x10], "overflow is counted");
        assert_eq!(run(&[68, 4, 5, 0xF0]), Err(23), "until it is full");
        assert_eq!(run(&[68, 8, 5, 2, 0, 0, 0, 0]), Err(23));
        assert_eq!(run(&[68, 8, 4, 0, 0, 0, 0, 0]), Err(22));
        assert_eq!(run(&[68, 3, 5, 0]), Err(22));
    }

    #[test]
    fn leaves_others_alone() {
        assert!(unchanged(&[131, 7, 4, 1, 2, 3, 4]) && unchanged(&[137, 7, 4, 1, 2, 3, 4]));
        assert!(unchanged(&[]) && unchanged(&[0, 7, 7, 7]), "nothing counts after the end");
        let two = [131, 3, 4, 7, 7, 4, 0, 0, 0, 0];
        assert_eq!(changed(&two), [131, 3, 4, 7, 7, 8, 10, 0, 0, 1]);
        assert_eq!(milliseconds_of_day(86_400_000_000_000 * 3 + 5_000_000), 5);
    }

    proptest! {
        #[test]
        fn no_options_upset_it(options in prop::collection::vec(
            prop_oneof![any::<u8>(), Just(7), Just(68), 0u8..12], 0..=40,
        )) {
            if let Err(pointer) = run(&options) {
                prop_assert!((PLAIN..=LONGEST).contains(&usize::from(pointer)));
            }
        }
    }
}
