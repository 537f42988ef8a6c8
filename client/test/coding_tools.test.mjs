// What the tools do, what they are refused and how that is told.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createSandboxCodingTools, SandboxError } from 'stitchkit-sandbox-client';
import { makeBackend, openHandle } from './support/backend.mjs';
import { until } from './support/processes.mjs';
import { soon } from './support/sidecar.mjs';

let shared;
let handle;
before(async () => {
  shared = makeBackend();
  handle = await openHandle(shared.backend, { files: { 'seed.txt': 'seed', 'secret/key': 'key', 'open/a': 'a' } });
});
after(() => shared.dispose());

/** `call(name, input)` calls a tool. */
function openTools(options, of = handle) {
  const tools = createSandboxCodingTools(of, { executables: { sh: '/bin/sh' }, ...options });
  const named = new Map(tools.map((tool) => [tool.name, tool]));
  return { tools, call: (name, input, context) => named.get(name).handler({ input, ...context }) };
}

const allow = () => true;

describe('a tool', () => {
  test('does its work before `ready` was awaited', async () => {
    const { call } = openTools({ authorize: allow });
    assert.deepEqual((await call('read_file', { path: 'seed.txt' })).text, 'seed');
  });

  test('may be called without a signal, with more context, and detached', async () => {
    const { tools } = openTools({ authorize: allow });
    const { handler } = tools.find((tool) => tool.name === 'read_file');
    const output = await handler({ input: { path: 'seed.txt' }, requestId: 5, signal: undefined });
    assert.equal(output.bytes, 4);
  });

  test('takes its input when it is called', async () => {
    const { tools, call } = openTools({ authorize: allow });
    await tools.ready;
    const input = { path: 'taken.txt', content: 'first' };
    const writing = call('write_file', input);
    input.content = 'second';
    await writing;
    assert.equal(await handle.session.readTextFile('taken.txt'), 'first');
  });

  test('works on the files of the session', async () => {
    const { call } = openTools({ authorize: allow });
    await call('write_file', { path: 'work/a.txt', content: 'one' });
    await call('edit_file', { path: 'work/a.txt', oldText: 'one', newText: '$&two' });
    assert.equal(await handle.session.readTextFile('work/a.txt'), '$&two');
    const run = await call('run_command', { executable: 'sh', args: ['-c', 'cat a.txt; exit 4'], cwd: 'work' });
    assert.deepEqual(
      { exitCode: run.exitCode, stdout: run.stdout, outcome: run.outcome },
      { exitCode: 4, stdout: '$&two', outcome: 'exited' },
    );
  });
});

describe('a refusal', () => {
  const refused = async (promise) => {
    let error;
    await assert.rejects(promise, (thrown) => {
      error = thrown;
      return true;
    });
    assert.ok(error instanceof SandboxError, String(error));
    assert.ok(error instanceof Error);
    return error;
  };

  test('carries code, status, details, hint and the mark of the runtime', async () => {
    const { call } = openTools({ authorize: allow });
    const cases = [
      ['read_file', { path: 'missing' }, 'NOT_FOUND', 404],
      ['read_file', { path: '/workspace/seed.txt' }, 'BAD_REQUEST', 400],
      ['read_file', { path: '../x' }, 'FORBIDDEN', 403],
      ['write_file', { path: 'seed.txt', content: 'x' }, 'CONFLICT', 409],
      ['edit_file', { path: 'seed.txt', oldText: 'none', newText: 'x' }, 'NOT_FOUND', 404],
      ['search_files', { query: '(', regex: true }, 'BAD_REQUEST', 400],
      ['read_output', { reference: 'none' }, 'SPILL_REFERENCE_UNKNOWN', 404],
      ['read_file', { path: 5 }, 'VALIDATION_ERROR', 400],
      ['read_file', undefined, 'VALIDATION_ERROR', 400],
      ['run_command', { executable: 'bash' }, 'VALIDATION_ERROR', 400],
      ['run_command', { executable: 'sh', cwd: 'missing' }, 'NOT_FOUND', 404],
    ];
    for (const [name, input, code, status] of cases) {
      const error = await refused(call(name, input));
      const what = `${name} ${JSON.stringify(input)}`;
      assert.deepEqual({ code: error.code, status: error.status }, { code, status }, what);
      assert.equal(error[Symbol.for('stitchkit.AppError')], true, what);
      assert.equal(error.details.message, error.message, what);
      assert.equal(error.name, 'SandboxError');
      const { message, details, hint } = error;
      assert.deepEqual(
        JSON.parse(JSON.stringify(error)),
        { error: { code, message, details, ...(hint && { hint }) } },
        what,
      );
      assert.ok(!JSON.stringify(error).includes(shared.home), what);
    }
    const absolute = await refused(call('read_file', { path: '/workspace/seed.txt' }));
    assert.equal(absolute.details.recoveryPath, 'seed.txt');
    assert.equal(typeof absolute.hint, 'string');
    assert.ok(!Object.keys(absolute).includes('stitchkit.AppError'));
  });

  test('of a lone surrogate is told before anything is sent', async () => {
    const { call } = openTools({ authorize: allow });
    const error = await refused(call('write_file', { path: 'half', content: 'a\ud800' }));
    assert.equal(error.code, 'VALIDATION_ERROR');
    assert.match(error.hint, /toWellFormed/);
  });
});

