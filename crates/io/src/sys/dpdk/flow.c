/* Flow rules of ports: rte_flow's structures, made of rules that Rust has read. */
#include "shim.h"

#include <rte_flow.h>
#include <stdlib.h>

/* An item of a pattern: values laid out as its header, NULL for those not given. */
struct castanet_flow_item {
    uint32_t kind;
    uint32_t len;
    const uint8_t *spec, *last, *mask;
};

/* An action, with its number; those of RSS have more. */
struct castanet_flow_action {
    uint32_t kind;
    uint32_t value;
    uint32_t function, level;
    uint64_t types;
    const uint16_t *queues;
    uint32_t queue_count;
    uint32_t reserved;
};

struct castanet_flow_rule {
    uint32_t group, priority;
    /* Bit 0 for ingress, 1 for egress, 2 for transfer. */
    uint32_t directions;
    uint32_t item_count, action_count, reserved;
    const struct castanet_flow_item *items;
    const struct castanet_flow_action *actions;
};

/* DPDK's type of an item, and the size of its structure, which starts with the header. */
struct kind {
    enum rte_flow_item_type type;
    size_t size, header;
};

#define KIND(name, structure, header) \
    { RTE_FLOW_ITEM_TYPE_##name, sizeof(structure), header }
#define BARE(name) \
    { RTE_FLOW_ITEM_TYPE_##name, 0, 0 }

/* In the order of ITEMS in crates/kit/src/flow_rules/syntax.rs. */
static const struct kind KINDS[] = {
    BARE(VOID),
    BARE(INVERT),
    KIND(ANY, struct rte_flow_item_any, 4),
    KIND(MARK, struct rte_flow_item_mark, 4),
    /* The structure of port IDs starts with the number. */
    KIND(PORT_ID, struct rte_flow_item_port_id, 4),
    KIND(ETH, struct rte_flow_item_eth, 14),
    KIND(VLAN, struct rte_flow_item_vlan, 4),
    KIND(IPV4, struct rte_flow_item_ipv4, 20),
    KIND(IPV6, struct rte_flow_item_ipv6, 40),
    KIND(ICMP, struct rte_flow_item_icmp, 8),
    KIND(ICMP6, struct rte_flow_item_icmp6, 4),
    KIND(UDP, struct rte_flow_item_udp, 8),
    KIND(TCP, struct rte_flow_item_tcp, 20),
    KIND(SCTP, struct rte_flow_item_sctp, 12),
    KIND(ARP_ETH_IPV4, struct rte_flow_item_arp_eth_ipv4, 32),
    KIND(VXLAN, struct rte_flow_item_vxlan, 8),
    KIND(VXLAN_GPE, struct rte_flow_item_vxlan_gpe, 8),
    KIND(GENEVE, struct rte_flow_item_geneve, 8),
    KIND(GRE, struct rte_flow_item_gre, 4),
    KIND(GRE_KEY, rte_be32_t, 4),
    KIND(NVGRE, struct rte_flow_item_nvgre, 8),
    KIND(MPLS, struct rte_flow_item_mpls, 4),
    KIND(GTP, struct rte_flow_item_gtp, 8),
    KIND(GTPC, struct rte_flow_item_gtp, 8),
    KIND(GTPU, struct rte_flow_item_gtp, 8),
    KIND(ESP, struct rte_flow_item_esp, 8),
};

/* Actions, numbered as in flow.rs. */
static const enum rte_flow_action_type ACTIONS[] = {
    RTE_FLOW_ACTION_TYPE_VOID,    RTE_FLOW_ACTION_TYPE_PASSTHRU,
    RTE_FLOW_ACTION_TYPE_FLAG,    RTE_FLOW_ACTION_TYPE_DROP,
    RTE_FLOW_ACTION_TYPE_COUNT,   RTE_FLOW_ACTION_TYPE_JUMP,
    RTE_FLOW_ACTION_TYPE_MARK,    RTE_FLOW_ACTION_TYPE_QUEUE,
    RTE_FLOW_ACTION_TYPE_PORT_ID, RTE_FLOW_ACTION_TYPE_RSS,
    RTE_FLOW_ACTION_TYPE_OF_POP_VLAN, RTE_FLOW_ACTION_TYPE_DEC_TTL,
    RTE_FLOW_ACTION_TYPE_MAC_SWAP, RTE_FLOW_ACTION_TYPE_VXLAN_DECAP,
};

/* The layouts that the tables of both languages rely on. */
_Static_assert(RTE_ETH_RSS_IPV4 == 1 << 2 && RTE_ETH_RSS_FRAG_IPV4 == 1 << 3 &&
                   RTE_ETH_RSS_NONFRAG_IPV6_OTHER == 1 << 13 && RTE_ETH_RSS_IPV6_EX == 1 << 15 &&
                   RTE_ETH_RSS_TCP == (1 << 4 | 1 << 10 | 1 << 16) &&
                   RTE_ETH_RSS_UDP == (1 << 5 | 1 << 11 | 1 << 17) &&
                   RTE_ETH_RSS_SCTP == (1 << 6 | 1 << 12),
               "as in syntax.rs");
_Static_assert(RTE_ETH_HASH_FUNCTION_DEFAULT == 0 && RTE_ETH_HASH_FUNCTION_TOEPLITZ == 1 &&
                   RTE_ETH_HASH_FUNCTION_SIMPLE_XOR == 2 &&
                   RTE_ETH_HASH_FUNCTION_SYMMETRIC_TOEPLITZ == 3,
               "as in syntax.rs");
_Static_assert(sizeof(struct rte_flow_action_mark) == 4 && sizeof(struct rte_flow_action_jump) == 4 &&
                   sizeof(struct rte_flow_action_count) == 4 &&
                   sizeof(struct rte_flow_action_queue) == 2 &&
                   offsetof(struct rte_flow_action_port_id, id) == 4,
               "an action's argument is its number");

/* Most items and actions of a rule, and bytes of an item's structure. */
enum { MOST = 32, ROOM = 64 };

/* A rule as DPDK takes it, and the memory that it points to; drivers copy what they keep. */
struct built {
    struct rte_flow_attr attr;
    struct rte_flow_item items[MOST + 1];
    struct rte_flow_action actions[MOST + 1];
    uint8_t values[MOST][3][ROOM] __rte_aligned(8);
    union {
        uint32_t number;
        struct rte_flow_action_queue queue;
        struct rte_flow_action_port_id port;
        struct rte_flow_action_rss rss;
    } arguments[MOST];
};

/* Bytes of the header of an item of this kind; negative if there is no such kind. */
int castanet_dpdk_flow_header(uint32_t kind) {
    return kind < RTE_DIM(KINDS) ? (int)KINDS[kind].header : -1;
}

/* A copy of an item's values, with zeros behind the header; NULL if none are given. */
static const void *values_of(uint8_t *room, const uint8_t *values, const struct kind *kind) {
    if (values != NULL)
        memcpy(room, values, kind->header);
    return values != NULL ? room : NULL;
}

static const void *argument_of(struct built *built, uint32_t i,
                               const struct castanet_flow_action *from) {
    switch (ACTIONS[from->kind]) {
    case RTE_FLOW_ACTION_TYPE_QUEUE:
        built->arguments[i].queue.index = from->value;
        break;
    case RTE_FLOW_ACTION_TYPE_PORT_ID:
        built->arguments[i].port.id = from->value;
        break;
    case RTE_FLOW_ACTION_TYPE_COUNT:
    case RTE_FLOW_ACTION_TYPE_JUMP:
    case RTE_FLOW_ACTION_TYPE_MARK:
        built->arguments[i].number = from->value;
        break;
    case RTE_FLOW_ACTION_TYPE_RSS:
        built->arguments[i].rss = (struct rte_flow_action_rss){
            .func = from->function,
            .level = from->level,
            .types = from->types,
            .queue_num = from->queue_count,
            .queue = from->queues,
        };
        break;
    default:
        return NULL;
    }
    return &built->arguments[i];
}

/* Makes a rule, which points to itself and to the queues; NULL if it is too long. */
static struct built *build(const struct castanet_flow_rule *rule) {
    struct built *built = NULL;
    if (rule->item_count <= MOST && rule->action_count <= MOST)
        built = calloc(1, sizeof *built);
    if (built == NULL)
        return NULL;
    built->attr.group = rule->group;
    built->attr.priority = rule->priority;
    built->attr.ingress = rule->directions & 1;
    built->attr.egress = rule->directions >> 1 & 1;
    built->attr.transfer = rule->directions >> 2 & 1;
    for (uint32_t i = 0; i < rule->item_count; i++) {
        const struct castanet_flow_item *from = &rule->items[i];
        const struct kind *kind = &KINDS[from->kind];
        built->items[i].type = kind->type;
        built->items[i].spec = values_of(built->values[i][0], from->spec, kind);
        built->items[i].last = values_of(built->values[i][1], from->last, kind);
        built->items[i].mask = values_of(built->values[i][2], from->mask, kind);
    }
    for (uint32_t i = 0; i < rule->action_count; i++) {
        built->actions[i].type = ACTIONS[rule->actions[i].kind];
        built->actions[i].conf = argument_of(built, i, &rule->actions[i]);
    }
    return built;
}

/* Passes a driver's reason on, a text of at most room bytes with its end. */
static int say(int failed, const struct rte_flow_error *error, char *why, size_t room) {
    const char *text = error->message != NULL ? error->message : rte_strerror(-failed);
    strncpy(why, text, room - 1);
    why[room - 1] = 0;
    return failed;
}

/* Creates a rule, after the driver was asked whether it can. */
int castanet_dpdk_flow_create(uint16_t port, const struct castanet_flow_rule *rule, void **flow,
                              char *why, size_t room) {
    struct rte_flow_error error = {0};
    struct built *built = build(rule);
    int failed = -E2BIG;
    if (built != NULL)
        failed = rte_flow_validate(port, &built->attr, built->items, built->actions, &error);
    if (failed == 0) {
        *flow = rte_flow_create(port, &built->attr, built->items, built->actions, &error);
        if (*flow == NULL)
            failed = rte_errno != 0 ? -rte_errno : -EINVAL;
    }
    if (failed != 0)
        say(failed, &error, why, room);
    free(built);
    return failed;
}

int castanet_dpdk_flow_destroy(uint16_t port, void *flow, char *why, size_t room) {
    struct rte_flow_error error = {0};
    int failed = rte_flow_destroy(port, flow, &error);
    return failed != 0 ? say(failed, &error, why, room) : 0;
}

/* Reads a rule's counter; what the driver does not count stays as it was. */
int castanet_dpdk_flow_count(uint16_t port, void *flow, uint32_t counter, uint64_t *packets,
                             uint64_t *bytes, char *why, size_t room) {
    struct rte_flow_error error = {0};
    struct rte_flow_action_count conf = {.id = counter};
    struct rte_flow_action action = {.type = RTE_FLOW_ACTION_TYPE_COUNT, .conf = &conf};
    struct rte_flow_query_count counts = {0};
    int failed = rte_flow_query(port, flow, &action, &counts, &error);
    if (failed != 0)
        return say(failed, &error, why, room);
    if (counts.hits_set)
        *packets = counts.hits;
    if (counts.bytes_set)
        *bytes = counts.bytes;
    return 0;
}

/* Makes a port receive only what its rules say, or all again. */
int castanet_dpdk_flow_isolate(uint16_t port, bool on, char *why, size_t room) {
    struct rte_flow_error error = {0};
    int failed = rte_flow_isolate(port, on, &error);
    return failed != 0 ? say(failed, &error, why, room) : 0;
}
