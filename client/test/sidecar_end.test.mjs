// The end of the sidecar: by close, by itself, by a signal; and what becomes of the calls and of the sessions.
import assert from 'node:assert/strict';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createSandboxCodingTools, SandboxError } from 'stitchkit-sandbox-client';
import { openBackend, openHandle, shell } from './support/backend.mjs';
import {
  isRunning,
  newMarker,
  pidsWithArgument,
  sidecarPid,
  sidecarPids,
  until,
  untilGone,
  untilRunning,
} from './support/processes.mjs';
import { soon } from './support/sidecar.mjs';

const warm = (backend) => backend.prewarm({ template: 'x' });
const killed = { code: null, signal: 'SIGKILL', expected: false };

async function killSidecar(made) {
  const before = made.exits.length;
  process.kill(sidecarPid(made.stateDirectory), 'SIGKILL');
  await until(() => made.exits.length > before, 'the call of onExit');
}

async function readAll(readable) {
  for await (const chunk of readable) assert.notEqual(chunk.byteLength, 0);
}

/** One call of each kind that waits, on a session in which `marker` runs. */
async function waitingCalls(handle, marker, backend) {
  const { session } = handle;
  const process = await session.spawn(shell('echo once >> started; sleep 1000; true', { marker }));
  await untilRunning(marker);
  const asked = [];
  const tools = createSandboxCodingTools(handle, {
    authorize: (_, { signal }) => {
      asked.push(signal);
      return new Promise(() => {});
    },
  });
  const list = tools.find((tool) => tool.name === 'list_directory').handler({ input: {} });
  list.catch(() => {});
  await until(() => asked.length === 1, 'the question to authorize');
  const calls = {
    result: process.result,
    stdout: readAll(process.stdout),
    stderr: readAll(process.stderr),
    run: session.run(shell('echo once >> started; sleep 1000', { marker })),
    tool: list,
    prewarm: backend.prewarm({ template: 'waiting', files: { a: 'a' } }),
    write: session.writeTextFile('waiting', 'x'),
  };
  for (const call of Object.values(calls)) call.catch(() => {});
  return { calls, process, tools, asked };
}

