/* Hands mbufs from one port to another without making packets of them. */
#include "burst.h"

/* Number of mbufs from the first on that can be sent unchanged: each whole, of a length that needs
 * no slow path, and with equal pkt_len and data_len, since drivers use either. Adds up their
 * bytes, and clears ol_flags: flags of reception would mean other things to the sending port. */
__rte_noinline uint64_t castanet_dpdk_forwardable(struct rte_mbuf **mbufs, uint64_t all,
                                                  const struct castanet_tx_limits *limits,
                                                  uint64_t *bytes) {
    uint64_t sum = 0, i = 0;
    for (; i < all; i++) {
        struct rte_mbuf *mbuf = mbufs[i];
        const uint64_t shape = shape_of(mbuf);
        const uint32_t room = *(const volatile uint16_t *)&mbuf->buf_len;
        const uint32_t len = *(const volatile uint32_t *)&mbuf->pkt_len;
        if (!is_one(shape, room) || !is_direct(mbuf) ||
            len != *(const volatile uint16_t *)&mbuf->data_len || len > room - start_of(shape) ||
            len < limits->shortest || len > limits->longest)
            break;
        mbuf->ol_flags = 0;
        sum += len;
    }
    *bytes = sum;
    return i;
}

/* As castanet_dpdk_forwardable, for mbufs that only their driver writes to: each has equal lengths
 * then. It is faster where all have the first one's shape; they have as much room, too, since a
 * driver fills a queue from one mempool. The shapes are checked once, at the end: a branch for each
 * mbuf costs more. */
static __rte_always_inline uint64_t forwardable_alike(struct rte_mbuf **mbufs, uint64_t all,
                                                      const struct castanet_tx_limits *limits,
                                                      uint64_t *bytes) {
    if (unlikely(all == 0))
        return 0;
    const castanet_words first = header_words(mbufs[0]);
    const uint32_t buffer = mbufs[0]->buf_len;
    if (!is_one(first[0], buffer) || first[1] != 0)
        return castanet_dpdk_forwardable(mbufs, all, limits, bytes);
    const uint32_t room = buffer - start_of(first[0]);
    const uint32_t shortest = limits->shortest, longest = RTE_MIN(room, limits->longest);
    castanet_words odd = first ^ first;
    uint64_t sum = 0, i = 0;
#pragma GCC unroll 4
    for (; i < all; i++) {
        uint32_t len = mbufs[i]->pkt_len;
        odd |= header_words(mbufs[i]) ^ first;
        if (unlikely(len - shortest > longest - shortest))
            break;
        sum += len;
    }
    if (unlikely(i < all) || unlikely((odd[0] | odd[1]) != 0) || unlikely(longest < shortest))
        return castanet_dpdk_forwardable(mbufs, all, limits, bytes);
    *bytes = sum;
    return i;
}

/* Receives up to n packets, at most BURST, and sends them unchanged, up to the first that needs
 * the slow path or finds no room; the caller owns the mbufs from that on. If shared, a peer may
 * write to the mbufs at any time. */
struct castanet_forwarded_burst
castanet_dpdk_forward(uint16_t from, uint16_t from_queue, bool shared, uint16_t to,
                      uint16_t to_queue, const struct castanet_tx_limits *limits,
                      struct rte_mbuf **mbufs, unsigned n) {
    uint64_t all = rte_eth_rx_burst(from, from_queue, mbufs, RTE_MIN(n, (unsigned)BURST));
    uint64_t bytes = 0, ready, sent = 0;
    if (unlikely(shared))
        ready = castanet_dpdk_forwardable(mbufs, all, limits, &bytes);
    else
        ready = forwardable_alike(mbufs, all, limits, &bytes);
    if (likely(ready > 0))
        sent = rte_eth_tx_burst(to, to_queue, mbufs, ready);
    for (uint64_t i = sent; unlikely(i < ready); i++)
        bytes -= mbufs[i]->pkt_len;
    return (struct castanet_forwarded_burst){.all = all, .sent = sent, .bytes = bytes};
}

/* Looks at received mbufs, at least one, which only their driver writes to. Each end is the offset of the packet's end
 * from the mbuf's own address. */
struct castanet_received_burst castanet_dpdk_look(struct rte_mbuf **mbufs, uint64_t all,
                                                  const struct castanet_template *template,
                                                  const struct castanet_tx_limits *limits,
                                                  uint32_t *ends) {
    struct castanet_received_burst burst = {.all = all};
    const castanet_words first = header_words(mbufs[0]);
    if (!is_one(first[0], template->room))
        return burst;
    const uint64_t offset = data_of(first[0]);
    castanet_words odd = first ^ first;
    uint64_t bytes = 0, others = 0, shortest = UINT32_MAX, longest = 0;
#pragma GCC unroll 4
    for (uint64_t i = 0; i < all; i++) {
        const struct rte_mbuf *mbuf = mbufs[i];
        const uint64_t len = mbuf->pkt_len;
        odd |= header_words(mbuf) ^ first;
        others |= (uintptr_t)mbuf->pool ^ (uintptr_t)template->pool;
        shortest = RTE_MIN(shortest, len);
        longest = RTE_MAX(longest, len);
        bytes += len;
        ends[i] = offset + len;
    }
    const uint64_t room = template->room - start_of(first[0]);
    /* Those of the first, and all that others have more or less. */
    const uint64_t flags = first[1] | odd[1];
    if (likely((odd[0] | others | (flags & ELSEWHERE)) == 0) &&
        likely(shortest >= limits->shortest) && likely(longest <= RTE_MIN(room, limits->longest)))
        burst.offset = offset;
    burst.shortest = shortest;
    burst.has_flags = flags != 0;
    burst.bytes = bytes;
    return burst;
}

/* Receives up to n packets, at most BURST, and looks at them. */
struct castanet_received_burst
castanet_dpdk_receive_alike(uint16_t port, uint16_t queue, const struct castanet_template *template,
                            const struct castanet_tx_limits *limits, struct rte_mbuf **mbufs,
                            uint32_t *ends, unsigned n) {
    uint64_t all = rte_eth_rx_burst(port, queue, mbufs, RTE_MIN(n, (unsigned)BURST));
    if (unlikely(all == 0))
        return (struct castanet_received_burst){.all = 0};
    if (likely(castanet_dpdk_has_alike()))
        return castanet_dpdk_look_alike(mbufs, all, template, limits, ends);
    return castanet_dpdk_look(mbufs, all, template, limits, ends);
}

/* Cuts packets to end at these offsets from their mbufs' own addresses; their data begins at `offset`. Returns
 * how many bytes are cut off. */
uint64_t castanet_dpdk_cut(struct rte_mbuf **mbufs, const uint32_t *ends, unsigned n,
                           uint32_t offset) {
    uint64_t cut = 0;
    for (unsigned i = 0; i < n; i++) {
        const uint32_t len = ends[i] - offset;
        cut += mbufs[i]->pkt_len - len;
        mbufs[i]->data_len = mbufs[i]->pkt_len = len;
    }
    return cut;
}

/* Sends mbufs as they are, but without flags if they have some; returns how many, which the driver owns. */
uint32_t castanet_dpdk_send(uint16_t port, uint16_t queue, struct rte_mbuf **mbufs, unsigned n,
                            bool has_flags) {
    if (has_flags)
        for (unsigned i = 0; i < n; i++)
            mbufs[i]->ol_flags = 0;
    return rte_eth_tx_burst(port, queue, mbufs, n);
}
