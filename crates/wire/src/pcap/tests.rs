//! Tests of the capture file reader and writer: all formats, and invalid files.

use super::*;
use crate::timestamp::Timestamp;
use proptest::prelude::*;

/// Builds files in either byte order.
#[derive(Clone)]
struct File(Vec<u8>, ByteOrder);

impl File {
    fn new(order: ByteOrder) -> Self {
        File(Vec::new(), order)
    }
    fn u16(mut self, n: u16) -> Self {
        let raw = if self.1 == ByteOrder::Big { n.to_be_bytes() } else { n.to_le_bytes() };
        self.0.extend(raw);
        self
    }
    fn u32(mut self, n: u32) -> Self {
        let raw = if self.1 == ByteOrder::Big { n.to_be_bytes() } else { n.to_le_bytes() };
        self.0.extend(raw);
        self
    }
    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }
    /// Appends a block with `body`, which is padded to a multiple of four bytes.
    fn block(self, kind: u32, body: File) -> Self {
        let mut body = body.0;
        body.resize(body.len().next_multiple_of(4), 0);
        let len = body.len() as u32 + 12;
        self.u32(kind).u32(len).bytes(&body).u32(len)
    }
    fn section(self) -> Self {
        let order = self.1;
        let body = File::new(order).u32(0x1a2b_3c4d).u16(1).u16(0).u32(!0).u32(!0);
        self.block(0x0a0d_0d0a, body)
    }
    fn interface(self, link: u16, snap: u32, options: &[u8]) -> Self {
        let body = File::new(self.1).u16(link).u16(0).u32(snap).bytes(options);
        self.block(1, body)
    }
    fn enhanced(self, interface: u32, ticks: u64, wire: u32, data: &[u8]) -> Self {
        let (hi, lo) = ((ticks >> 32) as u32, ticks as u32);
        let body = File::new(self.1).u32(interface).u32(hi).u32(lo);
        self.clone().block(6, body.u32(data.len() as u32).u32(wire).bytes(data))
    }
}

fn pcap(order: ByteOrder, magic: u32, minor: u16, link: u32) -> File {
    File::new(order).u32(magic).u16(2).u16(minor).u32(0).u32(0).u32(65535).u32(link)
}

fn read(file: &[u8]) -> Result<Vec<OwnedPacket>, Error> {
    Reader::new(file)?.collect()
}

fn fails(file: &[u8]) -> String {
    read(file).expect_err("is bad").to_string()
}

const ORDERS: [ByteOrder; 2] = [ByteOrder::Big, ByteOrder::Little];

#[test]
fn reads_all_variants_of_pcap() {
    for order in ORDERS {
        for (magic, nanos, extra) in
            [(MAGIC_MICROS, 7000, 0), (MAGIC_NANOS, 7, 0), (MAGIC_KUZNETSOV, 7000, 8)]
        {
            let file = pcap(order, magic, 4, 0xf000_0001).u32(1000).u32(7).u32(3).u32(60);
            let file = file.bytes(&vec![9; extra]).bytes(&[1, 2, 3]).0;
            let expected = OwnedPacket {
                timestamp: Timestamp::new(1000, nanos),
                wire_len: 60,
                link_type: link_type::ETHERNET,
                data: vec![1, 2, 3],
            };
            assert_eq!(read(&file).expect("is fine"), [expected], "{order:?} {magic:#x}");
        }
        let old = pcap(order, MAGIC_MICROS, 2, 101).u32(0).u32(0).u32(60).u32(2).bytes(&[1, 2]).0;
        let packets = read(&old).expect("is fine");
        assert_eq!((packets[0].wire_len, packets[0].data.len()), (60, 2));
    }
}

#[test]
fn written_files_are_read_back() {
    for (precision, nanos) in [(Precision::Micros, 123_456_000), (Precision::Nanos, 123_456_789)] {
        let mut writer = Writer::new(Vec::new(), 101, precision, 5).expect("memory takes all");
        let time = Timestamp::new(4_000_000_000, 123_456_789);
        writer.write(time, 3, &[1, 2, 3]).expect("memory takes all");
        writer.write(time, 2, &[1, 2, 3, 4, 5, 6]).expect("memory takes all");
        writer.flush().expect("memory takes all");
        let packets = read(&writer.into_inner()).expect("is fine");
        let time = Timestamp::new(4_000_000_000, nanos);
        let packet = |wire_len, data: &[u8]| OwnedPacket {
            timestamp: time,
            wire_len,
            link_type: 101,
            data: data.to_vec(),
        };
        assert_eq!(packets, [packet(3, &[1, 2, 3]), packet(5, &[1, 2, 3, 4, 5])]);
    }
}

