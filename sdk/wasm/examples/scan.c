/* scan: looks for a text in whole packets; those that have it leave by output 1 with paint 1. */
#include "castanet_wasm.h"

#define NEEDLE 64

static char needle[NEEDLE];
static uint32_t needle_length;
static uint64_t found, scanned_bytes;

static const struct castanet_counter counters[] = {
    {"found", &found},
    {"scanned_bytes", &scanned_bytes},
};

CASTANET_MODULE(2048, 0, 32, 0, CASTANET_NONE, CASTANET_LIST(counters), CASTANET_NONE)

int32_t castanet_init(uint32_t length) {
    if (length == 0 || length > NEEDLE) {
        static const char message[] = "give a text of 1 to 64 bytes to look for";
        for (uint32_t i = 0; i < sizeof message; i++) castanet_text[i] = message[i];
        return -(int32_t)(sizeof message - 1);
    }
    for (uint32_t i = 0; i < length; i++) needle[i] = castanet_text[i];
    needle_length = length;
    return 0;
}

static int has_needle(const uint8_t *bytes, uint32_t length) {
    for (uint32_t at = 0; at + needle_length <= length; at++) {
        uint32_t same = 0;
        while (same < needle_length && bytes[at + same] == (uint8_t)needle[same]) same++;
        if (same == needle_length) return 1;
    }
    return 0;
}

void castanet_process(uint32_t count) {
    CASTANET_EACH(packet, count) {
        scanned_bytes += castanet_visible(packet);
        if (has_needle(castanet_bytes(packet), castanet_visible(packet))) {
            packet->verdict = 1;
            packet->paint = 1;
            found++;
        }
    }
}
