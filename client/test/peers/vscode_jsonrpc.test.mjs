// vscode-jsonrpc, which editors and their language servers speak, drives the binary: Content-Length headers, requests both
// ways, notifications, cancellation both ways.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  CancellationTokenSource,
  createMessageConnection,
  ResponseError,
  StreamMessageReader,
  StreamMessageWriter,
} from 'vscode-jsonrpc/node';
import { soon, startSidecar } from '../support/sidecar.mjs';

const ENDS_NEVER = { executable: '/bin/sleep', args: ['3600'] };
const base64 = (text) => Buffer.from(text).toString('base64');
const fromBase64 = (text) => Buffer.from(text, 'base64').toString();
const shell = (script) => ({ executable: '/bin/sh', args: ['-c', script] });

/** What the library finds wrong with what it reads is in `faults`, which has to stay empty. */
function connect(t, ...args) {
  const sidecar = startSidecar(t, ...args);
  const connection = createMessageConnection(
    new StreamMessageReader(sidecar.child.stdout),
    new StreamMessageWriter(sidecar.child.stdin),
  );
  const faults = [];
  connection.onError(([error]) => faults.push(error));
  connection.onUnhandledNotification((message) => faults.push(message));
  connection.listen();
  t.after(() => {
    connection.dispose();
    assert.deepEqual(faults, []);
  });
  const call = (...request) => soon(connection.sendRequest(...request), `an answer to ${request[0]}`);
  return { ...sidecar, connection, call };
}

async function connectWithHandle(t, ...args) {
  const peer = connect(t, ...args);
  const created = await peer.call('backend.create', { template: { template: 'peer' }, network: 'deny-all' });
  return { ...peer, handle: created.handle, created };
}

/** The next notifications, in order, until one of `lastMethod` has come. */
function notifications(connection, lastMethod, methods) {
  const seen = [];
  return new Promise((resolve) => {
    for (const method of methods) {
      connection.onNotification(method, (params) => {
        seen.push([method, params]);
        if (method === lastMethod) {
          resolve(seen);
        }
      });
    }
  });
}

const refusal = (code, name) => (error) => {
  assert.ok(error instanceof ResponseError, String(error));
  assert.equal(error.code, code);
  assert.equal(error.data.code, name);
  return true;
};

/** Waits until `path` is there, which a command writes once it runs. */
async function fileAppears({ connection, handle }, path) {
  const look = async () => {
    for (;;) {
      try {
        return await connection.sendRequest('session.readTextFile', { handle, path });
      } catch (error) {
        if (error.data?.details?.errno !== 'ENOENT') {
          throw error;
        }
      }
    }
  };
  await soon(look(), `the file ${path}`);
}

for (const args of [[], ['--framing', 'headers']]) {
  test(`a whole life over headers, ${args.length ? args.join(' ') : 'found out by the first byte'}`, async (t) => {
    const { call, connection, exited, child } = connect(t, ...args);
    const hello = await call('initialize', { protocolVersion: 1, client: { name: 'vscode-jsonrpc', version: '10' } });
    assert.equal(hello.protocolVersion, 1);
    assert.equal(hello.server.name, 'stitchkit-sandbox');
    const { handle, session } = await call('backend.create', {
      template: { template: 'life', files: { 'hello.txt': 'Hello, é and 🦀\n' } },
      network: 'deny-all',
    });
    assert.match(session.id, /^[0-9a-f]{64}$/);
    assert.deepEqual(await call('session.run', { handle, command: shell('cat hello.txt; echo oops >&2; exit 7') }), {
      exitCode: 7,
      stdout: 'Hello, é and 🦀\n',
      stderr: 'oops\n',
    });
    assert.deepEqual(await call('handle.delete', { handle }), {});
    assert.deepEqual(await call('shutdown'), {});
    await assert.rejects(
      call('backend.prewarm', { template: 'late' }),
      refusal(-32003, 'SANDBOX_STOPPED'),
    );
    connection.end();
    child.stdin.end();
    assert.deepEqual(await soon(exited, 'the end of the process'), { code: 0, signal: null });
  });
}