#[test]
fn the_file_header_is_tcpdumps() {
    let header = file_header(1, Precision::Micros, 262_144);
    let expected =
        File::new(if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little });
    let expected = expected.u32(0xa1b2_c3d4).u16(2).u16(4).u32(0).u32(0).u32(262_144).u32(1);
    assert_eq!(header[..], expected.0);
}

#[test]
fn reads_all_blocks_of_pcapng() {
    for order in ORDERS {
        let nanos =
            File::new(order).u16(2).u16(3).bytes(b"eth0").u16(9).u16(1).bytes(&[9, 0, 0, 0]);
        let offset = nanos.clone().u16(14).u16(8).bytes(&if order == ByteOrder::Big {
            10i64.to_be_bytes()
        } else {
            10i64.to_le_bytes()
        });
        let packet = File::new(order).u16(2).u16(77).u32(0).u32(5).u32(2).u32(9).bytes(&[8, 8]);
        let file = File::new(order)
            .section()
            .block(0x0bad, File::new(order).bytes(&[1; 20]))
            .interface(1, 0, &[])
            .interface(101, 0, &nanos.0)
            .enhanced(0, 2_000_001, 60, &[1, 2, 3])
            .block(5, File::new(order).bytes(&[1; 8]))
            .interface(228, 4, &offset.0)
            .enhanced(1, 2_000_000_001, 4, &[4; 4])
            .block(2, packet)
            .block(3, File::new(order).u32(2).bytes(&[7, 7]))
            .section()
            .interface(113, 2, &[])
            .block(3, File::new(order).u32(200).bytes(&[6, 6]));
        let packet = |secs, nanos, wire_len, link_type, data: &[u8]| OwnedPacket {
            timestamp: Timestamp::new(secs, nanos),
            wire_len,
            link_type,
            data: data.to_vec(),
        };
        let mut reader = Reader::new(&file.0[..]).expect("is fine");
        assert_eq!(reader.link_type(), Some(1));
        let packets: Result<Vec<_>, _> = reader.by_ref().collect();
        assert_eq!(
            packets.expect("is fine"),
            [
                packet(2, 1000, 60, 1, &[1, 2, 3]),
                packet(2, 1, 4, 101, &[4; 4]),
                packet(10, 5, 9, 228, &[8, 8]),
                packet(0, 0, 2, 1, &[7, 7]),
                packet(0, 0, 200, 113, &[6, 6]),
            ]
        );
        assert_eq!(reader.link_type(), Some(113));
    }
}

#[test]
fn reads_all_timestamp_resolutions() {
    for (resolution, ticks, time) in [
        (0, 5, Timestamp::new(5, 0)),
        (3, 5, Timestamp(5_000_000)),
        (12, 5_000, Timestamp(5)),
        (0x80 | 10, 512, Timestamp(500_000_000)),
        (0x7f, u64::MAX, Timestamp(0)),
        (0xff, u64::MAX, Timestamp(0)),
        (0, u64::MAX, Timestamp(i64::MAX)),
    ] {
        let options = File::new(ByteOrder::Big).u16(9).u16(1).bytes(&[resolution, 0, 0, 0]).0;
        let file = File::new(ByteOrder::Big).section().interface(1, 0, &options);
        let packets = read(&file.enhanced(0, ticks, 0, &[]).0).expect("is fine");
        assert_eq!(packets[0].timestamp, time, "{resolution}");
    }
}

