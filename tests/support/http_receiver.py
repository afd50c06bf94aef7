# SPDX-License-Identifier: Apache-2.0
"""A webhook receiver. It answers as the script file says, and appends each request as a JSON line to the log file.

usage: http_receiver.py PORT SCRIPT LOG
SCRIPT: JSON {"answers": [{"status": 500, "headers": {}, "delay_ms": 0}, ...]}. Each request gets the next answer, and the
last one is repeated. One with "only_for" is the answer to every request whose body contains that text, and to no other.
"trick" names one of the hostile answers below. With "tls": {"cert", "key", "client_ca"} it is an HTTPS server, which asks
for a client's certificate if there is a client_ca.
"""
import base64
import gzip
import json
import ssl
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT, SCRIPT, LOG = int(sys.argv[1]), sys.argv[2], sys.argv[3]
lock = threading.Lock()
script = json.load(open(SCRIPT))
answers = [answer for answer in script["answers"] if not answer.get("only_for")]
special = [answer for answer in script["answers"] if answer.get("only_for")]
tls = script.get("tls") or {}
served = 0


def wait(seconds):
    threading.Event().wait(seconds)  # the script asks for a slow server


def drip_head(out):
    """A byte of the head each 100 ms, for ever."""
    for byte in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * 10_000:
        out.write(bytes([byte]))
        wait(0.1)


def drip_body(out):
    """A whole head, and then a body of which a byte comes each 100 ms."""
    out.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    for _ in range(10_000):
        out.write(b"x")
        wait(0.1)


def gibibyte(out):
    out.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (1 << 30))
    for _ in range(1 << 10):
        out.write(b"x" * (1 << 20))


def gzip_bomb(out):
    """A gibibyte of zeros, which is a megabyte on the wire."""
    packed = gzip.compress(b"\0" * (64 << 20), 9) * 16
    out.write(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed) + packed)


def interim(out):
    """Interim answers for ever."""
    while True:
        out.write(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 100)


def continues(out):
    """Two interim answers, then the answer."""
    out.write(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
    out.write(b"HTTP/1.1 204 No Content\r\n\r\n")


def only_interim(out):
    """An interim answer, and never another one."""
    out.write(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
    wait(60)


def garbage(out):
    out.write(b"\0\xff" * 1000)


def cut(out):
    """The connection ends in the middle of the head."""
    out.write(b"HTTP/1.1 200 OK\r\nConte")


TRICKS = {one.__name__: one for one in
          (drip_head, drip_body, gibibyte, gzip_bomb, interim, continues, only_interim, garbage, cut)}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def peer(self):
        certificate = tls and self.connection.getpeercert()
        return dict(pair for part in certificate["subject"] for pair in part).get("commonName", "") if certificate else ""

    def do_POST(self):
        global served
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with lock:
            answer = next((one for one in special if one["only_for"].encode() in body), None)
            if answer is None:
                answer = answers[min(served, len(answers) - 1)]
                served += 1
            with open(LOG, "a") as log:
                log.write(json.dumps({"path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()},
                                      "body": base64.b64encode(body).decode(), "status": answer["status"],
                                      "peer": self.peer(), "version": self.request_version,
                                      "at": time.monotonic()}) + "\n")
        wait(answer.get("delay_ms", 0) / 1000)
        try:
            if answer.get("trick"):
                self.close_connection = answer["trick"] != "continues"
                TRICKS[answer["trick"]](self.wfile)
                return
            self.send_response(answer["status"])
            for key, value in answer.get("headers", {}).items():
                self.send_header(key, value)
            payload = b"x" * answer.get("size", 0)
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)
        except OSError:
            self.close_connection = True  # the client gave up, as the test wants

    def do_GET(self):
        with lock, open(LOG, "a") as log:
            log.write(json.dumps({"path": self.path, "headers": {}, "body": "", "status": 200}) + "\n")
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    # With Python's default of 5, some connections of a burst would wait a second until their SYN is sent again.
    request_queue_size = 256
    context = None

    def finish_request(self, request, client_address):
        if self.context is None:
            return super().finish_request(request, client_address)
        try:
            request = self.context.wrap_socket(request, server_side=True)  # in the thread of this connection
        except OSError:
            return  # a client that does not trust us, or the other way round
        with request:
            super().finish_request(request, client_address)


server = Server(("127.0.0.1", PORT), Handler)
if tls:
    server.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.context.load_cert_chain(tls["cert"], tls["key"])
    server.context.set_alpn_protocols(["h2", "http/1.1"])
    if tls.get("client_ca"):
        server.context.verify_mode = ssl.CERT_REQUIRED
        server.context.load_verify_locations(tls["client_ca"])
server.serve_forever()
