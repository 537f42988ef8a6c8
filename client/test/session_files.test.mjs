// The files of a session, and its paths, through the client.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { makeBackend, openHandle, shell } from './support/backend.mjs';
import { startRawPeer } from './support/raw_peer.mjs';

const MEBIBYTE = 1024 * 1024;

let shared;
let session;
before(async () => {
  shared = makeBackend();
  ({ session } = await openHandle(shared.backend));
});
after(() => shared.dispose());

// Every value, in an order in which no neighbours are alike.
function allValues(length) {
  return Uint8Array.from({ length }, (_, index) => (index * 167 + (index >> 8)) & 0xff);
}

describe('bytes', () => {
  for (const length of [0, 1, 255, 256, 3000, 4096, 65_537, MEBIBYTE - 1, MEBIBYTE]) {
    test(`${length} of them come back as they were written`, async () => {
      const written = allValues(length);
      assert.equal(await session.writeBinaryFile('dir/bytes', written), undefined);
      const read = await session.readBinaryFile('dir/bytes');
      assert.equal(Object.getPrototypeOf(read), Uint8Array.prototype);
      assert.equal(Buffer.compare(read, written), 0);
      assert.equal(read.byteOffset, 0);
      assert.equal(read.buffer.byteLength, length);
    });
  }

  test('of a part of a larger buffer, and of what is changed after the call', async () => {
    const whole = allValues(100);
    const part = whole.subarray(10, 20);
    const expected = part.slice();
    const writing = session.writeBinaryFile('part', part);
    whole.fill(0);
    await writing;
    assert.deepEqual(await session.readBinaryFile('part'), expected);
  });

  test('of a Buffer and of shared memory', async () => {
    await session.writeBinaryFile('buffer', Buffer.from('text'));
    assert.equal(await session.readTextFile('buffer'), 'text');
    const sharedBytes = new Uint8Array(new SharedArrayBuffer(3)).fill(7);
    await session.writeBinaryFile('buffer', sharedBytes);
    assert.deepEqual(await session.readBinaryFile('buffer'), new Uint8Array([7, 7, 7]));
  });

  test('are no text, no array and no ArrayBuffer', async () => {
    for (const value of ['text', [1], new ArrayBuffer(1), new Uint16Array(1), undefined, null]) {
      await assert.rejects(session.writeBinaryFile('none', value), { code: 'VALIDATION_ERROR' });
    }
    await assert.rejects(session.readBinaryFile('none'), { code: 'SANDBOX_PATH' });
  });

  test('are what a guest sees and writes', async () => {
    await session.writeBinaryFile('sum/in', allValues(10_000));
    const { exitCode } = await session.run(shell('cat sum/in sum/in > sum/out'));
    assert.equal(exitCode, 0);
    assert.equal((await session.readBinaryFile('/workspace/sum/out')).byteLength, 20_000);
  });

  test('are at most 1 MiB', async () => {
    await assert.rejects(session.writeBinaryFile('large', new Uint8Array(MEBIBYTE + 1)), { code: 'SANDBOX_LIMIT' });
    await assert.rejects(session.readBinaryFile('large'), { code: 'SANDBOX_PATH' });
    await session.run(shell(`head -c ${MEBIBYTE + 1} /dev/zero > large`));
    await assert.rejects(session.readBinaryFile('large'), { code: 'SANDBOX_LIMIT', status: 413 });
  });

  test('of more than a message may hold are refused by name, and nothing else is hurt', async () => {
    const writing = session.writeBinaryFile('huge', new Uint8Array(20 * MEBIBYTE));
    const other = session.writeTextFile('beside', 'fine');
    await assert.rejects(writing, { code: 'SANDBOX_LIMIT', reason: 'message-bytes' });
    await other;
    assert.equal(await session.readTextFile('beside'), 'fine');
  });
});

describe('text', () => {
  const texts = {
    'nothing': '',
    'one character': 'x',
    'line ends': 'a\nb\r\nc\rd\u2028e\u2029f\u0085',
    'what JSON escapes': '"\\/\b\f\n\r\t\u0000\u001f\u007f',
    'an escape that is none': '\\ud800 \\u0041 \\\\ud800',
    'a byte-order mark': '\ufefftext',
    'characters of each length': 'aé€😀\u{10ffff}\uffff\ufffe',
    '1 MiB of ASCII': 'x'.repeat(MEBIBYTE),
    '1 MiB of emoji': '😀'.repeat(MEBIBYTE / 4),
    '1 MiB of control characters': '\u0001'.repeat(MEBIBYTE),
  };
  for (const [name, text] of Object.entries(texts)) {
    test(`${name} comes back as it was written`, async () => {
      await session.writeTextFile('text', text);
      assert.ok((await session.readTextFile('text')) === text);
      assert.equal(Buffer.compare(await session.readBinaryFile('text'), new TextEncoder().encode(text)), 0);
    });
  }

  test('half a surrogate pair becomes U+FFFD, as TextEncoder has it', async () => {
    for (const text of ['\ud83d', 'a\udc00b', '\udc00\ud800', '😀\ud83d', '\\\ud800']) {
      await session.writeTextFile('half', text);
      assert.equal(await session.readTextFile('half'), new TextDecoder().decode(new TextEncoder().encode(text)));
    }
  });

  test('that is no UTF-8 is refused as text and read as bytes', async () => {
    await session.writeBinaryFile('latin1', new Uint8Array([0x61, 0xe9, 0x62]));
    await assert.rejects(session.readTextFile('latin1'), (error) => {
      assert.equal(error.code, 'BAD_REQUEST');
      assert.equal(error.details.reason, 'invalid_utf8');
      return true;
    });
  });
});

