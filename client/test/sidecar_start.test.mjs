// How the sidecar is found and started, and what is told when it is none.
import assert from 'node:assert/strict';
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { SandboxError } from 'stitchkit-sandbox-client';
import { openBackend, openHandle } from './support/backend.mjs';
import { pidsWithArgument, sidecarPid, sidecarPids, until, untilGone } from './support/processes.mjs';
import { makeHome, removeHome, sidecarBinary, soon } from './support/sidecar.mjs';

const fakeSidecar = fileURLToPath(new URL('./programs/fake_sidecar.mjs', import.meta.url));
const warm = (backend) => backend.prewarm({ template: 'x' });

function temporary(t) {
  const home = makeHome();
  t.after(() => removeHome(home));
  return home;
}

/** A program of these lines of shell. */
function script(t, lines, mode = 0o755) {
  const path = join(temporary(t), 'program');
  writeFileSync(path, `#!/bin/sh\n${lines}\n`);
  chmodSync(path, mode);
  return path;
}

const fake = (t, mode) => script(t, `exec '${process.execPath}' '${fakeSidecar}' ${mode}`);

/** With these variables; what Node and Bun start sees them too. */
async function withEnvironment(t, variables, work) {
  const before = Object.fromEntries(Object.keys(variables).map((name) => [name, process.env[name]]));
  const set = (values) => {
    for (const [name, value] of Object.entries(values)) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  };
  t.after(() => set(before));
  set(variables);
  try {
    return await work();
  } finally {
    set(before);
  }
}

async function failure(promise) {
  let error;
  await assert.rejects(soon(promise, 'the failure of a start'), (thrown) => {
    error = thrown;
    return true;
  });
  assert.ok(error instanceof SandboxError, String(error));
  assert.equal(error.code, 'SANDBOX_UNAVAILABLE');
  assert.equal(error.status, 503);
  return error;
}

describe('the binary', () => {
  test('is the option `command`', async (t) => {
    const { backend } = openBackend(t);
    await withEnvironment(t, { STITCHKIT_SANDBOX: '/nowhere', PATH: '/nowhere' }, () => warm(backend));
    const wrong = await withEnvironment(t, { STITCHKIT_SANDBOX: '/nowhere' }, () =>
      openBackend(t, { command: '/bin/true' }),
    );
    assert.equal((await failure(warm(wrong.backend))).details.command, '/bin/true');
  });

  test('may be given relative to the working directory', async (t) => {
    const depth = process.cwd().split('/').filter(Boolean).length;
    const { backend } = openBackend(t, { command: `${'../'.repeat(depth)}${sidecarBinary().slice(1)}` });
    await warm(backend);
  });

  test('else STITCHKIT_SANDBOX, as it is when the backend is made', async (t) => {
    const binary = sidecarBinary();
    const { backend } = await withEnvironment(t, { STITCHKIT_SANDBOX: binary }, () => {
      return openBackend(t, { command: undefined });
    });
    await withEnvironment(t, { STITCHKIT_SANDBOX: undefined }, () => warm(backend));
  });

  for (const [name, command] of Object.entries({ 'stitchkit-sandbox': undefined, 'other-name': 'other-name' })) {
    test(`else ${name} on the PATH`, async (t) => {
      const directory = temporary(t);
      symlinkSync(sidecarBinary(), join(directory, name));
      const path = `${directory}:${process.env.PATH}`;
      await withEnvironment(t, { STITCHKIT_SANDBOX: command ? sidecarBinary() : '', PATH: path }, async () => {
        const { backend, stateDirectory } = openBackend(t, { command });
        await warm(backend);
        assert.equal(readFileSync(`/proc/${sidecarPid(stateDirectory)}/cmdline`, 'utf8').split('\0')[0], name);
      });
    });
  }

  test('that is missing is told by the first call, by name and hint', async (t) => {
    const { backend, exits } = openBackend(t, { command: '/nowhere/stitchkit-sandbox' });
    for (const call of [
      warm(backend),
      openHandle(backend),
      warm(backend),
      warm(backend),
      warm(backend),
      warm(backend),
    ]) {
      const error = await failure(call);
      assert.equal(error.reason, 'SIDECAR_MISSING');
      assert.equal(error.details.command, '/nowhere/stitchkit-sandbox');
      assert.match(error.hint, /STITCHKIT_SANDBOX/);
      assert.equal(error.cause.code, 'ENOENT');
    }
    assert.deepEqual(exits, []);
    const unknown = openBackend(t, { command: 'stitchkit-sandbox-that-is-not-there' });
    assert.equal((await failure(warm(unknown.backend))).reason, 'SIDECAR_MISSING');
  });

  test('that comes later is found, however often it was missing', async (t) => {
    const command = join(temporary(t), 'later');
    const { backend } = openBackend(t, { command });
    for (let round = 0; round < 6; round += 1) await failure(warm(backend));
    symlinkSync(sidecarBinary(), command);
    await warm(backend);
  });

  test('that may not be executed is told', async (t) => {
    const directory = temporary(t);
    mkdirSync(join(directory, 'folder'));
    copyFileSync(fakeSidecar, join(directory, 'plain'));
    for (const name of ['folder', 'plain']) {
      const command = join(directory, name);
      const error = await failure(warm(openBackend(t, { command }).backend));
      assert.equal(error.reason, 'SIDECAR_START');
      assert.equal(error.details.command, command);
    }
  });
});

