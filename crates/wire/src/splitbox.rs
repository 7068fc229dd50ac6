//! The header of datagrams between the parties of SplitBox (`docs/splitbox.md`).

header! {
    /// A datagram of SplitBox: this header, a sealed payload, and a tag of 16 bytes that authenticates
    /// both.
    ///
    /// ```text
    ///  0                   1                   2                   3
    ///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |    Version    |     Kind      |   Processor   |     Part      |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |                             Setup                             |
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
    SplitBoxHeader [24] {
        /// Version of the protocol: [`SplitBoxHeader::V1`].
        version, set_version: u8 = VERSION @ 0;
        /// Kind of the payload.
        kind, set_kind: u8 = KIND @ 1;
        /// Number of the processor that the datagram goes to or comes from; 0 on links between the entry
        /// and the client.
        processor, set_processor: u8 = PROCESSOR @ 2;
        /// Number of the part, of a packet that takes several datagrams.
        part, set_part: u8 = PART @ 3;
        /// Number of the setup, a random one.
        setup, set_setup: u32 = SETUP @ 4;
        /// Number of the epoch; in datagrams about epochs, the session of the entry or the processor.
        epoch, set_epoch: u64 = EPOCH @ 8;
        /// Number of the packet in the epoch, of the chunk of rows, or of the datagram in the session.
        counter, set_counter: u64 = COUNTER @ 16;
    }
}

impl SplitBoxHeader {
    /// Version 1.
    pub const V1: u8 = 1;
    /// Kind of a blinded header string, from the entry to a processor.
    pub const MATCH: u8 = 1;
    /// Kind of a packet, from the entry to the client.
    pub const REST: u8 = 2;
    /// Kind of a share of a result, from a processor to the client.
    pub const SHARE: u8 = 3;
    /// Kind of a chunk of rows of an epoch, from the client to a processor.
    pub const ROWS: u8 = 4;
    /// Kind of a processor's report of the rows that it has, to the client.
    pub const STATUS: u8 = 5;
    /// Kind of the entry's report of the epochs that it has, to the client.
    pub const HELLO: u8 = 6;
    /// Kind of the permission to use an epoch, from the client to the entry.
    pub const GRANT: u8 = 7;

    /// Makes a header of version 1, whose other fields are 0.
    pub fn new(kind: u8) -> Self {
        let mut header = SplitBoxHeader([0; 24]);
        header.set_version(Self::V1);
        header.set_kind(kind);
        header
    }
}
