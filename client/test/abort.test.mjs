// What an AbortSignal does to a command and to a tool, in each phase of the call.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createSandboxCodingTools } from 'stitchkit-sandbox-client';
import { makeBackend, openBackend, openHandle, shell } from './support/backend.mjs';
import { newMarker, pidsWithArgument, until, untilGone, untilRunning } from './support/processes.mjs';
import { soon } from './support/sidecar.mjs';

let shared;
let session;
before(async () => {
  shared = makeBackend({ maxConcurrentCommands: 1 });
  ({ session } = await openHandle(shared.backend));
});
after(() => shared.dispose());

class Reason extends Error {}

/** The promise rejects with this very object. */
async function rejectsWith(promise, reason) {
  const settled = await soon(
    promise.then(
      (value) => ({ value }),
      (error) => ({ error }),
    ),
    'the end of an aborted call',
  );
  assert.ok('error' in settled, `resolved with ${JSON.stringify(settled.value)}`);
  assert.ok(settled.error === reason, `rejected with ${settled.error?.stack ?? settled.error}`);
}

/** One command may live at a time: it is free when another runs. */
async function slotIsFree(marker, of = session) {
  await untilGone(marker);
  assert.deepEqual(await of.run(shell('echo free')), { exitCode: 0, stdout: 'free\n', stderr: '' });
}

const long = (marker, script = 'sleep 1000; true') => shell(script, { marker });

function listeners(signal) {
  let count = 0;
  const { addEventListener, removeEventListener } = signal;
  signal.addEventListener = (...all) => ((count += 1), addEventListener.apply(signal, all));
  signal.removeEventListener = (...all) => ((count -= 1), removeEventListener.apply(signal, all));
  return () => count;
}

describe('a signal that was aborted before', () => {
  for (const call of ['run', 'spawn']) {
    test(`${call} rejects with its reason and starts nothing`, async () => {
      const marker = newMarker();
      const reason = new Reason();
      await rejectsWith(
        session[call](long(marker, 'touch started; sleep 1000'), { signal: AbortSignal.abort(reason) }),
        reason,
      );
      await slotIsFree(marker);
      await assert.rejects(session.readTextFile('started'), { code: 'SANDBOX_PATH' });
    });
  }

  test('any value is a reason', async () => {
    for (const reason of ['text', 0, null, false]) {
      await rejectsWith(session.run({ executable: '/bin/true' }, { signal: AbortSignal.abort(reason) }), reason);
    }
    const { signal } = (() => {
      const controller = new AbortController();
      controller.abort();
      return controller;
    })();
    await rejectsWith(session.run({ executable: '/bin/true' }, { signal }), signal.reason);
    assert.equal(signal.reason.name, 'AbortError');
  });
});

