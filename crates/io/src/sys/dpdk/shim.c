/* Plain functions around DPDK's inline functions and structures: environment, mempools, rings. */
#include "shim.h"

#include <rte_lcore.h>
#include <rte_mbuf_pool_ops.h>

int castanet_dpdk_errno(void) { return rte_errno; }

const char *castanet_dpdk_strerror(int error) { return rte_strerror(error); }

int castanet_dpdk_init(int argc, char **argv) { return rte_eal_init(argc, argv); }

unsigned castanet_dpdk_lcores(void) { return rte_lcore_count(); }

/* Registers the calling thread, which gives it mempool caches; 0 if it was registered now. */
int castanet_dpdk_enter_thread(void) {
    return rte_lcore_id() == LCORE_ID_ANY ? rte_thread_register() : 1;
}

void castanet_dpdk_leave_thread(void) { rte_thread_unregister(); }

/* Creates a mempool of mbufs that contain frames, or finds the one of the primary process.
 *
 * Without huge pages DPDK would start each mbuf on a page of its own, so that no mbuf crosses a
 * page boundary: then all mbufs' first lines are in the same sets of the CPU's first cache and
 * evict each other, at half the speed. Only devices that use physical addresses need that, and
 * they cannot use such memory: devices, if any, use virtual addresses here. */
struct rte_mempool *castanet_dpdk_pool(const char *name, unsigned mbufs, unsigned cache,
                                       uint16_t room, int numa_node) {
    struct rte_pktmbuf_pool_private layout = {
        .mbuf_data_room_size = room, .mbuf_priv_size = HEADER};
    bool across_pages = !rte_eal_has_hugepages() && rte_eal_iova_mode() == RTE_IOVA_VA;
    unsigned flags = across_pages ? RTE_MEMPOOL_F_NO_IOVA_CONTIG : 0;
    unsigned size = sizeof(struct rte_mbuf) + HEADER + room;
    int failed;
    struct rte_mempool *pool = NULL;
    /* The primary process may have created it for all processes. */
    if (rte_eal_process_type() == RTE_PROC_SECONDARY && (pool = rte_mempool_lookup(name)) != NULL) {
        if (pool->elt_size == size && rte_pktmbuf_priv_size(pool) == HEADER && pool->size == mbufs)
            return pool;
        rte_errno = EEXIST;
        return NULL;
    }
    pool = rte_mempool_create_empty(name, mbufs, size, cache, sizeof layout, numa_node, flags);
    if (pool == NULL)
        return NULL;
    failed = rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), NULL);
    if (failed == 0) {
        rte_pktmbuf_pool_init(pool, &layout);
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

/* Whether at least n mbufs are free. The caches, a cache line for each possible lcore, are counted
 * only if the mempool's common ring has fewer. */
bool castanet_dpdk_pool_has(const struct rte_mempool *pool, unsigned n) {
    return rte_mempool_get_ops(pool->ops_index)->get_count(pool) >= n ||
           rte_mempool_avail_count(pool) >= n;
}

/* Takes up to n free frames, at most BURST; returns their number. */
unsigned castanet_dpdk_take(struct rte_mempool *pool, void **frames, unsigned n) {
    struct rte_mbuf *mbufs[BURST];
    n = RTE_MIN(n, (unsigned)BURST);
    /* rte_mempool_get_bulk takes all or none; the last mbufs of the pool are taken one by one. */
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

bool castanet_dpdk_is_primary(void) { return rte_eal_process_type() == RTE_PROC_PRIMARY; }

/* The ring of this name; if there is none and descriptors is not 0, a new one. */
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
