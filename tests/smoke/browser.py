#!/usr/bin/env python3
"""A browser that knows one page by heart: answers DevTools messages on descriptors 3 and 4.

The file page.json beside it has what each function of the page gives. A text that begins with an
exclamation mark is what happens instead: !throw, !crash, !die, !hang, !nonsense."""
import json
import os
import signal
import subprocess
import sys
import time

here = os.path.dirname(os.path.abspath(__file__))
page = json.load(open(os.path.join(here, "page.json")))
print("a browser's own words", file=sys.stderr, flush=True)
calls = {}


def say(message):
    os.write(4, json.dumps(message).encode() + b"\0")


def answer(method, params):
    """The result of one request."""
    if method == "Runtime.evaluate":
        name = params["expression"].removeprefix("smoke.").split("(")[0]
        values = page.get(name, {})
        # A list has one value for each time that the function is called.
        if isinstance(values, list):
            calls[name] = calls.get(name, -1) + 1
            values = values[min(calls[name], len(values) - 1)]
        return special(values) or {"result": {"value": values}}
    special(page.get(method))
    if method == "Page.navigate":
        say({"method": "Page.loadEventFired", "params": {}})
    for event in page.get("events", []) if method == "Log.enable" else []:
        say(event)
    return {"product": "Fake/1", "targetId": "t", "sessionId": "s"}


def special(value):
    if not isinstance(value, str):
        return None
    if value.startswith("!throw"):
        return {"exceptionDetails": {"text": "Uncaught", "exception": {"description": value[7:]}}}
    if value == "!crash":
        say({"method": "Inspector.targetCrashed", "params": {}})
    if value == "!die":
        os._exit(3)
    if value == "!nonsense":
        os.write(4, b"nonsense\0")
    if value == "!hang":
        # Something of its own goes on, deaf to polite signals.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        with open(os.path.join(here, "hanging"), "w") as file:
            file.write(f"{os.getpid()} {child.pid}\n")
        time.sleep(600)
    return None


buffered = b""
while data := os.read(3, 65536):
    *messages, buffered = (buffered + data).split(b"\0")
    for message in map(json.loads, messages):
        result = answer(message["method"], message["params"])
        say({"id": message["id"], "result": result})
