/* What DPDK declares inline or as structures, as plain functions.
 *
 * A packet's bytes lie in an mbuf's buffer and its cold header in the mbuf's private area, which
 * ends where the buffer starts: what Rust calls a frame. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

/* Bytes of a frame's header, the private area of each mbuf. */
#define HEADER 64
/* Most packets of one call. */
#define BURST 64

_Static_assert(sizeof(struct rte_mbuf) % 64 == 0, "a frame's header is aligned to 64 bytes");

/* A packet as Rust sees it. */
struct castanet_slot {
    /* Its frame; when received, NULL if the mbuf cannot travel in place. */
    void *frame;
    /* How many bytes, shifted by 32, and where they start, counted from the frame's first: one
     * word, as it is read back at once. */
    uint64_t span;
    /* When received, the mbuf. */
    struct rte_mbuf *mbuf;
};

/* What a port can do. */
struct castanet_info {
    char name[RTE_ETH_NAME_MAX_LEN];
    char driver[64];
    uint8_t mac[6];
    uint16_t max_rx_queues;
    uint16_t max_tx_queues;
    uint16_t mtu;
    int32_t numa_node;
};

/* How a port is to be set up. */
struct castanet_setup {
    struct rte_mempool *mbufs;
    uint16_t rx_queues;
    uint16_t tx_queues;
    uint16_t rx_descriptors;
    uint16_t tx_descriptors;
    uint16_t mtu;
    uint8_t promiscuous;
    uint8_t reserved;
};

struct castanet_link {
    uint32_t speed;
    uint8_t up;
    uint8_t full_duplex;
    uint8_t autoneg;
    uint8_t reserved;
};

/* Counts of the hardware. */
struct castanet_counts {
    uint64_t rx_packets, rx_bytes, rx_missed, rx_errors, rx_no_mbuf;
    uint64_t tx_packets, tx_bytes, tx_errors;
};

static inline void *frame_of(struct rte_mbuf *mbuf) { return (char *)mbuf->buf_addr - HEADER; }

static inline struct rte_mbuf *mbuf_of(void *frame) {
    return (struct rte_mbuf *)((char *)frame - sizeof(struct rte_mbuf));
}

int castanet_dpdk_errno(void) { return rte_errno; }

const char *castanet_dpdk_strerror(int error) { return rte_strerror(error); }

int castanet_dpdk_init(int argc, char **argv) { return rte_eal_init(argc, argv); }

unsigned castanet_dpdk_lcores(void) { return rte_lcore_count(); }

/* Gives the calling thread a number, and with it caches of its own; 0 if that was done. */
int castanet_dpdk_enter_thread(void) {
    return rte_lcore_id() == LCORE_ID_ANY ? rte_thread_register() : 1;
}

void castanet_dpdk_leave_thread(void) { rte_thread_unregister(); }

struct rte_mempool *castanet_dpdk_pool(const char *name, unsigned mbufs, unsigned cache,
                                       uint16_t room, int numa_node) {
    return rte_pktmbuf_pool_create(name, mbufs, cache, HEADER, room, numa_node);
}

unsigned castanet_dpdk_pool_available(const struct rte_mempool *pool) {
    return rte_mempool_avail_count(pool);
}

/* As many free frames as there are, up to n. */
unsigned castanet_dpdk_take(struct rte_mempool *pool, void **frames, unsigned n) {
    struct rte_mbuf *mbufs[BURST];
    n = RTE_MIN(n, (unsigned)BURST);
    /* All or nothing; near the end of the pool, one by one. */
    if (rte_mempool_get_bulk(pool, (void **)mbufs, n) != 0) {
        unsigned got = 0;
        while (got < n && rte_mempool_get(pool, (void **)&mbufs[got]) == 0)
            got++;
        n = got;
    }
    for (unsigned i = 0; i < n; i++)
        frames[i] = frame_of(mbufs[i]);
    return n;
}

void castanet_dpdk_put(struct rte_mempool *pool, void *const *frames, unsigned n) {
    while (n > 0) {
        struct rte_mbuf *mbufs[BURST];
        unsigned some = RTE_MIN(n, (unsigned)BURST);
        for (unsigned i = 0; i < some; i++)
            mbufs[i] = mbuf_of(frames[i]);
        rte_mempool_put_bulk(pool, (void *const *)mbufs, some);
        frames += some;
        n -= some;
    }
}

int castanet_dpdk_port_exists(uint16_t port) { return rte_eth_dev_is_valid_port(port); }

int castanet_dpdk_port_named(const char *name, uint16_t *port) {
    return rte_eth_dev_get_port_by_name(name, port);
}

