/* firewall: drops TCP packets to the ports that its configuration lists, a port a line. */
#include "castanet_wasm.h"

#define PORTS 64

/* The ports, for the handler denied_ports, and a bit for each: its lookup takes the same time for a list of any length. */
static uint16_t ports[PORTS];
static uint32_t port_count;
static uint8_t port_bits[65536 / 8];
static uint64_t denied;

static const struct castanet_reason reasons[] = {
    {"denied_port", "TCP packets to a port that the firewall denies."},
};
static const struct castanet_counter counters[] = {{"denied", &denied}};
static const struct castanet_handler handlers[] = {
    {"denied_ports", CASTANET_READ},
    {"deny", CASTANET_WRITE},
    {"reset", CASTANET_WRITE},
};

CASTANET_MODULE(64, 0, 64, 0, CASTANET_LIST(reasons), CASTANET_LIST(counters), CASTANET_LIST(handlers))

/* Answers with an error message. */
static int32_t fail(const char *message) {
    uint32_t length = 0;
    for (; message[length]; length++) castanet_text[length] = message[length];
    return -(int32_t)length;
}

/* Adds the ports of a text, separated by spaces or line ends. */
static int32_t deny(uint32_t length) {
    uint32_t at = 0;
    while (at < length) {
        char c = castanet_text[at];
        if (c == ' ' || c == '\n') {
            at++;
            continue;
        }
        uint32_t port = 0, digits = 0;
        for (; at < length && castanet_text[at] >= '0' && castanet_text[at] <= '9'; at++, digits++)
            port = port < 100000 ? port * 10 + (castanet_text[at] - '0') : port;
        if (!digits || port > 65535) return fail("a port is a number from 0 to 65535");
        if (port_count == PORTS) return fail("there can be 64 ports");
        ports[port_count++] = port;
        port_bits[port / 8] |= 1 << port % 8;
    }
    return 0;
}

int32_t castanet_init(uint32_t length) { return deny(length); }

/* A new configuration replaces the list; the counter goes on. */
CASTANET_EXPORT("castanet_update") int32_t castanet_update(uint32_t length) {
    while (port_count) port_bits[ports[--port_count] / 8] = 0;
    return deny(length);
}

CASTANET_EXPORT("castanet_read") int32_t castanet_read(uint32_t handler) {
    (void)handler;
    int32_t at = 0;
    for (uint32_t i = 0; i < port_count; i++) {
        char digits[5];
        int n = 0;
        for (uint32_t port = ports[i]; n == 0 || port; port /= 10) digits[n++] = '0' + port % 10;
        if (i) castanet_text[at++] = '\n';
        while (n) castanet_text[at++] = digits[--n];
    }
    return at;
}

CASTANET_EXPORT("castanet_write") int32_t castanet_write(uint32_t handler, uint32_t length) {
    if (handler == 1) return deny(length);
    denied = 0;
    return 0;
}

static int is_denied(struct castanet_packet *packet) {
    uint32_t at = packet->network;
    if (at + 20 > castanet_visible(packet)) return 0;
    const uint8_t *ip = castanet_bytes(packet) + at;
    uint32_t header = (ip[0] & 15) * 4;
    /* TCP, and the first fragment. */
    if (ip[9] != 6 || (ip[6] & 0x1f) || ip[7] || at + header + 4 > castanet_visible(packet)) return 0;
    uint16_t port = ip[header + 2] << 8 | ip[header + 3];
    return port_bits[port / 8] >> port % 8 & 1;
}

void castanet_process(uint32_t count) {
    CASTANET_EACH(packet, count) {
        if (is_denied(packet)) {
            packet->verdict = CASTANET_DROP(0);
            denied++;
        }
    }
}