describe('authorize', () => {
  test('is asked, sync or async, with what the tool is about to do', async () => {
    const asked = [];
    for (const authorize of [
      (operation) => asked.push(operation) > 0,
      async (operation) => asked.push(operation) > 0,
    ]) {
      const { call } = openTools({ authorize });
      await call('read_file', { path: 'seed.txt' });
      await call('write_file', { path: 'asked/a', content: 'é', overwrite: true });
      await call('edit_file', { path: 'asked/a', oldText: 'é', newText: 'e', dryRun: true });
      await call('list_directory', {});
      await call('glob', { pattern: '*' });
      await call('search_files', { query: 'x' });
      await call('run_command', { executable: 'sh', args: ['-c', 'true'] });
    }
    const expected = ['read', 'write', 'edit', 'list', 'glob', 'search', 'shell'];
    assert.deepEqual(
      asked.map(({ operation }) => operation),
      [...expected, ...expected],
    );
    assert.deepEqual(asked[0], { operation: 'read', path: 'seed.txt' });
    assert.deepEqual(asked[1], {
      operation: 'write',
      path: 'asked/a',
      bytes: 2,
      overwrite: true,
      createsDirectories: ['asked'],
    });
    assert.deepEqual(asked[6], { operation: 'shell', executable: 'sh', args: ['-c', 'true'], cwd: '.' });
  });

  test('allows by true alone', async () => {
    for (const answer of [false, undefined, null, 0, 1, 'true', {}, [], { allowed: true }, Promise.resolve(1)]) {
      const { call } = openTools({ authorize: () => answer });
      const refused = call('write_file', { path: 'denied', content: 'x' });
      await assert.rejects(refused, { code: 'FORBIDDEN', status: 403 });
    }
    await assert.rejects(handle.session.readTextFile('denied'), { code: 'SANDBOX_PATH' });
    for (const answer of [true, Promise.resolve(true)]) {
      await openTools({ authorize: () => answer }).call('read_file', { path: 'seed.txt' });
    }
  });

  test('that throws refuses, and goes to the logger, not to the model', async () => {
    const failures = [
      () => {
        throw new Error('private: sync');
      },
      async () => {
        throw new Error('private: async');
      },
      () => Promise.reject('private: a text'),
      () => Promise.reject(),
      () => ({
        get then() {
          throw new Error('private: thenable');
        },
      }),
    ];
    for (const authorize of failures) {
      const { call } = openTools({ authorize });
      await assert.rejects(call('write_file', { path: 'denied', content: 'x' }), (error) => {
        assert.equal(error.code, 'FORBIDDEN');
        assert.ok(!JSON.stringify([error, error.stack]).includes('private'));
        return true;
      });
    }
    const told = shared.logged.filter(([level, message]) => level === 'warn' && message.includes('authorize'));
    for (const text of ['sync', 'async', 'a text', 'thenable']) {
      assert.ok(
        told.some(([, message]) => message.includes(`private: ${text}`)),
        text,
      );
    }
    await assert.rejects(handle.session.readTextFile('denied'), { code: 'SANDBOX_PATH' });
  });

  test('answers for its own tools alone', async () => {
    const yes = openTools({ authorize: () => true });
    const no = openTools({ authorize: () => false });
    const results = await Promise.allSettled(
      [yes, no, yes, no].map(({ call }) => call('read_file', { path: 'seed.txt' })),
    );
    assert.deepEqual(
      results.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled', 'rejected'],
    );
  });

  test('may use the session itself while it is asked', async () => {
    const { call } = openTools({
      authorize: async ({ path }) => (await handle.session.readTextFile('seed.txt')) === 'seed' && path === 'nested',
    });
    assert.equal((await call('write_file', { path: 'nested', content: 'x' })).bytes, 1);
  });
});

