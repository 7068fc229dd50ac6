/* Converts bursts of mbufs into packets, and back. */
#include "burst.h"

#include <rte_ip.h>
#include <rte_mbuf_dyn.h>
#include <rte_tcp.h>

/* Makes packets of mbufs in place, up to the first that is in another mempool, or not whole: a peer
 * may have written a length beyond the buffer's end. */
static __rte_always_inline struct castanet_rx_burst
make_packets(struct rte_mbuf **mbufs, uint64_t all, const struct castanet_template *template,
             struct castanet_packet *packets) {
    const struct castanet_template same = *template;
    uint64_t bytes = 0, i = 0, before;
    do {
        before = i;
        /* Read once: a peer that shares the memory may write it at any time. */
        const uint64_t shape = likely(i < all) ? shape_of(mbufs[i]) : 0;
        if (unlikely(i == all) || !is_one(shape, same.room))
            break;
        /* These hold for all mbufs of this shape. */
        const uint64_t offsets = offsets_of(shape), longest = same.room - start_of(shape);
        for (; i < all; i++) {
            const struct rte_mbuf *mbuf = mbufs[i];
            const uint64_t len = *(const volatile uint32_t *)&mbuf->pkt_len;
            if (unlikely(shape_of(mbuf) != shape) || unlikely(mbuf->pool != same.pool) ||
                unlikely(!is_direct(mbuf)) || unlikely(len > longest))
                break;
            packets[i] =
                (struct castanet_packet){(char *)mbuf + sizeof *mbuf, offsets, len, same.marks};
            bytes += len;
        }
    } while (unlikely(i < all) && i > before);
    return (struct castanet_rx_burst){.all = all, .placed = i, .bytes = bytes};
}

/* The least number of packets for which a look at all of them at once pays. */
#define ALIKE 8

/* As make_packets, by the faster way if all mbufs are alike. */
static __rte_always_inline struct castanet_rx_burst
make_burst(struct rte_mbuf **mbufs, uint64_t all, const struct castanet_template *template,
           struct castanet_packet *packets) {
    uint64_t bytes;
    if (all >= ALIKE && castanet_dpdk_has_alike() &&
        likely(castanet_dpdk_packets_alike(mbufs, all, template, packets, &bytes)))
        return (struct castanet_rx_burst){.all = all, .placed = all, .bytes = bytes};
    return make_packets(mbufs, all, template, packets);
}

/* Makes packets of mbufs in place that were received before. */
struct castanet_rx_burst castanet_dpdk_make(struct rte_mbuf **mbufs, unsigned n,
                                            const struct castanet_template *template,
                                            struct castanet_packet *packets) {
    return make_burst(mbufs, n, template, packets);
}

/* Receives up to n packets, at most BURST. Mbufs from the first that is no packet in place are left
 * as they are. */
struct castanet_rx_burst castanet_dpdk_receive(uint16_t port, uint16_t queue,
                                               const struct castanet_template *template,
                                               struct castanet_packet *packets,
                                               struct rte_mbuf **mbufs, unsigned n) {
    uint64_t all = rte_eth_rx_burst(port, queue, mbufs, RTE_MIN(n, (unsigned)BURST));
    return make_burst(mbufs, all, template, packets);
}

/* As castanet_dpdk_receive, from a ring. */
struct castanet_rx_burst castanet_dpdk_dequeue(struct rte_ring *ring,
                                               const struct castanet_template *template,
                                               struct castanet_packet *packets,
                                               struct rte_mbuf **mbufs, unsigned n) {
    n = RTE_MIN(n, (unsigned)BURST);
    uint64_t all = rte_ring_dequeue_burst(ring, (void **)mbufs, n, NULL);
    return make_burst(mbufs, all, template, packets);
}

/* Makes a packet of one mbuf in place; false if it cannot be one. */
bool castanet_dpdk_place(struct rte_mbuf *mbuf, const struct castanet_template *template,
                         struct castanet_packet *packet, uint64_t *bytes) {
    struct castanet_rx_burst one = make_packets(&mbuf, 1, template, packet);
    *bytes += one.bytes;
    return one.placed == 1;
}

