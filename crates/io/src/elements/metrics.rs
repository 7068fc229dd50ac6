//! The metrics of devices.

use castanet_element::prelude::*;

/// State of the interface.
pub(super) const UP: Metric = Metric::gauge(
    "device_up",
    "1 if the interface is up and has a carrier, 0 if not, as while it is gone.",
);

/// Packets that an element has received from its device.
pub(super) const RECEIVED_PACKETS: Metric =
    Metric::counter("device_received_packets", "Packets received from the device.");

/// Their bytes.
pub(super) const RECEIVED_BYTES: Metric =
    Metric::counter("device_received_bytes", "Bytes of the packets received from the device.");

/// Packets that an element has sent by its device.
pub(super) const SENT_PACKETS: Metric =
    Metric::counter("device_sent_packets", "Packets sent by the device.");

/// Their bytes.
pub(super) const SENT_BYTES: Metric =
    Metric::counter("device_sent_bytes", "Bytes of the packets sent by the device.");

/// Packets that were lost before the element could take them.
pub(super) const KERNEL_DROPS: Metric = Metric::counter(
    "device_kernel_dropped_packets",
    "Packets that the kernel, the driver or the device dropped because the worker did not fetch them in \
     time.",
);

/// Packets for which the pool had no frame.
pub(super) const NO_FRAME: Metric = Metric::counter(
    "device_no_frame_packets",
    "Received packets that were dropped because no frame was free for them.",
);

/// Packets that were damaged, or whose lengths do not fit.
pub(super) const RECEIVE_ERRORS: Metric = Metric::counter(
    "device_receive_error_packets",
    "Received packets that were damaged, or whose lengths did not fit them.",
);

/// Packets that the device refused.
pub(super) const SEND_ERRORS: Metric =
    Metric::counter("device_send_error_packets", "Packets that the device refused to send.");