describe('which paths are seen', () => {
  const decisions = {
    'sync': ({ path }) => !path.startsWith('secret'),
    'async': async ({ path }) => !path.startsWith('secret'),
    'throwing': ({ path }) => {
      if (path.startsWith('secret')) throw new Error('private');
      return true;
    },
    'truthy but not true': ({ path }) => (path.startsWith('secret') ? 'yes' : true),
  };
  const check = async ({ call }) => {
    await assert.rejects(call('read_file', { path: 'secret/key' }), { code: 'FORBIDDEN' });
    await assert.rejects(call('write_file', { path: 'secret/new', content: 'x' }), { code: 'FORBIDDEN' });
    assert.equal((await call('read_file', { path: 'open/a' })).text, 'a');
    const { paths, denied } = await call('glob', { pattern: '**' });
    assert.ok(!paths.some((path) => path.startsWith('secret')), paths.join());
    assert.ok(paths.includes('open/a'));
    assert.deepEqual(denied, [{ path: 'secret', kind: 'directory' }]);
    const { matches } = await call('search_files', { query: 'key' });
    assert.deepEqual(matches, []);
  };
  for (const [name, authorizePath] of Object.entries(decisions)) {
    test(`authorizePath decides: ${name}`, () => check(openTools({ authorize: allow, authorizePath })));
  }

  test('deniedPaths decide', () => check(openTools({ authorize: allow, deniedPaths: ['secret'] })));

  test('authorizePath gets one path at a time, and a signal', async () => {
    const asked = [];
    const { call } = openTools({
      authorize: allow,
      authorizePath: (input, { signal }) => {
        asked.push(input);
        return signal instanceof AbortSignal;
      },
    });
    await call('read_file', { path: 'open/a' });
    assert.deepEqual(asked, [{ path: 'open' }, { path: 'open/a' }]);
  });
});

describe('options', () => {
  const wrong = {
    'no options': undefined,
    'no authorize': {},
    'authorize that is no function': { authorize: true },
    'authorizePath that is no function': { authorize: allow, authorizePath: 'allow' },
    'an executable that is no absolute path': { authorize: allow, executables: { sh: 'sh' } },
    'an executable that is no text': { authorize: allow, executables: { sh: 5 } },
    'artifacts of no kind': { authorize: allow, artifacts: 'host' },
    'artifacts in a store without read': { authorize: allow, artifacts: { write() {} } },
    'artifacts null': { authorize: allow, artifacts: null },
  };
  for (const [name, options] of Object.entries(wrong)) {
    test(`refused at once: ${name}`, () => {
      assert.throws(
        () => createSandboxCodingTools(handle, options),
        (error) => {
          assert.ok(error instanceof SandboxError, String(error));
          assert.equal(error.code, 'VALIDATION_ERROR');
          return true;
        },
      );
    });
  }

  const refusedLater = {
    'limits.maxReadBytes': { limits: { maxReadBytes: -1 } },
    'limits.maxReed': { limits: { maxReed: 1 } },
    'requiredRestrictions.0': { requiredRestrictions: ['none'] },
    'excludeDirectories.0': { search: { excludeDirectories: [5] } },
    environment: { environment: { 'A=B': 'x' } },
  };
  for (const [path, options] of Object.entries(refusedLater)) {
    test(`refused by the sidecar: ${path} is told by ready and by each handler`, async () => {
      const { tools, call } = openTools({ authorize: allow, ...options });
      const named = (error) => {
        assert.equal(error.code, 'VALIDATION_ERROR');
        assert.deepEqual(
          error.details.issues.map((issue) => issue.path),
          [path],
        );
        return true;
      };
      await assert.rejects(call('read_file', { path: 'seed.txt' }), named);
      await assert.rejects(tools.ready, named);
      await assert.rejects(call('run_command', { executable: 'sh' }), named);
    });
  }

  test('are taken when the tools are made', async () => {
    const options = { authorize: allow, executables: { sh: '/bin/sh' } };
    const tools = createSandboxCodingTools(handle, options);
    options.authorize = () => false;
    const read = tools.find((tool) => tool.name === 'read_file');
    assert.equal((await read.handler({ input: { path: 'seed.txt' } })).text, 'seed');
  });

  test('environment and limits reach the command', async () => {
    const { call } = openTools({ authorize: allow, environment: { GIVEN: 'yes' }, limits: { shellTimeoutMs: 200 } });
    const script = 'echo $GIVEN; sleep 1000';
    const { stdout, outcome } = await call('run_command', { executable: 'sh', args: ['-c', script] });
    assert.deepEqual({ stdout, outcome }, { stdout: 'yes\n', outcome: 'timeout' });
  });

  test('restrictions that are not enforced keep run_command from running: SANDBOX_INSUFFICIENT', async () => {
    const open = await openHandle(shared.backend, { network: 'allow-all' });
    const { call } = openTools({ authorize: allow, requiredRestrictions: ['network-denied'] }, open);
    const touch = { executable: 'sh', args: ['-c', 'touch ran'] };
    await assert.rejects(call('run_command', touch), (error) => {
      assert.deepEqual({ code: error.code, status: error.status }, { code: 'SANDBOX_INSUFFICIENT', status: 503 });
      assert.deepEqual(error.details.missing, ['network-denied']);
      return true;
    });
    await assert.rejects(open.session.readTextFile('ran'), { code: 'SANDBOX_PATH' });
    for (const tools of [
      openTools({ authorize: allow }, open),
      openTools({ authorize: allow, requiredRestrictions: ['network-denied'] }),
    ]) {
      assert.equal((await tools.call('run_command', touch)).exitCode, 0);
    }
  });

  test('a handle of something else is refused', () => {
    for (const other of [{}, { ...handle }, Object.create(handle), null, undefined, 'h1']) {
      assert.throws(
        () => createSandboxCodingTools(other, { authorize: allow }),
        (error) => {
          assert.ok(error instanceof SandboxError, String(error));
          assert.equal(error.code, 'SANDBOX_UNAVAILABLE');
          return true;
        },
      );
    }
  });
});