/* The port's metadata of a received mbuf: the RSS hash in the lower 32 bits; bit 32 for a wrong
 * IPv4 checksum, bit 33 for a wrong TCP or UDP checksum. */
uint64_t castanet_dpdk_rx_metadata(const struct rte_mbuf *mbuf) {
    uint64_t flags = mbuf->ol_flags;
    uint64_t hash = (flags & RTE_MBUF_F_RX_RSS_HASH) != 0 ? mbuf->hash.rss : 0;
    uint64_t ip = (flags & RTE_MBUF_F_RX_IP_CKSUM_MASK) == RTE_MBUF_F_RX_IP_CKSUM_BAD;
    uint64_t l4 = (flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_BAD;
    return hash | ip << 32 | l4 << 33;
}

/* Offset of mbufs' timestamps, and the flag of mbufs that have one; 0 before they are registered.
 * They are written before the port that asks for them starts, and never change after that. */
static int timestamp_offset;
static uint64_t timestamp_flag;

/* Reserves a place in mbufs for timestamps of received packets. */
int castanet_dpdk_register_timestamps(void) {
    int failed = rte_mbuf_dyn_rx_timestamp_register(&timestamp_offset, &timestamp_flag);
    return failed != 0 ? -rte_errno : 0;
}

/* Finds out when the port received an mbuf, by its own clock; false if it does not say. */
bool castanet_dpdk_rx_timestamp(const struct rte_mbuf *mbuf, uint64_t *timestamp) {
    if ((mbuf->ol_flags & timestamp_flag) == 0)
        return false;
    *timestamp = *RTE_MBUF_DYNFIELD(mbuf, timestamp_offset, const rte_mbuf_timestamp_t *);
    return true;
}

/* The mbuf that a frame lies in. */
const struct rte_mbuf *castanet_dpdk_mbuf(void *frame) { return mbuf_of(frame); }

/* One mbuf's data, as its header describes it. Read once: a peer that shares the memory may write
 * to the header at any time. */
struct segment {
    const char *bytes;
    uint32_t len;
    /* Whether the data lies in the mbuf's buffer. */
    bool fits;
    const struct rte_mbuf *next;
};

static struct segment segment_of(const struct rte_mbuf *mbuf) {
    const volatile struct rte_mbuf *now = mbuf;
    uint32_t start = now->data_off, len = now->data_len, room = now->buf_len;
    return (struct segment){.bytes = (const char *)now->buf_addr + start,
                         .len = len,
                         .fits = start <= room && len <= room - start,
                         .next = now->next};
}

static uint32_t segment_count(const struct rte_mbuf *mbuf) {
    return ((const volatile struct rte_mbuf *)mbuf)->nb_segs;
}

/* Bytes of a received packet, added up over its mbufs: pkt_len is ignored, since a peer that
 * shares the memory may have written any number. MALFORMED if the data of an mbuf exceeds its
 * buffer, or if the chain does not end after nb_segs mbufs. */
int64_t castanet_dpdk_length(const struct rte_mbuf *mbuf) {
    int64_t len = 0;
    bool fits = true;
    for (uint32_t left = segment_count(mbuf); left > 0 && mbuf != NULL; left--) {
        struct segment segment = segment_of(mbuf);
        fits &= segment.fits;
        len += segment.len;
        mbuf = segment.next;
        if (left == 1 && mbuf == NULL)
            return fits && len <= LONGEST ? len : MALFORMED;
    }
    return MALFORMED;
}

/* Copies len bytes of a packet, its castanet_dpdk_length, to `to`; false if the length has changed
 * since. */
bool castanet_dpdk_copy_out(const struct rte_mbuf *mbuf, char *to, uint32_t len) {
    for (uint32_t left = segment_count(mbuf); left > 0 && mbuf != NULL; left--) {
        struct segment segment = segment_of(mbuf);
        if (!segment.fits || segment.len > len)
            return false;
        memcpy(to, segment.bytes, segment.len);
        to += segment.len;
        len -= segment.len;
        mbuf = segment.next;
    }
    return len == 0;
}

/* Number of distinct mbufs among the first `most` of a chain, which may be circular: Brent's
 * algorithm finds the cycle. */
uint32_t castanet_dpdk_distinct(const struct rte_mbuf *mbuf, uint32_t most) {
    const struct rte_mbuf *slow = mbuf, *fast = mbuf->next;
    uint64_t steps = 1, power = 1, ring = 1;
    /* Within these steps a cycle among that many mbufs has been found. */
    for (; fast != NULL && fast != slow && steps < 4 * (uint64_t)most + 4; steps++, ring++) {
        if (ring == power) {
            slow = fast;
            power *= 2;
            ring = 0;
        }
        fast = fast->next;
    }
    if (fast == NULL || fast != slow)
        return RTE_MIN(steps, most);
    uint64_t before = 0;
    for (fast = mbuf; ring > before; before++)
        fast = fast->next;
    for (slow = mbuf; slow != fast; before++, slow = slow->next)
        fast = fast->next;
    return RTE_MIN(before, most);
}

/* Frees the first nb_segs mbufs of a received packet's chain, each once; mbufs behind them are not
 * the packet's. */
void castanet_dpdk_discard(struct rte_mbuf *mbuf) {
    uint32_t left = castanet_dpdk_distinct(mbuf, RTE_MAX(segment_count(mbuf), 1u));
    for (; left > 0; left--) {
        struct rte_mbuf *next = mbuf->next;
        rte_pktmbuf_free_seg(mbuf);
        mbuf = next;
    }
}

/* Whether packets with these marks are unshared mbufs, of pools whose bits are set. */
static __rte_noinline bool are_own_mbufs(uint32_t marks, const uint64_t *mbuf_pools) {
    unsigned pool = (marks & MARK_POOL) >> MARK_POOL_SHIFT;
    return (marks & MARK_SHARED) == 0 && (mbuf_pools[pool / 64] >> pool % 64 & 1) != 0;
}

/* Requests the port to complete checksums of a packet that is an mbuf in place; false if the header
 * offsets are unsuitable, or if the port lacks the offload. */
static __rte_noinline bool request_checksums(struct rte_mbuf *mbuf,
                                             const struct castanet_packet *packet,
                                             uint32_t tx_checksums) {
    uint64_t at = packet->offsets;
    uint16_t data = at, network = at >> 32, transport = at >> 48;
    uint64_t l2 = (uint64_t)network - data, l3 = (uint64_t)transport - network;
    const struct rte_ipv4_hdr *ip = (void *)((char *)packet->frame + network);
    uint64_t flags = RTE_MBUF_F_TX_IPV4, l4 = 0;
    if (network < data || l2 > 127 || l3 < sizeof *ip || l3 > 60 ||
        l2 + l3 + sizeof(struct rte_udp_hdr) > (uint32_t)packet->span)
        return false;
    if ((packet->marks & MARK_IP_SUM) != 0) {
        if ((tx_checksums & CHECKSUM_IP) == 0)
            return false;
        flags |= RTE_MBUF_F_TX_IP_CKSUM;
    }
    if ((packet->marks & MARK_L4_SUM) != 0) {
        const struct rte_tcp_hdr *tcp = (void *)((char *)ip + l3);
        if (ip->next_proto_id == IPPROTO_TCP && (tx_checksums & CHECKSUM_TCP) != 0 &&
            l2 + l3 + sizeof *tcp <= (uint32_t)packet->span) {
            flags |= RTE_MBUF_F_TX_TCP_CKSUM;
            l4 = (tcp->data_off >> 4) * 4;
        } else if (ip->next_proto_id == IPPROTO_UDP && (tx_checksums & CHECKSUM_UDP) != 0) {
            flags |= RTE_MBUF_F_TX_UDP_CKSUM;
            l4 = sizeof(struct rte_udp_hdr);
        } else {
            return false;
        }
    }
    mbuf->tx_offload = rte_mbuf_tx_offload(l2, l3, l4, 0, 0, 0, 0);
    mbuf->ol_flags = flags;
    return true;
}

/* Makes mbufs of up to n packets, at most BURST, up to the first that is shared, in none of the
 * pools whose bits are set in mbuf_pools, too short, too long, or has checksums that the port
 * cannot complete. Sets needs_prepare if the port is to complete any. */
static __rte_noinline struct castanet_tx_burst
collect_any(const struct castanet_packet *packets, unsigned n, const uint64_t *mbuf_pools,
            const struct castanet_tx_limits *limits, struct rte_mbuf **mbufs,
            bool *needs_prepare) {
    const uint32_t shortest = limits->shortest, span = limits->longest - shortest;
    uint64_t bytes = 0, i = 0, before;
    do {
        before = i;
        if (unlikely(i == n) || !are_own_mbufs(marks_of(&packets[i]), mbuf_pools))
            break;
        /* These hold for all packets with these marks. */
        const uint32_t marks = marks_of(&packets[i]);
        const bool sums = (marks & MARK_SUMS) != 0;
        for (; i < n; i++) {
            const struct castanet_packet *packet = &packets[i];
            struct rte_mbuf *mbuf = mbuf_of(packet->frame);
            uint32_t len = packet->span;
            if (unlikely(marks_of(packet) != marks) || unlikely(len - shortest > span))
                break;
            mbuf->ol_flags = 0;
            if (unlikely(sums) && !request_checksums(mbuf, packet, limits->tx_checksums))
                break;
            mbuf->data_off = (uint16_t)packet->offsets - HEADER;
            mbuf->data_len = mbuf->pkt_len = len;
            mbufs[i] = mbuf;
            bytes += len;
        }
        *needs_prepare |= sums && i > before;
    } while (unlikely(i < n) && i > before);
    return (struct castanet_tx_burst){.ready = i, .bytes = bytes};
}

/* The same, by the faster way if all packets are alike and have no checksums to be completed. */
struct castanet_tx_burst castanet_dpdk_collect(const struct castanet_packet *packets, unsigned n,
                                               const uint64_t *mbuf_pools,
                                               const struct castanet_tx_limits *limits,
                                               struct rte_mbuf **mbufs, bool *needs_prepare) {
    uint64_t bytes;
    *needs_prepare = false;
    n = RTE_MIN(n, (unsigned)BURST);
    if (n >= ALIKE && castanet_dpdk_has_alike() && (packets->marks & MARK_SUMS) == 0 &&
        are_own_mbufs(marks_of(packets), mbuf_pools) &&
        likely(castanet_dpdk_mbufs_alike(packets, n, limits, mbufs, &bytes)))
        return (struct castanet_tx_burst){.ready = n, .bytes = bytes};
    return collect_any(packets, n, mbuf_pools, limits, mbufs, needs_prepare);
}

/* Records that n packets were sent, and subtracts the bytes of the others. */
static inline struct castanet_tx_burst with_sent(struct castanet_tx_burst sent, uint32_t n,
                                                 const struct castanet_packet *packets) {
    sent.sent = n;
    for (; unlikely(n < sent.ready); n++)
        sent.bytes -= (uint32_t)packets[n].span;
    return sent;
}

/* Removes packets from the burst from the first on that the driver cannot send
 * (rte_eth_tx_prepare). */
static __rte_noinline void prepare(uint16_t port, uint16_t queue, struct castanet_tx_burst *sent,
                                   const struct castanet_packet *packets, struct rte_mbuf **mbufs) {
    uint32_t able = rte_eth_tx_prepare(port, queue, mbufs, sent->ready);
    while (sent->ready > able)
        sent->bytes -= (uint32_t)packets[--sent->ready].span;
}

/* Sends packets up to the first that needs the slow path or finds no room; the driver owns those
 * that were sent. */
struct castanet_tx_burst castanet_dpdk_transmit(uint16_t port, uint16_t queue,
                                                const struct castanet_packet *packets, unsigned n,
                                                const uint64_t *mbuf_pools,
                                                const struct castanet_tx_limits *limits) {
    struct rte_mbuf *mbufs[BURST];
    bool needs_prepare;
    struct castanet_tx_burst sent =
        castanet_dpdk_collect(packets, n, mbuf_pools, limits, mbufs, &needs_prepare);
    if (unlikely(needs_prepare))
        prepare(port, queue, &sent, packets, mbufs);
    return with_sent(sent, rte_eth_tx_burst(port, queue, mbufs, sent.ready), packets);
}

/* As castanet_dpdk_transmit, into a ring; the consumer owns the packets that were enqueued. */
struct castanet_tx_burst castanet_dpdk_enqueue(struct rte_ring *ring,
                                               const struct castanet_packet *packets, unsigned n,
                                               const uint64_t *mbuf_pools,
                                               const struct castanet_tx_limits *limits) {
    struct rte_mbuf *mbufs[BURST];
    bool needs_prepare;
    struct castanet_tx_burst sent =
        castanet_dpdk_collect(packets, n, mbuf_pools, limits, mbufs, &needs_prepare);
    uint32_t n_sent = rte_ring_enqueue_burst(ring, (void *const *)mbufs, sent.ready, NULL);
    return with_sent(sent, n_sent, packets);
}

/* A copy of bytes in a chain of mbufs of the mempool; NULL if too few mbufs are free. */
static struct rte_mbuf *chain(struct rte_mempool *pool, const char *bytes, uint32_t len) {
    struct rte_mbuf *mbufs[CHAIN];
    uint32_t room = rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM;
    uint32_t n = (len + room - 1) / room;
    if (n == 0 || n > CHAIN || rte_pktmbuf_alloc_bulk(pool, mbufs, n) != 0)
        return NULL;
    mbufs[0]->pkt_len = len;
    mbufs[0]->nb_segs = n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t some = RTE_MIN(len, room);
        memcpy(rte_pktmbuf_mtod(mbufs[i], void *), bytes, some);
        mbufs[i]->data_len = some;
        mbufs[i]->next = i + 1 < n ? mbufs[i + 1] : NULL;
        bytes += some;
        len -= some;
    }
    return mbufs[0];
}

