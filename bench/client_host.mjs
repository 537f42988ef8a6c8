// The same done by a JavaScript host through the client, by one that starts Bubblewrap itself, and over raw lines.
// Usage: node client_host.mjs SETTING   (JSON: `client`, the module; `program`, the sidecar; `stateDirectory`; `profile`)
import assert from 'node:assert/strict';
import { guestLauncher } from './guest_launcher.mjs';
import { RawLines, requestLine } from './raw_lines.mjs';
import { serveTimed } from './timed_actions.mjs';

const TEMPLATE = { template: 'bench', files: { 'd/f': 'x'.repeat(4096) } };
const NETWORK = 'deny-all';
const PATH = 'd/f';

const { client, program, stateDirectory, profile } = JSON.parse(process.argv[2]);
const { createSidecarSandboxBackend } = await import(client);

const launcher = guestLauncher(profile);
await launcher.write();

const backend = createSidecarSandboxBackend({
  command: program,
  stateDirectory,
  onBrokerError: (error) => console.error(error),
});
const { session } = await backend.create({ template: TEMPLATE, network: NETWORK });

const raw = new RawLines(program, ['--state-dir', stateDirectory, '--framing', 'lines', '--name', backend.name]);
const { handle } = await raw.call('backend.create', { template: TEMPLATE, network: NETWORK });
const readParams = { handle, path: PATH };
const readLine = requestLine('session.readBinaryFile', readParams);

const expected = await launcher.read();
assert.deepEqual(Buffer.from(await session.readBinaryFile(PATH)), expected);
assert.equal((await raw.call('session.readBinaryFile', readParams)).base64, expected.toString('base64'));

await serveTimed({
  'client run': async () => assert.equal((await session.run({ executable: '/usr/bin/true' })).exitCode, 0),
  'launcher run': launcher.true,
  'client read': async () => assert.equal((await session.readBinaryFile(PATH)).byteLength, expected.length),
  'launcher read': launcher.read,
  'raw read': () => raw.exchange(readLine),
});
await raw.end();
await backend.close();
