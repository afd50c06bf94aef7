# SPDX-License-Identifier: Apache-2.0
"""A webhook receiver. It answers as the script file says, and appends each request as a JSON line to the log file.

usage: http_receiver.py PORT SCRIPT LOG
SCRIPT: JSON {"answers": [{"status": 500, "headers": {}, "delay_ms": 0}, ...]}. Each request gets the next answer, and the
last one is repeated. One with "only_for" is the answer to every request whose body contains that text, and to no other.
"""
import base64
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT, SCRIPT, LOG = int(sys.argv[1]), sys.argv[2], sys.argv[3]
lock = threading.Lock()
script = json.load(open(SCRIPT))["answers"]
answers = [answer for answer in script if not answer.get("only_for")]
special = [answer for answer in script if answer.get("only_for")]
served = 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

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
                                      "body": base64.b64encode(body).decode(), "status": answer["status"]}) + "\n")
        threading.Event().wait(answer.get("delay_ms", 0) / 1000)  # the script asks for a slow server
        try:
            self.send_response(answer["status"])
            for key, value in answer.get("headers", {}).items():
                self.send_header(key, value)
            payload = b"x" * answer.get("size", 0)
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)
        except OSError:
            pass  # the client gave up, as the test wants

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


Server(("127.0.0.1", PORT), Handler).serve_forever()
