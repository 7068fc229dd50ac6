//! Arguments of `ARPResponder`: prefixes and the Ethernet address to answer with.

use castanet_element::prelude::*;

/// Prefixes that the responder answers for with one Ethernet address.
pub struct ResponderEntry {
    pub(crate) prefixes: Vec<Net>,
    pub(crate) mac: MacAddr,
}

impl FromArg for ResponderEntry {
    const SYNTAX: &'static str = "IP/MASK… ETH";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        let (mut prefixes, mut eth) = (Vec::new(), None);
        for word in text.split_whitespace() {
            if let Ok(net) = host_or_net(word, names) {
                prefixes.push(net);
            } else if let Ok(mac) = MacAddr::from_arg(word, names) {
                if eth.replace(mac).is_some() {
                    return Err(ArgError::new("more than one ETH"));
                }
            } else {
                let error = ArgError::new(format!("`{word}` is neither a prefix nor a station"));
                return Err(error.click("expected IP/MASK ETH"));
            }
        }
        if prefixes.is_empty() {
            return Err(ArgError::new("missing IP/MASK"));
        }
        // A name may stand for the Ethernet address too.
        let named = || text.split_whitespace().find_map(|w| MacAddr::from_arg(w, names).ok());
        let mac = eth.or_else(named).ok_or_else(|| ArgError::new("missing ETH"))?;
        Ok(ResponderEntry { prefixes, mac })
    }
}

/// Parses a prefix or an address, which is a prefix of 32 bits. A name that stands for both means
/// the address.
pub(crate) fn host_or_net(word: &str, names: &Names) -> Result<Net, ArgError> {
    let host = |address| Net { address, mask: Ipv4Addr::BROADCAST };
    Ipv4Addr::from_arg(word, names).map(host).or_else(|_| Net::from_arg(word, names))
}
