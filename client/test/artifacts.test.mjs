// Long output of tools: kept by the sidecar, or by a store of the host.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createSandboxCodingTools } from 'stitchkit-sandbox-client';
import { makeBackend, openHandle } from './support/backend.mjs';

let shared;
let handle;
before(async () => {
  shared = makeBackend();
  handle = await openHandle(shared.backend);
});
after(() => shared.dispose());

const limits = { maxShellOutputBytes: 100 };
const longOutput = { executable: 'sh', args: ['-c', 'seq 1 1000; echo err >&2'] };
const numbers = Array.from({ length: 1000 }, (_, index) => `${index + 1}\n`).join('');
const whole = `--- stdout ---\n${numbers}\n--- stderr ---\nerr\n`;

function openTools(options, of = handle) {
  const tools = createSandboxCodingTools(of, {
    authorize: () => true,
    executables: { sh: '/bin/sh' },
    limits,
    ...options,
  });
  const named = new Map(tools.map((tool) => [tool.name, tool]));
  return { tools, call: (name, input) => named.get(name).handler({ input }) };
}

function unknownReference() {
  return Object.assign(new Error('private: no such reference'), { code: 'SPILL_REFERENCE_UNKNOWN' });
}

/** A store that keeps what it gets, and what it is asked. */
function memoryStore(prefix = 'kept') {
  const kept = new Map();
  const asked = [];
  const find = (reference) => {
    if (!kept.has(reference)) throw unknownReference();
    return kept.get(reference);
  };
  return {
    kept,
    asked,
    authorization(reference) {
      asked.push({ authorization: reference });
      return find(reference).authorization;
    },
    async write(input) {
      const reference = `${prefix}-${kept.size + 1}`;
      kept.set(reference, input);
      return { reference };
    },
    read({ reference, offset, maxBytes }) {
      asked.push({ read: reference, offset, maxBytes });
      const { data } = find(reference);
      return { data: data.subarray(offset, offset + maxBytes), totalBytes: data.byteLength };
    },
    async search({ reference, query, maxMatches }) {
      const lines = new TextDecoder().decode(find(reference).data).split('\n');
      const matches = lines.map((text, index) => ({ line: index + 1, text, unknown: 'left out' }));
      return matches.filter(({ text }) => text.includes(query)).slice(0, maxMatches);
    },
  };
}

async function readWhole(call, reference) {
  let text = '';
  for (;;) {
    const window = await call('read_output', { reference, offset: Buffer.byteLength(text), maxBytes: 1000 });
    text += window.text;
    if (Buffer.byteLength(text) >= window.totalBytes || window.text === '') return text;
  }
}

describe('in the sidecar', () => {
  test('are read and searched, and survive stop and attach', async () => {
    const first = await openHandle(shared.backend);
    const { call } = openTools({}, first);
    const { artifact, stdout } = await call('run_command', longOutput);
    assert.equal(artifact.bytes, Buffer.byteLength(whole));
    assert.ok(stdout.startsWith('1\n2\n') && stdout.endsWith('1000\n'));
    assert.equal(await readWhole(call, artifact.reference), whole);
    const { matches } = await call('search_output', { reference: artifact.reference, query: '999' });
    assert.deepEqual(
      matches.map(({ text }) => text),
      ['999'],
    );
    const state = first.captureState();
    await first.stop();
    const second = await shared.backend.create({ template: state.templateKey, state, network: 'deny-all' });
    assert.equal(await readWhole(openTools({}, second).call, artifact.reference), whole);
  });

  test('ask for what made them again', async () => {
    const asked = [];
    let allowed = true;
    const { call } = openTools({ authorize: (operation) => asked.push(operation) > 0 && allowed });
    const { artifact } = await call('run_command', longOutput);
    asked.length = 0;
    await call('read_output', { reference: artifact.reference, maxBytes: 10 });
    assert.deepEqual(asked.map(({ operation }) => operation).sort(), ['artifact-read', 'shell']);
    allowed = false;
    await assert.rejects(call('read_output', { reference: artifact.reference }), { code: 'FORBIDDEN' });
  });

  test('that there are none of are told by their code', async () => {
    const { call } = openTools({});
    await assert.rejects(call('read_output', { reference: 'none' }), { code: 'SPILL_REFERENCE_UNKNOWN', status: 404 });
    await assert.rejects(call('search_output', { reference: 'none', query: 'x' }), { code: 'SPILL_REFERENCE_UNKNOWN' });
  });
});

describe('none', () => {
  test('end the command where its output is too long', async () => {
    const { tools, call } = openTools({ artifacts: 'none' });
    assert.ok(!tools.some((tool) => tool.name.endsWith('_output')));
    const { outcome, artifact, stdout } = await call('run_command', longOutput);
    assert.equal(outcome, 'output-limit');
    assert.equal(artifact, undefined);
    assert.equal(stdout, numbers.slice(0, 100));
  });
});

