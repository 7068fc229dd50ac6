/* castanet_wasm.h: the interface of Castanet's WasmElement, version 1, for modules in C.
 *
 * docs/wasm.md describes it. Build a module with Debian's clang and lld:
 *
 *   clang --target=wasm32 -O2 -nostdlib -ffreestanding -mbulk-memory -I include \
 *       -Wl,--no-entry -Wl,--strip-all -o ttl.wasm ttl.c
 */
#ifndef CASTANET_WASM_H
#define CASTANET_WASM_H

#include <stdint.h>

#define CASTANET_ABI_VERSION 1

#define CASTANET_EXPORT(name) __attribute__((export_name(name), used))
#define CASTANET_IMPORT(name) __attribute__((import_module("castanet"), import_name(name)))

/* One packet of a batch. The module changes data, length, verdict, dirty_from, dirty_to, paint and
 * destination; it only reads the others. */
struct castanet_packet {
    uint32_t data;        /* address of the first byte of the packet */
    uint32_t length;      /* bytes of the packet */
    uint16_t visible;     /* bytes from `data` on that are here: at most `snap` of the module */
    uint16_t network;     /* offset of the network header from `data`; 0xffff if not marked */
    uint16_t verdict;     /* output; or CASTANET_DROP(n): dropped for reason n of the module */
    uint8_t paint;        /* paint annotation */
    uint8_t input;        /* input on which the packet came */
    uint16_t dirty_from;  /* changed bytes, as offsets from `data`: none if both are equal */
    uint16_t dirty_to;
    uint8_t destination[4]; /* destination annotation: the IPv4 next hop */
    uint64_t timestamp;   /* nanoseconds since 1970; 0 unless CASTANET_TIMESTAMPS is asked for */
};

_Static_assert(sizeof(struct castanet_packet) == 32, "a descriptor has 32 bytes");

/* Verdict: drop for reason n of the module's list. */
#define CASTANET_DROP(n) ((uint16_t)(0x8000 + (n)))

/* A reason to drop: its name, [a-z][a-z0-9_]*, and a sentence. */
struct castanet_reason {
    const char *name;
    const char *doc;
};

/* A counter: its name and where it stands. Workers' counters are added up. */
struct castanet_counter {
    const char *name;
    const uint64_t *value;
};

/* A handler: its name, and whether it can be read (1) and written to (2). */
struct castanet_handler {
    const char *name;
    uint32_t access;
};

#define CASTANET_READ 1
#define CASTANET_WRITE 2

/* Flags of the module. */
#define CASTANET_TIMESTAMPS 1 /* fill in the packets' time stamps */

/* What the module is; castanet_module returns its address. */
struct castanet_module {
    uint32_t size;      /* sizeof(struct castanet_module) */
    uint32_t flags;
    uint32_t snap;      /* bytes of each packet that are copied in, 0 to 16384 */
    uint32_t headroom;  /* free bytes before each packet, 0 to 256 */
    uint32_t batch;     /* packets that `packets` and `slots` have room for, 1 to 256 */
    struct castanet_packet *packets;
    uint8_t *slots;     /* `batch` times CASTANET_STRIDE(headroom, snap) bytes */
    char *text;         /* for the configuration, handlers and error messages */
    uint32_t text_size; /* at least 256 */
    const struct castanet_reason *reasons; /* at most 7 */
    uint32_t reason_count;
    const struct castanet_counter *counters; /* at most 64 */
    uint32_t counter_count;
    const struct castanet_handler *handlers; /* at most 64 */
    uint32_t handler_count;
};

/* Bytes of one packet's slot. */
#define CASTANET_STRIDE(headroom, snap) (((headroom) + (snap) + 15u) / 16u * 16u)

/* What a module exports, besides its memory. Results below 0 are errors: minus the length of a message
 * in `text`. */
