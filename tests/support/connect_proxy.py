# SPDX-License-Identifier: Apache-2.0
"""An HTTP proxy that connects (CONNECT) and passes bytes on. It appends each target that it was asked for to the log file.

usage: connect_proxy.py PORT LOG STATUS
STATUS: its answer; 200 connects, any other refuses.
"""
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT, LOG, STATUS = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])


def pass_on(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # one side is gone, which ends both


class Proxy(BaseHTTPRequestHandler):
    def do_CONNECT(self):
        with open(LOG, "a") as log:
            log.write(self.path + "\n")
        self.send_response(STATUS)
        self.end_headers()
        if STATUS != 200:
            return
        host, port = self.path.rsplit(":", 1)
        with socket.create_connection((host, int(port))) as target:
            back = threading.Thread(target=pass_on, args=(target, self.connection), daemon=True)
            back.start()
            pass_on(self.connection, target)
            back.join()

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", PORT), Proxy).serve_forever()
