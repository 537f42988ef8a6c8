// Commands whose output is read while they run, through the client.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { makeBackend, openHandle, shell } from './support/backend.mjs';
import { newMarker, untilGone } from './support/processes.mjs';

let shared;
let session;
before(async () => {
  shared = makeBackend();
  ({ session } = await openHandle(shared.backend));
});
after(() => shared.dispose());

async function readAll(readable) {
  const chunks = [];
  for await (const chunk of readable) chunks.push(chunk);
  return Buffer.concat(chunks).toString('latin1');
}

const asText = (bytes) => Buffer.from(bytes).toString('latin1');

describe('spawn', () => {
  test('gives result, stdout, stderr and stop', async () => {
    const process = await session.spawn(shell('echo out; echo err >&2; exit 3'));
    const { exitCode, stdout, stderr } = await process.result;
    assert.equal(exitCode, 3);
    for (const bytes of [stdout, stderr]) assert.equal(Object.getPrototypeOf(bytes), Uint8Array.prototype);
    assert.equal(asText(stdout), 'out\n');
    assert.equal(asText(stderr), 'err\n');
    assert.equal(await readAll(process.stdout), 'out\n');
    assert.equal(await readAll(process.stderr), 'err\n');
    assert.equal(await process.stop(), undefined);
  });

  test('takes stdin, cwd and environment', async () => {
    await session.writeTextFile('dir/x', '');
    const stdin = new Uint8Array([0, 255, 10, 128]);
    const { result } = await session.spawn(shell('cat; pwd; echo "$A"', { cwd: 'dir', environment: { A: 'b' } }), {
      stdin,
    });
    assert.equal(asText((await result).stdout), '\0\xff\n\x80/workspace/dir\nb\n');
  });

  test('gives output while the command runs', async () => {
    // It goes on only when what it has said was read.
    const process = await session.spawn(
      shell('for n in 1 2 3; do echo $n; until [ -e go$n ]; do sleep 0.01; done; done'),
    );
    const read = [];
    for await (const chunk of process.stdout) {
      assert.equal(Object.getPrototypeOf(chunk), Uint8Array.prototype);
      read.push(asText(chunk));
      await session.writeTextFile(`go${asText(chunk).trim()}`, '');
    }
    assert.deepEqual(read, ['1\n', '2\n', '3\n']);
    assert.equal((await process.result).exitCode, 0);
  });

  test('keeps the order of all bytes', async () => {
    const process = await session.spawn(shell('seq 1 100000'));
    const expected = `${Array.from({ length: 100_000 }, (_, index) => index + 1).join('\n')}\n`;
    const [streamed, { stdout }] = await Promise.all([readAll(process.stdout), process.result]);
    assert.ok(streamed === expected);
    assert.ok(asText(stdout) === expected);
  });

  test('keeps the channels apart', async () => {
    const process = await session.spawn(shell('for n in 1 2 3 4 5; do echo o$n; echo e$n >&2; done'));
    const [out, err] = await Promise.all([readAll(process.stdout), readAll(process.stderr)]);
    assert.equal(out, 'o1\no2\no3\no4\no5\n');
    assert.equal(err, 'e1\ne2\ne3\ne4\ne5\n');
  });

  test('gives each reader all of it: at once, late, and twice of one', async () => {
    const process = await session.spawn(shell('echo 1; until [ -e more ]; do sleep 0.01; done; echo 2'));
    const early = [readAll(process.stdout), readAll(process.stdout)];
    for await (const chunk of process.stdout) {
      assert.equal(asText(chunk), '1\n');
      break; // leaves early
    }
    const late = readAll(process.stdout);
    await session.writeTextFile('more', '');
    assert.deepEqual(await Promise.all([...early, late]), ['1\n2\n', '1\n2\n', '1\n2\n']);
    await process.result;
    assert.equal(await readAll(process.stdout), '1\n2\n');
  });

  test('a reader that leaves, or waits no more, keeps nothing from the others', async () => {
    const process = await session.spawn(shell('until [ -e leave ]; do sleep 0.01; done; echo end'));
    const iterator = process.stdout[Symbol.asyncIterator]();
    const waiting = iterator.next();
    const other = readAll(process.stdout);
    await session.writeTextFile('leave', '');
    assert.equal(asText((await waiting).value), 'end\n');
    assert.deepEqual(await iterator.return(), { value: undefined, done: true });
    assert.deepEqual(await iterator.next(), { value: undefined, done: true });
    assert.equal(await other, 'end\n');
  });

  test('ends the readers of a command that says nothing', async () => {
    const process = await session.spawn({ executable: '/bin/true' });
    assert.equal(await readAll(process.stdout), '');
    assert.equal(await readAll(process.stderr), '');
  });

  test('does not hang on output that nobody reads', async () => {
    const process = await session.spawn(shell('head -c 1000000 /dev/zero'));
    assert.equal((await process.result).stdout.byteLength, 1_000_000);
  });
});

