/* Stands before DPDK's flow API (LD_PRELOAD): accepts every rule, and writes what a driver would
 * get to the file of the environment variable FLOWS. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_flow.h>

static FILE *file(void) {
    static FILE *to;
    if (to == NULL && (to = fopen(getenv("FLOWS"), "w")) == NULL)
        abort();
    return to;
}

static void bytes(const char *name, const void *values, size_t len) {
    fprintf(file(), " %s=", values == NULL ? "no" : name);
    for (size_t i = 0; values != NULL && i < len; i++)
        fprintf(file(), "%02x", ((const uint8_t *)values)[i]);
}

#define SIZE(name, structure)       \
    case RTE_FLOW_ITEM_TYPE_##name: \
        return sizeof(structure)

static size_t size(enum rte_flow_item_type type) {
    switch (type) {
        SIZE(ANY, struct rte_flow_item_any);
        SIZE(MARK, struct rte_flow_item_mark);
        SIZE(PORT_ID, struct rte_flow_item_port_id);
        SIZE(ETH, struct rte_flow_item_eth);
        SIZE(VLAN, struct rte_flow_item_vlan);
        SIZE(IPV4, struct rte_flow_item_ipv4);
        SIZE(IPV6, struct rte_flow_item_ipv6);
        SIZE(ICMP, struct rte_flow_item_icmp);
        SIZE(ICMP6, struct rte_flow_item_icmp6);
        SIZE(UDP, struct rte_flow_item_udp);
        SIZE(TCP, struct rte_flow_item_tcp);
        SIZE(SCTP, struct rte_flow_item_sctp);
        SIZE(ARP_ETH_IPV4, struct rte_flow_item_arp_eth_ipv4);
        SIZE(VXLAN, struct rte_flow_item_vxlan);
        SIZE(VXLAN_GPE, struct rte_flow_item_vxlan_gpe);
        SIZE(GENEVE, struct rte_flow_item_geneve);
        SIZE(GRE, struct rte_flow_item_gre);
        SIZE(GRE_KEY, rte_be32_t);
        SIZE(NVGRE, struct rte_flow_item_nvgre);
        SIZE(MPLS, struct rte_flow_item_mpls);
        SIZE(GTP, struct rte_flow_item_gtp);
        SIZE(GTPC, struct rte_flow_item_gtp);
        SIZE(GTPU, struct rte_flow_item_gtp);
        SIZE(ESP, struct rte_flow_item_esp);
    default:
        return 0;
    }
}

static void action(const struct rte_flow_action *action) {
    fprintf(file(), " action %d", action->type);
    if (action->type == RTE_FLOW_ACTION_TYPE_RSS) {
        const struct rte_flow_action_rss *rss = action->conf;
        fprintf(file(), " %d %u %" PRIx64, rss->func, rss->level, rss->types);
        for (uint32_t i = 0; i < rss->queue_num; i++)
            fprintf(file(), " queue %u", rss->queue[i]);
    } else if (action->type == RTE_FLOW_ACTION_TYPE_QUEUE) {
        bytes("conf", action->conf, 2);
    } else if (action->type == RTE_FLOW_ACTION_TYPE_PORT_ID) {
        bytes("conf", action->conf, 8);
    } else if (action->conf != NULL) {
        bytes("conf", action->conf, 4);
    }
}

int rte_flow_validate(uint16_t port, const struct rte_flow_attr *attr,
                      const struct rte_flow_item *items, const struct rte_flow_action *actions,
                      struct rte_flow_error *error) {
    return 0;
}

struct rte_flow *rte_flow_create(uint16_t port, const struct rte_flow_attr *attr,
                                 const struct rte_flow_item *items,
                                 const struct rte_flow_action *actions,
                                 struct rte_flow_error *error) {
    static uintptr_t last;
    fprintf(file(), "create %u %u %u%u%u", attr->group, attr->priority, attr->ingress,
            attr->egress, attr->transfer);
    for (; items->type != RTE_FLOW_ITEM_TYPE_END; items++) {
        size_t len = size(items->type);
        fprintf(file(), " item %d", items->type);
        bytes("spec", items->spec, len);
        bytes("last", items->last, len);
        bytes("mask", items->mask, len);
    }
    for (; actions->type != RTE_FLOW_ACTION_TYPE_END; actions++)
        action(actions);
    fprintf(file(), "\n");
    fflush(file());
    return (struct rte_flow *)++last;
}

int rte_flow_destroy(uint16_t port, struct rte_flow *flow, struct rte_flow_error *error) {
    fprintf(file(), "destroy %" PRIuPTR "\n", (uintptr_t)flow);
    fflush(file());
    return 0;
}

int rte_flow_flush(uint16_t port, struct rte_flow_error *error) { return 0; }

int rte_flow_isolate(uint16_t port, int set, struct rte_flow_error *error) {
    fprintf(file(), "isolate %d\n", set);
    fflush(file());
    return 0;
}

int rte_flow_query(uint16_t port, struct rte_flow *flow, const struct rte_flow_action *action,
                   void *data, struct rte_flow_error *error) {
    struct rte_flow_query_count *counts = data;
    counts->hits_set = counts->bytes_set = 1;
    counts->hits = 10 * (uintptr_t)flow;
    counts->bytes = 600 * (uintptr_t)flow;
    return 0;
}