describe('removePath', () => {
  test('takes files and trees, and what is not there', async () => {
    await session.writeTextFile('tree/a/b/c', 'x');
    await session.writeTextFile('tree/d', 'x');
    assert.equal(await session.removePath('tree'), undefined);
    await assert.rejects(session.readTextFile('tree/d'), { code: 'SANDBOX_PATH' });
    assert.equal(await session.removePath('tree'), undefined);
  });

  test('never takes the root', async () => {
    await session.writeTextFile('stays', 'x');
    await assert.rejects(session.removePath('.'), { code: 'SANDBOX_PATH' });
    await assert.rejects(session.removePath('/workspace'), { code: 'SANDBOX_PATH' });
    assert.equal(await session.readTextFile('stays'), 'x');
  });
});

describe('paths', () => {
  const segments = [
    'a',
    '.',
    '..',
    '',
    '...',
    '.a',
    'a.',
    ' ',
    '-',
    '~',
    '*',
    '?',
    ':',
    '%2e',
    'é',
    '😀',
    '\n',
    '\t',
    '\x7f',
  ];
  const hard = [
    ...segments.flatMap((one) => [
      one,
      `/${one}`,
      `${one}/`,
      `/workspace/${one}`,
      `/workspace/${one}/`,
      `a/${one}/b`,
      `./${one}`,
    ]),
    ...segments.flatMap((one) => [
      `${one}\\`,
      `${one}\0`,
      `/workspace${one}`,
      `workspace/${one}`,
      `${one}/..`,
      `//${one}`,
    ]),
    ...[
      '/',
      '//',
      '///',
      '/workspace',
      '/workspace/',
      '/workspace//',
      '//workspace',
      '/Workspace/a',
      '/workspace/../etc',
    ],
    ...[
      '/etc/passwd',
      '/proc/self/root',
      'a\\b',
      '\\',
      '\0',
      'a\0',
      'a/b\0/c',
      '/workspace\0',
      '/workspace\\a',
      '\ufeffa',
      'a\ufeff',
    ],
    ...[
      'a/b/c/d/e',
      '/workspace/a/b',
      'workspace',
      'con',
      'NUL',
      'C:',
      'C:/a',
      'file:///a',
      '\u202ea',
      'e\u0301',
      '／a',
      '‥',
      '．．/a',
    ],
    'x'.repeat(255),
    'x'.repeat(256),
    'x/'.repeat(2000) + 'x',
    'x/'.repeat(5000) + 'x',
    'é'.repeat(128),
  ];

  test('are resolved as the sidecar resolves them', async (t) => {
    const peer = startRawPeer(t);
    const { result } = await peer.call('backend.create', { template: { template: 'x' }, network: 'deny-all' });
    const answers = await Promise.all(
      hard.map((path) => peer.call('session.resolvePath', { handle: result.handle, path })),
    );
    for (const [index, { result: told, error }] of answers.entries()) {
      const path = hard[index];
      if (told) {
        assert.equal(session.resolvePath(path), told.path, JSON.stringify(path));
      } else {
        assert.throws(() => session.resolvePath(path), { code: error.data.code }, JSON.stringify(path));
      }
    }
    assert.ok(answers.filter((answer) => answer.result).length > 50);
    assert.ok(answers.filter((answer) => answer.error).length > 50);
  });

  test('are texts', () => {
    for (const value of [undefined, null, 5, {}, ['a']]) {
      assert.throws(() => session.resolvePath(value), { code: 'SANDBOX_PATH' });
    }
  });

  test('with half a surrogate pair are refused before they are sent', async () => {
    for (const path of ['\ud800', 'a\udfff', 'dir/\ud83d/x', '\\\\\ud800']) {
      await assert.rejects(session.readTextFile(path), { code: 'VALIDATION_ERROR' });
      await assert.rejects(session.writeTextFile(path, ''), { code: 'VALIDATION_ERROR' });
      await assert.rejects(session.removePath(path), { code: 'VALIDATION_ERROR' });
      await assert.rejects(session.run({ executable: path }), { code: 'VALIDATION_ERROR' });
    }
    await session.writeTextFile('udead', '');
  });

  test('that cannot be are refused by each call', async () => {
    const calls = ['readBinaryFile', 'readTextFile', 'removePath'];
    for (const path of ['..', 'a/../b', '/etc/passwd', 'a\\b', '']) {
      for (const call of calls) await assert.rejects(session[call](path), { code: 'SANDBOX_PATH' });
      await assert.rejects(session.writeTextFile(path, ''), { code: 'SANDBOX_PATH' });
      await assert.rejects(session.writeBinaryFile(path, new Uint8Array()), { code: 'SANDBOX_PATH' });
    }
    await assert.rejects(session.readTextFile(undefined), { code: 'VALIDATION_ERROR' });
    await assert.rejects(session.readTextFile('missing'), (error) => error.details.errno === 'ENOENT');
  });
});
