/* The conversions of bursts in which all packets are alike, by AVX2: the packets are compared with
 * the first one on the way, and what the comparisons found is looked at once, at the end. */
#include "burst.h"

#ifdef RTE_ARCH_X86_64
#include <immintrin.h>

/* For processors with fast loads of any alignment, as all that have AVX2. */
#define WITH_AVX2 __attribute__((target("avx2,tune=haswell")))

/* Where a packet's words come from, in 32 bytes of an mbuf. */
_Static_assert(sizeof(struct castanet_packet) == 32, "a packet is one vector");
_Static_assert(offsetof(struct castanet_packet, span) == 16, "its length is the fifth of eight");
_Static_assert(offsetof(struct rte_mbuf, pool) % 16 == 8, "the mempool is in an upper half");
_Static_assert(offsetof(struct rte_mbuf, pool) < 64, "the mempool is in the first cache line");
_Static_assert(offsetof(struct rte_mbuf, pkt_len) % 16 == 4, "pkt_len is the second of four");

/* The fields that set_mbuf writes lie beside each other. */
_Static_assert(offsetof(struct rte_mbuf, data_off) % 16 == 0, "data_off begins a vector");
_Static_assert(offsetof(struct rte_mbuf, ol_flags) == offsetof(struct rte_mbuf, data_off) + 8,
               "ol_flags ends it");
_Static_assert(offsetof(struct rte_mbuf, data_len) == offsetof(struct rte_mbuf, pkt_len) + 4 &&
                   offsetof(struct rte_mbuf, vlan_tci) == offsetof(struct rte_mbuf, data_len) + 2,
               "the lengths and vlan_tci are one word");

/* The word of a packet that has the offset of its data, of sixteen. */
#define OFFSETS_AT (offsetof(struct castanet_packet, offsets) / sizeof(uint16_t))

/* The 32 bytes of an mbuf in which pkt_len is where a packet has its length. */
#define LENGTH_FROM                                                                                \
    (offsetof(struct rte_mbuf, pkt_len) - offsetof(struct castanet_packet, span))

bool castanet_dpdk_has_alike(void) { return __builtin_cpu_supports("avx2"); }

/* The word of a packet's length alone: a destination may stand above it. */
WITH_AVX2 static inline uint32_t length_of(__m256i words) {
    return _mm_cvtsi128_si32(_mm256_extracti128_si256(words, 1));
}

WITH_AVX2 bool castanet_dpdk_packets_alike(struct rte_mbuf **mbufs, uint64_t all,
                                           const struct castanet_template *template,
                                           struct castanet_packet *packets, uint64_t *bytes) {
    const uint64_t shape = shape_of(mbufs[0]);
    if (!is_one(shape, template->room))
        return false;
    const __m128i header = _mm_cvtsi64_si128(shape);
    const __m128i pool = _mm_set_epi64x((uintptr_t)template->pool, 0);
    const __m256i same =
        _mm256_set_epi64x(template->marks, 0, offsets_of(shape), sizeof(struct rte_mbuf));
    const __m256i length_mask = _mm256_set_epi64x(0, UINT32_MAX, 0, 0);
    __m128i odd = _mm_setzero_si128(), others = odd;
    __m256i longest = _mm256_setzero_si256(), sum = longest;
#pragma GCC unroll 4
    for (uint64_t i = 0; i < all; i++) {
        const char *mbuf = (const char *)mbufs[i];
        /* Each word is read once: a peer that shares the memory may write it at any time. */
        const __m128i its_header =
            _mm_load_si128((const void *)(mbuf + offsetof(struct rte_mbuf, data_off)));
        const __m128i its_pool =
            _mm_load_si128((const void *)(mbuf + offsetof(struct rte_mbuf, pool) - 8));
        const __m256i len = _mm256_and_si256(
            _mm256_loadu_si256((const void *)(mbuf + LENGTH_FROM)), length_mask);
        odd = _mm_or_si128(odd, _mm_xor_si128(its_header, header));
        others = _mm_or_si128(others, _mm_xor_si128(its_pool, pool));
        longest = _mm256_max_epu32(longest, len);
        sum = _mm256_add_epi64(sum, len);
        const __m256i address = _mm256_set1_epi64x((uintptr_t)mbuf);
        const __m256i own = _mm256_blend_epi32(len, address, 3);
        _mm256_store_si256((void *)&packets[i], _mm256_add_epi64(same, own));
    }
    /* Other flags than these of the port do not matter. */
    *bytes = _mm_cvtsi128_si64(_mm256_extracti128_si256(sum, 1));
    return _mm_testz_si128(odd, _mm_set_epi64x(ELSEWHERE, -1)) &&
           _mm_testz_si128(others, _mm_set_epi64x(-1, 0)) &&
           length_of(longest) <= template->room - start_of(shape);
}

