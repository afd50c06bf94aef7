# SPDX-License-Identifier: Apache-2.0
"""Webhook receiver: answers by the script file, appends each request as a JSON line to the log file.

usage: http_receiver.py PORT SCRIPT LOG
SCRIPT: JSON {"answers": [{"status": 500, "headers": {}, "delay_ms": 0}, ...]}: one per request, the last one stays. One
with "only_for" is the answer to every request whose body holds that text, and to no other.
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
        threading.Event().wait(answer.get("delay_ms", 0) / 1000)  # a slow server is what the script asks for
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
    request_queue_size = 256  # of 5, Python's default, a burst of connections waits a second for its next SYN


Server(("127.0.0.1", PORT), Handler).serve_forever()
