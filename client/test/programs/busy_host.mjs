// A host with much to do: tells the state of its session on stdout, then runs commands and tools without end, and ends
// when its stdin says how (`exit`, `throw`). Arguments: the sidecar, its state directory, a marker for commands.
import { createSandboxCodingTools, createSidecarSandboxBackend } from 'stitchkit-sandbox-client';

const [command, stateDirectory, marker] = process.argv.slice(2);
const backend = createSidecarSandboxBackend({ command, stateDirectory, onBrokerError() {} });
const handle = await backend.create({ template: { template: 'busy' }, network: 'deny-all' });
const { session } = handle;
const tools = createSandboxCodingTools(handle, { authorize: () => true });
const write = tools.find((tool) => tool.name === 'write_file');

process.stdin.on('data', (chunk) => {
  if (String(chunk) === 'exit') process.exit(7);
  throw new Error('as it was told');
});

const shell = (script) => ({ executable: '/bin/sh', args: ['-c', script, marker] });
const forever = async (work) => {
  for (;;) await work();
};

await session.spawn(shell('sleep 1000; true'));
await session.spawn(shell("trap '' TERM; setsid sleep 1001 & while :; do echo line; sleep 0.01; done"));
for (let worker = 0; worker < 4; worker += 1) void forever(() => session.run(shell('head -c 10000 /dev/zero')));
void forever(() => session.writeTextFile('file', 'x'.repeat(1000)));
void forever(() => write.handler({ input: { path: 'tool', content: 'x', overwrite: true } }));
void forever(() => session.spawn(shell('exit 3')).then((process) => process.result));
process.stdout.write(`${JSON.stringify(handle.captureState())}\n`);