WITH_AVX2 struct castanet_received_burst
castanet_dpdk_look_alike(struct rte_mbuf **mbufs, uint64_t all,
                         const struct castanet_template *template,
                         const struct castanet_tx_limits *limits, uint32_t *ends) {
    struct castanet_received_burst burst = {.all = all};
    const castanet_words first = header_words(mbufs[0]);
    if (!is_one(first[0], template->room))
        return burst;
    const __m128i header = (__m128i)first;
    const __m128i pool = _mm_set_epi64x((uintptr_t)template->pool, 0);
    const __m128i offset = _mm_set1_epi32(data_of(first[0]));
    __m128i odd = _mm_setzero_si128(), others = odd, longest = odd, sum = odd;
    __m128i shortest = _mm_set1_epi32(-1);
#pragma GCC unroll 4
    for (uint64_t i = 0; i < all; i++) {
        const char *mbuf = (const char *)mbufs[i];
        const __m128i its_header =
            _mm_load_si128((const void *)(mbuf + offsetof(struct rte_mbuf, data_off)));
        const __m128i its_pool =
            _mm_load_si128((const void *)(mbuf + offsetof(struct rte_mbuf, pool) - 8));
        const __m128i lengths =
            _mm_load_si128((const void *)(mbuf + offsetof(struct rte_mbuf, pkt_len) - 4));
        odd = _mm_or_si128(odd, _mm_xor_si128(its_header, header));
        others = _mm_or_si128(others, _mm_xor_si128(its_pool, pool));
        shortest = _mm_min_epu32(shortest, lengths);
        longest = _mm_max_epu32(longest, lengths);
        sum = _mm_add_epi32(sum, lengths);
        ends[i] = _mm_extract_epi32(_mm_add_epi32(lengths, offset), 1);
    }
    const uint32_t room = template->room - start_of(first[0]);
    const uint32_t longest_len = _mm_extract_epi32(longest, 1);
    /* Those of the first, and all that others have more or less. */
    const uint64_t flags = first[1] | _mm_extract_epi64(odd, 1);
    burst.shortest = _mm_extract_epi32(shortest, 1);
    burst.has_flags = flags != 0;
    burst.bytes = (uint32_t)_mm_extract_epi32(sum, 1);
    if (_mm_cvtsi128_si64(odd) == 0 && (flags & ELSEWHERE) == 0 &&
        _mm_testz_si128(others, _mm_set_epi64x(-1, 0)) && burst.shortest >= limits->shortest &&
        longest_len <= RTE_MIN(room, limits->longest))
        burst.offset = data_of(first[0]);
    return burst;
}

/* The lengths in an mbuf of a packet. */
WITH_AVX2 static inline uint64_t lengths_of(const struct castanet_packet *packet) {
    const uint64_t len = (uint32_t)packet->span;
    return len | len << 32;
}

/* Makes an mbuf of a packet: two stores for four fields. Those beside them stay, but for vlan_tci, which
 * means nothing without its flag. */
WITH_AVX2 static inline void set_mbuf(const struct castanet_packet *packet, struct rte_mbuf **to) {
    struct rte_mbuf *mbuf = mbuf_of(packet->frame);
    __m128i *header = (void *)&mbuf->data_off;
    const __m128i words = _mm_cvtsi32_si128((uint16_t)packet->offsets - HEADER);
    /* data_off is the first of eight words, ol_flags the last four. */
    _mm_store_si128(header, _mm_blend_epi16(_mm_load_si128(header), words, 0xf1));
    const uint64_t lengths = lengths_of(packet);
    memcpy(&mbuf->pkt_len, &lengths, sizeof lengths);
    *to = mbuf;
}

