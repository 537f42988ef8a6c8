// The sidecar's own answers, without the client in between: what the client says is compared with these.
import { createInterface } from 'node:readline';
import { startSidecar } from './sidecar.mjs';

/** `call(method, params)` resolves with the message of the response. */
export function startRawPeer(t, ...args) {
  const { child } = startSidecar(t, '--framing', 'lines', ...args);
  const waiting = new Map();
  createInterface({ input: child.stdout }).on('line', (line) => {
    const message = JSON.parse(line);
    waiting.get(message.id)?.(message);
  });
  let lastId = 0;
  return {
    call(method, params) {
      const id = ++lastId;
      child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
      return new Promise((resolve) => waiting.set(id, resolve));
    },
  };
}
