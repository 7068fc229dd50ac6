/* What DPDK declares inline or as structures, as plain functions.
 *
 * A packet's bytes lie in an mbuf's buffer and its cold header in the mbuf's private area, which
 * ends where the buffer starts: what Rust calls a frame. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>
#include <rte_ring.h>

/* Bytes of a frame's header, the private area of each mbuf. */
#define HEADER 64
/* Most packets of one call. */
#define BURST 64

_Static_assert(sizeof(struct rte_mbuf) % 64 == 0, "a frame's header is aligned to 64 bytes");

_Static_assert(RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN, "a packet's words are in that order");
_Static_assert(offsetof(struct rte_mbuf, nb_segs) == offsetof(struct rte_mbuf, refcnt) + 2,
               "two neighbours are read together");

/* A packet as Rust has it: `RawPacket`. */
struct castanet_packet {
    void *frame;
    /* Where its bytes and headers start, counted from the frame's header. */
    uint64_t offsets;
    /* How many bytes; above, a destination. */
    uint64_t span;
    uint64_t marks;
};

/* In a packet's marks: that the frame has other owners, and the pool's number. */
#define MARK_SHARED (1u << 8)
#define MARK_POOL_SHIFT 16
#define MARK_POOL (0xffu << MARK_POOL_SHIFT)

/* What the mbufs of a mempool have in common as packets. */
struct castanet_kind {
    const struct rte_mempool *pool;
    uint64_t marks;
    /* Bytes of a frame. */
    uint64_t room;
};

/* What was received. */
struct castanet_received {
    uint32_t all;
    /* How many of these, from the first on, became packets in place, and their bytes. */
    uint32_t placed;
    uint64_t bytes;
};

/* What was sent. */
struct castanet_sent {
    /* How many could be. */
    uint32_t ready;
    /* How many of these were, and their bytes. */
    uint32_t sent;
    uint64_t bytes;
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

/* A mempool of mbufs with frames in them.
 *
 * Without huge pages DPDK would begin a page with each mbuf, so that no mbuf is in two: then all
 * mbufs' first lines are in the same sets of the CPU's first cache and drive each other out, at half
 * the speed. Only a device that is told physical addresses needs that, and there are none for such
 * memory: devices, if any, are told virtual ones. */
struct rte_mempool *castanet_dpdk_pool(const char *name, unsigned mbufs, unsigned cache,
                                       uint16_t room, int numa_node) {
    struct rte_pktmbuf_pool_private kind = {.mbuf_data_room_size = room, .mbuf_priv_size = HEADER};
    bool across_pages = !rte_eal_has_hugepages() && rte_eal_iova_mode() == RTE_IOVA_VA;
    unsigned flags = across_pages ? RTE_MEMPOOL_F_NO_IOVA_CONTIG : 0;
    unsigned size = sizeof(struct rte_mbuf) + HEADER + room;
    int failed;
    struct rte_mempool *pool = NULL;
    /* Another process may have made it for all, this one with it. */
    if (rte_eal_process_type() == RTE_PROC_SECONDARY && (pool = rte_mempool_lookup(name)) != NULL) {
        if (pool->elt_size == size && rte_pktmbuf_priv_size(pool) == HEADER && pool->size == mbufs)
            return pool;
        rte_errno = EEXIST;
        return NULL;
    }
    pool = rte_mempool_create_empty(name, mbufs, size, cache, sizeof kind, numa_node, flags);
    if (pool == NULL)
        return NULL;
    failed = rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), NULL);
    if (failed == 0) {
        rte_pktmbuf_pool_init(pool, &kind);
        failed = rte_mempool_populate_default(pool);
    }
    if (failed < 0) {
        rte_mempool_free(pool);
        rte_errno = -failed;
        return NULL;
    }
    rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
    return pool;
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

