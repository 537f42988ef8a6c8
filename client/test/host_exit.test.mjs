// The end of the host, however it comes: nothing stays behind, and its sessions are free.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { makeBackend } from './support/backend.mjs';
import { newMarker, pidsWithArgument, sidecarPids, until, untilGone } from './support/processes.mjs';
import { makeHome, removeHome, sidecarBinary, soon } from './support/sidecar.mjs';

const program = (name) => fileURLToPath(new URL(`./programs/${name}.mjs`, import.meta.url));

/** A host in a process of its own, with a state directory of its own. */
function startHost(t, name, ...args) {
  const home = makeHome();
  const stateDirectory = join(home, 'state');
  const child = spawn(process.execPath, [program(name), sidecarBinary(), stateDirectory, ...args]);
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    stderr += text;
  });
  child.stdin.on('error', () => {});
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const exited = new Promise((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })));
  const closed = new Promise((resolve) => child.once('close', resolve));
  t.after(async () => {
    child.kill('SIGKILL');
    await exited;
    await untilGone(stateDirectory);
    removeHome(home);
  });
  return { child, stateDirectory, lines, exited, closed, stderr: () => stderr };
}

test('a host that never calls close exits by itself when nothing is left to wait for', async (t) => {
  const { child, stateDirectory, lines, exited, stderr } = startHost(t, 'idle_host');
  child.stdin.end();
  assert.equal((await soon(lines.next(), 'the output of the host')).value, 'waited', stderr());
  assert.deepEqual(await soon(exited, 'the end of the host'), { code: 0, signal: null }, stderr());
  await untilGone(stateDirectory);
});

describe('a host at work ends', () => {
  const ends = {
    'by process.exit': [({ child }) => child.stdin.write('exit'), { code: 7, signal: null }],
    'by an exception that nobody catches': [({ child }) => child.stdin.write('throw'), undefined],
    'by SIGINT': [({ child }) => child.kill('SIGINT'), { code: null, signal: 'SIGINT' }],
    'by SIGTERM': [({ child }) => child.kill('SIGTERM'), { code: null, signal: 'SIGTERM' }],
    'by process.exit, while somebody has stopped its sidecar': [
      ({ child, stateDirectory }) => {
        for (const pid of sidecarPids(stateDirectory, child.pid)) process.kill(pid, 'SIGSTOP');
        child.stdin.write('exit');
      },
      { code: 7, signal: null },
    ],
    'by SIGKILL': [({ child }) => child.kill('SIGKILL'), { code: null, signal: 'SIGKILL' }],
    'by SIGKILL, as its sidecar does': [
      ({ child, stateDirectory }) => {
        for (const pid of sidecarPids(stateDirectory, child.pid)) process.kill(pid, 'SIGKILL');
        child.kill('SIGKILL');
      },
      { code: null, signal: 'SIGKILL' },
    ],
  };
  for (const [name, [end, expected]] of Object.entries(ends)) {
    test(`${name}: no sidecar and no guest is left, and the session is attached at once`, async (t) => {
      const marker = newMarker();
      const host = startHost(t, 'busy_host', marker);
      const state = JSON.parse((await soon(host.lines.next(), 'the state of the session')).value);
      await until(() => pidsWithArgument(marker).length > 0, 'the guests');
      await delay(Math.random() * 100); // any moment will do
      end(host);
      const how = await soon(host.exited, 'the end of the host');
      if (expected) assert.deepEqual(how, expected, host.stderr());
      else assert.match(host.stderr(), /as it was told/);
      await untilGone(host.stateDirectory);
      const next = makeBackend({ stateDirectory: host.stateDirectory });
      try {
        const handle = await next.backend.create({ template: state.templateKey, state, network: 'deny-all' });
        assert.equal((await handle.session.run({ executable: '/bin/true' })).exitCode, 0);
        await untilGone(marker);
        assert.deepEqual(handle.captureState(), state);
      } finally {
        await next.dispose();
      }
    });
  }
});
