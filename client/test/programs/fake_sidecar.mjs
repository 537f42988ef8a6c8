// Answers `initialize` as a sidecar would, but for what its first argument says: `version`, `silent`, or `record` with
// the file to keep the requests in.
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [mode, file] = process.argv.slice(2);
const server = { name: 'fake', version: '0' };
const limits = { maxMessageBytes: 2000, maxMessageValues: 1_000_000, maxRequestsInFlight: 260 };
const answers = {
  'initialize': { protocolVersion: mode === 'version' ? 2 : 1, server, backend: { name: 'fake' }, limits },
  'backend.prewarm': { reused: false, templateKey: 'key' },
};

for (const level of ['error', 'warning', 'info', 'debug']) console.error(`stitchkit-sandbox: ${level}: of the fake`);
console.error('anything else');
console.error('');

createInterface({ input: process.stdin }).on('line', (line) => {
  if (mode === 'silent') return;
  const { id, method } = JSON.parse(line);
  if (mode === 'record') appendFileSync(file, `${method}\n`);
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: answers[method] ?? {} }));
});
