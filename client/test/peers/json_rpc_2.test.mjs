// json-rpc-2.0, a plain client and server by the specification, drives the binary: one JSON value a line, batches,
// notifications, and the server's side of what the sidecar asks.
import assert from 'node:assert/strict';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import jsonRpc from 'json-rpc-2.0';
import { soon, startSidecar } from '../support/sidecar.mjs';

const { JSONRPCClient, JSONRPCErrorException, JSONRPCServer, JSONRPCServerAndClient } = jsonRpc;
const shell = (script) => ({ executable: '/bin/sh', args: ['-c', script] });

/** `lines` are the sidecar's, as they came; whatever the library finds wrong is in `faults`, which has to stay empty. */
function connect(t, ...args) {
  const sidecar = startSidecar(t, ...args);
  const faults = [];
  const errorListener = (...fault) => faults.push(fault);
  const write = (value) => {
    sidecar.child.stdin.write(`${JSON.stringify(value)}\n`);
  };
  const peer = new JSONRPCServerAndClient(
    new JSONRPCServer({ errorListener }),
    new JSONRPCClient(write),
    { errorListener },
  );
  const lines = [];
  createInterface({ input: sidecar.child.stdout }).on('line', (line) => {
    lines.push(line);
    peer.receiveAndSend(JSON.parse(line)).catch((cause) => faults.push(cause));
  });
  sidecar.exited.then(() => peer.rejectAllPendingRequests('the sidecar has ended'), () => {});
  t.after(() => assert.deepEqual(faults, []));
  const call = (method, params) => soon(peer.request(method, params), `an answer to ${method}`);
  return { ...sidecar, peer, call, lines, faults };
}

async function connectWithHandle(t, ...args) {
  const connected = connect(t, ...args);
  const { handle } = await connected.call('backend.create', { template: { template: 'peer' }, network: 'deny-all' });
  return { ...connected, handle };
}

const refusal = (code, name) => (error) => {
  assert.ok(error instanceof JSONRPCErrorException, String(error));
  assert.equal(error.code, code);
  assert.equal(error.data.code, name);
  return true;
};

const request = (id, method, params) => ({ jsonrpc: '2.0', id, method, params });

for (const args of [[], ['--framing', 'lines'], ['--serial']]) {
  test(`a whole life over lines${args.map((part) => ` ${part}`).join('')}`, async (t) => {
    const { call, child, exited } = connect(t, ...args);
    assert.equal((await call('initialize', { protocolVersion: 1 })).protocolVersion, 1);
    const document = await call('rpc.discover');
    assert.ok(document.methods.some(({ name }) => name === 'session.run'));
    const { templateKey } = await call('backend.prewarm', { template: 'life', files: { hello: 'Hello\n' } });
    const { handle, state } = await call('backend.create', { template: templateKey, network: 'deny-all' });
    assert.equal(state.templateKey, templateKey);
    assert.deepEqual(await call('session.run', { handle, command: shell('cat; cat hello'), stdin: 'first ' }), {
      exitCode: 0,
      stdout: 'first Hello\n',
      stderr: '',
    });
    assert.deepEqual(await call('handle.stop', { handle }), {});
    const again = await call('backend.create', { template: templateKey, network: 'deny-all', state });
    assert.deepEqual(await call('handle.delete', { handle: again.handle }), {});
    await assert.rejects(call('handle.captureState', { handle: again.handle }), refusal(-32003, 'SANDBOX_STOPPED'));
    assert.deepEqual(await call('shutdown'), {});
    child.stdin.end();
    assert.deepEqual(await soon(exited, 'the end of the process'), { code: 0, signal: null });
  });
}

test('a batch is answered by one batch, each request by its own id', async (t) => {
  const { peer, handle, lines } = await connectWithHandle(t);
  const before = lines.length;
  const answers = await soon(
    peer.requestAdvanced([
      request('a', 'session.writeTextFile', { handle, path: 'file', text: 'text' }),
      request(7000, 'session.resolvePath', { handle, path: 'dir/file' }),
      request('c', 'no.such.method', {}),
      { jsonrpc: '2.0', method: 'session.resolvePath', params: { handle, path: 'nobody/asked' } },
      request('d', 'session.run', { handle, command: { executable: '/usr/bin/true' } }),
    ]),
    'the answer to the batch',
  );
  assert.deepEqual(answers.map(({ id }) => id), ['a', 7000, 'c', 'd']);
  assert.deepEqual(answers[0].result, { bytes: 4 });
  assert.deepEqual(answers[1].result, { path: '/workspace/dir/file' });
  assert.equal(answers[2].error.code, -32601);
  assert.equal(answers[3].result.exitCode, 0);
  assert.equal(lines.length, before + 1);
  assert.equal(JSON.parse(lines.at(-1)).length, 4);
});