test('files go both ways, byte for byte, up to the limit', async (t) => {
  const { call, handle } = await connectWithHandle(t);
  const bytes = Buffer.alloc(1 << 20, Buffer.from([...Array(256).keys()]));
  assert.deepEqual(
    await call('session.writeBinaryFile', { handle, path: 'a/b/bytes', base64: bytes.toString('base64') }),
    { bytes: bytes.length },
  );
  const read = await call('session.readBinaryFile', { handle, path: '/workspace/a/b/bytes' });
  assert.equal(read.bytes, bytes.length);
  assert.ok(Buffer.from(read.base64, 'base64').equals(bytes));
  await call('session.writeTextFile', { handle, path: 'text', text: 'naïve \u{10ffff}\r\n' });
  assert.deepEqual(await call('session.readTextFile', { handle, path: 'text' }), { text: 'naïve \u{10ffff}\r\n' });
  assert.deepEqual(await call('session.removePath', { handle, path: 'a' }), {});
  await assert.rejects(call('session.readBinaryFile', { handle, path: 'a/b/bytes' }), (error) => {
    refusal(-32007, 'SANDBOX_PATH')(error);
    assert.equal(error.data.details.errno, 'ENOENT');
    return true;
  });
});

test("an error's number, name and details arrive", async (t) => {
  const { call, handle } = await connectWithHandle(t);
  await assert.rejects(call('no.such.method', {}), refusal(-32601, 'METHOD_NOT_FOUND'));
  await assert.rejects(call('session.resolvePath', { handle, path: '../up' }), refusal(-32007, 'SANDBOX_PATH'));
  await assert.rejects(call('session.resolvePath', { handle, path: 3 }), (error) => {
    refusal(-32602, 'VALIDATION_ERROR')(error);
    assert.equal(error.data.details.issues.length, 1);
    assert.equal(typeof error.data.details.issues[0].message, 'string');
    return true;
  });
  await assert.rejects(call('session.resolvePath', handle, 'by/position'), refusal(-32602, 'VALIDATION_ERROR'));
  await assert.rejects(
    call('session.run', { handle, command: { ...ENDS_NEVER, timeoutMs: 1 } }),
    (error) => refusal(-32006, 'SANDBOX_LIMIT')(error) && error.data.reason === 'deadline',
  );
});

test('a cancelled token ends a running command', async (t) => {
  const peer = await connectWithHandle(t);
  const { call, connection, handle } = peer;
  const source = new CancellationTokenSource();
  const running = connection.sendRequest(
    'session.run',
    { handle, command: shell('echo > started; exec sleep 3600') },
    source.token,
  );
  running.catch(() => {});
  await fileAppears(peer, 'started');
  source.cancel();
  await assert.rejects(soon(running, 'the answer to the cancelled run'), refusal(-32800, 'CANCELLED'));
  // Refused as busy while a command lives, so this also says that it is gone.
  await call('session.setNetworkPolicy', { handle, network: 'deny-all' });
});

test('run_command that is cancelled has a result, which says so', async (t) => {
  const peer = await connectWithHandle(t);
  const { call, connection, handle } = peer;
  const { toolset } = await call('coding.create', { handle, authorize: 'allow', executables: { sh: '/bin/sh' } });
  const source = new CancellationTokenSource();
  const running = connection.sendRequest(
    'coding.run_command',
    { toolset, input: { executable: 'sh', args: ['-c', 'echo out; echo > started; exec sleep 3600'] } },
    source.token,
  );
  running.catch(() => {});
  await fileAppears(peer, 'started');
  source.cancel();
  const { outcome, exitCode, signal, stdout } = await soon(running, 'the result of the cancelled command');
  assert.deepEqual(
    { outcome, exitCode, signal, stdout },
    { outcome: 'cancelled', exitCode: null, signal: 'SIGKILL', stdout: 'out\n' },
  );
});

test('output comes as notifications, in order, and then the exit', async (t) => {
  const { call, connection, handle } = await connectWithHandle(t);
  const told = notifications(connection, 'process.exit', ['process.output', 'process.exit']);
  const script = 'i=0; while [ $i -lt 2000 ]; do echo "line $i"; i=$((i+1)); done; echo end >&2; exit 3';
  const { process } = await call('session.spawn', { handle, command: shell(script), stream: true });
  const seen = await soon(told, 'process.exit');
  assert.deepEqual(seen.at(-1), ['process.exit', { process, exitCode: 3 }]);
  const text = (channel) =>
    seen
      .filter(([, params]) => params.channel === channel)
      .map(([, params]) => fromBase64(params.base64))
      .join('');
  assert.equal(text('stdout'), Array.from({ length: 2000 }, (_, line) => `line ${line}\n`).join(''));
  assert.equal(text('stderr'), 'end\n');
  assert.ok(seen.every(([, params]) => params.process === process));
  assert.deepEqual(await call('process.result', { process }), {
    exitCode: 3,
    stdout: { base64: '' },
    stderr: { base64: '' },
  });
});

