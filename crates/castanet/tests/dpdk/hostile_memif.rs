//! A memif peer that lies: memif's side "server" (libmemif 4, protocol 2.0), as far as it takes to
//! hand over descriptors whose lengths are not so.

use super::{number, packets, require_dpdk};
use crate::program::{folder, root};
use castanet_lab::Command;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketAddrUnix,
    SocketType, accept, bind, listen, recvmsg, send, socket,
};
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes of every message.
const MESSAGE: usize = 128;
const VERSION: u16 = 0x200;

// Types of messages.
const ACK: u16 = 1;
const HELLO: u16 = 2;
const ADD_REGION: u16 = 4;
const ADD_RING: u16 = 5;
const CONNECT: u16 = 6;
const CONNECTED: u16 = 7;

/// Set in `ADD_RING` where packets go from the client to the server.
const TO_SERVER: u16 = 1;
/// Set in a descriptor whose packet goes on in the next.
const NEXT: u16 = 1;

// Offsets in a memif ring.
const HEAD: u64 = 6;
const TAIL: u64 = 64;
const DESCRIPTORS: u64 = 128;

/// The peer, once it is connected.
struct MemifPeer {
    _connection: OwnedFd,
    regions: Vec<File>,
    /// Position of the ring to the client: region, offset, descriptors.
    ring: (usize, u64, u16),
    tail: u16,
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

impl MemifPeer {
    /// Waits for a client.
    fn connect(path: &Path) -> (OwnedFd, impl FnOnce(&OwnedFd) -> MemifPeer) {
        let door = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        bind(&door, &SocketAddrUnix::new(path).unwrap()).unwrap();
        listen(&door, 1).unwrap();
        (door, |door| MemifPeer::greet(accept(door).unwrap()))
    }

    fn greet(connection: OwnedFd) -> MemifPeer {
        let say = |kind: u16, rest: &[u8]| {
            let mut message = [0; MESSAGE];
            message[..2].copy_from_slice(&kind.to_le_bytes());
            message[2..2 + rest.len()].copy_from_slice(rest);
            send(&connection, &message, SendFlags::empty()).unwrap();
        };
        let mut hello = vec![0; 32];
        [VERSION, VERSION, 255, 0, 0].iter().for_each(|word| hello.extend(word.to_le_bytes()));
        hello.push(14);
        say(HELLO, &hello);
        let (mut regions, mut ring) = (Vec::new(), None);
        loop {
            let (message, fd) = receive(&connection);
            match u16_at(&message, 0) {
                ACK => continue,
                CONNECT => break,
                ADD_REGION => regions.push(File::from(fd.unwrap())),
                ADD_RING if u16_at(&message, 2) & TO_SERVER == 0 => {
                    let offset = u32::from_le_bytes(message[8..12].try_into().unwrap());
                    ring = Some((u16_at(&message, 6).into(), offset.into(), 1 << message[12]));
                }
                _ => {}
            }
            say(ACK, &[]);
        }
        say(CONNECTED, &[0; 32]);
        MemifPeer { _connection: connection, regions, ring: ring.unwrap(), tail: 0 }
    }

    fn read(&self, at: u64) -> u16 {
        let mut word = [0; 2];
        self.regions[self.ring.0].read_exact_at(&mut word, self.ring.1 + at).unwrap();
        u16::from_le_bytes(word)
    }

    fn write(&self, at: u64, word: &[u8]) {
        self.regions[self.ring.0].write_all_at(word, self.ring.1 + at).unwrap();
    }

    /// Hands one packet over in buffers whose descriptors claim these lengths.
    fn hand_over(&mut self, lengths: &[u32]) {
        let begun = Instant::now();
        while self.read(HEAD).wrapping_sub(self.tail) < lengths.len() as u16 {
            assert!(begun.elapsed() < Duration::from_secs(30), "the client gives no buffers");
            std::thread::sleep(Duration::from_millis(5));
        }
        for (n, length) in lengths.iter().enumerate() {
            let slot = self.tail.wrapping_add(n as u16) % self.ring.2;
            let at = DESCRIPTORS + 16 * u64::from(slot);
            let flags = if n + 1 < lengths.len() { NEXT } else { 0 };
            self.write(at, &flags.to_le_bytes());
            self.write(at + 4, &length.to_le_bytes());
        }
        self.tail = self.tail.wrapping_add(lengths.len() as u16);
        self.write(TAIL, &self.tail.to_le_bytes());
    }
}

/// The next message, and the descriptor that comes with it.
fn receive(connection: &OwnedFd) -> ([u8; MESSAGE], Option<OwnedFd>) {
    let mut message = [0; MESSAGE];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let into = &mut [std::io::IoSliceMut::new(&mut message)];
    let got = recvmsg(connection, into, &mut control, RecvFlags::empty()).unwrap();
    assert_eq!(got.bytes, MESSAGE, "the client went");
    let fd = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    (message, fd)
}

#[test]
fn a_memif_peer_with_false_lengths_reads_no_memory() {
    require_dpdk();
    let path = folder("dpdk").join(format!("lying-{}.sock", std::process::id()));
    let dump = folder("dpdk").join("lying.pcap");
    _ = std::fs::remove_file(&path);
    let (door, greet) = MemifPeer::connect(&path);
    let devices = format!(
        "--no-huge -m 256 --no-pci --no-shconf --no-telemetry --single-file-segments --log-level=3 \
         --vdev net_memif0,role=client,socket={},socket-abstract=no,zero-copy=yes",
        path.display()
    );
    let config = format!(
        "DPDKInfo(8192); f :: FromDPDKDevice(0) -> c :: Counter -> ToDump({}, SNAPLEN 0);
         Script(label again, wait 10ms, goto again $(lt $(add $(c.count) $(f.malformed)) 6), stop)",
        dump.display()
    );
    let patience = Duration::from_secs(60);
    let client = Command::on_host(env!("CARGO_BIN_EXE_castanet"))
        .current_dir(root())
        .args(["run", "--dpdk", &devices, "-e", &config])
        .args(["--handler", "c.count", "--handler", "c.byte_count", "--handler", "f.malformed"])
        .timeout(patience)
        .spawn()
        .unwrap();
    let mut peer = greet(&door);
    // A true length; a length beyond the buffer; such a length in the first and in the last of
    // several descriptors; a packet in two descriptors with true lengths.
    for lengths in [&[60][..], &[65_000], &[65_000, 60], &[60, 60, 65_000], &[1000, 1000], &[60]] {
        peer.hand_over(lengths);
    }
    let output = client.finish(patience).unwrap();
    _ = std::fs::remove_file(&path);
    assert!(output.success(), "{}", output.printed());
    let handlers = ["c.count", "c.byte_count", "f.malformed"];
    assert_eq!(handlers.map(|handler| number(&output.stdout, handler)), [3, 60 + 2000 + 60, 3]);
    let lengths: Vec<usize> = packets(&dump).iter().map(Vec::len).collect();
    assert_eq!(lengths, [60, 2000, 60]);
}