describe('in a store of the host', () => {
  test('are written as bytes with what made them, read and searched', async () => {
    const store = memoryStore();
    const { call } = openTools({ artifacts: store });
    const { artifact } = await call('run_command', longOutput);
    assert.equal(artifact.reference, 'kept-1');
    const { data, mediaType, authorization } = store.kept.get('kept-1');
    assert.equal(Object.getPrototypeOf(data), Uint8Array.prototype);
    assert.equal(new TextDecoder().decode(data), whole);
    assert.match(mediaType, /^text\/plain/);
    assert.deepEqual(authorization, { operation: 'shell', cwd: '.', ...longOutput });
    assert.equal(await readWhole(call, 'kept-1'), whole);
    assert.deepEqual(store.asked[0], { authorization: 'kept-1' }); // before any byte is read
    const { matches } = await call('search_output', { reference: 'kept-1', query: '99', maxMatches: 3 });
    assert.deepEqual(
      matches.map(({ text }) => text),
      ['99', '199', '299'],
    );
  });

  test('may do without authorization, totalBytes and search', async () => {
    const { kept, write, read } = memoryStore();
    const store = { write, read: (input) => ({ data: new Uint8Array(read(input).data) }) };
    const { tools, call } = openTools({ artifacts: store });
    assert.ok(!tools.some((tool) => tool.name === 'search_output'));
    const { artifact } = await call('run_command', longOutput);
    assert.equal(kept.size, 1);
    const { text } = await call('read_output', { reference: artifact.reference, maxBytes: 20 });
    assert.equal(text, whole.slice(0, 20));
  });

  test('are read with the methods of the store itself', async () => {
    class Store {
      #data;
      write({ data }) {
        this.#data = data;
        return { reference: 'private' };
      }
      read({ offset, maxBytes }) {
        return { data: this.#data.subarray(offset, offset + maxBytes), totalBytes: this.#data.byteLength };
      }
    }
    const { call } = openTools({ artifacts: new Store() });
    const { artifact } = await call('run_command', longOutput);
    assert.equal(await readWhole(call, artifact.reference), whole);
  });

  test('that the store does not know reach the model as such', async () => {
    const { call } = openTools({ artifacts: memoryStore() });
    for (const [name, input] of [
      ['read_output', {}],
      ['search_output', { query: 'x' }],
    ]) {
      await assert.rejects(call(name, { reference: 'none', ...input }), (error) => {
        assert.equal(error.code, 'SPILL_REFERENCE_UNKNOWN');
        assert.ok(!JSON.stringify(error).includes('private'));
        return true;
      });
    }
  });

  test('a store that fails is told by no more than a code; the logger gets the rest', async () => {
    const fails = () => {
      throw new Error('private: the disk is full');
    };
    const writes = { ...memoryStore(), read: fails, search: async () => fails(), authorization: undefined };
    const { call } = openTools({ artifacts: writes });
    const { artifact } = await call('run_command', longOutput);
    const { reference } = artifact;
    for (const [name, input] of [
      ['read_output', { reference }],
      ['search_output', { reference, query: 'x' }],
    ]) {
      await assert.rejects(call(name, input), (error) => {
        assert.notEqual(error.code, 'SPILL_REFERENCE_UNKNOWN');
        assert.ok(!JSON.stringify([error, error.stack]).includes('private'));
        return true;
      });
    }
    assert.ok(shared.logged.some(([level, message]) => level === 'warn' && message.includes('the disk is full')));
    await assert.rejects(
      openTools({ artifacts: { ...writes, write: fails } }).call('run_command', longOutput),
      (error) => {
        assert.ok(!JSON.stringify([error, error.stack]).includes('private'));
        return true;
      },
    );
    const answers = [undefined, {}, { reference: 5 }, { data: 'text' }, { data: new Uint8Array(), totalBytes: -1 }];
    for (const answer of answers) {
      const wrong = { write: () => ({ reference: 'r' }), read: () => answer };
      const tools = openTools({ artifacts: wrong });
      await tools.call('run_command', longOutput);
      await assert.rejects(tools.call('read_output', { reference: 'r' }), { name: 'SandboxError' });
    }
  });

  test('two stores on one sidecar each get their own', async () => {
    const stores = [memoryStore('one'), memoryStore('two'), memoryStore('three')];
    const second = await openHandle(shared.backend);
    const opened = [
      openTools({ artifacts: stores[0] }),
      openTools({ artifacts: stores[1] }),
      openTools({ artifacts: stores[2] }, second),
    ];
    const outputs = await Promise.all(
      opened.map(({ call }, index) => {
        const args = ['-c', `echo store ${index}; seq 1 1000`];
        return call('run_command', { executable: 'sh', args });
      }),
    );
    for (const [index, { artifact }] of outputs.entries()) {
      assert.deepEqual([...stores[index].kept.keys()], [artifact.reference]);
      assert.match(
        new TextDecoder().decode(stores[index].kept.get(artifact.reference).data),
        new RegExp(`store ${index}`),
      );
      assert.match(await readWhole(opened[index].call, artifact.reference), new RegExp(`store ${index}`));
      const other = opened[(index + 1) % 3];
      await assert.rejects(other.call('read_output', { reference: artifact.reference }), {
        code: 'SPILL_REFERENCE_UNKNOWN',
      });
    }
  });
});
