// The host of host.click, whose owner wrote a part of it: a firewall as a WebAssembly module, which
// reaches nothing but the packets that it is given (docs/wasm.md).
//
// Needs a program that is built with `--features wasm`. The module passes no packets to TCP ports 23 and 24.

define($ip 192.168.7.1, $mac 02:00:00:00:07:01, $module ../../sdk/wasm/modules/firewall.wasm);

FromDevice(eth1)
    -> frames :: Classifier(12/0806 20/0001, 12/0800, -);
frames[0] -> ARPResponder($ip $mac) -> out :: Queue -> ToDevice(eth1);
frames[1]
    -> Strip(14)
    -> CheckIPHeader
    -> filter :: WasmElement($module, 23, 24)
    -> own :: IPClassifier(dst host $ip and icmp type echo, -)
    -> pings :: Counter
    -> ICMPPingResponder
    -> Unstrip(14)
    -> EtherMirror
    -> out;

// Frames and packets that are not for this host.
frames[2], own[1] -> Discard;
