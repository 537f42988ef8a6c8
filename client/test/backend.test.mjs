// Templates, sessions and who owns them, through the client.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createSidecarSandboxBackend, SandboxError } from 'stitchkit-sandbox-client';
import { makeBackend, openBackend, openHandle, shell } from './support/backend.mjs';
import { newMarker, untilGone, untilRunning } from './support/processes.mjs';

const bytes = (...values) => new Uint8Array(values);

const golden = readFileSync(new URL('./data/template-keys.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line));

let shared;
let backend;
before(() => {
  shared = makeBackend();
  backend = shared.backend;
});
after(() => shared.dispose());

describe('stats', () => {
  test('starts no sidecar, and tells of the one that runs', async (t) => {
    const { backend: fresh, exits } = openBackend(t);
    assert.equal(await fresh.stats(), undefined);
    assert.deepEqual(exits, []);
    const handle = await openHandle(fresh);
    const process = await handle.session.spawn(shell('sleep 1000'));
    const during = await fresh.stats();
    assert.equal(during.sessions.live, 1);
    assert.equal(during.commands.live, 1);
    assert.deepEqual(during.queues.handleCommands, { depth: 1, highWater: 1, limit: 8 });
    assert.equal(during.handles[0].session, handle.captureState().sessionId);
    await process.stop();
    const afterwards = await fresh.stats();
    assert.equal(afterwards.commands.live, 0);
    assert.equal(afterwards.commands.ended.stopped, 1);
    assert.ok(afterwards.memory.residentBytes > 0);
    await fresh.close();
    assert.equal(await fresh.stats(), undefined);
  });
});

describe('prewarm', () => {
  test('takes strings and bytes alike, and says whether the template was there', async () => {
    const asText = await backend.prewarm({ template: 'contents', files: { 'dir/é.txt': 'héllo' } });
    assert.deepEqual(Object.keys(asText).sort(), ['reused', 'templateKey']);
    assert.match(asText.templateKey, /^[0-9a-f]{64}$/);
    assert.equal(asText.reused, false);
    const asBytes = await backend.prewarm({
      template: 'contents',
      files: { '/workspace/dir/é.txt': new TextEncoder().encode('héllo') },
    });
    assert.deepEqual(asBytes, { reused: true, templateKey: asText.templateKey });
  });

  test('needs no files', async () => {
    const { templateKey } = await backend.prewarm({ template: 'bare' });
    assert.equal((await backend.prewarm({ template: 'bare', files: {} })).templateKey, templateKey);
  });

  test('takes a Buffer and a part of a larger buffer', async () => {
    const whole = bytes(1, 2, 3, 4, 5);
    const { templateKey } = await backend.prewarm({ template: 'part', files: { x: whole.subarray(1, 4) } });
    const same = await backend.prewarm({ template: 'part', files: { x: Buffer.from([2, 3, 4]) } });
    assert.deepEqual(same, { reused: true, templateKey });
  });

  test('takes the content when it is called', async (t) => {
    const fresh = openBackend(t).backend; // its sidecar is yet to start
    const content = bytes(1, 2, 3);
    const files = { x: content };
    const prewarmed = fresh.prewarm({ template: 'taken', files });
    content.fill(9);
    files.y = 'added';
    const handle = await fresh.create({ template: (await prewarmed).templateKey, network: 'deny-all' });
    assert.deepEqual(await handle.session.readBinaryFile('x'), bytes(1, 2, 3));
    await assert.rejects(handle.session.readBinaryFile('y'), { code: 'SANDBOX_PATH' });
  });

  test('takes any name for a file', async () => {
    const names = ['__proto__', 'constructor', 'a b', '-', '"', 'toJSON', '😀', 'x'.repeat(255)];
    const files = Object.fromEntries(names.map((name) => [name, name]));
    const handle = await openHandle(backend, { files });
    for (const name of names) assert.equal(await handle.session.readTextFile(name), name);
  });

  for (const [index, { name, template, files, templateKey, namespaceDirectory }] of golden.entries()) {
    test(`gives the template key that the runtime gives: ${index + 1}`, async (t) => {
      const named = openBackend(t, { name });
      assert.equal(named.backend.name, name);
      const contents = Object.entries(files).map(([path, base64]) => [
        path,
        new Uint8Array(Buffer.from(base64, 'base64')),
      ]);
      const prewarmed = await named.backend.prewarm({ template, files: Object.fromEntries(contents) });
      assert.deepEqual(prewarmed, { reused: false, templateKey });
      assert.ok(readdirSync(join(named.stateDirectory, namespaceDirectory, 'templates')).includes(templateKey));
    });
  }

  test('refuses what is larger than a message, and goes on', async () => {
    const mebibyte = new Uint8Array(1024 * 1024);
    const files = Object.fromEntries(Array.from({ length: 13 }, (_, index) => [`f${index}`, mebibyte]));
    await assert.rejects(backend.prewarm({ template: 'large', files }), (error) => {
      assert.equal(error.code, 'SANDBOX_LIMIT');
      assert.equal(error.reason, 'message-bytes');
      assert.equal(error.details.limit, 16 * 1024 * 1024);
      assert.ok(error.details.bytes > error.details.limit);
      return true;
    });
    delete files.f12; // 12 MiB are 16 MiB of base64, and a little
    delete files.f11;
    assert.equal((await backend.prewarm({ template: 'large', files })).reused, false);
  });

  test('refuses contents and paths that are none', async () => {
    for (const content of [5, null, undefined, {}, [1, 2], new ArrayBuffer(2), new Uint16Array(2)]) {
      await assert.rejects(backend.prewarm({ template: 'x', files: { a: content } }), { code: 'VALIDATION_ERROR' });
    }
    for (const path of ['../x', '/etc/passwd', 'a//b', '']) {
      await assert.rejects(backend.prewarm({ template: 'x', files: { [path]: '' } }), { code: 'SANDBOX_PATH' });
    }
    await assert.rejects(backend.prewarm({ template: 'x', files: { 'a\ud800': '' } }), { code: 'VALIDATION_ERROR' });
    await assert.rejects(backend.prewarm({ template: 5 }), { code: 'VALIDATION_ERROR' });
    await assert.rejects(backend.prewarm({}), { code: 'VALIDATION_ERROR' });
    await assert.rejects(backend.prewarm(), { code: 'VALIDATION_ERROR' });
  });

  test('refuses files that are no plain object, rather than take them for none', async () => {
    for (const files of [new Map([['a', 'b']]), [['a', 'b']], 'text', null, 5]) {
      await assert.rejects(backend.prewarm({ template: 'x', files }), (error) => {
        assert.equal(error.code, 'VALIDATION_ERROR');
        assert.match(error.message, /files/);
        return true;
      });
    }
  });
});

describe('create', () => {
  test('takes a template by its key and by itself', async () => {
    const template = { template: 'both', files: { 'seed.txt': 'seed' } };
    const { templateKey } = await backend.prewarm(template);
    const byKey = await backend.create({ template: templateKey, network: 'deny-all' });
    const byItself = await backend.create({ template, network: 'deny-all' });
    for (const { session, captureState } of [byKey, byItself]) {
      assert.equal(await session.readTextFile('seed.txt'), 'seed');
      assert.match(session.id, /^[0-9a-f]{64}$/);
      assert.equal(session.brokerSocket, '/run/stitchkit-network.sock');
      assert.equal(typeof captureState, 'function');
    }
    assert.notEqual(byKey.session.id, byItself.session.id);
    assert.deepEqual(byItself.captureState(), { backend: 'bubblewrap', sessionId: byItself.session.id, templateKey });
  });

  test('takes what it is given when it is called', async (t) => {
    const fresh = openBackend(t).backend;
    const network = { allow: [{ origin: 'https://example.com' }] };
    const files = { x: bytes(1) };
    const created = fresh.create({ template: { template: 'taken', files }, network });
    network.allow[0].origin = 'no origin';
    files.x[0] = 2;
    assert.deepEqual(await (await created).session.readBinaryFile('x'), bytes(1));
  });

  test('refuses what it does not know, and each wrong parameter by its name', async () => {
    const template = (await backend.prewarm({ template: 'known' })).templateKey;
    const network = 'deny-all';
    const unknown = { template: 'f'.repeat(64), network };
    await assert.rejects(backend.create(unknown), { code: 'SANDBOX_STATE_MISMATCH' });
    const cases = [
      [{ network }, 'template'],
      [{ template }, 'network'],
      [{ template, network: 'allow' }, 'network'],
      [{ template, network: { allow: [{ origin: 5 }] } }, 'network.allow.0.origin'],
      [{ template, network, resources: { memoryBytes: -1 } }, 'resources.memoryBytes'],
      [{ template, network, resources: { cores: 1 } }, 'resources.cores'],
      [{ template, network, state: { backend: 'bubblewrap' } }, 'state.sessionId'],
    ];
    for (const [input, path] of cases) {
      await assert.rejects(backend.create(input), (error) => {
        assert.equal(error.code, 'VALIDATION_ERROR');
        const paths = error.details.issues.map((issue) => issue.path);
        assert.ok(paths.includes(path), `${path} in ${paths}`);
        return true;
      });
    }
    await assert.rejects(backend.create(), { code: 'VALIDATION_ERROR' });
    await assert.rejects(backend.create({ template, network: { allow: [() => {}] } }), { code: 'VALIDATION_ERROR' });
  });

  test('hands limits of resources to the guest', async () => {
    const handle = await openHandle(backend, { resources: { maxOpenFiles: 33 } });
    assert.equal((await handle.session.run(shell('ulimit -n'))).stdout, '33\n');
  });
});

describe('a session', () => {
  test('is attached again by its state, with its files', async () => {
    const first = await openHandle(backend);
    const state = first.captureState();
    assert.deepEqual(JSON.parse(JSON.stringify(state)), state);
    await first.session.writeTextFile('kept', 'yes');
    await first.stop();
    assert.deepEqual(first.captureState(), state);
    const second = await backend.create({ template: state.templateKey, state, network: 'deny-all' });
    assert.equal(second.session.id, first.session.id);
    assert.equal(await second.session.readTextFile('kept'), 'yes');
    assert.deepEqual(second.captureState(), state);
  });

  test('has one owner, also over two sidecars', async (t) => {
    const other = openBackend(t, { stateDirectory: shared.stateDirectory }).backend;
    const first = await openHandle(backend);
    const state = first.captureState();
    const again = { template: state.templateKey, state, network: 'deny-all' };
    await first.session.writeTextFile('kept', 'yes');
    await assert.rejects(backend.create(again), { code: 'SANDBOX_BUSY', status: 409 });
    await assert.rejects(other.create(again), { code: 'SANDBOX_BUSY' });
    await first.shutdown();
    const second = await other.create(again);
    assert.equal(await second.session.readTextFile('kept'), 'yes');
    await assert.rejects(backend.create(again), { code: 'SANDBOX_BUSY' });
  });

  test('is not attached with a state that does not fit', async () => {
    const handle = await openHandle(backend);
    const state = handle.captureState();
    await handle.stop();
    const { templateKey } = await backend.prewarm({ template: 'another' });
    const wrong = [
      [state.templateKey, { ...state, backend: 'other' }],
      [state.templateKey, { ...state, sessionId: '0'.repeat(64) }],
      [templateKey, { ...state, templateKey }],
      [templateKey, state],
    ];
    for (const [template, given] of wrong) {
      await assert.rejects(backend.create({ template, state: given, network: 'deny-all' }), {
        code: 'SANDBOX_STATE_MISMATCH',
        name: 'SandboxError',
      });
    }
    await backend.create({ template: state.templateKey, state, network: 'deny-all' });
  });

  test('gives its state at once, each time a new one, until it is deleted', async () => {
    const handle = await openHandle(backend);
    const state = handle.captureState();
    assert.notEqual(handle.captureState(), state);
    state.sessionId = 'changed';
    assert.equal(handle.captureState().sessionId, handle.session.id);
    await handle.delete();
    assert.throws(
      () => handle.captureState(),
      (error) => error instanceof SandboxError && error.code === 'SANDBOX_STOPPED',
    );
  });

  test('tells its grade', async () => {
    const handle = await openHandle(backend);
    const grade = await handle.probe();
    assert.equal(grade.grade, 'full');
    assert.ok(grade.restrictions.includes('network-denied'));
  });
});

describe('stop, shutdown and delete', () => {
  for (const method of ['stop', 'shutdown', 'delete']) {
    test(`${method} may be called again, and by two at once`, async () => {
      const handle = await openHandle(backend);
      const results = await Promise.all([handle[method](), handle[method]()]);
      assert.deepEqual(results, [undefined, undefined]);
      assert.equal(await handle[method](), undefined);
      await assert.rejects(handle.session.readTextFile('x'), { code: 'SANDBOX_STOPPED' });
      await assert.rejects(handle.session.run({ executable: '/bin/true' }), { code: 'SANDBOX_STOPPED' });
      await assert.rejects(handle.session.spawn({ executable: '/bin/true' }), { code: 'SANDBOX_STOPPED' });
      await assert.rejects(handle.session.setNetworkPolicy('deny-all'), { code: 'SANDBOX_STOPPED' });
    });

    test(`${method} ends what runs`, async () => {
      const handle = await openHandle(backend);
      const marker = newMarker();
      const running = handle.session.run(shell('sleep 1000; true', { marker }));
      await untilRunning(marker);
      await handle[method]();
      await untilGone(marker);
      assert.equal((await running).exitCode, 137);
    });
  }

  test('all at once from several callers', async () => {
    const handle = await openHandle(backend);
    await Promise.all([handle.stop(), handle.shutdown(), handle.delete(), handle.stop()]);
    assert.throws(() => handle.captureState(), { code: 'SANDBOX_STOPPED' });
  });

  test('delete takes the session and leaves the template', async () => {
    const template = { template: 'stays', files: { a: 'a' } };
    const { templateKey } = await backend.prewarm(template);
    const handle = await backend.create({ template: templateKey, network: 'deny-all' });
    const state = handle.captureState();
    await handle.delete();
    await assert.rejects(backend.create({ template: templateKey, state, network: 'deny-all' }), {
      code: 'SANDBOX_STATE_MISMATCH',
    });
    assert.equal((await backend.prewarm(template)).reused, true);
  });

  test('delete after stop deletes, unless another owns the session by then', async () => {
    const first = await openHandle(backend);
    const state = first.captureState();
    const again = { template: state.templateKey, state, network: 'deny-all' };
    await first.stop();
    const second = await backend.create(again);
    await assert.rejects(first.delete(), { code: 'SANDBOX_BUSY' });
    assert.deepEqual(first.captureState(), state);
    await second.stop();
    await first.delete();
    await assert.rejects(backend.create(again), { code: 'SANDBOX_STATE_MISMATCH' });
  });
});

describe('options', () => {
  const valid = { stateDirectory: '/nowhere', onBrokerError() {} };
  const wrong = {
    stateDirectory: [undefined, '', 5, null, 'a\0b'],
    onBrokerError: [undefined, null, 'log'],
    maxConcurrentCommands: [0, 1025, 1.5, '8', Number.NaN],
    args: ['--serial', [5], { 0: 'x' }, ['a\0b']],
    command: ['', 5, 'a\0b'],
    name: ['', 5, 'a\0b'],
    executable: ['', 5, 'a\0b'],
    closeTimeoutMs: [-1, Number.NaN, '5', Infinity, 2 ** 31],
    onExit: ['log', 5],
    logger: ['log', 5],
  };
  for (const [option, values] of Object.entries(wrong)) {
    test(`a wrong ${option} is named at once`, () => {
      for (const value of values) {
        assert.throws(
          () => createSidecarSandboxBackend({ ...valid, [option]: value }),
          (error) => {
            assert.ok(error instanceof SandboxError, String(error));
            assert.equal(error.code, 'VALIDATION_ERROR');
            assert.ok(error.message.includes(option), error.message);
            return true;
          },
          `${option}: ${String(value)}`,
        );
      }
    });
  }

  test('none at all is told as well', () => {
    assert.throws(() => createSidecarSandboxBackend(), { code: 'VALIDATION_ERROR' });
  });

  test('what is left undefined is as if it was not there', async (t) => {
    const names = ['args', 'name', 'executable', 'maxConcurrentCommands', 'onExit', 'logger', 'closeTimeoutMs'];
    const { backend: plain } = openBackend(t, Object.fromEntries(names.map((name) => [name, undefined])));
    assert.equal(plain.name, 'bubblewrap');
    await plain.prewarm({ template: 'x' });
  });

  test('an executable that is not there is told by create', async (t) => {
    const { backend: broken } = openBackend(t, { executable: '/nowhere/bwrap' });
    await assert.rejects(openHandle(broken), { code: 'SANDBOX_UNAVAILABLE' });
  });

  test('maxConcurrentCommands bounds the live commands of a handle', async (t) => {
    const { backend: narrow } = openBackend(t, { maxConcurrentCommands: 1 });
    const [one, two] = [await openHandle(narrow), await openHandle(narrow)];
    const live = await one.session.spawn(shell('sleep 1000'));
    await assert.rejects(one.session.run({ executable: '/bin/true' }), { code: 'SANDBOX_BUSY' });
    assert.equal((await two.session.run({ executable: '/bin/true' })).exitCode, 0);
    await live.stop();
    assert.equal((await one.session.run({ executable: '/bin/true' })).exitCode, 0);
  });
});