/* Finds the mbufs of packets whose data start together; whether set_mbuf would change none of them, as is so where
 * packets leave as they came. These loads take less time than its stores: over net_pcap 1.5 ns a packet, not 2.1. */
WITH_AVX2 static inline bool are_unchanged(const struct castanet_packet *packets, uint64_t n,
                                           struct rte_mbuf **mbufs) {
    const __m128i header = _mm_cvtsi32_si128((uint16_t)packets[0].offsets - HEADER);
    __m128i odd = _mm_setzero_si128();
    uint64_t odd_lengths = 0;
#pragma GCC unroll 4
    for (uint64_t i = 0; i < n; i++) {
        struct rte_mbuf *mbuf = mbuf_of(packets[i].frame);
        uint64_t lengths;
        memcpy(&lengths, &mbuf->pkt_len, sizeof lengths);
        odd_lengths |= lengths ^ lengths_of(&packets[i]);
        odd = _mm_or_si128(
            odd, _mm_xor_si128(_mm_load_si128((const void *)&mbuf->data_off), header));
        mbufs[i] = mbuf;
    }
    /* data_off and ol_flags; both lengths, without vlan_tci behind them. */
    const __m128i fields = _mm_set_epi64x(-1, UINT16_MAX);
    return _mm_testz_si128(odd, fields) && odd_lengths << 16 == 0;
}

WITH_AVX2 bool castanet_dpdk_mbufs_alike(const struct castanet_packet *packets, uint64_t n,
                                         const struct castanet_tx_limits *limits,
                                         struct rte_mbuf **mbufs, uint64_t *bytes) {
    const __m256i first = _mm256_load_si256((const void *)&packets[0]);
    __m256i odd = _mm256_setzero_si256(), longest = odd, sum = odd, shortest = first;
    /* No mbuf is written to before it is known that all are ours. */
#pragma GCC unroll 4
    for (uint64_t i = 0; i < n; i++) {
        const __m256i words = _mm256_load_si256((const void *)&packets[i]);
        odd = _mm256_or_si256(odd, _mm256_xor_si256(words, first));
        longest = _mm256_max_epu32(longest, words);
        shortest = _mm256_min_epu32(shortest, words);
        sum = _mm256_add_epi32(sum, words);
    }
    const __m256i marks = _mm256_set_epi64x(MARK_SHARED | MARK_POOL | MARK_SUMS, 0, 0, 0);
    if (!_mm256_testz_si256(odd, marks) || length_of(shortest) < limits->shortest ||
        length_of(longest) > limits->longest)
        return false;
    *bytes = length_of(sum);
    const bool starts_differ = (uint16_t)_mm256_extract_epi16(odd, OFFSETS_AT) != 0;
    if (!starts_differ && are_unchanged(packets, n, mbufs))
        return true;
    for (uint64_t i = 0; i < n; i++)
        set_mbuf(&packets[i], &mbufs[i]);
    return true;
}

#else

bool castanet_dpdk_has_alike(void) { return false; }

struct castanet_received_burst castanet_dpdk_look_alike(struct rte_mbuf **mbufs, uint64_t all,
                                                        const struct castanet_template *template,
                                                        const struct castanet_tx_limits *limits,
                                                        uint32_t *ends) {
    return (struct castanet_received_burst){.all = all};
}

bool castanet_dpdk_packets_alike(struct rte_mbuf **mbufs, uint64_t all,
                                 const struct castanet_template *template,
                                 struct castanet_packet *packets, uint64_t *bytes) {
    return false;
}

bool castanet_dpdk_mbufs_alike(const struct castanet_packet *packets, uint64_t n,
                               const struct castanet_tx_limits *limits, struct rte_mbuf **mbufs,
                               uint64_t *bytes) {
    return false;
}

#endif