describe('a program that is no sidecar', () => {
  const programs = {
    'ends at once': [() => '/bin/true', 'SIDECAR_START'],
    'ends with an exit code': [(t) => script(t, 'echo cannot work >&2; exit 3'), 'SIDECAR_START'],
    'repeats its arguments': [() => '/bin/echo', 'SIDECAR_START'],
    'does not know its arguments': [() => '/bin/cat', 'SIDECAR_START'],
    'says y for ever': [(t) => script(t, 'exec yes'), 'SIDECAR_START'],
    'sends a line without end': [(t) => script(t, "exec tr '\\0' x < /dev/zero"), 'SIDECAR_START'],
    'sends JSON that is no message': [(t) => script(t, 'echo 5; exec cat > /dev/null'), 'SIDECAR_START'],
    'sends messages of another kind': [
      (t) => script(t, `echo '{"id":1,"result":{}}'; exec cat > /dev/null`),
      'SIDECAR_START',
    ],
    'sends back what it gets': [(t) => script(t, 'exec cat'), 'PROTOCOL_VERSION'],
    'answers null': [
      (t) => script(t, `echo '{"jsonrpc":"2.0","id":1,"result":null}'; exec cat > /dev/null`),
      'PROTOCOL_VERSION',
    ],
    'is of another protocol version': [(t) => fake(t, 'version'), 'PROTOCOL_VERSION'],
  };
  for (const [name, [program, reason]] of Object.entries(programs)) {
    test(`is refused and killed: one that ${name}`, async (t) => {
      const command = program(t);
      const { backend, exits, stateDirectory } = openBackend(t, { command });
      const error = await failure(warm(backend));
      assert.equal(error.reason, reason, error.message);
      assert.equal(error.details.command, command);
      assert.ok(error.message.includes(command));
      await until(() => exits.length === 1, 'the call of onExit');
      assert.equal(exits[0].expected, false);
      await untilGone(stateDirectory);
    });
  }

  test('what it said last is in the error, and with the logger', async (t) => {
    const { backend, logged } = openBackend(t, { command: script(t, 'echo cannot work >&2; exit 3') });
    const error = await failure(warm(backend));
    assert.match(error.message, /exit code 3/);
    assert.match(error.message, /cannot work/);
    assert.deepEqual(logged, [['warn', 'cannot work']]);
  });

  test('what the sidecar says of arguments that it does not know is in the error', async (t) => {
    const error = await failure(warm(openBackend(t, { args: ['--no-such-option'] }).backend));
    assert.equal(error.reason, 'SIDECAR_START');
    assert.match(error.message, /no-such-option/);
  });

  test('callers at the same time share one start and its failure', async (t) => {
    const { backend, exits } = openBackend(t, { command: script(t, 'exit 3') });
    const errors = await Promise.all([failure(warm(backend)), failure(openHandle(backend)), failure(warm(backend))]);
    assert.deepEqual(
      errors.map(({ reason }) => reason),
      Array(3).fill('SIDECAR_START'),
    );
    await until(() => exits.length > 0, 'the call of onExit');
    assert.deepEqual(exits, [{ code: 3, signal: null, expected: false }]);
  });

  test('is not started more than four times a minute', async (t) => {
    const { backend, exits } = openBackend(t, { command: script(t, 'exit 3') });
    for (let round = 0; round < 4; round += 1) assert.equal((await failure(warm(backend))).reason, 'SIDECAR_START');
    const error = await failure(warm(backend));
    assert.equal(error.reason, 'SIDECAR_RESTARTS');
    assert.equal(exits.length, 4);
  });
});

