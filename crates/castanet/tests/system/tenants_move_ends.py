"""The two ends of connections through a NAT that moves.

`server ADDRESS DOWNLOADS PORTS`: serves random files `fileN` over HTTP, each some kilobytes every few
milliseconds, and writes their sums for the names `gotN`; records the senders of datagrams to PORTS ports from 9000
on. Prints `open` once all downloads have begun. A line of standard input has it answer every sender of a
datagram it knows, from the port that the datagram came to, until the answer is acknowledged.

`client ADDRESS SOCKETS PORTS`: sends a datagram from each of its sockets to each port, until each is acknowledged,
then prints `mapped`. After a line of standard input it acknowledges the server's answers and prints how many
come, until all have come or none has for some seconds. It sends nothing to a port that has not answered.
"""
import asyncio
import hashlib
import os
import resource
import select
import socket
import sys
import threading
import time

CHUNK, PAUSE, FIRST_PORT = 4096, 0.04, 9000
# How often an answer is sent at most: a loaded machine loses some.
ROUNDS = 20
SIZE = 150 * CHUNK


def raise_descriptors():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def answer(ports):
    """Acknowledges each datagram; a line of standard input has all senders answered."""
    senders, unanswered = {}, {}

    def listen():
        while True:
            for port in select.select(ports, [], [])[0]:
                data, sender = port.recvfrom(64)
                if data.startswith(b"got "):
                    unanswered.pop((port, sender), None)
                else:
                    senders[(port, sender)] = data
                    port.sendto(b"ack " + data, sender)

    threading.Thread(target=listen, daemon=True).start()
    for _ in sys.stdin:
        unanswered.update(senders)
        for _ in range(ROUNDS):
            for number, ((port, sender), data) in enumerate(list(unanswered.items())):
                port.sendto(b"new " + data, sender)
                if number % 50 == 0:
                    time.sleep(0.005)
            time.sleep(0.5)
            if not unanswered:
                break


def server(address, downloads, count):
    ports = []
    for number in range(count):
        ports.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        ports[-1].bind((address, FIRST_PORT + number))
    threading.Thread(target=answer, args=(ports,), daemon=True).start()
    with open("sums", "w") as sums:
        for number in range(downloads):
            data = os.urandom(SIZE + number)
            with open(f"file{number}", "wb") as file:
                file.write(data)
            sums.write(f"{hashlib.sha256(data).hexdigest()}  got{number}\n")
    begun = 0

    async def serve(reader, writer):
        nonlocal begun
        path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode().lstrip("/")
        with open(path, "rb") as file:
            data = file.read()
        writer.write(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data))
        for at in range(0, len(data), CHUNK):
            writer.write(data[at : at + CHUNK])
            await writer.drain()
            if at == CHUNK:
                begun += 1
                if begun == downloads:
                    print("open", flush=True)
            await asyncio.sleep(PAUSE)
        writer.close()

    async def main():
        listener = await asyncio.start_server(serve, address, 8000, backlog=1024)
        print("ready", flush=True)
        await listener.serve_forever()

    asyncio.run(main())


def client(address, count, ports):
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    by_number = {it.fileno(): (at, it) for at, it in enumerate(sockets)}
    missing = {(at, port) for at in range(count) for port in range(ports)}

    def receive(kind, pause):
        """Removes from `missing` what has come; returns whether anything has."""
        ready = select.select(list(by_number), [], [], pause)[0]
        for number in ready:
            at, it = by_number[number]
            data = it.recv(64).decode().split()
            if data[0] == kind and int(data[1]) == at:
                missing.discard((at, int(data[2])))
                if kind == "new":
                    it.sendto(f"got {at} {data[2]}".encode(), (address, FIRST_PORT + int(data[2])))
        return bool(ready)

    while missing:
        for number, (at, port) in enumerate(list(missing)):
            sockets[at].sendto(f"{at} {port}".encode(), (address, FIRST_PORT + port))
            if number % 50 == 0:
                receive("ack", 0.005)
        while receive("ack", 0.5):
            pass
    print("mapped", flush=True)
    for _ in sys.stdin:
        missing.update((at, port) for at in range(count) for port in range(ports))
        while missing and receive("new", 5):
            pass
        print("answers", count * ports - len(missing), flush=True)


raise_descriptors()
{"server": server, "client": client}[sys.argv[1]](sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
