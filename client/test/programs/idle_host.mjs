// A host that uses a sandbox and never closes its backend. Arguments: the sidecar, its state directory.
import { createSidecarSandboxBackend } from 'stitchkit-sandbox-client';

const [command, stateDirectory] = process.argv.slice(2);
const backend = createSidecarSandboxBackend({ command, stateDirectory, onBrokerError() {} });
const handle = await backend.create({ template: { template: 'idle' }, network: 'deny-all' });
const spawned = await handle.session.spawn({ executable: '/bin/true' });
await spawned.result;
const slow = handle.session.run({ executable: '/bin/sh', args: ['-c', 'sleep 0.5; echo waited'] });
// Nothing else keeps this host alive while it waits.
slow.then(({ stdout }) => console.log(stdout.trim()));