test('a batch of notifications gets no answer, an empty one an error', async (t) => {
  const { child, peer, handle, lines, call } = await connectWithHandle(t);
  await peer.requestAdvanced([
    { jsonrpc: '2.0', method: 'session.resolvePath', params: { handle, path: 'a' } },
    { jsonrpc: '2.0', method: 'no.such.method' },
  ]);
  const before = lines.length;
  await call('session.resolvePath', { handle, path: 'a' });
  assert.equal(lines.length, before + 1);
  child.stdin.write('[]\n');
  await call('session.resolvePath', { handle, path: 'a' });
  const [refused] = lines.slice(before + 1).map((line) => JSON.parse(line));
  assert.equal(refused.id, null);
  assert.equal(refused.error.code, -32600);
});

test('notifications are carried out, and never answered', async (t) => {
  const { peer, handle, call, lines } = await connectWithHandle(t, '--serial');
  const before = lines.length;
  peer.notify('session.writeTextFile', { handle, path: 'quiet', text: 'done' });
  peer.notify('session.writeTextFile', { handle, path: '../refused', text: 'done' });
  assert.deepEqual(await call('session.readTextFile', { handle, path: 'quiet' }), { text: 'done' });
  assert.equal(lines.length, before + 1);
});

test('calls run at once: a quick one overtakes one that waits for it', async (t) => {
  const { call, handle } = await connectWithHandle(t);
  const waiting = call('session.run', { handle, command: shell('until [ -e go ]; do :; done; cat go') });
  await call('session.writeTextFile', { handle, path: 'go', text: 'went' });
  assert.equal((await waiting).stdout, 'went');
});

test('1,000 calls at once: each gets its own answer', async (t) => {
  const { call, handle } = await connectWithHandle(t);
  const answers = await Promise.all(
    Array.from({ length: 1000 }, async (_, number) => {
      const path = `dir${number % 10}/file${number}`;
      await call('session.writeTextFile', { handle, path, text: `text ${number}` });
      return (await call('session.readTextFile', { handle, path })).text;
    }),
  );
  assert.deepEqual(answers, Array.from({ length: 1000 }, (_, number) => `text ${number}`));
});

test('an error has its number, name and details', async (t) => {
  const { call, handle } = await connectWithHandle(t);
  await assert.rejects(call('session.resolvePath', [handle, 'x']), refusal(-32602, 'VALIDATION_ERROR'));
  await assert.rejects(call('session.resolvePath', { handle: 'h999', path: 'x' }), refusal(-32012, 'NOT_FOUND'));
  await assert.rejects(call('session.resolvePath', { handle, path: 'x', extra: 1 }), (error) => {
    refusal(-32602, 'VALIDATION_ERROR')(error);
    assert.ok(error.data.details.issues.length > 0);
    return true;
  });
  await assert.rejects(
    call('session.run', { handle, command: { executable: '/bin/cat', args: ['/dev/zero'] } }),
    (error) => refusal(-32006, 'SANDBOX_LIMIT')(error) && error.data.reason === 'output-budget',
  );
});