describe('a sidecar that is killed', () => {
  test('every call that waits rejects, nothing is done again, and the session is attached anew', async (t) => {
    const made = openBackend(t);
    const { backend } = made;
    const handle = await openHandle(backend);
    const marker = newMarker();
    const { calls, process: spawned, tools, asked } = await waitingCalls(handle, marker, backend);
    await until(async () => (await handle.session.readTextFile('started')) === 'once\nonce\n', 'both commands');
    await killSidecar(made);
    const { prewarm, write, ...waiting } = calls; // these two may be done already
    for (const [name, call] of Object.entries(waiting)) {
      await assert.rejects(soon(call, name), (error) => {
        assert.ok(error instanceof SandboxError, name);
        assert.equal(error.code, 'SANDBOX_UNAVAILABLE', name);
        assert.equal(error.reason, 'SIDECAR_EXITED', name);
        assert.equal(error.details.signal, 'SIGKILL', name);
        assert.equal(error.details.exitCode, null, name);
        return true;
      });
    }
    await Promise.allSettled([prewarm, write]);
    await untilGone(marker);
    assert.deepEqual(made.exits, [killed]);
    assert.equal(asked[0].aborted, true);

    // What is left of the old handle.
    await spawned.stop();
    await handle.stop();
    await handle.shutdown();
    const state = handle.captureState();
    for (const call of [
      () => handle.session.readTextFile('started'),
      () => handle.session.run({ executable: '/bin/true' }),
      () => handle.probe(),
      () => handle.delete(),
      () => tools[0].handler({ input: { path: 'started' } }),
    ]) {
      await assert.rejects(call(), { code: 'SANDBOX_UNAVAILABLE', reason: 'SIDECAR_EXITED' });
    }
    assert.deepEqual(sidecarPids(made.stateDirectory), []);

    const again = await backend.create({ template: state.templateKey, state, network: 'deny-all' });
    assert.equal(await again.session.readTextFile('started'), 'once\nonce\n');
    await assert.rejects(handle.session.readTextFile('started'), { code: 'SANDBOX_UNAVAILABLE' });
    await handle.stop(); // is not the stop of its successor
    assert.equal((await again.session.run(shell('echo on'))).stdout, 'on\n');
  });

  test('each caller gets an error of its own', async (t) => {
    const made = openBackend(t);
    const handle = await openHandle(made.backend);
    const marker = newMarker();
    const calls = [1, 2].map(async () => {
      await handle.session.run(shell('sleep 1000; true', { marker })); // an awaiting caller is named in the stack
    });
    const failures = Promise.all(calls.map((call) => call.catch((error) => error)));
    await until(() => pidsWithArgument(marker).length >= 2, 'two commands');
    await killSidecar(made);
    const [one, two] = await failures;
    assert.notEqual(one, two);
    assert.equal(one.message, two.message);
    assert.match(one.stack, /sidecar_end\.test/);
  });

  test('an aborted call rejects with its reason all the same', async (t) => {
    const made = openBackend(t);
    const handle = await openHandle(made.backend);
    const marker = newMarker();
    const controller = new AbortController();
    const running = handle.session.run(shell('sleep 1000; true', { marker }), { signal: controller.signal });
    running.catch(() => {});
    await untilRunning(marker);
    const reason = new Error('of the caller');
    process.kill(sidecarPid(made.stateDirectory), 'SIGSTOP'); // it cannot answer any more
    controller.abort(reason);
    await killSidecar(made);
    await assert.rejects(running, (error) => error === reason);
  });

  test('is started again three times a minute, and the fourth is refused by name', async (t) => {
    const made = openBackend(t);
    for (let round = 0; round < 4; round += 1) {
      await warm(made.backend);
      await killSidecar(made);
    }
    await assert.rejects(warm(made.backend), (error) => {
      assert.equal(error.code, 'SANDBOX_UNAVAILABLE');
      assert.equal(error.reason, 'SIDECAR_RESTARTS');
      assert.equal(error.details.restarts, 3);
      assert.ok(error.details.retryAfterMs > 0 && error.details.retryAfterMs <= 60_000);
      return true;
    });
    assert.deepEqual(made.exits, [killed, killed, killed, killed]);
  });

  test('is not started again before it is needed', async (t) => {
    const made = openBackend(t);
    const handle = await openHandle(made.backend);
    await killSidecar(made);
    await assert.rejects(handle.session.readTextFile('x'), { code: 'SANDBOX_UNAVAILABLE' });
    assert.deepEqual(sidecarPids(made.stateDirectory), []);
  });

  test('at random moments: each call settles, and the next sidecar works', async (t) => {
    const made = openBackend(t);
    const marker = newMarker();
    let state;
    for (let round = 0; round < 3; round += 1) {
      const handle = state
        ? await made.backend.create({ template: state.templateKey, state, network: 'deny-all' })
        : await openHandle(made.backend);
      state = handle.captureState();
      const calls = Array.from({ length: 60 }, (_, index) => {
        if (index % 3 === 0) return handle.session.writeTextFile(`file${index}`, 'x'.repeat(50_000));
        if (index % 3 === 1) return handle.session.run(shell('head -c 50000 /dev/zero', { marker }));
        return handle.session.spawn(shell('yes | head -c 50000', { marker })).then(({ result }) => result);
      });
      const settling = Promise.allSettled(calls);
      const turns = Math.floor(Math.random() * 60);
      for (let turn = 0; turn < turns; turn += 1) await new Promise(setImmediate);
      await killSidecar(made);
      const settled = await soon(settling, `the end of all calls after ${turns} turns`);
      for (const { reason } of settled.filter(({ status }) => status === 'rejected')) {
        assert.ok(['SANDBOX_UNAVAILABLE', 'SANDBOX_BUSY'].includes(reason.code), reason.stack);
      }
      await untilGone(marker);
    }
  });
});