/* Requests TSO for a TCP packet, the headers of which are in its first mbuf. */
static void request_tso(struct rte_mbuf *mbuf, const struct castanet_tso *how) {
    char *ip = rte_pktmbuf_mtod_offset(mbuf, char *, how->l2_len);
    struct rte_tcp_hdr *tcp = (void *)(ip + how->l3_len);
    uint64_t flags = RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_TCP_CKSUM;
    mbuf->tx_offload =
        rte_mbuf_tx_offload(how->l2_len, how->l3_len, how->l4_len, how->size, 0, 0, 0);
    /* For TSO, the checksum field holds the sum of the pseudo-header without its length, which
     * differs by segment. */
    if (how->ipv6) {
        mbuf->ol_flags = flags | RTE_MBUF_F_TX_IPV6;
        tcp->cksum = rte_ipv6_phdr_cksum((void *)ip, mbuf->ol_flags);
    } else {
        mbuf->ol_flags = flags | RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM;
        ((struct rte_ipv4_hdr *)ip)->hdr_checksum = 0;
        tcp->cksum = rte_ipv4_phdr_cksum((void *)ip, mbuf->ol_flags);
    }
}

/* Sends bytes as one packet in as many mbufs as it takes, with TSO if how->size is not 0: 1 if it
 * was sent, 0 if there is no room for it, -ENOMEM if too few mbufs are free, else the driver's
 * error. */
