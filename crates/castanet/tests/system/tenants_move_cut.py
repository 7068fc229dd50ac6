"""Passes one connection of two instances on, and cuts it before a message.

Arguments: the addresses that it listens at and that it connects to, the side whose messages count (`from`, which connects
here, or `to`), and the number of its messages that get through. The next one is lost.
"""

import socket
import sys
import threading


def address(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


def receive(connection, count):
    received = b""
    while len(received) < count:
        part = connection.recv(count - len(received))
        if not part:
            raise ConnectionError("the connection has ended")
        received += part
    return received


def main():
    here, there, counted, most = sys.argv[1:]
    listener = socket.create_server(address(here))
    print("ready", flush=True)
    near, _ = listener.accept()
    far = socket.create_connection(address(there))

    def cut():
        for connection in (near, far):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def pass_on(side, source, target):
        passed = 0
        try:
            while True:
                # A message of the Noise protocol has its length before it.
                length = receive(source, 2)
                message = receive(source, int.from_bytes(length, "big"))
                if side == counted and passed == int(most):
                    break
                target.sendall(length + message)
                passed += 1
        except OSError:
            pass
        cut()

    back = threading.Thread(target=pass_on, args=("to", far, near))
    back.start()
    pass_on("from", near, far)
    back.join()


main()
