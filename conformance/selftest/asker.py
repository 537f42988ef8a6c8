"""An implementation of selftest/openrpc.json that asks its host: what the runner's own test runs cases against."""
import json
import sys

waiting = {}  # id of a request to the host -> id of the call that waits for its answer
asked = 0
handles = 0
label = ""


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def serve(call):
    global asked, handles, label
    params = call.get("params", {})
    result = {}
    if call["method"] == "cancel":
        send({"method": "$/cancelRequest", "params": {"id": params["id"]}})
    if call["method"] == "ask":
        asked += 1
        request = "ask-%d" % (1 if params.get("sameId") else asked)
        waiting[request] = call["id"]
        send({"id": request, "method": params["method"], "params": params["params"]})
        return
    if call["method"] == "backend.create":
        handles += 1
        result = {"handle": "h%d" % handles}
    elif call["method"] == "label":
        label, result = params["text"], {"before": label}
    send({"id": call["id"], "result": result})


for line in sys.stdin:
    message = json.loads(line)
    if "method" in message:
        serve(message)
    elif message["id"] in waiting:
        answer = {name: message[name] for name in ("result", "error") if name in message}
        send({"id": waiting.pop(message["id"]), "result": {"answer": answer}})