test('the host authorizes operations and paths', async (t) => {
  const { call, peer, handle } = await connectWithHandle(t);
  const operations = [];
  const paths = [];
  peer.addMethod('host.authorize', async ({ request: operation }) => {
    operations.push(operation);
    return { allowed: operation.operation !== 'edit' };
  });
  peer.addMethod('host.authorizePaths', async (question) => {
    paths.push(...question.paths);
    return { allowed: question.paths.map((path) => !path.endsWith('secret')) };
  });
  const { toolset } = await call('coding.create', { handle, authorize: 'host', authorizePaths: 'host' });
  const tool = (name, input) => call(`coding.${name}`, { toolset, input });
  assert.deepEqual(await tool('write_file', { path: 'src/main.js', content: 'one' }), {
    path: 'src/main.js',
    bytes: 3,
    createdDirectories: ['src'],
  });
  assert.deepEqual(operations, [
    { operation: 'write', path: 'src/main.js', bytes: 3, overwrite: false, createsDirectories: ['src'] },
  ]);
  assert.deepEqual(paths, ['src', 'src/main.js']);
  await call('session.writeTextFile', { handle, path: 'src/secret/key', text: 'one' });

  await assert.rejects(tool('read_file', { path: 'src/secret/key' }), refusal(-32011, 'FORBIDDEN'));
  assert.ok(!paths.includes('src/secret/key'), 'asked for what lies below a denied directory');
  await assert.rejects(
    tool('edit_file', { path: 'src/main.js', oldText: 'one', newText: 'two' }),
    refusal(-32011, 'FORBIDDEN'),
  );
  assert.deepEqual(await call('session.readTextFile', { handle, path: 'src/main.js' }), { text: 'one' });
  const found = await tool('search_files', { query: 'one' });
  assert.deepEqual(found.matches.map(({ path }) => path), ['src/main.js']);
  assert.deepEqual(found.denied, [{ path: 'src/secret', kind: 'directory' }]);
});

test("the host's error refuses, whatever it is", async (t) => {
  const { call, peer, handle, faults } = await connectWithHandle(t);
  const { toolset } = await call('coding.create', { handle, authorize: 'host' });
  const write = () => call('coding.write_file', { toolset, input: { path: 'file', content: '' } });
  // The library's own answer to a method that it does not have.
  await assert.rejects(write(), refusal(-32011, 'FORBIDDEN'));
  peer.addMethod('host.authorize', () => {
    throw new JSONRPCErrorException('a secret reason', -32001, { code: 'SANDBOX_UNAVAILABLE' });
  });
  await assert.rejects(write(), (error) => {
    refusal(-32011, 'FORBIDDEN')(error);
    assert.ok(!JSON.stringify(error.toObject()).includes('a secret reason'));
    return true;
  });
  // Anything but `allowed: true` is a no.
  for (const answer of [null, {}, { allowed: 1 }, { allowed: 'true' }, [true], true]) {
    peer.addMethod('host.authorize', () => answer);
    await assert.rejects(write(), refusal(-32011, 'FORBIDDEN'));
  }
  assert.equal((await call('session.run', { handle, command: shell('ls -A') })).stdout, '');
  // The library reports the exception that was thrown through it.
  assert.equal(faults.splice(0).length, 1);
});

test('output as notifications reaches a method of the host', async (t) => {
  const { call, peer, handle } = await connectWithHandle(t);
  let output = '';
  peer.addMethod('process.output', ({ base64 }) => {
    output += Buffer.from(base64, 'base64');
  });
  const ended = new Promise((resolve) => {
    peer.addMethod('process.exit', resolve);
  });
  const { process } = await call('session.spawn', { handle, command: shell('echo one; echo two'), stream: true });
  assert.deepEqual(await soon(ended, 'process.exit'), { process, exitCode: 0 });
  assert.equal(output, 'one\ntwo\n');
});

test('what is not JSON is answered, and the conversation goes on', async (t) => {
  const { child, call, lines, handle } = await connectWithHandle(t);
  const before = lines.length;
  child.stdin.write('{"jsonrpc":"2.0",\n\r\n');
  assert.deepEqual(await call('session.resolvePath', { handle, path: 'a' }), { path: '/workspace/a' });
  const [refused] = lines.slice(before).map((line) => JSON.parse(line));
  assert.equal(refused.id, null);
  assert.equal(refused.error.code, -32700);
  assert.equal(refused.error.data.code, 'PARSE_ERROR');
});

test('the end of input lets what runs finish, answers it, and ends with 0', async (t) => {
  const { child, call, exited, handle } = await connectWithHandle(t);
  const running = call('session.run', { handle, command: shell('sleep 0.3; echo finished') });
  child.stdin.end();
  assert.equal((await running).stdout, 'finished\n');
  assert.deepEqual(await soon(exited, 'the end of the process'), { code: 0, signal: null });
});
