// What hosts without types get wrong: it is refused by name, and never dropped in silence.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSandboxCodingTools, createSidecarSandboxBackend } from 'stitchkit-sandbox-client';
import { openBackend, openHandle } from './support/backend.mjs';
import { until } from './support/processes.mjs';

const invalid = (message) => ({ name: 'SandboxError', code: 'VALIDATION_ERROR', message });
const authorize = () => true;

test('options that there are not', async (t) => {
  const made = openBackend(t);
  const handle = await openHandle(made.backend);
  const options = { stateDirectory: made.stateDirectory, onBrokerError() {} };
  assert.throws(() => createSidecarSandboxBackend({ ...options, loger: {} }), invalid(/no loger/));
  assert.throws(
    () => createSandboxCodingTools(handle, { authorize, deniedPath: ['**/.env'] }),
    invalid(/no deniedPath/),
  );
  const misspelt = { excludeDirectory: ['x'] };
  assert.throws(() => createSandboxCodingTools(handle, { authorize, search: misspelt }), invalid(/search/));
  await assert.rejects(made.backend.prewarm({ template: 't', file: {} }), invalid(/no file/));
  await assert.rejects(made.backend.create({ template: 't', network: 'deny-all', limits: {} }), invalid(/no limits/));
});

test('values that JSON would drop', async (t) => {
  const { backend } = openBackend(t);
  const handle = await openHandle(backend);
  class Token {
    get authorization() {
      return 'Bearer secret-of-the-test';
    }
  }
  const lost = [new Headers({ authorization: 'secret-of-the-test' }), new Map([['a', 'b']]), new Token(), ['a']];
  lost.push({ authorization: undefined }, { authorization: 5 });
  for (const headers of lost) {
    const network = { allow: [{ origin: 'http://127.0.0.1:9', headers }] };
    for (const call of [() => openHandle(backend, { network }), () => handle.session.setNetworkPolicy(network)]) {
      await assert.rejects(call(), (error) => {
        assert.equal(error.code, 'VALIDATION_ERROR');
        assert.match(error.message, /network\.allow\.0\.headers/);
        assert.doesNotMatch(JSON.stringify(error) + error.stack, /secret-of-the-test/);
        return true;
      });
    }
  }
  for (const environment of [new Map([['A', 'b']]), { A: undefined }, ['A']]) {
    const command = { executable: '/usr/bin/env', environment };
    await assert.rejects(handle.session.run(command), invalid(/command\.environment/));
    await assert.rejects(handle.session.spawn(command), invalid(/command\.environment/));
    assert.throws(() => createSandboxCodingTools(handle, { authorize, environment }), invalid(/environment/));
  }
  const executables = new Map([['sh', '/bin/sh']]);
  assert.throws(() => createSandboxCodingTools(handle, { authorize, executables }), invalid(/executables/));
});

test('a credential in the place of a name is not repeated', async (t) => {
  const { backend } = openBackend(t);
  const handle = await openHandle(backend);
  const network = { allow: [{ origin: 'http://127.0.0.1:9', headers: { 'Authorization: Bearer secret-123': '' } }] };
  const environment = { 'API_KEY=secret-123': '' };
  const calls = [
    () => handle.session.setNetworkPolicy(network),
    () => handle.session.run({ executable: '/bin/true', environment }),
    () => createSandboxCodingTools(handle, { authorize, environment }).ready,
  ];
  for (const call of calls) {
    await assert.rejects(call(), (error) => {
      assert.equal(error.code, 'VALIDATION_ERROR');
      assert.doesNotMatch(JSON.stringify(error) + error.stack, /secret-123/);
      return true;
    });
  }
});

test('text that is none is not written', async (t) => {
  const { backend } = openBackend(t);
  const { session } = await openHandle(backend, { files: { f: 'as it was' } });
  for (const text of [undefined, null, 5, {}, Promise.resolve('x')]) {
    await assert.rejects(session.writeTextFile('f', text), invalid(/text/));
  }
  assert.equal(await session.readTextFile('f'), 'as it was');
});

test('every failure is a SandboxError', async (t) => {
  const { backend } = openBackend(t);
  const handle = await openHandle(backend);
  const { session } = handle;
  const [tool] = createSandboxCodingTools(handle, { authorize });
  const calls = [
    () => backend.prewarm(null),
    () => backend.create(null),
    () => session.run({ executable: '/bin/true' }, { signal: 5 }),
    () => session.run({ executable: '/bin/true' }, { signal: { aborted: true } }),
    () => session.writeBinaryFile('f', new Proxy(new Uint8Array(8), {})),
    () => tool.handler(),
  ];
  for (const call of calls) await assert.rejects(call(), { name: 'SandboxError', code: 'VALIDATION_ERROR' });
  assert.equal((await session.run({ executable: '/bin/true' }, null)).exitCode, 0);
});

test('functions of the host that fail later are told to the logger', async (t) => {
  const logged = [];
  const logger = { error: (message) => logged.push(message) };
  const onExit = async () => {
    throw new Error('the host is tired');
  };
  const { backend } = openBackend(t, { logger, onExit });
  await backend.prewarm({ template: 't' });
  await backend.close();
  await until(() => logged.some((message) => message.includes('the host is tired')), 'the line of the logger');
});

test('one signal for many calls has one listener', async (t) => {
  const warnings = [];
  const onWarning = (warning) => warnings.push(warning.name);
  process.on('warning', onWarning);
  t.after(() => process.off('warning', onWarning));
  const { backend } = openBackend(t);
  const { session } = await openHandle(backend);
  const controller = new AbortController();
  const { signal } = controller;
  const slow = { executable: '/bin/sleep', args: ['60'] };
  const runs = Array.from({ length: 8 }, () => session.run(slow, { signal }));
  const quick = () => session.run({ executable: '/bin/nope' }, { signal }).catch(() => 0);
  await Promise.all(Array.from({ length: 30 }, quick));
  const reason = new Error('enough');
  controller.abort(reason);
  for (const run of await Promise.allSettled(runs)) assert.equal(run.reason, reason);
  assert.deepEqual(warnings, []);
});

test('tools that are let go make room for others', async (t) => {
  const { backend } = openBackend(t);
  const handle = await openHandle(backend);
  for (let turn = 0; turn < 300; turn += 1) {
    const tools = createSandboxCodingTools(handle, { authorize });
    await tools.ready;
    await tools.dispose();
    await tools.dispose();
    if (turn === 0) await assert.rejects(tools[0].handler({ input: { path: 'x' } }), { code: 'NOT_FOUND' });
  }
  const last = createSandboxCodingTools(handle, { authorize });
  await last.ready;
  await handle.stop();
  await last.dispose();
});
