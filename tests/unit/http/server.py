# SPDX-License-Identifier: Apache-2.0
"""HTTP server with one odd path each, for the client's tests.

usage: server.py PORT [CERTIFICATE KEY [CLIENT_CA]]
"""
import gzip
import json
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT = int(sys.argv[1])


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body=b"", headers=()):
        self.send_response(status)
        for key, value in headers:
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def serve(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = self.path.split("?")[0]
        what = path.strip("/").split("/")
        if path == "/echo":
            seen = {"method": self.command, "path": self.path, "body": body.decode(),
                    "headers": {k.lower(): v for k, v in self.headers.items()}, "port": self.client_address[1]}
            self.answer(200, json.dumps(seen).encode(), [("X-Twice", "one"), ("X-Twice", " two ")])
        elif what[0] == "status":
            self.answer(int(what[1]), b"so it is", [("Retry-After", "7")] if what[1] in ("429", "503") else [])
        elif what[0] == "to":
            self.answer(302, b"elsewhere", [("Location", self.path[len("/to/"):])])
        elif path == "/gzip":
            packed = gzip.compress(b"a" * 1_000_000)
            self.answer(200, packed, [("Content-Encoding", "gzip")])
        elif path in ("/lines", "/endless"):
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.chunk(b"one\ntw")
            self.chunk(b"o\n")
            if path == "/lines":
                self.chunk(b"")
            else:
                threading.Event().wait(60)
        elif path == "/cut":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"half")
            self.close_connection = True
        elif path == "/silent":
            threading.Event().wait(60)
        else:
            self.answer(404)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = serve

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True


server = Server(("127.0.0.1", PORT), Handler)
if len(sys.argv) > 2:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    if len(sys.argv) > 4:
        context.load_verify_locations(sys.argv[4])
        context.verify_mode = ssl.CERT_REQUIRED
    server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