test('a process takes stdin, and can be stopped', async (t) => {
  const { call, handle } = await connectWithHandle(t);
  const reader = await call('session.spawn', {
    handle,
    command: { executable: '/bin/cat' },
    stdin: { base64: base64('\0\xff') },
  });
  const { stdout } = await call('process.result', { process: reader.process });
  assert.equal(fromBase64(stdout.base64), '\0\xff');
  const sleeper = await call('session.spawn', { handle, command: ENDS_NEVER });
  assert.deepEqual(await call('process.stop', { process: sleeper.process }), {});
  assert.equal((await call('process.result', { process: sleeper.process })).exitCode, 137);
});

test('the host is asked, and its answer counts', async (t) => {
  const { call, connection, handle } = await connectWithHandle(t);
  const asked = [];
  connection.onRequest('host.authorize', ({ toolset, request }) => {
    asked.push([toolset, request.operation, request.path]);
    if (request.path === 'broken') {
      throw new ResponseError(1, 'the host cannot say', { code: 'HOST_BROKEN' });
    }
    return { allowed: request.path !== 'refused' };
  });
  const { toolset } = await call('coding.create', { handle, authorize: 'host' });
  const write = (path) => call('coding.write_file', { toolset, input: { path, content: 'text' } });
  assert.equal((await write('allowed')).bytes, 4);
  await assert.rejects(write('refused'), refusal(-32011, 'FORBIDDEN'));
  await assert.rejects(write('broken'), refusal(-32011, 'FORBIDDEN'));
  assert.deepEqual(asked, [
    [toolset, 'write', 'allowed'],
    [toolset, 'write', 'refused'],
    [toolset, 'write', 'broken'],
  ]);
  const { stdout } = await call('session.run', { handle, command: shell('ls') });
  assert.equal(stdout, 'allowed\n');
});

test('a host without host.authorize refuses everything', async (t) => {
  const { call, handle } = await connectWithHandle(t);
  const { toolset } = await call('coding.create', { handle, authorize: 'host' });
  await assert.rejects(
    call('coding.write_file', { toolset, input: { path: 'file', content: '' } }),
    refusal(-32011, 'FORBIDDEN'),
  );
  assert.equal((await call('session.run', { handle, command: shell('ls') })).stdout, '');
});

test("a question nobody waits for any more is taken back: the handler's token is cancelled", async (t) => {
  const { call, connection, handle } = await connectWithHandle(t);
  const { toolset } = await call('coding.create', { handle, authorize: 'host' });
  const source = new CancellationTokenSource();
  const takenBack = new Promise((resolve) => {
    connection.onRequest('host.authorize', (params, token) => {
      const answered = new Promise((answer) => {
        token.onCancellationRequested(() => {
          answer({ allowed: true });
          resolve(params.request.operation);
        });
      });
      source.cancel();
      return answered;
    });
  });
  const write = connection.sendRequest(
    'coding.write_file',
    { toolset, input: { path: 'file', content: 'text' } },
    source.token,
  );
  await assert.rejects(soon(write, 'the answer to the cancelled write'), refusal(-32800, 'CANCELLED'));
  assert.equal(await soon(takenBack, 'the cancellation of host.authorize'), 'write');
  // An answer that comes too late is no permission.
  assert.equal((await call('session.run', { handle, command: shell('ls') })).stdout, '');
});

test('500 requests at once: each gets its own answer', async (t) => {
  const { call, handle } = await connectWithHandle(t);
  const paths = Array.from({ length: 500 }, (_, number) => `dir${number % 7}/file${number}`);
  const answers = await Promise.all(paths.map((path) => call('session.resolvePath', { handle, path })));
  assert.deepEqual(answers, paths.map((path) => ({ path: `/workspace/${path}` })));
});
