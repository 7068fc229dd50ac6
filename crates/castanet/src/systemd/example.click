// An example for castanet@example.service: counts the packets of an interface, and leaves all of
// them to the host.
//
//   castanet check /etc/castanet/example.click
//   castanet explain --privileges /etc/castanet/example.click
//   systemctl start castanet@example
//   castanet ctl example read packets.count

define($dev lo)

FromDevice($dev, METHOD AF_PACKET, SNIFFER true) -> packets :: Counter -> Discard;