describe('a signal that is aborted', () => {
  test('while the call waits in the client', async (t) => {
    const { backend } = openBackend(t);
    const handle = await openHandle(backend);
    let answer;
    const answered = new Promise((resolve) => {
      answer = resolve;
    });
    const tools = createSandboxCodingTools(handle, { authorize: () => answered });
    await tools.ready;
    const { handler } = tools.find((tool) => tool.name === 'list_directory');
    // More than the client sends at a time: the sidecar takes 1024.
    const filling = Array.from({ length: 1100 }, () => handler({ input: {} }));
    const marker = newMarker();
    const reason = new Reason();
    const controllers = Array.from({ length: 50 }, () => new AbortController());
    const aborted = controllers.map(({ signal }) => handle.session.run(long(marker), { signal }));
    for (const controller of controllers) controller.abort(reason);
    await Promise.all(aborted.map((promise) => rejectsWith(promise, reason)));
    answer(true);
    await Promise.all(filling);
    await slotIsFree(marker, handle.session);
  });

  for (const call of ['run', 'spawn']) {
    test(`at once after ${call} was called`, async () => {
      const marker = newMarker();
      for (let round = 0; round < 20; round += 1) {
        const controller = new AbortController();
        const count = listeners(controller.signal);
        const reason = new Reason();
        const called = session[call](long(marker), { signal: controller.signal });
        controller.abort(reason);
        await rejectsWith(called, reason);
        assert.equal(count(), 0);
      }
      await slotIsFree(marker);
    });

    test(`at any moment while ${call} starts the command`, async () => {
      const marker = newMarker();
      for (let round = 0; round < 30; round += 1) {
        const controller = new AbortController();
        const reason = new Reason();
        const called = session[call](long(marker), { signal: controller.signal });
        // Some turns of the event loop later: the moments differ by themselves.
        for (let turn = 0; turn < round * 3; turn += 1) await new Promise(setImmediate);
        controller.abort(reason);
        const process = await called.catch((error) => {
          assert.equal(error, reason);
        });
        if (process) await rejectsWith(process.result, reason);
      }
      await slotIsFree(marker);
    });
  }

  test('while run runs', async () => {
    const marker = newMarker();
    const controller = new AbortController();
    const reason = new Reason();
    const running = session.run(long(marker, "trap '' TERM INT; sleep 1000; sleep 1000"), {
      signal: controller.signal,
    });
    await untilRunning(marker);
    await assert.rejects(session.run({ executable: '/bin/true' }), { code: 'SANDBOX_BUSY' });
    controller.abort(reason);
    await rejectsWith(running, reason);
    assert.deepEqual(pidsWithArgument(marker), []); // the rejection says that it is gone
    await slotIsFree(marker);
  });

  test('while spawn runs: the result and each reader reject with it', async () => {
    const marker = newMarker();
    const controller = new AbortController();
    const count = listeners(controller.signal);
    const reason = new Reason();
    const process = await session.spawn(long(marker, 'echo out; sleep 1000; true'), { signal: controller.signal });
    const iterator = process.stdout[Symbol.asyncIterator]();
    assert.equal(Buffer.from((await iterator.next()).value).toString(), 'out\n');
    const next = iterator.next();
    const stderr = process.stderr[Symbol.asyncIterator]().next();
    controller.abort(reason);
    await Promise.all([process.result, next, stderr].map((promise) => rejectsWith(promise, reason)));
    const late = process.stdout[Symbol.asyncIterator]();
    assert.equal(Buffer.from((await late.next()).value).toString(), 'out\n');
    await rejectsWith(late.next(), reason);
    assert.equal(count(), 0);
    await process.stop();
    await slotIsFree(marker);
  });

  test('while output streams without end', async () => {
    const marker = newMarker();
    const controller = new AbortController();
    const reason = new Reason();
    const command = { ...long(marker, 'while :; do echo line; done'), maxOutputBytes: 2 ** 31 };
    const process = await session.spawn(command, { signal: controller.signal });
    let chunks = 0;
    const reading = (async () => {
      for await (const chunk of process.stdout) {
        assert.notEqual(chunk.byteLength, 0);
        chunks += 1;
        if (chunks === 20) controller.abort(reason);
      }
    })();
    await Promise.all([process.result, reading].map((promise) => rejectsWith(promise, reason)));
    await slotIsFree(marker);
  });

  test('after the end, it changes nothing', async () => {
    const controller = new AbortController();
    const count = listeners(controller.signal);
    const { signal } = controller;
    const result = await session.run(shell('echo out'), { signal });
    const process = await session.spawn(shell('echo out'), { signal });
    const { exitCode } = await process.result;
    assert.equal(count(), 0);
    controller.abort(new Reason());
    assert.equal(result.stdout, 'out\n');
    assert.equal(exitCode, 0);
    for await (const chunk of process.stdout) assert.equal(Buffer.from(chunk).toString(), 'out\n');
    assert.equal((await process.result).exitCode, 0);
    assert.equal((await session.run(shell('echo next'))).stdout, 'next\n');
  });

  test('by a timeout of the platform', async () => {
    const marker = newMarker();
    const running = session.run(long(marker), { signal: AbortSignal.timeout(100) });
    await assert.rejects(running, { name: 'TimeoutError' });
    await slotIsFree(marker);
  });

  test('for many calls at once', async (t) => {
    const { backend } = openBackend(t, { maxConcurrentCommands: 16 });
    const handle = await openHandle(backend);
    const marker = newMarker();
    const controller = new AbortController();
    const reason = new Reason();
    const calls = Array.from({ length: 16 }, () => handle.session.run(long(marker), { signal: controller.signal }));
    await until(() => pidsWithArgument(marker).length >= 16, '16 commands');
    controller.abort(reason);
    await Promise.all(calls.map((call) => rejectsWith(call, reason)));
    await slotIsFree(marker, handle.session);
  });
});

