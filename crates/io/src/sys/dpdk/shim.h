/* Structures shared by the C files of this folder and Rust, laid out as in `shim.rs` and
 * `types.rs`.
 *
 * A packet's bytes lie in an mbuf's buffer and its cold header in the mbuf's private area, which
 * ends where the buffer starts: both together are a frame in Rust. */
#ifndef CASTANET_DPDK_SHIM_H
#define CASTANET_DPDK_SHIM_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>

/* Bytes of a frame's header, the private area of each mbuf. */
#define HEADER 64
/* Most packets of one call. */
#define BURST 128
/* Most mbufs of one packet. */
#define CHAIN 64
/* Most pools of VMDq. */
#define MOST_POOLS 64
/* Most entries of an RSS redirection table that are handled. */
#define MOST_RETA_ENTRIES 4096
/* Most bytes of a packet that is received in several mbufs, and the length of a malformed one. */
#define LONGEST (1 << 20)
#define MALFORMED (-1)

_Static_assert(sizeof(struct rte_mbuf) % 64 == 0, "a frame's header is aligned to 64 bytes");

_Static_assert(RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN, "a packet's words are in that order");
_Static_assert(offsetof(struct rte_mbuf, refcnt) == offsetof(struct rte_mbuf, data_off) + 2 &&
                   offsetof(struct rte_mbuf, nb_segs) == offsetof(struct rte_mbuf, data_off) + 4 &&
                   offsetof(struct rte_mbuf, port) == offsetof(struct rte_mbuf, data_off) + 6 &&
                   offsetof(struct rte_mbuf, ol_flags) == offsetof(struct rte_mbuf, data_off) + 8 &&
                   offsetof(struct rte_mbuf, data_off) % 16 == 0,
               "adjacent fields are read together");

/* A packet, laid out as Rust's `RawPacket`. */
struct castanet_packet {
    void *frame;
    /* Offsets of its data and headers from the frame's header, 16 bits each. */
    uint64_t offsets;
    /* Its length in the lower 32 bits; above, a destination. */
    uint64_t span;
    uint64_t marks;
};

/* In a packet's marks: that the frame has other owners, and the pool's number. */
#define MARK_SHARED (1u << 8)
#define MARK_POOL_SHIFT 16
#define MARK_POOL (0xffu << MARK_POOL_SHIFT)
/* In a packet's marks: that the IPv4 header's checksum, or that of TCP or UDP, is partial: the
 * sender completes it. */
#define MARK_IP_SUM (1u << 12)
#define MARK_L4_SUM (1u << 13)
#define MARK_SUMS (MARK_IP_SUM | MARK_L4_SUM)

/* Common fields of packets in the mbufs of a mempool. */
struct castanet_template {
    const struct rte_mempool *pool;
    uint64_t marks;
    /* Bytes of an mbuf's buffer. */
    uint64_t room;
};

/* Result of receiving a burst. */
struct castanet_rx_burst {
    uint32_t all;
    /* How many of these, from the first on, became packets in place, and their bytes. */
    uint32_t placed;
    uint64_t bytes;
};

/* Result of sending a burst. */
struct castanet_tx_burst {
    /* Number of packets that needed no slow path. */
    uint32_t ready;
    /* Number of these that were sent, and their bytes. */
    uint32_t sent;
    uint64_t bytes;
};

/* Result of receiving a burst and sending it unchanged. */
struct castanet_forwarded_burst {
    uint32_t all;
    /* How many of these, from the first on, were sent, and their bytes. */
    uint32_t sent;
    uint64_t bytes;
};

/* Identity and capabilities of a port. */
struct castanet_port_info {
    char name[RTE_ETH_NAME_MAX_LEN];
    char driver[64];
    uint8_t mac[6];
    uint16_t max_rx_queues;
    uint16_t max_tx_queues;
    uint16_t mtu;
    int32_t numa_node;
    /* RTE_ETH_RX_OFFLOAD_* and RTE_ETH_TX_OFFLOAD_* that it has. */
    uint64_t rx_offloads;
    uint64_t tx_offloads;
    /* Most mbufs of a packet to send. */
    uint16_t max_chain;
    /* Most VMDq pools; 0 without VMDq. */
    uint16_t max_vmdq_pools;
    uint16_t reserved[2];
};

/* Configuration of a port. */
struct castanet_port_setup {
    struct rte_mempool *mbufs;
    uint16_t rx_queues;
    uint16_t tx_queues;
    uint16_t rx_descriptors;
    uint16_t tx_descriptors;
    uint16_t mtu;
    uint8_t promiscuous;
    /* Whether to spread packets over queues by a hash of their addresses, however few queues. */
    uint8_t rss;
    /* Whether receive queues raise interrupts. */
    uint8_t interrupts;
    /* Whether the pools of VMDq have the VLANs below. */
    uint8_t has_vlans;
    /* Pools of VMDq; 0 without VMDq. */
    uint16_t pools;
    uint64_t rx_offloads;
    uint64_t tx_offloads;
    uint16_t vlans[MOST_POOLS];
};

/* Limits of the fast path of transmission. */
struct castanet_tx_limits {
    /* Shorter and longer packets need the slow path. */
    uint32_t shortest;
    uint32_t longest;
    /* Checksums that the port completes: CHECKSUM_*. */
    uint32_t tx_checksums;
    uint32_t reserved;
};

#define CHECKSUM_IP 1u
#define CHECKSUM_TCP 2u
#define CHECKSUM_UDP 4u

/* TSO parameters of a TCP packet. */
struct castanet_tso {
    uint16_t l2_len;
    uint16_t l3_len;
    uint16_t l4_len;
    /* Bytes of payload in each; 0 to leave it whole. */
    uint16_t size;
    uint32_t ipv6;
};

struct castanet_link_status {
    uint32_t speed;
    uint8_t up;
    uint8_t full_duplex;
    uint8_t autoneg;
    uint8_t reserved;
};

/* Statistics of the hardware. */
struct castanet_port_stats {
    uint64_t rx_packets, rx_bytes, rx_missed, rx_errors, rx_no_mbuf;
    uint64_t tx_packets, tx_bytes, tx_errors;
};

static inline void *frame_of(struct rte_mbuf *mbuf) { return (char *)mbuf->buf_addr - HEADER; }

static __rte_always_inline struct rte_mbuf *mbuf_of(void *frame) {
    return (struct rte_mbuf *)((char *)frame - sizeof(struct rte_mbuf));
}

#endif
