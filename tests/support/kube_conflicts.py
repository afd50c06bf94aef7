# SPDX-License-Identifier: Apache-2.0
"""A proxy before a kube-apiserver that answers every second write of each path with 409 Conflict, as if another writer had
been faster. Reads and watches pass unchanged.

usage: kube_conflicts.py PORT SERVER_PORT CERT KEY CA LOG
CERT, KEY: its own, CA: that of the API server. Appends `METHOD PATH passed|refused` to LOG for each write.
"""
import collections
import http.client
import json
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT, SERVER_PORT = int(sys.argv[1]), int(sys.argv[2])
CERT, KEY, CA, LOG = sys.argv[3:7]
lock = threading.Lock()
writes = collections.Counter()


def is_refused(method, path):
    """Counts a write. The first of each path is refused, the second passes, and so on."""
    path = path.split("?")[0]
    with lock:
        writes[path] += 1
        refused = writes[path] % 2 == 1
        with open(LOG, "a", encoding="utf-8") as log:
            log.write(f"{method} {path} {'refused' if refused else 'passed'}\n")
        return refused


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def conflict(self):
        body = json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Conflict", "code": 409,
                           "message": "the object has been modified; please apply your changes to the latest version"})
        self.answer(409, "application/json", body.encode())

    def answer(self, status, kind, body):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def pass_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        # Leases are left alone: the tests of the lease have their own faults.
        if self.command != "GET" and "/leases" not in self.path and is_refused(self.command, self.path):
            return self.conflict()
        server = http.client.HTTPSConnection("127.0.0.1", SERVER_PORT, context=ssl.create_default_context(cafile=CA))
        server.request(self.command, self.path, body or None, {
            name: value for name, value in self.headers.items()
            if name.lower() not in ("host", "content-length", "connection", "accept-encoding")})
        got = server.getresponse()
        if "watch=" not in self.path:
            return self.answer(got.status, got.headers.get("Content-Type", ""), got.read())
        self.send_response(got.status)
        self.send_header("Content-Type", got.headers.get("Content-Type", ""))
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while data := got.read1(65536):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.write(b"0\r\n\r\n")

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = pass_on


proxy = ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
proxy.daemon_threads = True
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(CERT, KEY)
proxy.socket = context.wrap_socket(proxy.socket, server_side=True, do_handshake_on_connect=False)
proxy.serve_forever()
