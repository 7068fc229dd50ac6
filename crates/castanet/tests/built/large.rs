//! A configuration of 2000 elements: `conf/router.click` with a path of its own for each of 59 hosts of
//! a network, on the way in and on the way out. Every packet that the router forwards passes unchanged.

use std::fmt::Write;
use std::path::Path;

/// Number of hosts of a network that have paths of their own.
const HOSTS: usize = 59;

/// The text of the configuration.
pub(crate) fn text() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conf/router.click");
    let mut text = std::fs::read_to_string(path).unwrap();
    for n in 0..3 {
        let device = format!("FromDevice($dev{n}) -> [0] side{n} [0] -> ToDevice($dev{n});");
        let longer = format!(
            "FromDevice($dev{n}) -> arrival{n} :: Arrival -> [0] side{n} [0]
                -> departure{n} :: Departure -> ToDevice($dev{n});"
        );
        assert_eq!(text.matches(&device).count(), 1);
        text = text.replace(&device, &longer);
    }
    // By the last byte of the sender's address, or the receiver's.
    let arrival = sorted("Arrival", 29, |n| {
        format!("long{n} :: CheckLength(4000) -> Paint({n}) -> MarkMACHeader -> in{n} :: Counter")
    });
    let departure = sorted("Departure", 33, |n| {
        format!(
            "Strip(14) -> CheckIPHeader -> filter{n} :: IPFilter(deny src host 192.0.2.{n}, allow all)
             -> Unstrip(14) -> long{n} :: CheckLength(4000) -> out{n} :: Counter"
        )
    });
    arrival + &departure + &text
}

/// A compound element that sorts IPv4 frames by the byte at this place; the others pass at once.
fn sorted(name: &str, place: usize, path: impl Fn(usize) -> String) -> String {
    let bytes: String = (0..HOSTS).map(|n| format!("12/0800 {place}/{:02x}, ", n + 2)).collect();
    let mut text = format!("elementclass {name} {{\n    input -> host :: Classifier({bytes}-);\n");
    for n in 0..HOSTS {
        _ = writeln!(text, "    host[{n}] -> {} -> output; long{n}[1] -> Discard;", path(n));
    }
    text + &format!("    host[{HOSTS}] -> output;\n}}\n")
}
