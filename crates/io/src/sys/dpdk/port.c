/* Ports: capabilities, configuration, statistics and interrupts. */
#include "shim.h"

#include <rte_interrupts.h>
#include <stdlib.h>

_Static_assert(RTE_ETH_TX_OFFLOAD_IPV4_CKSUM == 1 << 1 && RTE_ETH_TX_OFFLOAD_UDP_CKSUM == 1 << 2 &&
                   RTE_ETH_TX_OFFLOAD_TCP_CKSUM == 1 << 3 && RTE_ETH_TX_OFFLOAD_TCP_TSO == 1 << 5 &&
                   RTE_ETH_TX_OFFLOAD_MULTI_SEGS == 1 << 15,
               "as in offloads.rs");
_Static_assert(RTE_ETH_RX_OFFLOAD_IPV4_CKSUM == 1 << 1 && RTE_ETH_RX_OFFLOAD_UDP_CKSUM == 1 << 2 &&
                   RTE_ETH_RX_OFFLOAD_TCP_CKSUM == 1 << 3 && RTE_ETH_RX_OFFLOAD_SCATTER == 1 << 13 &&
                   RTE_ETH_RX_OFFLOAD_TIMESTAMP == 1 << 14 &&
                   RTE_ETH_RX_OFFLOAD_RSS_HASH == 1 << 19,
               "as in offloads.rs");

_Static_assert(RTE_ETH_FC_NONE == 0 && RTE_ETH_FC_RX_PAUSE == 1 && RTE_ETH_FC_TX_PAUSE == 2 &&
                   RTE_ETH_FC_FULL == 3,
               "as in types.rs");

int castanet_dpdk_port_exists(uint16_t port) { return rte_eth_dev_is_valid_port(port); }

int castanet_dpdk_port_named(const char *name, uint16_t *port) {
    return rte_eth_dev_get_port_by_name(name, port);
}

/* The first port from this one on; UINT64_MAX if there is none. */
uint64_t castanet_dpdk_next_port(uint16_t from) {
    uint64_t next = rte_eth_find_next_owned_by(from, RTE_ETH_DEV_NO_OWNER);
    return next < RTE_MAX_ETHPORTS ? next : UINT64_MAX;
}

int castanet_dpdk_info(uint16_t port, struct castanet_port_info *info) {
    struct rte_eth_dev_info dev;
    struct rte_ether_addr mac = {0};
    int failed = rte_eth_dev_info_get(port, &dev);
    memset(info, 0, sizeof *info);
    if (failed != 0)
        return failed;
    rte_eth_dev_get_name_by_port(port, info->name);
    strncpy(info->driver, dev.driver_name, sizeof info->driver - 1);
    rte_eth_macaddr_get(port, &mac);
    memcpy(info->mac, &mac, sizeof info->mac);
    rte_eth_dev_get_mtu(port, &info->mtu);
    info->max_rx_queues = dev.max_rx_queues;
    info->max_tx_queues = dev.max_tx_queues;
    info->numa_node = rte_eth_dev_socket_id(port);
    info->rx_offloads = dev.rx_offload_capa;
    info->tx_offloads = dev.tx_offload_capa;
    info->max_vmdq_pools = dev.max_vmdq_pools;
    /* Zero means unknown. */
    info->max_chain =
        dev.tx_desc_lim.nb_seg_max != 0 ? RTE_MIN(dev.tx_desc_lim.nb_seg_max, CHAIN) : CHAIN;
    return 0;
}

/* Whether a port's link comes up only if the port is started while its peer is there: memif, a
 * client of which does not retry by itself. */
static bool needs_peer(const struct rte_eth_dev_info *dev) {
    return strcmp(dev->driver_name, "net_memif") == 0;
}

/* Starts a configured port; 1 if its peer is not there yet. */
static int start(uint16_t port, const struct rte_eth_dev_info *dev) {
    int failed = rte_eth_dev_start(port);
    return failed != 0 && needs_peer(dev) ? 1 : failed;
}

/* Restarts a configured port, running or not, if that may bring its link up; 0 if the link was down
 * and the port now runs. */