describe('close', () => {
  test('stops what runs, settles what waits, and ends the sidecar well', async (t) => {
    const made = openBackend(t);
    const handle = await openHandle(made.backend);
    const marker = newMarker();
    const { calls, process: spawned } = await waitingCalls(handle, marker, made.backend);
    const pid = sidecarPid(made.stateDirectory);
    await made.backend.close();
    assert.ok(!isRunning(pid));
    assert.deepEqual(pidsWithArgument(marker), []);
    assert.deepEqual(made.exits, [{ code: 0, signal: null, expected: true }]);
    for (const [name, call] of Object.entries(calls)) {
      const [{ status, value, reason }] = await soon(Promise.allSettled([call]), `the end of ${name}`);
      if (status === 'fulfilled') assert.ok(value === undefined || value.exitCode === 137 || value.templateKey, name);
      else assert.ok(['SANDBOX_STOPPED', 'SANDBOX_UNAVAILABLE'].includes(reason.code), `${name}: ${reason.stack}`);
    }
    await spawned.stop();
    await handle.stop();
    assert.deepEqual(handle.captureState().sessionId, handle.session.id);
  });

  test('is the end: later calls get SANDBOX_STOPPED, and it may be called again', async (t) => {
    const made = openBackend(t);
    const handle = await openHandle(made.backend);
    const tools = createSandboxCodingTools(handle, { authorize: () => true });
    await tools.ready;
    const closing = made.backend.close();
    assert.equal(made.backend.close(), closing);
    await assert.rejects(warm(made.backend), { code: 'SANDBOX_STOPPED' });
    assert.equal(await closing, undefined);
    assert.equal(made.backend.close(), closing);
    for (const call of [
      () => warm(made.backend),
      () => openHandle(made.backend),
      () => handle.session.readTextFile('x'),
      () => handle.session.run({ executable: '/bin/true' }),
      () => handle.probe(),
      () => tools[0].handler({ input: { path: 'x' } }),
    ]) {
      await assert.rejects(call(), { code: 'SANDBOX_STOPPED' });
    }
    assert.deepEqual(pidsWithArgument(made.stateDirectory), []);
  });

  test('of what never started starts nothing', async (t) => {
    const { backend, exits } = openBackend(t);
    await backend.close();
    await assert.rejects(warm(backend), { code: 'SANDBOX_STOPPED' });
    assert.deepEqual(exits, []);
  });

  test('while the sidecar starts', async (t) => {
    const { backend, exits, stateDirectory } = openBackend(t);
    const warming = warm(backend);
    const [warmed] = await Promise.allSettled([warming, backend.close()]);
    if (warmed.status === 'rejected') assert.equal(warmed.reason.code, 'SANDBOX_STOPPED');
    assert.deepEqual(exits, [{ code: 0, signal: null, expected: true }]);
    assert.deepEqual(pidsWithArgument(stateDirectory), []);
  });

  test('while a program that does not answer starts, kills it', async (t) => {
    const made = openBackend(t, { command: '/nowhere' });
    const command = join(made.home, 'silent');
    const fakeSidecar = fileURLToPath(new URL('./programs/fake_sidecar.mjs', import.meta.url));
    writeFileSync(command, `#!/bin/sh\nexec '${process.execPath}' '${fakeSidecar}' silent "$@"\n`);
    chmodSync(command, 0o755);
    const silent = openBackend(t, { command, closeTimeoutMs: 50 });
    const warming = warm(silent.backend);
    warming.catch(() => {});
    await untilRunning(silent.stateDirectory);
    // Its own patience is longer than this.
    await soon(silent.backend.close(), 'close', 15_000);
    await assert.rejects(warming, { code: 'SANDBOX_STOPPED' });
    assert.deepEqual(pidsWithArgument(silent.stateDirectory), []);
    assert.deepEqual(silent.exits, [{ code: null, signal: 'SIGKILL', expected: true }]);
  });

  test('kills a sidecar that does not end in time, with its guests', async (t) => {
    const made = openBackend(t, { closeTimeoutMs: 100 });
    const handle = await openHandle(made.backend);
    const marker = newMarker();
    const running = handle.session.run(shell('sleep 1000; true', { marker }));
    running.catch(() => {});
    await untilRunning(marker);
    process.kill(sidecarPid(made.stateDirectory), 'SIGSTOP');
    await soon(made.backend.close(), 'close');
    assert.deepEqual(made.exits, [{ code: null, signal: 'SIGKILL', expected: true }]);
    await assert.rejects(running, { code: 'SANDBOX_STOPPED' });
    await untilGone(marker);
    // The warden, which has killed the guests, has its directories to remove yet.
    await untilGone(made.stateDirectory);
  });

  test('after the sidecar has died', async (t) => {
    const made = openBackend(t);
    await warm(made.backend);
    await killSidecar(made);
    await made.backend.close();
    assert.deepEqual(made.exits, [killed]);
  });

  test('is what `await using` calls', async (t) => {
    const made = openBackend(t);
    await warm(made.backend);
    assert.equal(await made.backend[Symbol.asyncDispose](), undefined);
    assert.deepEqual(made.exits, [{ code: 0, signal: null, expected: true }]);
  });

  test('frees the session for the next owner', async (t) => {
    const made = openBackend(t);
    const handle = await openHandle(made.backend);
    await handle.session.writeTextFile('kept', 'yes');
    const state = handle.captureState();
    await made.backend.close();
    const next = openBackend(t, { stateDirectory: made.stateDirectory }).backend;
    const again = await next.create({ template: state.templateKey, state, network: 'deny-all' });
    assert.equal(await again.session.readTextFile('kept'), 'yes');
  });
});

test('an onExit that throws does no harm', async (t) => {
  const made = openBackend(t, {
    onExit() {
      throw new Error('of the host');
    },
  });
  await warm(made.backend);
  process.kill(sidecarPid(made.stateDirectory), 'SIGKILL');
  await until(
    () => made.logged.some(([level, message]) => level === 'error' && /onExit.*of the host/s.test(message)),
    'the log',
  );
  await warm(made.backend);
  await made.backend.close();
});