/* The first port from this one on; RTE_MAX_ETHPORTS or more if there is none. */
uint64_t castanet_dpdk_next_port(uint16_t from) {
    return rte_eth_find_next_owned_by(from, RTE_ETH_DEV_NO_OWNER);
}

int castanet_dpdk_info(uint16_t port, struct castanet_info *info) {
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
    return 0;
}

/* Sets a stopped port up and starts it. */
int castanet_dpdk_start(uint16_t port, const struct castanet_setup *setup) {
    struct rte_eth_conf conf = {0};
    struct rte_eth_dev_info dev;
    uint16_t rx = setup->rx_descriptors, tx = setup->tx_descriptors;
    int node = rte_eth_dev_socket_id(port);
    int failed = rte_eth_dev_info_get(port, &dev);
    if (failed != 0)
        return failed;
    if (setup->rx_queues > 1) {
        uint64_t wanted = RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP;
        conf.rx_adv_conf.rss_conf.rss_hf = wanted & dev.flow_type_rss_offloads;
        if (conf.rx_adv_conf.rss_conf.rss_hf != 0)
            conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    }
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
    if ((failed = rte_eth_dev_start(port)) != 0)
        return failed;
    /* Virtual devices that hand over everything anyway may not know the word. */
    failed = setup->promiscuous ? rte_eth_promiscuous_enable(port)
                                : rte_eth_promiscuous_disable(port);
    if (failed == 0 || failed == -ENOTSUP)
        return 0;
    rte_eth_dev_stop(port);
    return failed;
}

int castanet_dpdk_stop(uint16_t port) { return rte_eth_dev_stop(port); }

void castanet_dpdk_link(uint16_t port, struct castanet_link *link) {
    struct rte_eth_link now = {0};
    rte_eth_link_get_nowait(port, &now);
    link->speed = now.link_speed;
    link->up = now.link_status == RTE_ETH_LINK_UP;
    link->full_duplex = now.link_duplex == RTE_ETH_LINK_FULL_DUPLEX;
    link->autoneg = now.link_autoneg;
}

int castanet_dpdk_counts(uint16_t port, struct castanet_counts *counts) {
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

/* Whether an mbuf is of this pool, whole, and nobody else's. */
static inline bool is_plain(const struct rte_mbuf *mbuf, const struct rte_mempool *pool) {
    return mbuf->pool == pool && mbuf->nb_segs == 1 && RTE_MBUF_DIRECT(mbuf) &&
           rte_mbuf_refcnt_read(mbuf) == 1;
}

/* Receives up to n packets, at most BURST. */
unsigned castanet_dpdk_receive(uint16_t port, uint16_t queue, const struct rte_mempool *pool,
                               struct castanet_slot *slots, unsigned n) {
    struct rte_mbuf *mbufs[BURST];
    unsigned got = rte_eth_rx_burst(port, queue, mbufs, RTE_MIN(n, (unsigned)BURST));
    for (unsigned i = 0; i < got; i++) {
        struct rte_mbuf *mbuf = mbufs[i];
        bool plain = is_plain(mbuf, pool);
        slots[i].frame = plain ? frame_of(mbuf) : NULL;
        slots[i].mbuf = mbuf;
        slots[i].span = (uint64_t)mbuf->pkt_len << 32 | mbuf->data_off;
    }
    return got;
}

/* Copies the bytes of an mbuf out, which may be a chain, and frees it. */
void castanet_dpdk_copy_out(struct rte_mbuf *mbuf, void *to, uint32_t len) {
    if (to != NULL) {
        const void *from = rte_pktmbuf_read(mbuf, 0, len, to);
        if (from != NULL && from != to)
            memcpy(to, from, len);
    }
    rte_pktmbuf_free(mbuf);
}

/* Sends up to n packets, at most BURST; those that went are the driver's. */
unsigned castanet_dpdk_transmit(uint16_t port, uint16_t queue, const struct castanet_slot *slots,
                                unsigned n) {
    struct rte_mbuf *mbufs[BURST];
    n = RTE_MIN(n, (unsigned)BURST);
    for (unsigned i = 0; i < n; i++) {
        struct rte_mbuf *mbuf = mbuf_of(slots[i].frame);
        uint64_t span = slots[i].span;
        mbuf->data_off = span;
        mbuf->data_len = span >> 32;
        mbuf->pkt_len = span >> 32;
        mbuf->ol_flags = 0;
        mbufs[i] = mbuf;
    }
    return rte_eth_tx_burst(port, queue, mbufs, n);
}
