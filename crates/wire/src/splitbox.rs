//! The header of datagrams between the parties of SplitBox (`docs/splitbox.md`).

header! {
    /// A datagram of SplitBox: this header, a sealed payload, and a tag of 16 bytes that authenticates
    /// both.
    ///
    /// ```text
    ///  0                   1                   2                   3
    ///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |    Version    |     Kind      |   Processor   |   Reserved    |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |                                                               |
    /// +                             Epoch                             +
    /// |                                                               |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |                                                               |
    /// +                            Counter                            +
    /// |                                                               |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// ```
    #[derive(Debug)]
    SplitBoxHeader [20] {
        /// Version of the protocol: [`SplitBoxHeader::V1`].
        version, set_version: u8 = VERSION @ 0;
        /// Kind of the payload.
        kind, set_kind: u8 = KIND @ 1;
        /// Number of the processor that the datagram goes to or comes from; 0 for the client's part.
        processor, set_processor: u8 = PROCESSOR @ 2;
        /// Reserved, zero.
        reserved, set_reserved: u8 = RESERVED @ 3;
        /// Number of the epoch.
        epoch, set_epoch: u64 = EPOCH @ 4;
        /// Number of the packet in the epoch.
        counter, set_counter: u64 = COUNTER @ 12;
    }
}

impl SplitBoxHeader {
    /// Version 1.
    pub const V1: u8 = 1;
    /// Kind of a blinded header string, from the entry to a processor.
    pub const MATCH: u8 = 1;
    /// Kind of a blinded header string with the rest of its packet, from the entry to the client.
    pub const REST: u8 = 2;
    /// Kind of a share of a result, from a processor to the client.
    pub const SHARE: u8 = 3;

    /// Makes the header of a datagram of version 1.
    pub fn new(kind: u8, processor: u8, epoch: u64, counter: u64) -> Self {
        let mut header = SplitBoxHeader([0; 20]);
        header.set_version(Self::V1);
        header.set_kind(kind);
        header.set_processor(processor);
        header.set_epoch(epoch);
        header.set_counter(counter);
        header
    }
}