#[test]
fn errors_have_position_and_cause() {
    let head = pcap(ByteOrder::Big, MAGIC_MICROS, 4, 1);
    assert_eq!(fails(b"GIF89a..."), "neither pcap nor pcapng: begins with 47 49 46 38");
    assert_eq!(fails(b""), "file is cut off in what begins at byte 0");
    assert_eq!(fails(&head.0[..20]), "file is cut off in what begins at byte 0");
    let newer = File::new(ByteOrder::Big).u32(MAGIC_MICROS).u16(3).u16(0).bytes(&[0; 16]);
    assert_eq!(fails(&newer.0), "unknown pcap version 3.0");
    let record = head.clone().u32(0).u32(0).u32(4).u32(4).bytes(&[1, 2, 3]);
    assert_eq!(fails(&record.0), "file is cut off in what begins at byte 24");
    assert_eq!(fails(&record.0[..30]), "file is cut off in what begins at byte 24");
    let long = head.clone().u32(0).u32(0).u32(0x7fff_ffff).u32(4);
    assert_eq!(fails(&long.0), "packet at byte 24 claims 2147483647 bytes, more than 262144");
    assert_eq!(read(&head.0).expect("is fine"), []);

    let ng = File::new(ByteOrder::Little).section();
    assert_eq!(Reader::new(&ng.0[..]).expect("is fine").link_type(), None);
    let lost = ng.clone().enhanced(0, 0, 0, &[]);
    const WHERE: &str = "bad pcapng block at byte";
    assert_eq!(
        fails(&lost.0),
        format!("{WHERE} 28: packet of an interface that was not described")
    );
    let ng = ng.interface(1, 0, &[]);
    let lost = ng.clone().enhanced(1, 0, 0, &[]);
    assert!(fails(&lost.0).ends_with("not described"));
    let odd = ng.clone().u32(6).u32(13);
    assert_eq!(fails(&odd.0), format!("{WHERE} 48: impossible length"));
    let mut differ = ng.clone().enhanced(0, 0, 0, &[]);
    *differ.0.last_mut().expect("is not empty") ^= 1;
    assert_eq!(fails(&differ.0), format!("{WHERE} 48: its two lengths differ"));
    let short = ng.clone().block(6, File::new(ByteOrder::Little).u32(0));
    assert_eq!(fails(&short.0), format!("{WHERE} 48: too short for a packet"));
    let body = File::new(ByteOrder::Little).u32(0).u32(0).u32(0).u32(9).u32(9).bytes(&[1; 8]);
    let liar = ng.clone().block(6, body);
    assert_eq!(fails(&liar.0), format!("{WHERE} 48: packet longer than its block"));
    let huge = ng.u32(6).u32(0xffff_fff0);
    assert!(fails(&huge.0).starts_with("packet at byte 48 claims"));
    let orderless = File::new(ByteOrder::Big).u32(0x0a0d_0d0a).u32(28).u32(5);
    assert_eq!(fails(&orderless.0), format!("{WHERE} 0: no byte order"));
}

#[test]
fn the_reader_ends_after_an_error() {
    let file =
        pcap(ByteOrder::Big, MAGIC_MICROS, 4, 1).u32(0).u32(0).u32(!0).u32(0).bytes(&[0; 99]);
    let mut reader = Reader::new(&file.0[..]).expect("has a header");
    assert!(reader.next_packet().is_err());
    assert!(matches!(reader.next_packet(), Ok(None)));
    assert!(reader.next().is_none());
}

#[test]
fn all_packets_use_one_buffer() {
    let mut file = pcap(ByteOrder::Big, MAGIC_MICROS, 4, 1);
    for len in [100u32, 1500, 60, 1500] {
        file = file.u32(0).u32(0).u32(len).u32(len).bytes(&vec![len as u8; len as usize]);
    }
    let mut reader = Reader::new(&file.0[..]).expect("has a header");
    let (mut addresses, mut lens) = (Vec::new(), Vec::new());
    while let Some(packet) = reader.next_packet().expect("is fine") {
        addresses.push(packet.data.as_ptr());
        lens.push(packet.data.len());
    }
    assert_eq!(lens, [100, 1500, 60, 1500]);
    assert!(addresses[1..].iter().all(|&address| address == addresses[1]), "the buffer moved");
}

proptest! {
    #[test]
    fn no_file_panics(magic in 0usize..5, bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let magic = [MAGIC_MICROS, MAGIC_NANOS, MAGIC_KUZNETSOV, 0x0a0d_0d0a, 0][magic];
        for order in ORDERS {
            let _ = read(&File::new(order).u32(magic).bytes(&bytes).0);
            let _ = read(&pcap(order, magic, 4, 1).bytes(&bytes).0);
            let _ = read(&File::new(order).section().bytes(&bytes).0);
            let _ = read(&File::new(order).section().interface(1, 9, &bytes).enhanced(0, 1, 2, &bytes).0);
        }
    }

    #[test]
    fn no_flipped_bit_panics(at: usize, bit in 0u8..8) {
        for order in ORDERS {
            let file = File::new(order).section().interface(1, 0, &[0; 8]);
            let mut file = file.enhanced(0, 5, 60, &[3; 50]).block(3, File::new(order).u32(7)).0;
            let at = at % file.len();
            file[at] ^= 1u8 << bit;
            let _ = read(&file);
        }
    }

    #[test]
    fn written_packets_are_read_back(packets in proptest::collection::vec((any::<u32>(), 0u32..1_000_000_000, proptest::collection::vec(any::<u8>(), 0..50)), 0..9)) {
        let mut writer = Writer::new(Vec::new(), 1, Precision::Nanos, 65535).expect("memory takes all");
        for (secs, nanos, data) in &packets {
            let time = Timestamp::new((*secs).into(), (*nanos).into());
            writer.write(time, 100, data).expect("memory takes all");
        }
        let back = read(&writer.into_inner()).expect("is fine");
        prop_assert_eq!(back.len(), packets.len());
        for (packet, (secs, nanos, data)) in back.iter().zip(&packets) {
            prop_assert_eq!(packet.timestamp, Timestamp::new((*secs).into(), (*nanos).into()));
            prop_assert_eq!((&packet.data, packet.wire_len), (data, 100));
        }
    }
}
