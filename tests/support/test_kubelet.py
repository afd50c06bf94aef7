# SPDX-License-Identifier: Apache-2.0
"""A kubelet for tests, with its scheduler: it runs the containers of all Pods as processes of this machine. It has no
images, namespaces, volumes and probes. It does what the tests look at: environment (value, secretKeyRef, fieldRef), init
containers one after the other, restarts, the Pod's status, and SIGTERM for a Pod that is deleted.

usage: test_kubelet.py SERVER CA TOKEN_FILE FOLDER HOSTS IMAGES
FOLDER: `<namespace>_<pod>_<container>.log` is the output of a container. HOSTS: a hosts file with the names of Services,
which libnss-wrapper shows to the containers. IMAGES: a JSON file {"image": ["command", "argument"]}.
"""
import base64
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import threading
import traceback
import urllib.error
import urllib.request

SERVER, CA, TOKEN_FILE, FOLDER, HOSTS, IMAGES = sys.argv[1:7]
NODE = "test-kubelet"
ended = threading.Event()
context = ssl.create_default_context(cafile=CA)


def ask(method, path, body=None, kind="application/json"):
    """Sends a request and returns the answer; None for 404 and 409."""
    request = urllib.request.Request(SERVER + path, method=method, data=None if body is None else json.dumps(body).encode())
    request.add_header("Authorization", "Bearer " + open(TOKEN_FILE, encoding="utf-8").read().strip())
    request.add_header("Content-Type", kind)
    try:
        with urllib.request.urlopen(request, context=context, timeout=10) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        if error.code in (404, 409):
            return None
        raise RuntimeError(f"{method} {path}: {error.code} {error.read().decode()}") from error


def path_of(pod):
    meta = pod["metadata"]
    return f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"


class NotReady(Exception):
    """A container cannot be made yet."""


def value_of(pod, variable):
    """The value of an environment variable; None if an optional one is not there."""
    if "valueFrom" not in variable:
        return variable.get("value", "")
    source = variable["valueFrom"]
    if "fieldRef" in source:
        found = pod
        for name in source["fieldRef"]["fieldPath"].split("."):
            found = found.get(name, "")
        return found
    reference = source["secretKeyRef"]
    secret = ask("GET", f"/api/v1/namespaces/{pod['metadata']['namespace']}/secrets/{reference['name']}")
    data = (secret or {}).get("data", {})
    if reference["key"] in data:
        return base64.b64decode(data[reference["key"]]).decode()
    if reference.get("optional"):
        return None
    raise NotReady(f"secret \"{reference['name']}\" has no key \"{reference['key']}\"")


def environment(pod, container):
    out = {"PATH": os.environ["PATH"], "LD_PRELOAD": "libnss_wrapper.so", "NSS_WRAPPER_HOSTS": HOSTS}
    for variable in container.get("env", []):
        value = value_of(pod, variable)
        if value is not None:
            out[variable["name"]] = re.sub(r"\$\((\w+)\)", lambda m: out.get(m[1], m[0]), value)
    return out


def start(pod, container):
    command = container.get("command") or json.load(open(IMAGES, encoding="utf-8")).get(container["image"])
    if not command:
        raise NotReady(f"image \"{container['image']}\" is not one of those of the test")
    variables = environment(pod, container)
    words = [re.sub(r"\$\((\w+)\)", lambda m: variables.get(m[1], m[0]), word)
             for word in command + container.get("args", [])]
    meta = pod["metadata"]
    log = open(f"{FOLDER}/{meta['namespace']}_{meta['name']}_{container['name']}.log", "ab")
    return subprocess.Popen(words, env=variables, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)


class Run:
    """The processes of a Pod."""

    def __init__(self):
        self.init = 0         # how many init containers have ended with 0
        self.processes = {}   # by the container's name
        self.restarts = {}
        self.told = None      # the status that was written last

    def step(self, pod):
        """Starts what is due and returns (phase, ready, message)."""
        inits = pod["spec"].get("initContainers", [])
        while self.init < len(inits):
            code = self.code_of(pod, inits[self.init])
            if code is None:
                return "Pending", False, "init container runs"
            del self.processes[inits[self.init]["name"]]
            if code != 0:
                return "Pending", False, f"init container ended with {code}"
            self.init += 1
        for container in pod["spec"]["containers"]:
            if self.code_of(pod, container) is not None:
                del self.processes[container["name"]]  # it is started again in the next round
                self.restarts[container["name"]] = self.restarts.get(container["name"], 0) + 1
                return "Running", False, "container ended"
        return "Running", True, ""

    def code_of(self, pod, container):
        """Starts the container if it does not run. Its exit code; None while it runs."""
        if container["name"] not in self.processes:
            self.processes[container["name"]] = start(pod, container)
        return self.processes[container["name"]].poll()

    def end(self):
        """Returns True when nothing runs any more."""
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        return all(process.poll() is not None for process in self.processes.values())


def tell(pod, run, phase, ready, message):
    status = {"phase": phase, "message": message, "conditions": [
        {"type": kind, "status": "True" if ready else "False"} for kind in ("ContainersReady", "Ready")],
        "containerStatuses": [{"name": c["name"], "image": c["image"], "imageID": "", "ready": ready,
                               "restartCount": run.restarts.get(c["name"], 0)} for c in pod["spec"]["containers"]]}
    if status != run.told and ask("PATCH", path_of(pod) + "/status", {"status": status},
                                  "application/strategic-merge-patch+json"):
        run.told = status


def attend(pod, run):
    if "deletionTimestamp" in pod["metadata"]:
        if run.end():
            ask("DELETE", path_of(pod), {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})
        return
    if not pod["spec"].get("nodeName"):
        ask("POST", path_of(pod) + "/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {
            "name": pod["metadata"]["name"]}, "target": {"apiVersion": "v1", "kind": "Node", "name": NODE}})
        return
    try:
        tell(pod, run, *run.step(pod))
    except NotReady as why:
        tell(pod, run, "Pending", False, str(why))


def main():
    runs = {}
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    while not ended.wait(0.2):
        try:
            pods = {pod["metadata"]["uid"]: pod for pod in ask("GET", "/api/v1/pods")["items"]}
            for uid, pod in pods.items():
                attend(pod, runs.setdefault(uid, Run()))
            runs = {uid: run for uid, run in runs.items() if uid in pods or not run.end()}
        except (OSError, RuntimeError):
            traceback.print_exc()  # an API server that restarts is asked again
    while not all(run.end() for run in runs.values()):
        threading.Event().wait(0.05)


main()
