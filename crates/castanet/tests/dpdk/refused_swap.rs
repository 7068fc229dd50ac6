//! A configuration that is refused leaves rings and the packets in them as they are.

use super::{QUIET, require_dpdk};
use crate::program::castanet;

/// A ring that no port empties, with more packets than it has room for; and one whose packets come
/// back, ten each time that `s` is told to go on.
const RINGS: &str = "DPDKInfo(8192);
     InfiniteSource(LIMIT 600, DATA \\<01>) -> full :: ToDPDKRing(1, keeps, all, NDESC 500, IQUEUE 1000);
     s :: InfiniteSource(LIMIT 10, DATA \\<02>, ACTIVE false) -> t :: ToDPDKRing(1, near, far);
     f :: FromDPDKRing(FROM_PROC far, TO_PROC near, FORCE_LOOKUP true) -> c :: Counter -> Discard;";

/// Configurations to be refused: the same, and with the elements renamed, other arguments, other
/// rings, and no ring; each also with an element that would take the packets of the full ring.
fn others() -> Vec<String> {
    let taker = "FromDPDKRing(FROM_PROC all, TO_PROC keeps, FORCE_LOOKUP true) -> Discard;";
    let renamed = RINGS.replace("full ::", "x ::").replace("t ::", "y ::").replace("f ::", "z ::");
    let otherwise =
        RINGS.replace("NDESC 500", "NDESC 64").replace("near, far", "near, far, IQUEUE 9");
    let moved = RINGS.replace("near", "there").replace("keeps", "gives");
    let texts = [RINGS.to_owned(), renamed, otherwise, moved, "Idle -> Discard;".to_owned()];
    texts.iter().flat_map(|text| [text.clone(), format!("{text} {taker}")]).collect()
}

/// Ends of configurations that are refused when the others have been initialized.
const WRONG: [&str; 3] = [
    "Idle -> ToDump(/no/such/folder/file)",
    "ControlSocket(UNIX, /no/such/folder/socket)",
    "FromDPDKRing(FROM_PROC nobody, TO_PROC noone, FORCE_LOOKUP true) -> Discard",
];

#[test]
fn rings_keep_their_packets_and_go_on() {
    require_dpdk();
    let mut steps = "label full, wait 10ms, goto full $(ne $(full.length) 500)".to_owned();
    let mut expected = String::new();
    let refused =
        others().into_iter().flat_map(|text| WRONG.map(|wrong| format!("{text} {wrong}")));
    let quoted = |text: &str| text.replace('\\', r"\\").replace('$', r"\$");
    for (n, text) in refused.enumerate() {
        let text = quoted(&text);
        let sent = 10 * (n + 1);
        steps += &format!(
            ", writeq hotconfig \"{text}\", write s.reset, write s.active true,
             label again{n}, wait 1ms, goto again{n} $(lt $(c.count) {sent}),
             print $(c.count) $(t.count) $(full.length) $(full.count) $(full.dropped)"
        );
        expected += &format!("{sent} {sent} 500 500 0\n");
    }
    // The one that is taken in the end finds all packets: those that wait for the ring, too.
    let last = format!(
        "{RINGS} FromDPDKRing(FROM_PROC all, TO_PROC keeps, FORCE_LOOKUP true)
         -> same :: Classifier(0/01, -) -> k :: Counter -> Discard; same[1] -> bad :: Counter -> Discard;
         Script(label rest, wait 10ms, goto rest $(lt $(k.count) 600),
             print $(k.count) $(bad.count) $(full.count) $(full.dropped), stop)"
    );
    steps += &format!(", writeq hotconfig \"{}\"", quoted(&last));
    expected += "600 0 600 0\n";
    let config = format!("{RINGS} Script({steps})");
    let result = castanet(&["run", "-R", "--quiet", "--dpdk", QUIET, "-e", &config], b"");
    assert_eq!((result.status, result.out), (Some(0), expected), "{}", result.err);
    let why = ["/file: No such file", "/socket: No such file", "no other process has made it"];
    let output = why.map(|why| result.err.matches(why).count());
    assert_eq!(output, [others().len(); 3], "{}", result.err);
}