int castanet_dpdk_transmit_long(uint16_t port, uint16_t queue, struct rte_mempool *pool,
                                const char *bytes, uint32_t len,
                                const struct castanet_tso *how) {
    struct rte_mbuf *mbuf = chain(pool, bytes, len);
    int answer = 0;
    if (mbuf == NULL)
        return -ENOMEM;
    if (how->size != 0) {
        request_tso(mbuf, how);
        if (rte_eth_tx_prepare(port, queue, &mbuf, 1) != 1)
            answer = rte_errno != 0 ? -rte_errno : -EINVAL;
    }
    if (answer == 0 && (answer = rte_eth_tx_burst(port, queue, &mbuf, 1)) == 1)
        return 1;
    rte_pktmbuf_free(mbuf);
    return answer;
}

/* As castanet_dpdk_transmit_long, into a ring and without TSO. */
int castanet_dpdk_enqueue_long(struct rte_ring *ring, struct rte_mempool *pool, const char *bytes,
                               uint32_t len) {
    struct rte_mbuf *mbuf = chain(pool, bytes, len);
    if (mbuf == NULL)
        return -ENOMEM;
    if (rte_ring_enqueue(ring, mbuf) == 0)
        return 1;
    rte_pktmbuf_free(mbuf);
    return 0;
}