int castanet_dpdk_revive(uint16_t port) {
    struct rte_eth_dev_info dev;
    struct rte_eth_link link = {0};
    int failed = rte_eth_dev_info_get(port, &dev);
    if (failed != 0)
        return failed;
    rte_eth_link_get_nowait(port, &link);
    if (!needs_peer(&dev) || link.link_status == RTE_ETH_LINK_UP)
        return 1;
    /* The error of a port that is not running is ignored. */
    rte_eth_dev_stop(port);
    return start(port, &dev);
}

_Static_assert(RTE_ETH_64_POOLS == MOST_POOLS, "as many VLANs as pools");

/* Sets the modes by which packets come to queues: RSS, pools of VMDq, or both. */
static void distribute(struct rte_eth_conf *conf, const struct castanet_port_setup *setup,
                       uint64_t rss_types) {
    struct rte_eth_vmdq_rx_conf *vmdq = &conf->rx_adv_conf.vmdq_rx_conf;
    if (setup->rss) {
        uint64_t wanted = RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP;
        conf->rx_adv_conf.rss_conf.rss_hf = wanted & rss_types;
        if (conf->rx_adv_conf.rss_conf.rss_hf != 0)
            conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    }
    if (setup->pools == 0)
        return;
    conf->rxmode.mq_mode |= RTE_ETH_MQ_RX_VMDQ_FLAG;
    vmdq->nb_queue_pools = setup->pools;
    if (!setup->has_vlans) {
        vmdq->rx_mode = RTE_ETH_VMDQ_ACCEPT_UNTAG;
        return;
    }
    vmdq->nb_pool_maps = setup->pools;
    for (unsigned pool = 0; pool < setup->pools && pool < MOST_POOLS; pool++) {
        vmdq->pool_map[pool].vlan_id = setup->vlans[pool];
        vmdq->pool_map[pool].pools = UINT64_C(1) << pool;
    }
}

/* The settings of VMDq that a port would get, for a test. */
struct castanet_vmdq_conf {
    uint32_t mq_mode, pools, rx_mode, maps, default_pool;
    uint16_t vlans[MOST_POOLS];
    uint64_t masks[MOST_POOLS];
};

void castanet_dpdk_vmdq_conf(const struct castanet_port_setup *setup,
                             struct castanet_vmdq_conf *to) {
    struct rte_eth_conf conf = {0};
    const struct rte_eth_vmdq_rx_conf *vmdq = &conf.rx_adv_conf.vmdq_rx_conf;
    distribute(&conf, setup, UINT64_MAX);
    *to = (struct castanet_vmdq_conf){.mq_mode = conf.rxmode.mq_mode,
                                      .pools = vmdq->nb_queue_pools,
                                      .rx_mode = vmdq->rx_mode,
                                      .maps = vmdq->nb_pool_maps,
                                      .default_pool = vmdq->enable_default_pool};
    for (unsigned pool = 0; pool < MOST_POOLS; pool++) {
        to->vlans[pool] = vmdq->pool_map[pool].vlan_id;
        to->masks[pool] = vmdq->pool_map[pool].pools;
    }
}

/* Gives a pool of a running port another Ethernet address. */
int castanet_dpdk_pool_mac(uint16_t port, uint32_t pool, const uint8_t *mac) {
    struct rte_ether_addr address;
    memcpy(&address, mac, sizeof address);
    return rte_eth_dev_mac_addr_add(port, &address, pool);
}