describe('after the end of the handle', () => {
  for (const method of ['stop', 'delete']) {
    test(`${method}: tools say that it was stopped, and no new ones are made`, async () => {
      const ended = await openHandle(shared.backend);
      const made = openTools({ authorize: allow }, ended);
      await made.tools.ready;
      await ended[method]();
      for (const [name, input] of [
        ['read_file', { path: 'a' }],
        ['run_command', { executable: 'sh' }],
      ]) {
        await assert.rejects(made.call(name, input), (error) => {
          assert.equal(error.code, 'SANDBOX_UNAVAILABLE');
          assert.equal(error.details.reason, 'SANDBOX_STOPPED');
          return true;
        });
      }
      assert.throws(() => openTools({ authorize: allow }, ended), { code: 'SANDBOX_STOPPED' });
    });
  }

  test('a tool that runs ends, and authorize is not asked for ever', async () => {
    const ended = await openHandle(shared.backend);
    const signals = [];
    const { tools, call } = openTools(
      {
        authorize: (_, { signal }) => {
          signals.push(signal);
          return new Promise(() => {});
        },
      },
      ended,
    );
    await tools.ready;
    const listing = call('list_directory', {});
    listing.catch(() => {});
    await until(() => signals.length === 1, 'the question to authorize');
    await ended.stop();
    await assert.rejects(listing, { code: 'SANDBOX_UNAVAILABLE' });
    await until(() => signals[0].aborted, 'the end of the signal of authorize');
  });

  test('stop does not wait behind the calls that it ends, however many they are', async () => {
    const ended = await openHandle(shared.backend);
    let asked = 0;
    const { tools, call } = openTools(
      {
        authorize: () => {
          asked += 1;
          return new Promise(() => {});
        },
      },
      ended,
    );
    await tools.ready;
    // More than the sidecar takes at a time, and more than the client sends.
    const calls = Promise.allSettled(Array.from({ length: 1200 }, () => call('list_directory', {})));
    await until(() => asked > 0, 'a question to authorize');
    await soon(ended.stop(), 'stop');
    for (const { status, reason } of await soon(calls, 'the end of all calls')) {
      assert.equal(status, 'rejected');
      assert.equal(reason.code, 'SANDBOX_UNAVAILABLE');
    }
    assert.equal((await openTools({ authorize: allow }).call('read_file', { path: 'seed.txt' })).text, 'seed');
  });
});
