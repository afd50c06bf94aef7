# SPDX-License-Identifier: Apache-2.0
"""A false NATS server. It speaks just enough of the protocol to be accepted by a client, and then gives answers that no
real server gives.

usage: nats_impostor.py PORT SCRIPT
SCRIPT: JSON {"look": TEXT, "ack": TEXT}. TEXT of "look" answers every request about the stream, TEXT of "ack" every
message that is published.
"""
import json
import re
import socket
import sys
import threading

PORT, SCRIPT = int(sys.argv[1]), json.load(open(sys.argv[2]))
INFO = {"server_id": "I", "server_name": "impostor", "version": "2.10.0", "proto": 1, "host": "127.0.0.1", "port": PORT,
        "headers": True, "max_payload": 1 << 20, "jetstream": True, "client_id": 1}


class Client:
    def __init__(self, connection):
        self.connection, self.lines, self.sids = connection, connection.makefile("rb"), {}

    def serve(self):
        self.connection.sendall(b"INFO " + json.dumps(INFO).encode() + b"\r\n")
        for line in self.lines:
            words = line.decode().split()
            if not words:
                continue
            if words[0] == "PING":
                self.connection.sendall(b"PONG\r\n")
            elif words[0] == "SUB":
                self.sids[words[1]] = words[-1]
            elif words[0] in ("PUB", "HPUB"):
                self.lines.read(int(words[-1]) + 2)
                with_reply = len(words) > (3 if words[0] == "PUB" else 4)
                if with_reply:
                    self.answer(words[2], SCRIPT["look" if ".STREAM." in words[1] else "ack"].encode())

    def answer(self, reply, data):
        for subject, sid in self.sids.items():
            if re.fullmatch(re.escape(subject).replace(r"\*", "[^.]+").replace(">", ".+"), reply):
                self.connection.sendall(f"MSG {reply} {sid} {len(data)}\r\n".encode() + data + b"\r\n")
                return


def serve(connection):
    try:
        Client(connection).serve()
    except OSError:
        pass  # the client closed the connection


listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", PORT))
listener.listen(16)
print("listening", flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
