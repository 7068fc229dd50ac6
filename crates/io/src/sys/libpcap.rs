//! Expressions of tcpdump, compiled and run by libpcap, which is loaded when it is first needed.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::mem::transmute_copy;
use std::ptr::NonNull;
use std::sync::OnceLock;

/// Names of the library: Debian's, that of other systems, that of development packages.
const NAMES: [&CStr; 3] = [c"libpcap.so.0.8", c"libpcap.so.1", c"libpcap.so"];
/// Bytes of packets that expressions may read.
const SNAP_LEN: c_int = 262_144;
/// The netmask is not known: `broadcast` of IPv4 cannot be tested.
const NETMASK_UNKNOWN: c_uint = u32::MAX;

/// `struct bpf_program`.
#[repr(C)]
struct BpfProgram {
    len: c_uint,
    instructions: *mut Instruction,
}

/// `struct bpf_insn`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Instruction {
    code: u16,
    jt: u8,
    jf: u8,
    k: u32,
}

/// The functions of libpcap that are needed.
struct LibPcap {
    open_dead: unsafe extern "C" fn(c_int, c_int) -> *mut c_void,
    compile:
        unsafe extern "C" fn(*mut c_void, *mut BpfProgram, *const c_char, c_int, c_uint) -> c_int,
    geterr: unsafe extern "C" fn(*mut c_void) -> *mut c_char,
    freecode: unsafe extern "C" fn(*mut BpfProgram),
    close: unsafe extern "C" fn(*mut c_void),
    filter: unsafe extern "C" fn(*const Instruction, *const u8, c_uint, c_uint) -> c_uint,
}

/// The library, or why it cannot be loaded.
fn library() -> Result<&'static LibPcap, &'static str> {
    static LIBRARY: OnceLock<Result<LibPcap, String>> = OnceLock::new();
    LIBRARY.get_or_init(load).as_ref().map_err(String::as_str)
}

fn load() -> Result<LibPcap, String> {
    // SAFETY: loading libpcap runs no code of its own that could break an invariant.
    let open = |name: &&CStr| unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
    let handle = NAMES.iter().map(open).find(|handle| !handle.is_null());
    let handle = handle.ok_or("libpcap is not installed (Debian: libpcap0.8)")?;
    let find = |name: &CStr| {
        // SAFETY: the handle is that of a loaded library, which is never closed.
        let symbol = unsafe { libc::dlsym(handle, name.as_ptr()) };
        NonNull::new(symbol).ok_or_else(|| format!("libpcap has no {}", name.to_string_lossy()))
    };
    // SAFETY: these are the types that libpcap's manual pages declare for functions of these names.
    unsafe {
        Ok(LibPcap {
            open_dead: transmute_copy(&find(c"pcap_open_dead")?),
            compile: transmute_copy(&find(c"pcap_compile")?),
            geterr: transmute_copy(&find(c"pcap_geterr")?),
            freecode: transmute_copy(&find(c"pcap_freecode")?),
            close: transmute_copy(&find(c"pcap_close")?),
            filter: transmute_copy(&find(c"bpf_filter")?),
        })
    }
}

/// The number by which libpcap knows a link type in programs, where it is another one than in files.
fn dlt(link_type: u16) -> c_int {
    /// `DLT_RAW` of Linux.
    const RAW: c_int = 12;
    if u32::from(link_type) == castanet_wire::pcap::link_type::RAW { RAW } else { link_type.into() }
}

/// An expression, compiled to instructions for packets of one link type.
pub(crate) struct PacketExpression {
    library: &'static LibPcap,
    instructions: Vec<Instruction>,
}

impl PacketExpression {
    /// Compiles an expression.
    ///
    /// # Errors
    /// libpcap's message, or libpcap cannot be loaded.
    pub(crate) fn new(text: &str, link_type: u16) -> Result<PacketExpression, String> {
        let library = library()?;
        let text = CString::new(text).map_err(|_| "the expression has a zero byte")?;
        let mut program = BpfProgram { len: 0, instructions: std::ptr::null_mut() };
        // SAFETY: the functions get the handle that `pcap_open_dead` has made, a string and a program
        // that live for the calls. The instructions are copied before the program is freed.
        unsafe {
            let handle = (library.open_dead)(dlt(link_type), SNAP_LEN);
            if handle.is_null() {
                return Err("libpcap has no memory".into());
            }
            let done = (library.compile)(handle, &mut program, text.as_ptr(), 1, NETMASK_UNKNOWN);
            let result = if done == 0 {
                let (start, len) = (program.instructions, program.len as usize);
                let instructions = match start.is_null() {
                    true => Vec::new(),
                    false => std::slice::from_raw_parts(start, len).to_vec(),
                };
                (library.freecode)(&mut program);
                Ok(PacketExpression { library, instructions })
            } else {
                Err(CStr::from_ptr((library.geterr)(handle)).to_string_lossy().into_owned())
            };
            (library.close)(handle);
            result
        }
    }

    /// Whether a packet matches.
    pub(crate) fn matches(&self, bytes: &[u8]) -> bool {
        let Ok(len) = c_uint::try_from(bytes.len()) else { return false };
        // An empty program means all packets.
        if self.instructions.is_empty() {
            return true;
        }
        // SAFETY: libpcap has compiled the instructions, and they read no byte beyond `len`.
        unsafe { (self.library.filter)(self.instructions.as_ptr(), bytes.as_ptr(), len, len) != 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use castanet_wire::pcap::link_type;
    use castanet_wire::sketch;

    fn bytes(text: &str) -> Vec<u8> {
        sketch::build(text).expect("is a packet").bytes
    }

    #[test]
    fn expressions_are_those_of_tcpdump() {
        let of = |text: &str, link| PacketExpression::new(text, link as u16);
        let eth = "eth 00:00:00:00:00:01 > 00:00:00:00:00:02";
        let vlan = of("vlan 5 and udp dst port 53", link_type::ETHERNET).expect("is one");
        assert!(vlan.matches(&bytes(&format!("{eth} vlan 5 1.0.0.1:5 > 2.0.0.2:53 udp"))));
        assert!(!vlan.matches(&bytes(&format!("{eth} vlan 6 1.0.0.1:5 > 2.0.0.2:53 udp"))));
        let arp = of("arp or ip6", link_type::ETHERNET).expect("is one");
        assert!(arp.matches(&bytes(&format!("{eth} [1::1]:5 > [2::2]:53 udp"))));
        assert!(!arp.matches(&bytes(&format!("{eth} 1.0.0.1:5 > 2.0.0.2:53 udp"))));
        let raw = of("icmp[icmptype] = icmp-echo", link_type::RAW).expect("is one");
        assert!(raw.matches(&bytes("1.0.0.1 > 2.0.0.2 icmp echo")));
        assert!(!raw.matches(&bytes("1.0.0.1:5 > 2.0.0.2:53 udp")));
        let all = of("", link_type::ETHERNET).expect("is one");
        assert!(all.matches(&[]) && !vlan.matches(&[]) && !vlan.matches(&[1; 15]));
        let wrong = of("udp prt 53", link_type::ETHERNET).err().expect("is none");
        assert!(wrong.contains("syntax error"), "{wrong}");
    }
}
