#!/bin/sh
# SplitBox in six namespaces, as root: a sender, the entry A, the clouds B1 and B2, the client C, and a
# server. A firewall that B1 and B2 compute, and cannot read, stands between the sender and the server.
#
#   PATH="$PWD/target/release:$PATH" conf/splitbox/demo.sh
#
# All that it makes goes when it ends.

set -eu
castanet=${CASTANET:-castanet}
policy=$(dirname "$0")/firewall.txt
work=$(mktemp -d)
mark=${MARK:-splitbox-$$}
hosts="sender a b1 b2 c server"

clean() {
    for host in $hosts; do
        ip netns pids "$mark-$host" 2>/dev/null | xargs -r kill 2>/dev/null || true
        ip netns del "$mark-$host" 2>/dev/null || true
    done
    rm -rf "$work"
}
trap clean EXIT
trap 'exit 1' INT TERM HUP

on() { host=$1; shift; ip netns exec "$mark-$host" "$@"; }

link() { # a host, its device and address, another host and its device
    ip -n "$mark-$1" link add "$2" type veth peer name "$5" netns "$mark-$4"
    ip -n "$mark-$1" address add "$3" dev "$2"
    ip -n "$mark-$1" link set "$2" up
    ip -n "$mark-$4" link set "$5" up
}

# The sender is linked to A, the server to C, and all parties to a bridge at A.
for host in $hosts; do
    ip netns add "$mark-$host"
    ip -n "$mark-$host" link set lo up
    # Answers come by other devices than packets go.
    on "$host" sh -c 'echo 0 > /proc/sys/net/ipv4/conf/all/rp_filter
        echo 0 > /proc/sys/net/ipv4/conf/default/rp_filter'
done
ip -n "$mark-a" link add cloud type bridge
ip -n "$mark-a" address add 10.7.0.1/24 dev cloud
ip -n "$mark-a" link set cloud up
for party in "c 2" "b1 11" "b2 12"; do
    set -- $party
    link "$1" eth0 "10.7.0.$2/24" a "to-$1"
    ip -n "$mark-a" link set "to-$1" master cloud
done
link sender eth0 10.1.0.2/24 a lan
link server eth0 10.2.0.2/24 c lan
ip -n "$mark-a" address add 10.1.0.1/24 dev lan
ip -n "$mark-c" address add 10.2.0.1/24 dev lan
ip -n "$mark-sender" route add default via 10.1.0.1
ip -n "$mark-server" route add default via 10.2.0.1
# Answers go back past SplitBox.
ip -n "$mark-c" route add 10.1.0.0/24 via 10.7.0.1
for host in a c; do on "$host" sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'; done
# The device exists before the entry runs: without it packets would go around SplitBox.
ip -n "$mark-a" tuntap add dev splitbox mode tun
ip -n "$mark-a" link set splitbox up
ip -n "$mark-a" route add 10.2.0.0/24 dev splitbox

echo "== The policy becomes a file for each party"
"$castanet" splitbox key "$work/key"
"$castanet" splitbox setup "$policy" --clouds 2 --out "$work" --key-file "$work/key" \
    --blinds 4096

run() { # host, role, file, options
    host=$1 role=$2 file=$3
    shift 3
    on "$host" "$castanet" splitbox run "$role" "$work/$file.splitbox" --key-file "$work/key" \
        --quiet "$@" &
}
processors="--processor 10.7.0.11:7000 --processor 10.7.0.12:7000"
run b1 processor processor-1 --listen 10.7.0.11:7000 --client 10.7.0.2:7000
run b2 processor processor-2 --listen 10.7.0.12:7000 --client 10.7.0.2:7000
run c client client --listen 10.7.0.2:7000 --entry 10.7.0.1:7000 $processors
run a entry entry --listen 10.7.0.1:7000 --client 10.7.0.2:7000 $processors

echo "== The sender pings the server"
until on sender ping -c 1 -W 1 10.2.0.2 >/dev/null; do sleep 0.2; done
on sender ping -c 3 -i 0.2 10.2.0.2

echo "== A page from port 80, which the policy allows, and one from port 23, which it does not"
mkdir "$work/pages"
echo "a page of the server" > "$work/pages/index.html"
for port in 80 23; do
    on server python3 -m http.server "$port" --bind 10.2.0.2 --directory "$work/pages" \
        >/dev/null 2>&1 &
done
on sender curl --silent --noproxy '*' --retry 20 --retry-connrefused --retry-delay 1 \
    --max-time 30 http://10.2.0.2/
on sender curl --silent --noproxy '*' --max-time 2 http://10.2.0.2:23/ || echo "no answer"

echo "== Everything that the cloud B1 can know"
"$castanet" splitbox inspect "$work/processor-1.splitbox" --key-file "$work/key"
