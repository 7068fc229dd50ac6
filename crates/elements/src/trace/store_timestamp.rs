//! `StoreTimestamp`: writes the timestamp into packets.

use castanet_element::prelude::*;

/// Writes each packet's timestamp into its data, at OFFSET or behind its end.
///
/// The timestamp takes 8 bytes: the nanoseconds since 1970, a number in the byte
/// order of this machine. A packet that ends before the last of these bytes
/// grows; new bytes before OFFSET are zero.
///
/// ```click
/// in -> StoreTimestamp(1) -> out;  in2 -> StoreTimestamp(TAIL true) -> out2
/// > in   hex aa bb ; time 1
/// > in   hex ; time 0
/// > in   hex 01 02 03 04 05 06 07 08 09 0a ; time 2
/// > in2  hex aa ; time 1.5
/// < out  hex aa 00 ca 9a 3b 00 00 00 00
/// < out  hex 00 00 00 00 00 00 00 00 00
/// < out  hex 01 00 94 35 77 00 00 00 00 0a
/// < out2 hex aa 00 2f 68 59 00 00 00 00
/// ```
#[derive(Element)]
#[element(room = "trace", args = StoreTimestampArgs)]
pub struct StoreTimestamp {
    /// Where to write, in bytes from the start; `None` for the end.
    offset: Option<usize>,
}

#[derive(Args)]
pub struct StoreTimestampArgs {
    /// Offset in the packet, in bytes, at most 1048576; not together with TAIL.
    #[arg(default = -1, range = ..=1048576)]
    offset: i32,
    /// Whether to append the timestamp to the packet.
    #[arg(keyword, default = false)]
    tail: bool,
}

impl Build for StoreTimestamp {
    type Args = StoreTimestampArgs;
    fn build(args: StoreTimestampArgs, _: &Setup) -> Result<Self, ArgError> {
        let offset = usize::try_from(args.offset).ok();
        if offset.is_some() == args.tail {
            return Err(ArgError::new("supply exactly one of 'OFFSET' and 'TAIL'"));
        }
        Ok(StoreTimestamp { offset })
    }
}

impl PerPacket for StoreTimestamp {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    fn packet(&self, (): &mut (), packet: &mut Packet) {
        let time = packet.timestamp().to_ne_bytes();
        let offset = self.offset.unwrap_or(packet.len());
        let missing = (offset + time.len()).saturating_sub(packet.len());
        packet.put_back(missing);
        if let Some(bytes) = packet.bytes_mut()[offset..].first_chunk_mut() {
            *bytes = time;
        }
    }
}
