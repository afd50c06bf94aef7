#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""server.py PORT FOLDER: keeps states as three kinds of servers do, for tests of the terraform provider.

/state/<name>      Terraform's http backend: GET with ETag and If-None-Match, POST, DELETE, LOCK, UNLOCK. A real small one.
/v1/kv, /v1/txn    not Consul, but a faithful local server of its documented KV and transaction API: index, blocking
                   queries, raw values, 512 KiB a value (so that OpenTofu writes in chunks).
/api/v2            not HCP Terraform, but a faithful local server of its documented API: workspace by name, current state
                   version, run, hosted download.

POST /_control changes how requests are answered: {"user", "password"} asks for them; {"status", "headers", "body"}
answers so whatever is asked; {"cut": true} closes each body in its middle; {"token"} asks for that token;
{"etag": "seconds"} makes the ETag of the time of the last write, in seconds, and the size, as nginx does; {"restored": n}
sets Consul's index to n, as the restore of a snapshot does;
{"index": "missing"} sends no X-Consul-Index, {"index": "zero"} sends 0, {"index": "hasty"} answers blocking queries at once;
{"state_version", "run", "state"} is what /api/v2 has, its downloads at {"origin"} if that is not here. {} takes all that
back. FOLDER/requests.jsonl gets one line for each request but those."""
import base64
import hashlib
import http.server
import json
import pathlib
import sys
import threading
import time
import urllib.parse

PORT, FOLDER = int(sys.argv[1]), pathlib.Path(sys.argv[2])
MOST_VALUE = 512 * 1024


class World:
    """Everything that is kept; guarded by one condition, which is notified of each change."""

    def __init__(self):
        self.changed = threading.Condition()
        self.states, self.locks, self.written = {}, {}, {}  # http backend
        self.kv, self.index = {}, 1  # consul: key -> (index, value)
        self.control = {}
        self.cloud = {}

    def put(self, key, value):
        self.index += 1
        self.kv[key] = (self.index, value)
        self.changed.notify_all()


WORLD = World()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, status, body=b"", headers=None):
        cut = WORLD.control.get("cut") and status == 200 and len(body) > 1
        line = {"method": self.command, "path": self.path, "status": status, "bytes": len(body)}
        with WORLD.changed, open(FOLDER / "requests.jsonl", "a") as log:
            log.write(json.dumps(line) + "\n")
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if status not in (204, 304):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if status not in (204, 304) and self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if cut else body)
        if cut:
            self.close_connection = True

    def json(self, status, value, headers=None):
        self.answer(status, json.dumps(value).encode(), {"Content-Type": "application/json", **(headers or {})})

    def handle_any(self):
        url = urllib.parse.urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if url.path == "/_control":
            with WORLD.changed:
                WORLD.control = json.loads(body)
                WORLD.index = WORLD.control.pop("restored", WORLD.index)
                WORLD.cloud.update({k: v for k, v in WORLD.control.items() if k in ("state_version", "run", "state", "serial", "origin")})
                WORLD.changed.notify_all()
            self.send_response(204)
            self.end_headers()
            return
        if "status" in WORLD.control:
            self.answer(WORLD.control["status"], WORLD.control.get("body", "").encode(), WORLD.control.get("headers"))
        elif not self.welcome():
            self.answer(401, b"who are you")
        elif url.path.startswith("/state/"):
            self.state(url.path, urllib.parse.parse_qs(url.query), body)
        elif url.path.startswith("/v1/"):
            self.consul(url, urllib.parse.parse_qs(url.query, keep_blank_values=True), body)
        elif url.path.startswith("/api/v2/") or url.path.startswith("/download/"):
            self.terraform_cloud(url.path)
        else:
            self.answer(404)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_LOCK = do_UNLOCK = handle_any

    def welcome(self):
        control = WORLD.control
        if "user" in control:
            wanted = base64.b64encode(f"{control['user']}:{control['password']}".encode()).decode()
            return self.headers.get("Authorization") == "Basic " + wanted
        if "token" in control:
            return control["token"] in (self.headers.get("Authorization", "").removeprefix("Bearer "), self.headers.get("X-Consul-Token"))
        return True

    # ---- Terraform's http backend
    def state(self, name, query, body):
        with WORLD.changed:
            if self.command == "LOCK":
                held = WORLD.locks.get(name)
                if held is None:
                    WORLD.locks[name] = body
            elif self.command == "UNLOCK":
                held = WORLD.locks.pop(name, None) and None
            elif self.command == "POST":
                WORLD.states[name], WORLD.written[name], held = body, int(time.time()), None
            elif self.command == "DELETE":
                WORLD.states.pop(name, None)
                held = None
            kept, written = WORLD.states.get(name), WORLD.written.get(name)
        if self.command != "GET":
            self.answer(423 if held else 200, held or b"")
        elif kept is None:
            self.answer(404)
        else:
            etag = '"' + hashlib.sha256(kept).hexdigest()[:20] + '"'
            headers = {"ETag": etag}
            if WORLD.control.get("etag") == "seconds":
                headers = {"ETag": f'"{written:x}-{len(kept):x}"', "Last-Modified": self.date_time_string(written)}
            same = self.headers.get("If-None-Match") == headers["ETag"]
            self.answer(304 if same else 200, b"" if same else kept, headers)

    # ---- Consul's KV
    def consul(self, url, query, body):
        key = urllib.parse.unquote(url.path.removeprefix("/v1/kv/"))
        if url.path == "/v1/txn":
            return self.transaction(json.loads(body))
        if self.command == "PUT":
            if len(body) > MOST_VALUE:
                return self.answer(413, b"Request body too large, max allowed is 524288 bytes")
            with WORLD.changed:
                WORLD.put(key, body)
            return self.answer(200, b"true")
        if self.command == "DELETE":
            with WORLD.changed:
                for each in [k for k in WORLD.kv if k == key or ("recurse" in query and k.startswith(key))]:
                    del WORLD.kv[each]
                WORLD.index += 1
                WORLD.changed.notify_all()
            return self.answer(200, b"true")
        seen = int(query.get("index", ["0"])[0])
        wait = float(query.get("wait", ["300s"])[0].rstrip("s") or 300)
        with WORLD.changed:
            if seen and "index" not in WORLD.control:
                WORLD.changed.wait_for(lambda: WORLD.kv.get(key, (WORLD.index, b""))[0] > seen or "status" in WORLD.control, wait)
            found = WORLD.kv.get(key)
            index = found[0] if found else WORLD.index
        said = {"missing": {}, "zero": {"X-Consul-Index": "0"}}
        headers = said.get(WORLD.control.get("index"), {"X-Consul-Index": str(index)})
        if found is None:
            self.answer(404, b"", headers)
        elif "raw" in query:
            self.answer(200, found[1], headers)
        else:
            value = base64.b64encode(found[1]).decode()
            self.json(200, [{"Key": key, "Value": value, "Flags": 0, "LockIndex": 0, "CreateIndex": 1, "ModifyIndex": index}], headers)

    def transaction(self, operations):
        results = []
        for operation in operations:
            kv = operation["KV"]
            value = base64.b64decode(kv.get("Value") or "")
            if len(value) > MOST_VALUE:
                return self.answer(413, b"Request body too large, max allowed is 524288 bytes")
            with WORLD.changed:
                known = WORLD.kv.get(kv["Key"], (0, b""))[0]
                if kv["Verb"] == "cas" and known != kv.get("Index", 0):
                    return self.json(409, {"Results": None, "Errors": [{"OpIndex": 0, "What": "index is stale"}]})
                WORLD.put(kv["Key"], value)
                results.append({"KV": {"Key": kv["Key"], "Value": None, "Flags": 0, "LockIndex": 0, "CreateIndex": 1, "ModifyIndex": WORLD.index}})
        self.json(200, {"Results": results, "Errors": None})

    # ---- HCP Terraform's API
    def terraform_cloud(self, path):
        cloud, parts = WORLD.cloud, path.strip("/").split("/")
        version, run = cloud.get("state_version"), cloud.get("run")
        if path.startswith("/download/"):
            known = version and parts[1] == version
            return self.answer(200 if known else 404, cloud.get("state", "").encode() if known else b"")
        missing = {"errors": [{"status": "404", "title": "not found"}]}
        if parts[2:] == ["organizations", "acme", "workspaces", "platform"]:
            return self.json(200, {"data": {"id": "ws-1", "type": "workspaces", "attributes": {"name": "platform"}}})
        if parts[2:] == ["workspaces", "ws-1", "current-state-version"] and version:
            address = f"{cloud.get('origin') or f'http://127.0.0.1:{PORT}'}/download/{version}"
            data = {"id": version, "type": "state-versions",
                    "attributes": {"serial": cloud.get("serial", 1), "hosted-state-download-url": address, "status": "finalized"},
                    "relationships": {"run": {"data": {"id": run["id"], "type": "runs"} if run else None}}}
            return self.json(200, {"data": data})
        if parts[2] == "runs" and run and parts[3] == run["id"]:
            return self.json(200, {"data": {"id": run["id"], "type": "runs", "attributes": {"status": run["status"], "source": "tfe-ui"}}})
        self.json(404, missing)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True


Server(("127.0.0.1", PORT), Handler).serve_forever()