describe('a tool', () => {
  const toolOf = (options) => {
    const tools = createSandboxCodingTools(shared.handle, { executables: { sh: '/bin/sh' }, ...options });
    return (name) => tools.find((tool) => tool.name === name);
  };
  before(async () => {
    shared.handle = await openHandle(shared.backend);
  });

  for (const name of ['write_file', 'run_command']) {
    test(`${name} is aborted while authorize is asked, which is told and never answers`, async () => {
      const asked = [];
      const tool = toolOf({
        authorize: (operation, { signal }) => {
          asked.push(signal);
          return new Promise(() => {});
        },
      })(name);
      const input =
        name === 'write_file' ? { path: 'never', content: '' } : { executable: 'sh', args: ['-c', 'touch never'] };
      const controller = new AbortController();
      const reason = new Reason();
      const called = tool.handler({ input, signal: controller.signal });
      called.catch(() => {});
      await until(() => asked.length === 1, 'the question to authorize');
      assert.ok(asked[0] instanceof AbortSignal);
      assert.equal(asked[0].aborted, false);
      controller.abort(reason);
      if (name === 'write_file') await rejectsWith(called, reason);
      else assert.equal((await soon(called, 'the result')).outcome, 'cancelled');
      await until(() => asked[0].aborted, 'the end of the signal of authorize');
      await assert.rejects(shared.handle.session.readTextFile('never'), { code: 'SANDBOX_PATH' });
    });
  }

  test('is aborted while authorizePath is asked', async () => {
    const asked = [];
    const tool = toolOf({
      authorize: () => true,
      authorizePath: (input, { signal }) => {
        asked.push(signal);
        return new Promise(() => {});
      },
    })('read_file');
    const controller = new AbortController();
    const reason = new Reason();
    const called = tool.handler({ input: { path: 'x' }, signal: controller.signal });
    called.catch(() => {});
    await until(() => asked.length > 0, 'the question to authorizePath');
    controller.abort(reason);
    await rejectsWith(called, reason);
    await until(() => asked.every((signal) => signal.aborted), 'the end of the signals of authorizePath');
  });

  test('rejects with the reason of a signal that was aborted before, and does nothing', async () => {
    let asked = 0;
    const tool = toolOf({ authorize: () => ((asked += 1), true) })('write_file');
    const reason = new Reason();
    const called = tool.handler({ input: { path: 'before', content: '' }, signal: AbortSignal.abort(reason) });
    await rejectsWith(called, reason);
    assert.equal(asked, 0);
    await assert.rejects(shared.handle.session.readTextFile('before'), { code: 'SANDBOX_PATH' });
  });

  test("run_command's result says cancelled: aborted before, and while it runs", async () => {
    const tool = toolOf({ authorize: () => true })('run_command');
    const before = await tool.handler({
      input: { executable: 'sh', args: ['-c', 'touch ran'] },
      signal: AbortSignal.abort(new Reason()),
    });
    assert.equal(before.outcome, 'cancelled');
    assert.equal(before.exitCode, null);
    await assert.rejects(shared.handle.session.readTextFile('ran'), { code: 'SANDBOX_PATH' });

    const marker = newMarker();
    const controller = new AbortController();
    const input = { executable: 'sh', args: ['-c', 'echo out; sleep 1000; true', marker] };
    const called = tool.handler({ input, signal: controller.signal });
    await untilRunning(marker);
    await until(() => pidsWithArgument('1000').length > 0, 'the sleep of the guest');
    controller.abort(new Reason());
    const result = await called;
    assert.equal(result.outcome, 'cancelled');
    assert.equal(result.signal, 'SIGKILL');
    assert.equal(result.stdout, 'out\n');
    await slotIsFree(marker, shared.handle.session);
  });

  test('that has ended is not changed by a later abort', async () => {
    const tool = toolOf({ authorize: () => true })('run_command');
    const controller = new AbortController();
    const result = await tool.handler({ input: { executable: 'sh', args: ['-c', 'true'] }, signal: controller.signal });
    controller.abort();
    assert.equal(result.outcome, 'exited');
  });
});
