//! The vendor of a port's card, by the number that its PCI registers have.

use std::path::Path;

/// The name of a vendor that is not known, and of virtual devices, which have none.
pub(super) const UNKNOWN: &str = "Unknown";

/// Numbers of vendors of network cards, and the first word of the name that `lspci` prints.
const VENDORS: &[(u16, &str)] = &[
    (0x1022, "AMD"),
    (0x1077, "QLogic"),
    (0x1137, "Cisco"),
    (0x1425, "Chelsio"),
    (0x14e4, "Broadcom"),
    (0x15ad, "VMware"),
    (0x15b3, "Mellanox"),
    (0x177d, "Cavium"),
    (0x18f4, "Napatech"),
    (0x1924, "Solarflare"),
    (0x1957, "Freescale"),
    (0x19e5, "Huawei"),
    (0x19ee, "Netronome"),
    (0x1af4, "Red"),
    (0x1ae0, "Google"),
    (0x1d0f, "Amazon.com"),
    (0x1dd8, "Pensando"),
    (0x8086, "Intel"),
];

/// The folder of the PCI devices of the machine.
const DEVICES: &str = "/sys/bus/pci/devices";

/// The vendor of the port that DPDK calls `name`: its PCI address, or the name of a virtual device.
pub(super) fn of_port(name: &str) -> &'static str {
    of_device(Path::new(DEVICES), name)
}

fn of_device(devices: &Path, name: &str) -> &'static str {
    let number = std::fs::read_to_string(devices.join(name).join("vendor")).ok();
    let number =
        number.and_then(|text| u16::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok());
    let vendor = number.and_then(|number| VENDORS.iter().find(|(known, _)| *known == number));
    vendor.map_or(UNKNOWN, |(_, name)| name)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_card_has_the_vendor_that_its_registers_name() {
        let devices = std::env::temp_dir().join(format!("castanet-vendors-{}", std::process::id()));
        let of = |number: &str| {
            let card = devices.join("0000:03:00.0");
            std::fs::create_dir_all(&card).unwrap();
            std::fs::write(card.join("vendor"), number).unwrap();
            of_device(&devices, "0000:03:00.0")
        };
        let named = ["0x8086\n", "0x15b3\n", "0xffff\n", "8086\n"].map(of);
        let of_no_card = of_device(&devices, "net_null0");
        std::fs::remove_dir_all(&devices).unwrap();
        assert_eq!(named, ["Intel", "Mellanox", UNKNOWN, UNKNOWN]);
        assert_eq!(of_no_card, UNKNOWN);
    }
}