/* The first port from this one on; UINT64_MAX if there is none. */
uint64_t castanet_dpdk_next_port(uint16_t from) {
    uint64_t next = rte_eth_find_next_owned_by(from, RTE_ETH_DEV_NO_OWNER);
    return next < RTE_MAX_ETHPORTS ? next : UINT64_MAX;
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

/* Whether a port's link comes up only by starting the port while the other end is there: a client of
 * shared memory, which does not try again by itself. */
static bool needs_peer(const struct rte_eth_dev_info *dev) {
    return strcmp(dev->driver_name, "net_memif") == 0;
}

/* Starts a port that is set up; 1 if its other end is not there yet. */
static int start(uint16_t port, const struct rte_eth_dev_info *dev) {
    int failed = rte_eth_dev_start(port);
    return failed != 0 && needs_peer(dev) ? 1 : failed;
}

/* Starts a port that is set up, and maybe running, once more if that may bring its link up; 0 if it
 * was down and the port now runs. */
int castanet_dpdk_revive(uint16_t port) {
    struct rte_eth_dev_info dev;
    struct rte_eth_link link = {0};
    int failed = rte_eth_dev_info_get(port, &dev);
    if (failed != 0)
        return failed;
    rte_eth_link_get_nowait(port, &link);
    if (!needs_peer(&dev) || link.link_status == RTE_ETH_LINK_UP)
        return 1;
    /* It may not be running, and then says so. */
    rte_eth_dev_stop(port);
    return start(port, &dev);
}

/* Sets a stopped port up and starts it; 1 if it waits for its other end. */
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
    if ((failed = start(port, &dev)) != 0)
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

/* Makes a packet of an mbuf in place; false if it is in another mempool, a chain, somebody else's
 * too, or longer than its buffer (a peer may have said so). */
static __rte_always_inline bool place(const struct rte_mbuf *mbuf, struct castanet_kind kind,
                                      struct castanet_packet *packet, uint64_t *bytes) {
    uint32_t alone_and_whole;
    uint64_t start = mbuf->data_off, len = mbuf->pkt_len;
    memcpy(&alone_and_whole, &mbuf->refcnt, sizeof alone_and_whole);
    if (unlikely(mbuf->pool != kind.pool) || unlikely(alone_and_whole != 0x10001) ||
        unlikely(!RTE_MBUF_DIRECT(mbuf)) || unlikely(start + len > kind.room))
        return false;
    packet->frame = (char *)mbuf + sizeof *mbuf;
    packet->offsets = start * 0x10001 + HEADER * 0x10001;
    packet->span = len;
    packet->marks = kind.marks;
    *bytes += len;
    return true;
}

/* Makes packets of mbufs, up to the first that cannot be one in place. */
static __rte_always_inline struct castanet_received place_all(struct rte_mbuf **mbufs, uint64_t all,
                                                              const struct castanet_kind *kind,
                                                              struct castanet_packet *packets) {
    const struct castanet_kind same = *kind;
    uint64_t bytes = 0, i = 0;
    while (i < all && place(mbufs[i], same, &packets[i], &bytes))
        i++;
    return (struct castanet_received){.all = all, .placed = i, .bytes = bytes};
}

/* Receives up to n packets, at most BURST. Mbufs from the first that is no packet in place are left
 * as they are. */
struct castanet_received castanet_dpdk_receive(uint16_t port, uint16_t queue,
                                               const struct castanet_kind *kind,
                                               struct castanet_packet *packets,
                                               struct rte_mbuf **mbufs, unsigned n) {
    uint64_t all = rte_eth_rx_burst(port, queue, mbufs, RTE_MIN(n, (unsigned)BURST));
    return place_all(mbufs, all, kind, packets);
}

/* The same from a ring. */
struct castanet_received castanet_dpdk_dequeue(struct rte_ring *ring,
                                               const struct castanet_kind *kind,
                                               struct castanet_packet *packets,
                                               struct rte_mbuf **mbufs, unsigned n) {
    n = RTE_MIN(n, (unsigned)BURST);
    return place_all(mbufs, rte_ring_dequeue_burst(ring, (void **)mbufs, n, NULL), kind, packets);
}

/* Makes a packet of one mbuf in place, if it can be one. */
bool castanet_dpdk_place(const struct rte_mbuf *mbuf, const struct castanet_kind *kind,
                         struct castanet_packet *packet, uint64_t *bytes) {
    return place(mbuf, *kind, packet, bytes);
}

uint32_t castanet_dpdk_length(const struct rte_mbuf *mbuf) { return mbuf->pkt_len; }

/* Copies the bytes of an mbuf out, which may be a chain, and frees it. */
void castanet_dpdk_copy_out(struct rte_mbuf *mbuf, void *to, uint32_t len) {
    if (to != NULL) {
        const void *from = rte_pktmbuf_read(mbuf, 0, len, to);
        if (from != NULL && from != to)
            memcpy(to, from, len);
    }
    rte_pktmbuf_free(mbuf);
}

/* Whether packets with these marks are mbufs of pools whose bits are set, and not shared. */
static __rte_noinline bool are_ours(uint32_t marks, const uint64_t *ours) {
    unsigned pool = (marks & MARK_POOL) >> MARK_POOL_SHIFT;
    return (marks & MARK_SHARED) == 0 && (ours[pool / 64] >> pool % 64 & 1) != 0;
}

/* Makes mbufs of up to n packets, at most BURST, up to the first that is shared, in none of the
 * pools whose bits are set in ours, or shorter than shortest. */
static __rte_always_inline struct castanet_sent unplace_all(const struct castanet_packet *packets,
                                                            unsigned n, const uint64_t *ours,
                                                            uint32_t shortest,
                                                            struct rte_mbuf **mbufs) {
    /* The marks of the pool that was last found to be ours. */
    uint32_t known = MARK_SHARED;
    uint64_t bytes = 0, ready;
    n = RTE_MIN(n, (unsigned)BURST);
    for (ready = 0; ready < n; ready++) {
        const struct castanet_packet *packet = &packets[ready];
        struct rte_mbuf *mbuf = mbuf_of(packet->frame);
        uint32_t marks = (uint32_t)packet->marks & (MARK_SHARED | MARK_POOL), len = packet->span;
        if (unlikely(marks != known)) {
            if (!are_ours(marks, ours))
                break;
            known = marks;
        }
        if (unlikely(len < shortest))
            break;
        mbuf->data_off = (uint16_t)packet->offsets - HEADER;
        mbuf->data_len = len;
        mbuf->pkt_len = len;
        mbuf->ol_flags = 0;
        mbufs[ready] = mbuf;
        bytes += len;
    }
    return (struct castanet_sent){.ready = ready, .bytes = bytes};
}

/* Takes note of how many packets went. */
static inline struct castanet_sent went(struct castanet_sent sent, uint32_t n,
                                        const struct castanet_packet *packets) {
    sent.sent = n;
    for (; unlikely(n < sent.ready); n++)
        sent.bytes -= (uint32_t)packets[n].span;
    return sent;
}

/* Sends packets, as many as can be and there is room for; those that went are the driver's. */
struct castanet_sent castanet_dpdk_transmit(uint16_t port, uint16_t queue,
                                            const struct castanet_packet *packets, unsigned n,
                                            const uint64_t *ours, uint32_t shortest) {
    struct rte_mbuf *mbufs[BURST];
    struct castanet_sent sent = unplace_all(packets, n, ours, shortest, mbufs);
    return went(sent, rte_eth_tx_burst(port, queue, mbufs, sent.ready), packets);
}

/* The same into a ring; whoever takes them out has them. */
struct castanet_sent castanet_dpdk_enqueue(struct rte_ring *ring,
                                           const struct castanet_packet *packets, unsigned n,
                                           const uint64_t *ours) {
    struct rte_mbuf *mbufs[BURST];
    struct castanet_sent sent = unplace_all(packets, n, ours, 0, mbufs);
    uint32_t n_sent = rte_ring_enqueue_burst(ring, (void *const *)mbufs, sent.ready, NULL);
    return went(sent, n_sent, packets);
}

bool castanet_dpdk_is_primary(void) { return rte_eal_process_type() == RTE_PROC_PRIMARY; }

/* The ring of this name; if there is none and descriptors are given, a new one. */
struct rte_ring *castanet_dpdk_ring(const char *name, unsigned descriptors, int numa_node,
                                    bool one_sender, bool one_receiver) {
    struct rte_ring *ring = rte_ring_lookup(name);
    unsigned flags = RING_F_EXACT_SZ | (one_sender ? RING_F_SP_ENQ : 0) |
                     (one_receiver ? RING_F_SC_DEQ : 0);
    if (ring == NULL && descriptors > 0)
        ring = rte_ring_create(name, descriptors, numa_node, flags);
    return ring;
}

unsigned castanet_dpdk_ring_count(const struct rte_ring *ring) { return rte_ring_count(ring); }
