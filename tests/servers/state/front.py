#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""front.py PORT SERVER_PORT FILE: stands before a real server as a gateway does, and misbehaves as FILE says.

FILE is JSON, read anew whenever it changes; what is open then is closed. {"certificate", "key"} of the front itself, which
then speaks TLS; {"tls": true}: so does the server behind it. {"status", "headers", "body"} answers each request so;
{"cut": N} closes each connection after N bytes of the server; {"stuck": true} hands nothing on. Else all bytes pass."""
import json
import os
import selectors
import socket
import socketserver
import ssl
import sys

PORT, SERVER, FILE = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
PIECE = 64 * 1024


def how():
    """What FILE says and which version of it that is."""
    with open(FILE) as file:
        return json.load(file), os.fstat(file.fileno()).st_mtime_ns


def version():
    return os.stat(FILE).st_mtime_ns


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        try:
            self.wanted, self.version = how()
            client = self.request
            client.settimeout(20)
            if "certificate" in self.wanted:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(self.wanted["certificate"], self.wanted["key"])
                client = context.wrap_socket(client, server_side=True)
            self.answer(client) if "status" in self.wanted else self.relay(client)
            client.close()
        except OSError:  # a client that does not trust us, or is gone
            pass

    def answer(self, client):
        request = b""
        while b"\r\n\r\n" not in request:
            piece = client.recv(PIECE)
            if not piece:
                return
            request += piece
        body = self.wanted.get("body", "").encode()
        lines = [f"HTTP/1.1 {self.wanted['status']} as the test says", f"Content-Length: {len(body)}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in self.wanted.get("headers", {}).items()]
        client.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def relay(self, client):
        server = socket.create_connection(("127.0.0.1", SERVER))
        if self.wanted.get("tls"):
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            server = context.wrap_socket(server)
        passed, other = 0, {client: server, server: client}
        with selectors.DefaultSelector() as ready:
            for each in other:
                ready.register(each, selectors.EVENT_READ)
            while version() == self.version:
                # what TLS has decrypted already is no event of the socket
                events = [each for each in other if isinstance(each, ssl.SSLSocket) and each.pending()]
                for source in events or [key.fileobj for key, _ in ready.select(0.02)]:
                    if self.wanted.get("stuck"):
                        continue
                    piece = source.recv(PIECE)
                    if source is server and "cut" in self.wanted:
                        piece = piece[: max(0, self.wanted["cut"] - passed)]
                    passed += len(piece) if source is server else 0
                    if not piece:
                        return
                    other[source].sendall(piece)


class Front(socketserver.ThreadingTCPServer):
    daemon_threads = allow_reuse_address = True


Front(("127.0.0.1", PORT), Handler).serve_forever()
