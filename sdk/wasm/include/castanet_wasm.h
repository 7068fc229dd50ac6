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

/* One packet of a batch. Behind the descriptor lie the headroom and the first bytes of the packet. The
 * module changes length, data, verdict, dirty_from, dirty_to and paint; it only reads the others. */
struct castanet_packet {
    uint32_t length;     /* bytes of the packet */
    uint16_t data;       /* offset of the first byte, from the address of this descriptor */
    uint16_t network;    /* offset of the network header from the first byte; 0xffff if not marked */
    uint16_t verdict;    /* output; or CASTANET_DROP(n): dropped for reason n of the module */
    uint16_t dirty_from; /* changed bytes, as offsets from the first byte: none if both are equal */
    uint16_t dirty_to;
    uint8_t paint;       /* paint annotation */
    uint8_t input;       /* input on which the packet came */
};

_Static_assert(sizeof(struct castanet_packet) == 16, "a descriptor has 16 bytes");

/* Annotations of one packet, for modules that ask for them. */
struct castanet_annotations {
    uint8_t destination[4]; /* the IPv4 next hop, which the module may change */
    uint32_t reserved;
    uint64_t timestamp;     /* nanoseconds since 1970; 0 unless CASTANET_TIMESTAMPS is asked for */
};

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
    uint32_t snap;      /* bytes of each packet that are copied in, 0 to 16384, a multiple of 16 */
    uint32_t headroom;  /* free bytes before each packet, 0 to 256, a multiple of 16 */
    uint32_t batch;     /* packets of a batch at most, 1 to 256 */
    void *slots;        /* `batch` times CASTANET_STRIDE(headroom, snap) bytes: descriptor, headroom, bytes */
    struct castanet_annotations *annotations; /* `batch` of them, or 0: not wanted */
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
#define CASTANET_STRIDE(headroom, snap) (sizeof(struct castanet_packet) + (headroom) + (snap))

/* What a module exports, besides its memory. Results below 0 are errors: minus the length of a message
 * in `text`. */
CASTANET_EXPORT("castanet_abi_version") int32_t castanet_abi_version(void);
CASTANET_EXPORT("castanet_module") const struct castanet_module *castanet_module(void);
/* Called once, with the configuration in `text`, without a byte 0 behind it. */
CASTANET_EXPORT("castanet_init") int32_t castanet_init(uint32_t length);
/* Called with `count` packets in `slots`. */
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
 * CASTANET_LIST(array) or CASTANET_NONE. ANNOTATIONS is 1 for a module that wants castanet_annotations. */
#define CASTANET_MODULE(SNAP, HEADROOM, BATCH, ANNOTATIONS, REASONS, COUNTERS, HANDLERS)       \
    enum { castanet_stride = CASTANET_STRIDE(HEADROOM, SNAP) };                               \
    static uint8_t castanet_slots[(BATCH) * CASTANET_STRIDE(HEADROOM, SNAP)]                   \
        __attribute__((aligned(16)));                                                         \
    __attribute__((unused)) static struct castanet_annotations                                \
        castanet_annotations[(ANNOTATIONS) ? (BATCH) : 1];    \
    static char castanet_text[4096];                                                          \
    _Static_assert((SNAP) % 16 == 0 && (HEADROOM) % 16 == 0, "multiples of 16");              \
    int32_t castanet_abi_version(void) { return CASTANET_ABI_VERSION; }                       \
    const struct castanet_module *castanet_module(void) {                                     \
        static const struct castanet_module module = {                                        \
            sizeof module, 0, SNAP, HEADROOM, BATCH, castanet_slots,                          \
            (ANNOTATIONS) ? castanet_annotations : 0,                                         \
            castanet_text, sizeof castanet_text, REASONS, COUNTERS, HANDLERS};                \
        return &module;                                                                       \
    }                                                                                         \
    /* Bytes of a packet that are here. */                                                    \
    __attribute__((unused)) static inline uint32_t castanet_visible(const struct castanet_packet *packet) {           \
        uint32_t room = (uint32_t)castanet_stride - packet->data;                             \
        return packet->length < room ? packet->length : room;                                 \
    }                                                                                         \
    /* Removes `n` bytes at the front; they must be here. Returns 0 if they are not. */       \
    __attribute__((unused)) static inline int castanet_pull(struct castanet_packet *packet, uint16_t n) {             \
        if (n > castanet_visible(packet)) return 0;                                           \
        packet->data += n;                                                                    \
        packet->length -= n;                                                                  \
        packet->dirty_from = packet->dirty_from > n ? packet->dirty_from - n : 0;             \
        packet->dirty_to = packet->dirty_to > n ? packet->dirty_to - n : 0;                   \
        return 1;                                                                             \
    }

/* For each packet of a batch: CASTANET_EACH(packet, count) { ... } */
#define CASTANET_EACH(packet, count)                                                          \
    for (struct castanet_packet *packet = (struct castanet_packet *)castanet_slots,           \
                                *castanet_end = (struct castanet_packet *)(castanet_slots +   \
                                                    (count) * castanet_stride);               \
         packet != castanet_end;                                                              \
         packet = (struct castanet_packet *)((uint8_t *)packet + castanet_stride))

/* The number of a packet in its batch, for its annotations. */
#define CASTANET_NUMBER(packet) (((uint8_t *)(packet) - castanet_slots) / castanet_stride)

/* The bytes of a packet, of which castanet_visible(packet) are here. */
static inline uint8_t *castanet_bytes(struct castanet_packet *packet) {
    return (uint8_t *)packet + packet->data;
}

/* Marks bytes of a packet as changed: `from` to before `to`, offsets from its first byte. */
static inline void castanet_dirty(struct castanet_packet *packet, uint16_t from, uint16_t to) {
    if (packet->dirty_from == packet->dirty_to) {
        packet->dirty_from = from;
        packet->dirty_to = to;
        return;
    }
    if (from < packet->dirty_from) packet->dirty_from = from;
    if (to > packet->dirty_to) packet->dirty_to = to;
}

/* Adds `n` bytes at the front, for which there must be headroom, and marks them as changed. */
static inline uint8_t *castanet_push(struct castanet_packet *packet, uint16_t n) {
    uint16_t dirty_to = packet->dirty_from == packet->dirty_to ? 0 : packet->dirty_to;
    packet->data -= n;
    packet->length += n;
    packet->dirty_from = 0;
    packet->dirty_to = dirty_to + n;
    return castanet_bytes(packet);
}

#endif
