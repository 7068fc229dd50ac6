/* ttl: decrements the TTL of IPv4 packets and updates the checksum; packets at their last hop leave by
 * output 1, packets without a marked IPv4 header by output 0, unchanged. */
#include "castanet_wasm.h"

#define EXPIRED 1

static uint64_t decremented;

static const struct castanet_counter counters[] = {{"decremented", &decremented}};

CASTANET_MODULE(32, 0, 64, 0, CASTANET_NONE, CASTANET_LIST(counters), CASTANET_NONE)

int32_t castanet_init(uint32_t length) {
    (void)length;
    return 0;
}

void castanet_process(uint32_t count) {
    uint64_t done = 0;
    CASTANET_EACH(packet, count) {
        uint32_t at = packet->network;
        if (at + 20 > castanet_visible(packet)) continue;
        uint8_t *ip = castanet_bytes(packet) + at;
        if (ip[8] <= 1) {
            packet->verdict = EXPIRED;
            continue;
        }
        ip[8]--;
        /* RFC 1624: the sum of the header changes by 0x0100. */
        uint32_t sum = ((uint32_t)ip[10] << 8 | ip[11]) + 0x0100;
        sum += sum >> 16;
        ip[10] = sum >> 8;
        ip[11] = sum;
        castanet_dirty(packet, at + 8, at + 12);
        done++;
    }
    decremented += done;
}