/* Configures and starts a stopped port; 1 if it waits for its peer. */
int castanet_dpdk_start(uint16_t port, const struct castanet_port_setup *setup) {
    struct rte_eth_conf conf = {0};
    struct rte_eth_dev_info dev;
    uint16_t rx = setup->rx_descriptors, tx = setup->tx_descriptors;
    int node = rte_eth_dev_socket_id(port);
    int failed = rte_eth_dev_info_get(port, &dev);
    if (failed != 0)
        return failed;
    conf.rxmode.offloads = setup->rx_offloads & dev.rx_offload_capa;
    conf.txmode.offloads = setup->tx_offloads & dev.tx_offload_capa;
    distribute(&conf, setup, dev.flow_type_rss_offloads);
    conf.intr_conf.rxq = setup->interrupts;
    if (setup->mtu != 0)
        conf.rxmode.mtu = setup->mtu;
    if ((failed = rte_eth_dev_configure(port, setup->rx_queues, setup->tx_queues, &conf)) != 0)
        return failed;
    if ((failed = rte_eth_dev_adjust_nb_rx_tx_desc(port, &rx, &tx)) != 0)
        return failed;
    for (uint16_t queue = 0; queue < setup->rx_queues; queue++)
        if ((failed = rte_eth_rx_queue_setup(port, queue, rx, node, NULL, setup->mbufs)) != 0)
            return failed;
    for (uint16_t queue = 0; queue < setup->tx_queues; queue++)
        if ((failed = rte_eth_tx_queue_setup(port, queue, tx, node, NULL)) != 0)
            return failed;
    if ((failed = start(port, &dev)) != 0)
        return failed;
    /* Virtual devices that receive everything anyway may not support the mode. */
    failed = setup->promiscuous ? rte_eth_promiscuous_enable(port)
                                : rte_eth_promiscuous_disable(port);
    if (failed == 0 || failed == -ENOTSUP)
        return 0;
    rte_eth_dev_stop(port);
    return failed;
}

/* Reads the clock by which a port stamps packets. */
int castanet_dpdk_read_clock(uint16_t port, uint64_t *clock) {
    return rte_eth_read_clock(port, clock);
}

int castanet_dpdk_stop(uint16_t port) { return rte_eth_dev_stop(port); }

void castanet_dpdk_link(uint16_t port, struct castanet_link_status *link) {
    struct rte_eth_link now = {0};
    rte_eth_link_get_nowait(port, &now);
    link->speed = now.link_speed;
    link->up = now.link_status == RTE_ETH_LINK_UP;
    link->full_duplex = now.link_duplex == RTE_ETH_LINK_FULL_DUPLEX;
    link->autoneg = now.link_autoneg;
}

int castanet_dpdk_counts(uint16_t port, struct castanet_port_stats *counts) {
    struct rte_eth_stats stats;
    int failed = rte_eth_stats_get(port, &stats);
    if (failed != 0)
        return failed;
    counts->rx_packets = stats.ipackets;
    counts->rx_bytes = stats.ibytes;
    counts->rx_missed = stats.imissed;
    counts->rx_errors = stats.ierrors;
    counts->rx_no_mbuf = stats.rx_nombuf;
    counts->tx_packets = stats.opackets;
    counts->tx_bytes = stats.obytes;
    counts->tx_errors = stats.oerrors;
    return 0;
}

/* Extended statistics of a port, names of RTE_ETH_XSTATS_NAME_SIZE bytes each. Returns their
 * number; none are written if there is no room for all. */
int castanet_dpdk_xstats(uint16_t port, char *names, uint64_t *values, unsigned room) {
    struct rte_eth_xstat *xstats;
    int n = rte_eth_xstats_get_names(port, NULL, 0);
    if (n <= 0 || (unsigned)n > room)
        return n;
    if ((xstats = calloc(n, sizeof *xstats)) == NULL)
        return -ENOMEM;
    n = rte_eth_xstats_get_names(port, (struct rte_eth_xstat_name *)names, room);
    if (n > 0 && (unsigned)n <= room)
        n = RTE_MIN(n, rte_eth_xstats_get(port, xstats, n));
    for (int i = 0; i < n; i++)
        values[i] = xstats[i].value;
    free(xstats);
    return n;
}

/* Number of packets that wait in a queue that was set up; negative if the driver does not know. */
int castanet_dpdk_waiting(uint16_t port, uint16_t queue) {
    return rte_eth_rx_queue_count(port, queue);
}

/* Adds or removes a further Ethernet address whose packets a port receives. */
int castanet_dpdk_accept_mac(uint16_t port, const uint8_t *mac, bool add) {
    struct rte_ether_addr address;
    memcpy(&address, mac, sizeof address);
    return add ? rte_eth_dev_mac_addr_add(port, &address, 0)
               : rte_eth_dev_mac_addr_remove(port, &address);
}

