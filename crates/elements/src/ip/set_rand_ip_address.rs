//! `SetRandIPAddress`: sets the destination annotation to random addresses.

use castanet_element::prelude::*;

/// Sets the destination annotation of each packet to a random IPv4 address within a prefix.
///
/// With LIMIT the element draws so many addresses when it starts, and takes one of them for each
/// packet.
///
/// ```click
/// a -> SetRandIPAddress(1.2.3.4) -> x
/// b -> SetRandIPAddress(10.0.0.0/8, 1) -> StoreIPAddress(16) -> AggregateIP(ip dst)
///   -> n :: AggregateCounter -> Discard
/// > a 1.0.0.1 > 2.0.0.2 udp
/// > b 1.0.0.1 > 2.0.0.2 udp
/// > b 1.0.0.1 > 2.0.0.2 udp
/// < x 1.0.0.1 > 2.0.0.2 udp ; dst 1.2.3.4
/// = n.count 2
/// = n.nagg 1
/// ```
#[derive(Element)]
#[element(room = "ip")]
pub struct SetRandIPAddress {
    /// Prefix of the addresses, or the one address.
    #[arg]
    prefix: Net,
    /// Number of different addresses, at most; 0 for all of the prefix.
    #[arg(default = 0, range = 0..=1048576)]
    limit: u32,
}

/// The addresses that were drawn at the start.
#[derive(Default, Local)]
pub struct SetRandIPAddressState {
    addresses: Vec<Ipv4Addr>,
}

impl SetRandIPAddress {
    /// A random address.
    fn draw(&self, cx: &mut Cx) -> Ipv4Addr {
        let mut octets = [0; 4];
        // As in Click the first octet has the lowest bits of a draw.
        cx.random_numbers().fill(&mut octets);
        let (prefix, mask) = (u32::from(self.prefix.address), u32::from(self.prefix.mask));
        Ipv4Addr::from(u32::from_be_bytes(octets) & !mask | prefix & mask)
    }
}

impl PerBatch for SetRandIPAddress {
    type On = on::Any;
    type Local = SetRandIPAddressState;
    type Fate = ();

    fn is_shared(&self) -> bool {
        self.limit > 0
    }

    fn can_take_state(&self, before: &SetRandIPAddress) -> bool {
        self.prefix == before.prefix && self.limit == before.limit
    }

    fn init(&self, state: &mut SetRandIPAddressState, cx: &mut Cx) -> Result<(), ArgError> {
        state.addresses = (0..self.limit).map(|_| self.draw(cx)).collect();
        Ok(())
    }

    fn batch(&self, state: &mut SetRandIPAddressState, _: usize, mut batch: Batch, cx: &mut Cx) {
        for packet in batch.iter_mut() {
            let address = match state.addresses.len().checked_sub(1) {
                Some(last) => {
                    let at = cx.random_numbers().in_range(0, last as u32);
                    state.addresses[at as usize]
                }
                None => self.draw(cx),
            };
            packet.set_dst(address);
        }
        cx.emit_batch((), batch);
    }
}