describe('stop', () => {
  test('kills the command, and its result says 137', async () => {
    const marker = newMarker();
    const process = await session.spawn(shell("echo start; trap '' TERM; sleep 1000; true", { marker }));
    for await (const chunk of process.stdout) {
      assert.equal(asText(chunk), 'start\n');
      break;
    }
    await process.stop();
    await untilGone(marker);
    const { exitCode, stdout } = await process.result;
    assert.equal(exitCode, 137);
    assert.equal(asText(stdout), 'start\n');
    assert.equal(await readAll(process.stdout), 'start\n');
  });

  test('may be called again, and by two at once', async () => {
    const process = await session.spawn(shell('sleep 1000'));
    await Promise.all([process.stop(), process.stop()]);
    await process.stop();
    assert.equal((await process.result).exitCode, 137);
  });

  test('needs nobody who looks at the result', async () => {
    const process = await session.spawn(shell('sleep 1000', { timeoutMs: 20 }));
    await assert.rejects(readAll(process.stdout), { code: 'SANDBOX_LIMIT' });
    await process.stop();
  });

  test('of the handle ends the command and its readers', async () => {
    const handle = await openHandle(shared.backend);
    const marker = newMarker();
    const process = await handle.session.spawn(shell('echo start; sleep 1000; true', { marker }));
    const iterator = process.stdout[Symbol.asyncIterator]();
    assert.equal(asText((await iterator.next()).value), 'start\n');
    await handle.stop();
    await untilGone(marker);
    assert.equal((await process.result).exitCode, 137);
    assert.equal((await iterator.next()).done, true);
    assert.equal(await readAll(process.stdout), 'start\n');
    await process.stop();
  });
});

describe('limits', () => {
  const limits = {
    'output-budget': shell("printf 'abc'; printf 'def' >&2; sleep 1000", { maxOutputBytes: 5 }),
    'deadline': shell("printf 'abc'; sleep 1000", { timeoutMs: 200 }),
  };
  for (const [reason, command] of Object.entries(limits)) {
    test(`${reason}: the result and each reader end with the error`, async () => {
      const marker = newMarker();
      const process = await session.spawn({ ...command, args: [command.args[0], command.args[1], marker] });
      const early = [readAll(process.stdout), readAll(process.stderr)];
      const expected = { code: 'SANDBOX_LIMIT', reason };
      await Promise.all([process.result, ...early].map((promise) => assert.rejects(promise, expected)));
      const seen = [];
      await assert.rejects(async () => {
        for await (const chunk of process.stdout) seen.push(asText(chunk));
      }, expected);
      assert.ok('abc'.startsWith(seen.join('')), seen.join('')); // what came before is not lost
      await untilGone(marker);
    });
  }

  test('a program that is not there is told by the result', async () => {
    const process = await session.spawn({ executable: '/nowhere/program' });
    const { exitCode, stderr } = await process.result;
    assert.equal(exitCode, 127);
    assert.equal(await readAll(process.stderr), asText(stderr));
    assert.notEqual(stderr.byteLength, 0);
  });
});
