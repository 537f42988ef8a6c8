// What an in-process JavaScript host pays: one Bubblewrap launch a command, file reads and writes done by guests.
// Driven by sandbox-bench: an action a line on stdin, its time a line on stdout.
// Usage: node node_launcher.mjs PROFILE   (a JSON array: Bubblewrap's arguments before the command)
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const profile = JSON.parse(process.argv[2]);
const content = Buffer.alloc(4096, 'x');

const guest = (command, stdin) => new Promise((resolve, reject) => {
  const child = spawn('/usr/bin/bwrap', [...profile, ...command], { env: {}, detached: true, stdio: 'pipe' });
  const output = [];
  child.stdout.on('data', (chunk) => output.push(chunk));
  child.stderr.on('data', () => {});
  child.on('error', reject);
  child.on('close', (code) => (code === 0 ? resolve(Buffer.concat(output)) : reject(new Error(`exit ${code}`))));
  child.stdin.end(stdin);
});

const actions = {
  true: () => guest(['/usr/bin/true']),
  write: async () => {
    await guest(['/usr/bin/mkdir', '-p', '--', '/workspace/d']);
    await guest(['/usr/bin/tee', '--', '/workspace/d/f'], content);
  },
  read: () => guest(['/usr/bin/cat', '--', '/workspace/d/f']),
};

for await (const name of createInterface({ input: process.stdin })) {
  const start = performance.now();
  await actions[name]();
  console.log(JSON.stringify({ milliseconds: performance.now() - start }));
}