/* Sets a port's Ethernet address. */
int castanet_dpdk_set_mac(uint16_t port, const uint8_t *mac) {
    struct rte_ether_addr address;
    memcpy(&address, mac, sizeof address);
    return rte_eth_dev_default_mac_addr_set(port, &address);
}

/* Sets a port's mode of pause frames (RTE_ETH_FC_*); returns the mode before. */
int castanet_dpdk_pause(uint16_t port, uint32_t mode) {
    struct rte_eth_fc_conf conf = {0};
    int failed = rte_eth_dev_flow_ctrl_get(port, &conf);
    int before = conf.mode;
    if (failed != 0)
        return failed;
    conf.mode = mode;
    failed = rte_eth_dev_flow_ctrl_set(port, &conf);
    return failed != 0 ? failed : before;
}

/* Number of entries of a port's RSS redirection table (RETA); negative if it has none. */
int castanet_dpdk_reta_size(uint16_t port) {
    struct rte_eth_dev_info dev;
    int failed = rte_eth_dev_info_get(port, &dev);
    if (failed != 0)
        return failed;
    return dev.reta_size == 0 || dev.reta_size > MOST_RETA_ENTRIES ? -ENOTSUP : dev.reta_size;
}

/* Reads (or writes) the queue numbers of all entries of a running port's RSS redirection table. */
int castanet_dpdk_reta(uint16_t port, uint16_t *queues, uint16_t size, bool write) {
    struct rte_eth_rss_reta_entry64 table[MOST_RETA_ENTRIES / RTE_ETH_RETA_GROUP_SIZE] = {0};
    int failed;
    for (uint16_t i = 0; i < size && i < MOST_RETA_ENTRIES; i++) {
        struct rte_eth_rss_reta_entry64 *group = &table[i / RTE_ETH_RETA_GROUP_SIZE];
        group->mask |= UINT64_C(1) << i % RTE_ETH_RETA_GROUP_SIZE;
        group->reta[i % RTE_ETH_RETA_GROUP_SIZE] = queues[i];
    }
    if (write)
        return rte_eth_dev_rss_reta_update(port, table, size);
    failed = rte_eth_dev_rss_reta_query(port, table, size);
    for (uint16_t i = 0; failed == 0 && i < size && i < MOST_RETA_ENTRIES; i++)
        queues[i] = table[i / RTE_ETH_RETA_GROUP_SIZE].reta[i % RTE_ETH_RETA_GROUP_SIZE];
    return failed;
}

/* Makes an epoll descriptor the only listener of a queue's interrupt, or removes it. */
int castanet_dpdk_listen(uint16_t port, uint16_t queue, int epoll, bool on) {
    int op = on ? RTE_INTR_EVENT_ADD : RTE_INTR_EVENT_DEL;
    int failed = rte_eth_dev_rx_intr_ctl_q(port, queue, epoll, op, NULL);
    if (!on || failed != -EEXIST)
        return failed;
    /* Another descriptor was the listener until now. */
    rte_eth_dev_rx_intr_ctl_q(port, queue, epoll, RTE_INTR_EVENT_DEL, NULL);
    return rte_eth_dev_rx_intr_ctl_q(port, queue, epoll, RTE_INTR_EVENT_ADD, NULL);
}

/* The descriptor of a queue's interrupt, which several queues may share; negative if none. */
int castanet_dpdk_interrupt(uint16_t port, uint16_t queue) {
    return rte_eth_dev_rx_intr_ctl_q_get_fd(port, queue);
}

/* Enables or disables a queue's interrupt. Drivers whose interrupts are always enabled, such as
 * net_tap, return -ENOTSUP. */
int castanet_dpdk_arm(uint16_t port, uint16_t queue, bool on) {
    int failed =
        on ? rte_eth_dev_rx_intr_enable(port, queue) : rte_eth_dev_rx_intr_disable(port, queue);
    return failed == -ENOTSUP ? 0 : failed;
}

/* Acknowledges pending interrupts as their drivers require. */
void castanet_dpdk_drain_interrupts(int epoll) {
    struct rte_epoll_event events[16];
    while (rte_epoll_wait(epoll, events, RTE_DIM(events), 0) == RTE_DIM(events))
        ;
}
