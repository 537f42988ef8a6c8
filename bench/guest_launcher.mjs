// What an in-process JavaScript host pays: one Bubblewrap launch a command, file reads and writes done by guests.
import { spawn } from 'node:child_process';

const content = Buffer.alloc(4096, 'x');

/** `profile` holds Bubblewrap's arguments before the command. The actions, each a function that resolves when done. */
export function guestLauncher(profile) {
  const guest = (command, stdin) => new Promise((resolve, reject) => {
    const child = spawn('/usr/bin/bwrap', [...profile, ...command], { env: {}, detached: true, stdio: 'pipe' });
    const output = [];
    child.stdout.on('data', (chunk) => output.push(chunk));
    child.stderr.on('data', () => {});
    child.on('error', reject);
    child.on('close', (code) => (code === 0 ? resolve(Buffer.concat(output)) : reject(new Error(`exit ${code}`))));
    child.stdin.end(stdin);
  });
  return {
    true: () => guest(['/usr/bin/true']),
    write: async () => {
      await guest(['/usr/bin/mkdir', '-p', '--', '/workspace/d']);
      await guest(['/usr/bin/tee', '--', '/workspace/d/f'], content);
    },
    read: () => guest(['/usr/bin/cat', '--', '/workspace/d/f']),
  };
}
