/* faulty: shows what faults cost. The paint of a packet chooses the fault. */
#include "castanet_wasm.h"

CASTANET_MODULE(16, 0, 64, 0, CASTANET_NONE, CASTANET_NONE,
                CASTANET_NONE)

int32_t castanet_init(uint32_t length) {
    (void)length;
    return 0;
}

void castanet_process(uint32_t count) {
    CASTANET_EACH(packet, count) {
        if (packet->paint == 1) __builtin_trap();
        if (packet->paint == 2)
            for (;;) *(volatile char *)castanet_text = 0;
        if (packet->paint == 3) packet->verdict = 77;
    }
}