describe('the process', () => {
  test('starts with the first call, not before, and is one for all', async (t) => {
    const { backend, stateDirectory } = openBackend(t);
    assert.deepEqual(pidsWithArgument(stateDirectory), []);
    await Promise.all([warm(backend), openHandle(backend), openHandle(backend)]);
    assert.equal(sidecarPids(stateDirectory).length, 1);
  });

  test('sees PATH alone of the environment', async (t) => {
    await withEnvironment(t, { STITCHKIT_SECRET: 's3cr3t', HOME: '/root', LD_LIBRARY_PATH: '/nowhere' }, async () => {
      const { backend, stateDirectory } = openBackend(t);
      await warm(backend);
      const environment = readFileSync(`/proc/${sidecarPid(stateDirectory)}/environ`, 'utf8');
      assert.deepEqual(environment.split('\0').filter(Boolean), [`PATH=${process.env.PATH}`]);
    });
  });

  test('has a session of its own and no directory of the host', async (t) => {
    const { backend, stateDirectory } = openBackend(t);
    await warm(backend);
    const pid = sidecarPid(stateDirectory);
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [, , group, session] = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
    assert.deepEqual({ group, session }, { group: pid, session: pid });
  });

  test('keeps its state where a relative stateDirectory says', async (t) => {
    const home = temporary(t);
    const up = '../'.repeat(process.cwd().split('/').filter(Boolean).length);
    const { backend } = openBackend(t, { stateDirectory: `${up}${home.slice(1)}/relative` });
    await warm(backend);
    assert.ok(existsSync(join(home, 'relative')));
  });

  test('what it writes to stderr reaches the logger, line by line, with its level', async (t) => {
    const { backend, logged } = openBackend(t, { command: fake(t, 'version') });
    await failure(warm(backend));
    assert.deepEqual(logged, [
      ['error', 'stitchkit-sandbox: error: of the fake'],
      ['warn', 'stitchkit-sandbox: warning: of the fake'],
      ['info', 'stitchkit-sandbox: info: of the fake'],
      ['debug', 'stitchkit-sandbox: debug: of the fake'],
      ['warn', 'anything else'],
    ]);
  });

  test('its level is found in a line of JSON too, and everyday lines are no last words', async (t) => {
    const line = (level, event) => JSON.stringify({ time: '2026-01-01T00:00:00.000Z', level, event });
    const lines = [line('error', 'why'), line('info', 'command'), line('debug', 'x'), line('warning', 'y'), '{"level":'];
    const { backend, logged } = openBackend(t, {
      command: script(t, `printf '%s\\n' ${lines.map((one) => `'${one}'`).join(' ')} >&2; exit 3`),
    });
    const error = await failure(warm(backend));
    assert.match(error.message, /why/);
    assert.doesNotMatch(error.message, /command/);
    assert.deepEqual(
      logged,
      ['error', 'info', 'debug', 'warn', 'warn'].map((level, index) => [level, lines[index]]),
    );
  });

  test('each command is a line of level info', async (t) => {
    const { backend, logged } = openBackend(t, { args: ['--log-format', 'json'] });
    const handle = await backend.create({ template: { template: 'x' }, network: 'deny-all' });
    await handle.session.run({ executable: '/bin/true', args: ['s3cret'] });
    const told = () => logged.filter(([level, line]) => level === 'info' && JSON.parse(line).event === 'command');
    await until(() => told().length === 1, 'the line of the command');
    assert.equal(JSON.parse(told()[0][1]).executable, '/bin/true');
    assert.doesNotMatch(told()[0][1], /s3cret/);
  });

  test('a last line without an end reaches the logger too', async (t) => {
    const { backend, logged } = openBackend(t, {
      command: script(t, 'printf "stitchkit-sandbox: error: cut" >&2; exit 3'),
    });
    const error = await failure(warm(backend));
    assert.match(error.message, /cut/);
    assert.deepEqual(logged, [['error', 'stitchkit-sandbox: error: cut']]);
  });

  for (const logger of [{}, null, { warn: 'no function' }, Object.freeze({ info() {} })]) {
    test(`a logger may lack what it likes: ${JSON.stringify(logger)}`, async (t) => {
      assert.equal(
        (await failure(warm(openBackend(t, { command: fake(t, 'version'), logger }).backend))).reason,
        'PROTOCOL_VERSION',
      );
    });
  }

  test('a logger or onExit that throws does no harm', async (t) => {
    let thrown = 0;
    const fails = () => {
      thrown += 1;
      throw new Error('of the host');
    };
    const logger = { error: fails, warn: fails, info: fails, debug: fails };
    const { backend } = openBackend(t, { command: fake(t, 'version'), logger, onExit: fails });
    assert.equal((await failure(warm(backend))).reason, 'PROTOCOL_VERSION');
    await until(() => thrown >= 6, 'five lines and onExit');
  });
});

describe('limits that the sidecar tells', () => {
  test('hold before anything is sent', async (t) => {
    const file = join(temporary(t), 'requests');
    const { backend } = openBackend(t, { command: fake(t, `record '${file}'`) });
    await assert.rejects(backend.prewarm({ template: 'x'.repeat(3000) }), {
      code: 'SANDBOX_LIMIT',
      reason: 'message-bytes',
    });
    await assert.rejects(backend.prewarm({ template: 'x', files: { a: '\ud800' } }), { code: 'VALIDATION_ERROR' });
    await warm(backend);
    assert.deepEqual(readFileSync(file, 'utf8').split('\n'), ['initialize', 'backend.prewarm', '']);
  });

  test('more calls than may be in flight wait and are all answered', async (t) => {
    const file = join(temporary(t), 'requests');
    const { backend } = openBackend(t, { command: fake(t, `record '${file}'`) });
    await Promise.all(Array.from({ length: 100 }, () => warm(backend)));
    assert.equal(
      readFileSync(file, 'utf8')
        .split('\n')
        .filter((method) => method === 'backend.prewarm').length,
      100,
    );
  });
});
