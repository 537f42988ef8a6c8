// Commands of a session that are waited for, through the client.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { makeBackend, openHandle, shell } from './support/backend.mjs';
import { newMarker, untilGone } from './support/processes.mjs';

let shared;
let session;
before(async () => {
  shared = makeBackend();
  ({ session } = await openHandle(shared.backend, { files: { 'dir/seed': 'seed' } }));
});
after(() => shared.dispose());

const text = (value) => new TextEncoder().encode(value);

describe('run', () => {
  test('gives exit code, stdout and stderr', async () => {
    const result = await session.run(shell('echo out; echo err >&2; exit 3'));
    assert.deepEqual(result, { exitCode: 3, stdout: 'out\n', stderr: 'err\n' });
  });

  for (const exitCode of [0, 1, 2, 126, 127, 128, 255]) {
    test(`tells the exit code ${exitCode}`, async () => {
      assert.equal((await session.run(shell(`exit ${exitCode}`))).exitCode, exitCode);
    });
  }

  for (const [signal, number] of Object.entries({ HUP: 1, ABRT: 6, KILL: 9, SEGV: 11, TERM: 15 })) {
    test(`tells the death by SIG${signal} as ${128 + number}`, async () => {
      assert.equal((await session.run(shell(`kill -${signal} $$`))).exitCode, 128 + number);
    });
  }

  test('tells what cannot be started as a shell does', async () => {
    const missing = await session.run({ executable: '/nowhere/program' });
    assert.equal(missing.exitCode, 127);
    assert.match(missing.stderr, /program/);
    await session.writeTextFile('plain', 'no program');
    assert.equal((await session.run({ executable: '/workspace/plain' })).exitCode, 126);
  });

  test('hands over arguments as they are', async () => {
    const args = ['', ' ', 'a b', '"', "'", '$HOME', '*', '-n', 'é😀', '\n', '\\', 'x'.repeat(100_000)];
    const { stdout } = await session.run({ executable: '/usr/bin/printf', args: ['%s\\0', ...args] });
    assert.deepEqual(stdout.split('\0').slice(0, -1), args);
  });

  test('takes cwd and environment', async () => {
    const { stdout } = await session.run(
      shell('pwd; echo "$GIVEN"; echo "$PATH"; echo "$HOME"; cat seed', {
        cwd: 'dir',
        environment: { GIVEN: 'é = "x"\ny' },
      }),
    );
    assert.equal(stdout, '/workspace/dir\né = "x"\ny\n/usr/bin:/bin\n/workspace\nseed');
    const { stdout: all } = await session.run({ executable: '/usr/bin/env' });
    assert.equal(all.split('\n').sort().join(), ',HOME=/workspace,PATH=/usr/bin:/bin,PWD=/workspace');
  });

  test('gives the guest no more than it was given as stdin', async () => {
    assert.equal((await session.run({ executable: '/bin/cat' })).stdout, '');
    assert.equal((await session.run({ executable: '/bin/cat' }, { stdin: new Uint8Array() })).stdout, '');
    assert.equal((await session.run({ executable: '/bin/cat' }, { stdin: text('gi\nven') })).stdout, 'gi\nven');
  });

  test('takes a mebibyte of any bytes as stdin, when it is called', async () => {
    const stdin = Uint8Array.from({ length: 1024 * 1024 }, (_, index) => index & 0xff);
    await session.writeBinaryFile('stdin', stdin);
    const compared = session.run({ executable: '/usr/bin/cmp', args: ['-', 'stdin'] }, { stdin });
    stdin.fill(0);
    assert.deepEqual(await compared, { exitCode: 0, stdout: '', stderr: '' });
  });

  test('ends well when the guest does not read its stdin', async () => {
    const stdin = new Uint8Array(4 * 1024 * 1024);
    assert.equal((await session.run({ executable: '/bin/true' }, { stdin })).exitCode, 0);
  });

  test('gives U+FFFD for what is no UTF-8', async () => {
    const { stdout, stderr } = await session.run(shell("printf 'a\\377b\\303'; printf '\\355\\240\\200' >&2"));
    assert.equal(stdout, 'a\ufffdb\ufffd');
    assert.equal(stderr, new TextDecoder().decode(new Uint8Array([0xed, 0xa0, 0x80])));
  });

  test('keeps NUL and control characters of the output', async () => {
    const { stdout } = await session.run(shell("printf 'a\\000b\\033[0m\\r'"));
    assert.equal(stdout, 'a\0b\x1b[0m\r');
  });

  test('gives output up to the budget, and refuses one byte more', async () => {
    const full = await session.run(shell("printf 'ab'; printf 'cd' >&2", { maxOutputBytes: 4 }));
    assert.deepEqual(full, { exitCode: 0, stdout: 'ab', stderr: 'cd' });
    await assert.rejects(session.run(shell("printf 'ab'; printf 'cde' >&2", { maxOutputBytes: 4 })), {
      code: 'SANDBOX_LIMIT',
      reason: 'output-budget',
      status: 413,
    });
    const { stdout } = await session.run(shell('head -c 1048576 /dev/zero'));
    assert.equal(stdout.length, 1024 * 1024);
    await assert.rejects(session.run({ executable: '/usr/bin/yes' }), {
      code: 'SANDBOX_LIMIT',
      reason: 'output-budget',
    });
  });

  test('ends a command at its deadline', async () => {
    const marker = newMarker();
    const late = session.run(shell('sleep 1000; true', { marker, timeoutMs: 50 }));
    await assert.rejects(late, { code: 'SANDBOX_LIMIT', reason: 'deadline' });
    await untilGone(marker);
  });

  test('refuses each wrong parameter by its name, as a rejection', async () => {
    const cases = [
      [{}, 'command.executable'],
      [{ executable: '/bin/true', args: 'x' }, 'command.args'],
      [{ executable: '/bin/true', args: [5] }, 'command.args.0'],
      [{ executable: '/bin/true', timeoutMs: 0 }, 'command.timeoutMs'],
      [{ executable: '/bin/true', timeoutMs: 2 ** 31 }, 'command.timeoutMs'],
      [{ executable: '/bin/true', maxOutputBytes: -1 }, 'command.maxOutputBytes'],
      [{ executable: '/bin/true', environment: { A: 5 } }, 'command.environment.A'],
      [{ executable: '/bin/true', enviroment: {} }, 'command.enviroment'],
    ];
    for (const [command, path] of cases) {
      for (const call of ['run', 'spawn']) {
        await assert.rejects(session[call](command), (error) => {
          assert.equal(error.code, 'VALIDATION_ERROR');
          assert.deepEqual(
            error.details.issues.map((issue) => issue.path),
            [path],
          );
          return true;
        });
      }
    }
    for (const stdin of [5, [1], new ArrayBuffer(1), {}]) {
      for (const call of ['run', 'spawn']) {
        const refused = session[call]({ executable: '/bin/true' }, { stdin });
        await assert.rejects(refused, { code: 'VALIDATION_ERROR' });
      }
    }
    const loop = { executable: '/bin/true' };
    loop.environment = loop;
    await assert.rejects(session.run(loop), { code: 'VALIDATION_ERROR' });
    await assert.rejects(session.run({ executable: '/bin/true', cwd: '../x' }), { code: 'SANDBOX_PATH' });
  });

  test('runs eight at once and refuses the ninth at once', async () => {
    const live = await Promise.all(Array.from({ length: 8 }, () => session.spawn(shell('sleep 1000'))));
    await assert.rejects(session.run({ executable: '/bin/true' }), { code: 'SANDBOX_BUSY' });
    await Promise.all(live.map((process) => process.stop()));
    assert.equal((await session.run({ executable: '/bin/true' })).exitCode, 0);
  });
});
