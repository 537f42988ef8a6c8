"""An implementation of selftest/openrpc.json that asks its host: what the runner's own test runs cases against."""
import base64
import json
import sys

import relay

waiting = {}  # id of a request to the host -> id of the call that waits for its answer
asked = 0
handles = 0
label = ""
processes = {}


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
    elif call["method"] == "fail":
        send({"method": "gateway.error", "params": params})
    elif call["method"] in ("session.run", "session.spawn"):
        child, stdin = relay.start(params["command"], params["stdin"], sys.argv[2])
        name = "p%d" % (len(processes) + 1)
        processes[name] = (child, stdin)
        result = {"process": name}
        if call["method"] == "session.run":
            out, err = child.communicate(stdin)
            result = {"exitCode": child.returncode, "stdout": out.decode(), "stderr": err.decode()}
        else:
            child.stdin.write(stdin)
            child.stdin.close()
            child.stdin = None
    elif call["method"] == "process.result":
        child = processes[params["process"]][0]
        out, err = child.communicate()
        result = {"exitCode": child.returncode}
        result.update({"stdout": {"base64": base64.b64encode(out).decode()}, "stderr": {"base64": base64.b64encode(err).decode()}})
    send({"id": call["id"], "result": result})


for line in sys.stdin:
    message = json.loads(line)
    if "method" in message:
        serve(message)
    elif message["id"] in waiting:
        answer = {name: message[name] for name in ("result", "error") if name in message}
        send({"id": waiting.pop(message["id"]), "result": {"answer": answer}})
