#!/usr/bin/env bash
# A conversation with the sidecar, one JSON line each way, shown as it goes. `./dev demo` builds and runs it.
# Usage: demo/demo.sh PATH/TO/stitchkit-sandbox
set -euo pipefail

sidecar=${1:?usage: demo/demo.sh PATH/TO/stitchkit-sandbox}
home=$(mktemp -d "${TMPDIR:-/tmp}/stitchkit-demo.XXXXXX")
# Guests run as an ordinary user, who has to reach the workspaces below this directory.
chmod 711 "$home"
mkfifo "$home/requests" "$home/answers"

# Without its input the sidecar ends by itself, so that the directory is nobody's when it is removed.
cleanup() {
  exec 4>&- 3<&-
  wait
  rm -rf "$home"
}
trap cleanup EXIT
trap : PIPE

if [ -t 1 ]; then
  bold=$'\e[1m' blue=$'\e[34m' green=$'\e[32m' plain=$'\e[0m'
else
  bold='' blue='' green='' plain=''
fi

say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }

fail() {
  printf '\ndemo: %s\n' "$*" >&2
  exit 1
}

# show ARROW LINE: digests of 64 digits are cut to eight, for the reader only.
show() {
  printf '%s %s\n' "$1" "$(sed -E 's/([0-9a-f]{8})[0-9a-f]{56}/\1.../g' <<<"$2")"
}

# What is written to descriptor 4 the sidecar reads; what it answers comes from descriptor 3.
start() {
  printf '\n$ stitchkit-sandbox --serial --log-level warning --state-dir STATE\n'
  "$sidecar" --serial --log-level warning --state-dir "$home/state" <"$home/requests" >"$home/answers" &
  process=$!
  exec 4>"$home/requests" 3<"$home/answers"
  id=0
}

# Ends the sidecar's input, which is how a host says goodbye: it stops what still runs and exits with 0.
finish() {
  exec 4>&-
  wait "$process" || fail "the sidecar exited with $?"
  exec 3<&-
}

# call METHOD PARAMS [WANTED]: one request and its answer, which has to hold WANTED (default: a result).
call() {
  id=$((id + 1))
  local request="{\"jsonrpc\":\"2.0\",\"id\":$id,\"method\":\"$1\",\"params\":$2}"
  show "$blue-->$plain" "$request"
  printf '%s\n' "$request" >&4 || fail 'the sidecar is gone'
  IFS= read -r answer <&3 || fail 'the sidecar ended without an answer'
  show "$green<--$plain" "$answer"
  [[ $answer == *"${3:-\"result\":}"* ]] || fail "the answer should hold ${3:-a result}"
}

start

say 'A template is a set of files that sessions start from. Its key is a digest of them.'
call backend.prewarm '{"template":"demo","files":{"notes/welcome.txt":"Hello from the template.\n"}}'
template=$(sed -n 's/.*"templateKey":"\([0-9a-f]*\)".*/\1/p' <<<"$answer")

say 'A session is a workspace made from it. "h1" is our hold on it; nothing reaches the network.'
call backend.create "{\"template\":\"$template\",\"network\":\"deny-all\"}" '"handle":"h1"'

say 'Files go in and out without starting a process.'
call session.writeTextFile '{"handle":"h1","path":"count.sh","text":"wc -l < /workspace/notes/welcome.txt > lines; cat lines\n"}'

say 'Commands run in namespaces of their own. This one reads one file and writes another.'
call session.run '{"handle":"h1","command":{"executable":"/bin/sh","args":["count.sh"]}}' '"stdout":"1\n"'
call session.readTextFile '{"handle":"h1","path":"lines"}' '"text":"1\n"'

say 'Who the guest is, what it can write, and what it sees of the network: its own loopback, at most.'
call session.run '{"handle":"h1","command":{"executable":"/bin/sh","args":["-c","whoami; hostname; touch /usr/mine; cut -d: -f1 /proc/net/dev | tail -n +3"]}}' 'Read-only file system'

say 'A command that takes too long is killed, and the answer says so.'
call session.run '{"handle":"h1","command":{"executable":"/bin/sleep","args":["60"],"timeoutMs":200}}' SANDBOX_LIMIT

say 'Leaving the workspace is refused by name.'
call session.readTextFile '{"handle":"h1","path":"../state.json"}' SANDBOX_PATH

say 'Stop: commands end, the workspace stays. What captureState gave is enough to come back.'
call handle.captureState '{"handle":"h1"}'
saved=$(sed -n 's/.*"result":\({[^}]*}\).*/\1/p' <<<"$answer")
call handle.stop '{"handle":"h1"}'
call session.readTextFile '{"handle":"h1","path":"lines"}' SANDBOX_STOPPED
finish

say 'Another process, later. It attaches to the same session, and the files are there.'
start
call backend.create "{\"template\":\"$template\",\"network\":\"deny-all\",\"state\":$saved}" '"handle":"h1"'
call session.readTextFile '{"handle":"h1","path":"lines"}' '"text":"1\n"'

say 'Delete: the session goes, the template stays for the next one.'
call handle.delete '{"handle":"h1"}'
call backend.prewarm '{"template":"demo","files":{"notes/welcome.txt":"Hello from the template.\n"}}' '"reused":true'
finish

say 'That was the whole life of a session. Every answer was as it should be.'
