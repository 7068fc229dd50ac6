/* The common part of the conversions of bursts: those of any packets, and those of packets that are
 * all alike. */
#ifndef CASTANET_DPDK_BURST_H
#define CASTANET_DPDK_BURST_H

#include "shim.h"

/* An mbuf's data_off, refcnt, nb_segs and port: adjacent, and equal in most mbufs of a burst, so
 * that one comparison does for all four. */
static __rte_always_inline uint64_t shape_of(const struct rte_mbuf *mbuf) {
    uint64_t shape;
    memcpy(&shape, &mbuf->data_off, sizeof shape);
    return shape;
}

/* The shape of an mbuf and its ol_flags, which are adjacent, too. */
typedef uint64_t castanet_words __attribute__((vector_size(16), may_alias));

static __rte_always_inline castanet_words header_words(const struct rte_mbuf *mbuf) {
    return *(const castanet_words *)&mbuf->data_off;
}

/* Offset of the data of mbufs of this shape in their buffers. */
static __rte_always_inline uint64_t start_of(uint64_t shape) { return shape & 0xffff; }

/* Whether an mbuf of this shape is one whole packet: unchained, with one owner, and with data that
 * starts within its buffer. */
static __rte_always_inline bool is_one(uint64_t shape, uint64_t room) {
    return (shape >> 16 & 0xffffffff) == 0x10001 && start_of(shape) <= room;
}

/* Whether an mbuf's data lies in its own buffer. */
static __rte_always_inline bool is_direct(const struct rte_mbuf *mbuf) {
    return likely(mbuf->ol_flags == 0) || RTE_MBUF_DIRECT(mbuf);
}

/* Offset of the data of a pool's mbufs of this shape from their own addresses. */
static __rte_always_inline uint64_t data_of(uint64_t shape) {
    return sizeof(struct rte_mbuf) + HEADER + start_of(shape);
}

/* A packet's offsets word for mbufs of this shape: data and link-layer header start together. */
static __rte_always_inline uint64_t offsets_of(uint64_t shape) {
    return (start_of(shape) + HEADER) * 0x10001;
}

/* The marks of a packet that decide whether it can be sent in place. */
static __rte_always_inline uint32_t marks_of(const struct castanet_packet *packet) {
    return (uint32_t)packet->marks & (MARK_SHARED | MARK_POOL | MARK_SUMS);
}

/* The offset and the lengths of the packets of a burst. */
struct castanet_received_burst {
    uint32_t all;
    /* Offset of the data of each from the mbuf's own address; 0 if they are not alike: some have other shapes,
     * lie in other memory than the mempool's own, exceed their buffers, or cannot be sent without a look at them. */
    uint32_t offset;
    /* The length of the shortest, and the sum of all. */
    uint32_t shortest;
    /* Whether one has ol_flags: those of reception, which mean other things to the sending port. */
    uint32_t has_flags;
    uint64_t bytes;
};

/* Flags of mbufs whose data lie in other memory. */
#define ELSEWHERE (RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL)

/* Whether castanet_dpdk_packets_alike, castanet_dpdk_mbufs_alike and castanet_dpdk_look_alike may be called: the
 * processor has AVX2. */
bool castanet_dpdk_has_alike(void);

/* As castanet_dpdk_look. */
struct castanet_received_burst castanet_dpdk_look_alike(struct rte_mbuf **mbufs, uint64_t all,
                                                        const struct castanet_template *template,
                                                        const struct castanet_tx_limits *limits,
                                                        uint32_t *ends);

/* Makes packets of all mbufs in place, of which there is at least one, and adds up their bytes; false
 * if they differ in more than their lengths, or one is in another mempool or not whole. Packets may
 * have been written then, but mean nothing. */
bool castanet_dpdk_packets_alike(struct rte_mbuf **mbufs, uint64_t all,
                                 const struct castanet_template *template,
                                 struct castanet_packet *packets, uint64_t *bytes);

/* Makes mbufs of n packets, at least one, that lie in mbufs of their own if the first does, and adds
 * up their bytes; false, with all mbufs as they were, if their marks differ, or one is too short or
 * too long. */
bool castanet_dpdk_mbufs_alike(const struct castanet_packet *packets, uint64_t n,
                               const struct castanet_tx_limits *limits, struct rte_mbuf **mbufs,
                               uint64_t *bytes);

#endif
