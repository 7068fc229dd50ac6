//! Tests of TUN and TAP devices with the kernel's network stack.

use crate::TOOLS;
use crate::forwarder::Forwarder;
use castanet_io::Device;
use castanet_io::interface::Ipv4Net;
use castanet_io::tap::{HostSide, Tap, TunTapMode};
use castanet_lab::{Lab, Namespace, require};
use std::net::Ipv4Addr;
use std::time::Duration;

fn open(namespace: &Namespace, kind: TunTapMode, last: u8) -> Box<dyn Device> {
    let made = namespace.enter(move || {
        let device = Tap::open("", kind, false, 0).unwrap();
        let address = Ipv4Addr::new(10, 9, 0, last);
        let netmask = Ipv4Addr::new(255, 255, 255, 0);
        let ether = (kind == TunTapMode::Tap).then_some([2, 0, 0, 0, 0, last].into());
        let ipv4 = Some(Ipv4Net { address, netmask });
        let gateway = Some(Ipv4Addr::new(10, 9, 0, 3 - last));
        let setup = HostSide { ipv4, gateway, ether, mtu: Some(1400) };
        device.configure_host(&setup).unwrap();
        let interface = device.interface().unwrap();
        assert_eq!((interface.ether, interface.mtu, interface.up), (ether, 1400, true));
        assert_eq!(interface.ipv4, [Ipv4Net { address, netmask }]);
        Ok(device)
    });
    Box::new(made.join().unwrap().unwrap())
}

/// Transfers a file between two hosts by their TUN or TAP devices, which the test connects.
fn transfer(kind: TunTapMode) {
    require(TOOLS).expect("these tests build networks");
    let lab = Lab::new("tap").unwrap();
    let (a, b) = (lab.namespace("a").unwrap(), lab.namespace("b").unwrap());
    let wire = Forwarder::new([open(&a, kind, 1), open(&b, kind, 2)]);
    a.command("ping").args(["-c", "3", "-i", "0.02", "10.9.0.2"]).check().unwrap();
    // The default route exists, although no host answers there.
    assert!(a.ip("route get 192.0.2.1").unwrap().contains("via 10.9.0.2"));
    let file = lab.random_file("random", 16).unwrap();
    let _server = b.serve("10.9.0.2", 8000).unwrap();
    let fetched = a.fetch("http://10.9.0.2:8000/random", Duration::from_secs(30)).unwrap();
    assert_eq!((fetched.bytes, fetched.sha256), (file.bytes, file.sha256));
    println!("{:.0} Mb/s", fetched.bytes as f64 * 8e-6 / fetched.elapsed.as_secs_f64());
    let stats = wire.finish();
    assert!(stats[1].super_frames > 100, "{stats:?}");
    assert_eq!([stats[0].malformed, stats[1].malformed], [0, 0], "{stats:?}");
}

#[test]
fn tcp_between_tun_devices() {
    transfer(TunTapMode::Tun);
}

#[test]
fn tcp_between_tap_devices() {
    transfer(TunTapMode::Tap);
}

#[test]
fn a_name_of_another_kind_is_explained() {
    require(TOOLS).expect("these tests build networks");
    let lab = Lab::new("kind").unwrap();
    let namespace = lab.namespace("a").unwrap();
    namespace.ip("tuntap add dev mine mode tap").unwrap();
    let error = namespace.enter(|| Ok(Tap::open("mine", TunTapMode::Tun, false, 0).err()));
    let error = error.join().unwrap().unwrap().unwrap();
    assert_eq!(
        error.to_string(),
        "cannot make or open TUN device mine: an interface of that name exists and is of another kind"
    );
}
