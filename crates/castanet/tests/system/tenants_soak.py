"""Installs and removes configurations of tenants at random, by the control protocol of Click.

Arguments: number of commands, seed, the operator's socket, then the sockets of tenants. Prints a line
`settled` after the first hundred and waits for a line of standard input, then `done` with counts and
the median, the 99th percentile and the maximum of the time that a command took, in milliseconds.
"""
import random
import socket
import sys
import time

COUNT, SEED, OPERATOR, SOCKETS = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:]
WRONG = [
    "FromDevice(eth9) -> Discard;",
    "FromDevice(eth1) -> Nonsense;",
    "x :: Idle -> ToDump(/tmp/x);",
    "Script(write stop);",
    "FromDevice(eth1) -> Queue(3",
    "a :: Idle -> Discard;" * 3000,
]


class Client:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")
        assert self.file.readline().startswith(b"Click::ControlSocket/1."), path

    def write(self, handler, value):
        value = value.encode()
        self.socket.sendall(b"WRITEDATA %s %d\n%s" % (handler.encode(), len(value), value))
        return self.answer()

    def read(self, handler):
        self.socket.sendall(b"READ %s\n" % handler.encode())
        code, text = self.answer()
        if code != 200:
            return code, text
        size = int(self.file.readline().split()[1])
        return code, self.file.read(size).decode()

    def answer(self):
        text = []
        while True:
            line = self.file.readline().decode()
            assert line, "the connection was closed"
            text.append(line[4:].rstrip())
            if line[3] == " ":
                return int(line[:3]), "\n".join(text)


def graph(rng):
    """A configuration of a tenant with some elements, a table and a queue."""
    counters = "".join(f" -> c{n} :: Counter" for n in range(rng.randrange(1, 40)))
    routes = ", ".join(f"10.{n}.0.0/16 0" for n in range(rng.randrange(1, 200)))
    return (
        f"FromDevice(eth1) {counters} -> Strip(14) -> CheckIPHeader -> r :: RadixIPLookup({routes}, 0/0 1);"
        f"r -> Discard; r[1] -> Unstrip(14) -> EtherMirror -> q :: Queue({rng.randrange(10, 2000)}) -> ToDevice(eth1);"
    )


def main():
    rng = random.Random(SEED)
    operator = Client(OPERATOR)
    tenants = [Client(path) for path in SOCKETS]
    times, refused, installed, removed = [], 0, 0, 0
    for number in range(COUNT):
        if number == min(100, COUNT // 2):
            print("settled", flush=True)
            sys.stdin.readline()
        client, kind = rng.choice(tenants), rng.random()
        began = time.monotonic()
        if kind < 0.15:
            wrong = rng.choice(WRONG)
            code, text = client.write("hotconfig", wrong)
            assert code == 520, (wrong[:60], code, text)
            refused += 1
        elif kind < 0.3:
            code, text = client.write("stop", "")
            assert code == 200, (code, text)
            assert client.read("list") == (200, "0\n")
            removed += 1
        elif kind < 0.35:
            code, text = operator.write("tenant_restore", rng.choice(["busy0", "busy1", "busy2"]))
            assert code == 200, (code, text)
        else:
            text = graph(rng)
            code, said = client.write("hotconfig", text)
            assert code == 200, (text, code, said)
            assert client.read("config") == (200, text)
            installed += 1
        times.append(1000 * (time.monotonic() - began))
    times.sort()
    of = lambda part: times[min(len(times) - 1, int(part * len(times)))]
    print(
        f"done installed={installed} removed={removed} refused={refused} "
        f"median={of(0.5):.1f} p99={of(0.99):.1f} max={times[-1]:.1f}",
        flush=True,
    )


main()
