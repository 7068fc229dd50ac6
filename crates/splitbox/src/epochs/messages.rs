//! The payloads of datagrams about epochs.

use std::ops::Range;

/// The entry's report of its epochs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hello {
    /// The newest epoch that it may use; 0 if there is none.
    pub newest: u64,
    /// The epoch that it uses; 0 if there is none.
    pub current: u64,
}

impl Hello {
    /// Bytes of the payload.
    pub const LEN: usize = 16;

    /// The payload.
    pub fn encode(&self) -> [u8; Hello::LEN] {
        let mut bytes = [0; Hello::LEN];
        bytes[..8].copy_from_slice(&self.newest.to_be_bytes());
        bytes[8..].copy_from_slice(&self.current.to_be_bytes());
        bytes
    }

    /// The report in a payload; `None` if it has another length.
    pub fn decode(payload: &[u8]) -> Option<Hello> {
        let mut rest = payload;
        let hello = Hello { newest: take_u64(&mut rest)?, current: take_u64(&mut rest)? };
        rest.is_empty().then_some(hello)
    }
}

/// The rows of an epoch that a processor has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EpochStatus {
    /// The epoch.
    pub epoch: u64,
    /// The first ranges of chunks that it has not; none if it has all.
    pub missing: Vec<Range<u32>>,
}

/// A processor's report of all its epochs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Status {
    /// The epochs.
    pub epochs: Vec<EpochStatus>,
}

impl Status {
    /// Maximum number of ranges in the report of an epoch.
    pub const MAX_RANGES: usize = 16;

    /// The payload.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![self.epochs.len() as u8];
        for EpochStatus { epoch, missing } in &self.epochs {
            bytes.extend(epoch.to_be_bytes());
            bytes.push(missing.len() as u8);
            for range in missing {
                bytes.extend(range.start.to_be_bytes());
                bytes.extend(range.end.to_be_bytes());
            }
        }
        bytes
    }

    /// The report in a payload; `None` if it is none.
    pub fn decode(payload: &[u8]) -> Option<Status> {
        let mut rest = payload;
        let count = take_u8(&mut rest)?;
        let mut epochs = Vec::new();
        for _ in 0..count {
            let (epoch, ranges) = (take_u64(&mut rest)?, take_u8(&mut rest)?);
            let mut missing = Vec::new();
            for _ in 0..ranges {
                missing.push(take_u32(&mut rest)?..take_u32(&mut rest)?);
            }
            epochs.push(EpochStatus { epoch, missing });
        }
        rest.is_empty().then_some(Status { epochs })
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*bytes)
}

fn take_u8(rest: &mut &[u8]) -> Option<u8> {
    take::<1>(rest).map(|it| it[0])
}

fn take_u32(rest: &mut &[u8]) -> Option<u32> {
    take(rest).map(u32::from_be_bytes)
}

fn take_u64(rest: &mut &[u8]) -> Option<u64> {
    take(rest).map(u64::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn reports_are_read_as_they_were_written(
            hello: (u64, u64),
            epochs in prop::collection::vec((any::<u64>(), prop::collection::vec(any::<(u32, u32)>(), 0..16)), 0..9),
        ) {
            let hello = Hello { newest: hello.0, current: hello.1 };
            prop_assert_eq!(Hello::decode(&hello.encode()), Some(hello));
            let status = |(epoch, ranges): (u64, Vec<(u32, u32)>)| EpochStatus {
                epoch,
                missing: ranges.into_iter().map(|(start, end)| start..end).collect(),
            };
            let status = Status { epochs: epochs.into_iter().map(status).collect() };
            prop_assert_eq!(Status::decode(&status.encode()), Some(status));
        }

        #[test]
        fn other_bytes_are_no_reports_of_more_than_they_have(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            if let Some(status) = Status::decode(&bytes) {
                prop_assert_eq!(status.encode(), bytes.clone());
            }
            prop_assert_eq!(Hello::decode(&bytes).is_some(), bytes.len() == Hello::LEN);
        }
    }
}
