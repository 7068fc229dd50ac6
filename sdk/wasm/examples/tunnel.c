/* tunnel: puts IPv4 packets into UDP from port 4000 of 192.0.2.1 to port 4000 of 192.0.2.2, and takes
 * them out of it: input 0 is the inner side and leads to output 0, input 1 is the outer side and leads to
 * output 1. */
#include "castanet_wasm.h"

#define HEADERS 28

static const struct castanet_reason reasons[] = {
    {"not_tunnelled", "Packets on the outer side that do not belong to the tunnel."},
};

CASTANET_MODULE(64, 32, 64, 1, CASTANET_LIST(reasons), CASTANET_NONE, CASTANET_NONE)

int32_t castanet_init(uint32_t length) {
    (void)length;
    return 0;
}

static const uint8_t headers[HEADERS] = {
    0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2, /* IPv4 */
    0x0f, 0xa0, 0x0f, 0xa0, 0, 0, 0, 0,                                     /* UDP without checksum */
};

static void encapsulate(struct castanet_packet *packet) {
    uint8_t *outer = castanet_push(packet, HEADERS);
    for (int i = 0; i < HEADERS; i++) outer[i] = headers[i];
    outer[2] = packet->length >> 8;
    outer[3] = packet->length;
    outer[24] = (packet->length - 20) >> 8;
    outer[25] = packet->length - 20;
    uint32_t sum = 0;
    for (int i = 0; i < 20; i += 2) sum += outer[i] << 8 | outer[i + 1];
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~((sum & 0xffff) + (sum >> 16));
    outer[10] = sum >> 8;
    outer[11] = sum;
    for (int i = 0; i < 4; i++)
        castanet_annotations[CASTANET_NUMBER(packet)].destination[i] = outer[16 + i];
}

static int is_ours(struct castanet_packet *packet) {
    const uint8_t *outer = castanet_bytes(packet);
    if (castanet_visible(packet) < HEADERS || outer[0] != 0x45 || outer[9] != 17) return 0;
    return outer[22] == 0x0f && outer[23] == 0xa0;
}

void castanet_process(uint32_t count) {
    CASTANET_EACH(packet, count) {
        if (packet->input == 0) {
            encapsulate(packet);
        } else if (is_ours(packet)) {
            castanet_pull(packet, HEADERS);
            packet->verdict = 1;
        } else {
            packet->verdict = CASTANET_DROP(0);
        }
    }
}