CASTANET_EXPORT("castanet_abi_version") int32_t castanet_abi_version(void);
CASTANET_EXPORT("castanet_module") const struct castanet_module *castanet_module(void);
/* Called once, with the configuration in `text`, without a byte 0 behind it. */
CASTANET_EXPORT("castanet_init") int32_t castanet_init(uint32_t length);
/* Called with `count` packets in `packets`. */
CASTANET_EXPORT("castanet_process") void castanet_process(uint32_t count);
/* Optional: another configuration for the running module. */
int32_t castanet_update(uint32_t length);
/* Optional, needed for handlers: writes the value of a handler into `text` and returns its length. */
int32_t castanet_read(uint32_t handler);
/* Optional, needed for handlers: takes a value, `length` bytes of `text`, for a handler. */
int32_t castanet_write(uint32_t handler, uint32_t length);

/* What a module may import. */
CASTANET_IMPORT("log") void castanet_log(const char *text, uint32_t length);
CASTANET_IMPORT("now") uint64_t castanet_now(void);       /* nanoseconds since 1970: Castanet's clock */
CASTANET_IMPORT("random") uint64_t castanet_random(void); /* seeded by Castanet */

/* A list for CASTANET_MODULE: an array, or none. */
#define CASTANET_LIST(array) array, sizeof array / sizeof *array
#define CASTANET_NONE 0, 0

/* Defines the buffers and the exports that say what the module is. REASONS, COUNTERS and HANDLERS are
 * CASTANET_LIST(array) or CASTANET_NONE. */
#define CASTANET_MODULE(SNAP, HEADROOM, BATCH, REASONS, COUNTERS, HANDLERS)                    \
    static struct castanet_packet castanet_packets[BATCH];                                    \
    static uint8_t castanet_slots[(BATCH) * CASTANET_STRIDE(HEADROOM, SNAP)]                   \
        __attribute__((aligned(16)));                                                         \
    static char castanet_text[4096];                                                          \
    int32_t castanet_abi_version(void) { return CASTANET_ABI_VERSION; }                       \
    const struct castanet_module *castanet_module(void) {                                     \
        static const struct castanet_module module = {                                        \
            sizeof module, 0, SNAP, HEADROOM, BATCH, castanet_packets, castanet_slots,        \
            castanet_text, sizeof castanet_text, REASONS, COUNTERS, HANDLERS};                \
        return &module;                                                                       \
    }

/* Marks bytes of a packet as changed: `from` to before `to`, offsets from `data`. */
static inline void castanet_dirty(struct castanet_packet *packet, uint16_t from, uint16_t to) {
    if (packet->dirty_from == packet->dirty_to) {
        packet->dirty_from = from;
        packet->dirty_to = to;
        return;
    }
    if (from < packet->dirty_from) packet->dirty_from = from;
    if (to > packet->dirty_to) packet->dirty_to = to;
}

/* The bytes of a packet. */
static inline uint8_t *castanet_bytes(const struct castanet_packet *packet) {
    return (uint8_t *)(uintptr_t)packet->data;
}

/* Removes `n` bytes at the front; they must be visible. Returns 0 if they are not. */
static inline int castanet_pull(struct castanet_packet *packet, uint16_t n) {
    if (n > packet->visible) return 0;
    packet->data += n;
    packet->length -= n;
    packet->visible -= n;
    packet->dirty_from = packet->dirty_from > n ? packet->dirty_from - n : 0;
    packet->dirty_to = packet->dirty_to > n ? packet->dirty_to - n : 0;
    return 1;
}

/* Adds `n` bytes at the front, for which there must be headroom, and marks them as changed. */
static inline uint8_t *castanet_push(struct castanet_packet *packet, uint16_t n) {
    uint16_t dirty_to = packet->dirty_from == packet->dirty_to ? 0 : packet->dirty_to;
    packet->data -= n;
    packet->length += n;
    packet->visible += n;
    packet->dirty_from = 0;
    packet->dirty_to = dirty_to + n;
    return castanet_bytes(packet);
}

#endif
