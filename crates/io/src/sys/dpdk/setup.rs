//! The configuration of a port as C takes it, but for what depends on the port.

use super::shim::PortSetup;
use super::types::{MOST_POOLS, PortConfig};

impl PortSetup {
    /// The part of a configuration that holds for any port and mempool.
    pub(super) fn of(config: &PortConfig) -> PortSetup {
        let vmdq = config.vmdq;
        PortSetup {
            mbufs: std::ptr::null_mut(),
            rx_queues: config.rx_queues,
            tx_queues: config.tx_queues,
            rx_descriptors: config.rx_descriptors,
            tx_descriptors: config.tx_descriptors,
            mtu: config.mtu,
            promiscuous: config.promiscuous.into(),
            rss: vmdq.map_or(config.rss, |vmdq| vmdq.rss).into(),
            interrupts: config.interrupts.into(),
            has_vlans: vmdq.is_some_and(|vmdq| vmdq.has_vlans).into(),
            pools: vmdq.map_or(0, |vmdq| vmdq.pools),
            rx_offloads: 0,
            tx_offloads: 0,
            vlans: vmdq.map_or([0; MOST_POOLS], |vmdq| vmdq.vlans),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::dpdk::types::Vmdq;

    /// The settings of VMDq in DPDK's configuration of a port, laid out as in `port.c`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(C)]
    struct VmdqConf {
        mq_mode: u32,
        pools: u32,
        rx_mode: u32,
        maps: u32,
        default_pool: u32,
        vlans: [u16; MOST_POOLS],
        masks: [u64; MOST_POOLS],
    }

    unsafe extern "C" {
        fn castanet_dpdk_vmdq_conf(setup: *const PortSetup, to: *mut VmdqConf);
    }

    /// `RTE_ETH_MQ_RX_RSS_FLAG` and `RTE_ETH_MQ_RX_VMDQ_FLAG`
    const RSS: u32 = 1;
    const VMDQ: u32 = 4;
    /// `RTE_ETH_VMDQ_ACCEPT_UNTAG`
    const UNTAGGED: u32 = 1;

    fn conf(config: &PortConfig) -> VmdqConf {
        let setup = PortSetup::of(config);
        let mut conf = std::mem::MaybeUninit::uninit();
        // SAFETY: the callee writes all of `conf`.
        unsafe {
            castanet_dpdk_vmdq_conf(&raw const setup, conf.as_mut_ptr());
            conf.assume_init()
        }
    }

    #[test]
    fn pools_arrive_in_the_configuration_of_dpdk() {
        let mut vlans = [0; MOST_POOLS];
        vlans[..3].copy_from_slice(&[100, 200, 4094]);
        let with = |rss, has_vlans| {
            let vmdq = Some(Vmdq { pools: 3, rss, vlans, has_vlans });
            conf(&PortConfig { vmdq, rss: true, ..PortConfig::default() })
        };
        let tagged = with(false, true);
        assert_eq!((tagged.mq_mode, tagged.pools, tagged.maps), (VMDQ, 3, 3));
        assert_eq!((tagged.rx_mode, tagged.default_pool), (0, 0));
        assert_eq!(
            (&tagged.vlans[..4], &tagged.masks[..4]),
            (&[100, 200, 4094, 0][..], &[1, 2, 4, 0][..])
        );
        let untagged = with(true, false);
        assert_eq!((untagged.mq_mode, untagged.pools, untagged.maps), (RSS | VMDQ, 3, 0));
        assert_eq!((untagged.rx_mode, untagged.masks), (UNTAGGED, [0; MOST_POOLS]));
        let plain = conf(&PortConfig { rss: true, ..PortConfig::default() });
        assert_eq!((plain.mq_mode, plain.pools, plain.rx_mode), (RSS, 0, 0));
    }

    #[test]
    fn pools_have_addresses_of_their_own() {
        let mac = Some([2, 3, 4, 5, 6, 7]);
        let config = PortConfig { mac, ..PortConfig::default() };
        assert_eq!(config.pool_mac(1, 9), [2, 3, 4, 5, 1, 9]);
        assert_eq!(PortConfig::default().pool_mac(0, 2), [0x52, 0x54, 0, 0, 0, 2]);
    }
}
