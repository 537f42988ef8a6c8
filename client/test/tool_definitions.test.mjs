// What the tools say of themselves: as the sidecar says it, and as zod schemas.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createSandboxCodingTools } from 'stitchkit-sandbox-client';
import { z } from 'zod';
import { makeBackend, openHandle } from './support/backend.mjs';
import { startRawPeer } from './support/raw_peer.mjs';
import { makeHome, removeHome, sidecarBinary } from './support/sidecar.mjs';

const store = { write: () => ({ reference: 'r' }), read: () => ({ data: new Uint8Array() }) };
const searchable = { ...store, search: () => [] };
const executables = { node: '/usr/bin/node', sh: '/bin/sh' };
const optionSets = {
  'no options': {},
  'executables': { executables },
  'executables without one': { executables: {} },
  'artifacts none': { executables, artifacts: 'none' },
  'artifacts in the sidecar': { executables, artifacts: 'sidecar' },
  'artifacts in a store': { executables, artifacts: store },
  'artifacts in a store that searches': { executables, artifacts: searchable },
  'limits': {
    executables,
    limits: { maxReadBytes: 1000, maxSearchResults: 7, maxShellArguments: 3, maxPathBytes: 20 },
  },
  'larger limits': { limits: { maxSearchResults: 1000, maxReadBytes: 1024 * 1024, maxWriteBytes: 1 } },
  'all other options': {
    authorizePath: () => true,
    deniedPaths: ['secret/**'],
    environment: { A: 'b' },
    search: { excludeDirectories: ['dist'] },
    requiredRestrictions: ['write-contained'],
  },
};

// `input` and `output` are made of the schemas; `handler` is the client's.
function described(tools) {
  return tools.map(({ name, description, identity, inputSchema, outputSchema, transports }) => {
    return { name, method: `coding.${name}`, description, identity, inputSchema, outputSchema, transports };
  });
}

let shared;
let handle;
before(async () => {
  shared = makeBackend();
  handle = await openHandle(shared.backend);
});
after(() => shared.dispose());

const openTools = (options = {}) =>
  createSandboxCodingTools(handle, { authorize: () => true, executables, ...options });
const toolNamed = (tools, name) => tools.find((tool) => tool.name === name);

describe('definitions', () => {
  test('are what coding.create answers', async (t) => {
    const peer = startRawPeer(t);
    const created = await peer.call('backend.create', { template: { template: 'x' }, network: 'deny-all' });
    for (const [name, options] of Object.entries(optionSets)) {
      const { artifacts, authorizePath, search, ...rest } = options;
      const { result, error } = await peer.call('coding.create', {
        handle: created.result.handle,
        authorize: 'host',
        authorizePaths: authorizePath ? 'host' : 'allow',
        ...(artifacts && { artifacts: typeof artifacts === 'object' ? 'host' : artifacts }),
        ...(search && { excludeDirectories: search.excludeDirectories }),
        ...rest,
      });
      assert.equal(error, undefined, name);
      const tools = createSandboxCodingTools(handle, { authorize: () => true, ...options });
      await tools.ready;
      // The sidecar cannot know whether a store searches.
      const expected = result.tools.filter((tool) => tool.name !== 'search_output' || artifacts !== store);
      assert.deepEqual(described(tools), expected, name);
      const hasCommands = Object.keys(options.executables ?? {}).length > 0;
      assert.equal(
        tools.some((tool) => tool.name === 'run_command'),
        hasCommands,
        name,
      );
    }
  });

  test('come at once, as an array with `ready` beside it', async () => {
    const tools = openTools();
    assert.ok(Array.isArray(tools));
    assert.ok(tools.ready instanceof Promise);
    assert.deepEqual(
      Object.keys(tools),
      tools.map((_, index) => String(index)),
    );
    assert.equal(await tools.ready, undefined);
  });

  test('share nothing that one host could change for another', () => {
    const [first] = openTools();
    first.inputSchema.properties.path.description = 'changed';
    assert.notEqual(openTools()[0].inputSchema.properties.path.description, 'changed');
  });
});

describe('zod schemas', () => {
  test('accept each real input and output, and only these', async () => {
    const tools = openTools({ limits: { maxShellOutputBytes: 64 } });
    const calls = [
      ['write_file', { path: 'dir/a.txt', content: 'one\ntwo\n' }],
      ['read_file', { path: 'dir/a.txt' }],
      ['read_file', { path: 'dir/a.txt', offset: 1, maxBytes: 2 }],
      ['edit_file', { path: 'dir/a.txt', oldText: 'one', newText: '1', dryRun: true }],
      ['edit_file', { path: 'dir/a.txt', oldText: 'one', newText: '1' }],
      ['list_directory', {}],
      ['list_directory', { path: 'dir' }],
      ['glob', { pattern: '**/*.txt' }],
      ['search_files', { query: 'two', context: 1 }],
      ['search_files', { query: 'a.txt', mode: 'path' }],
      ['search_files', { query: 'two', include: '*.none' }],
      ['run_command', { executable: 'sh', args: ['-c', 'echo out; exit 2'] }],
      ['run_command', { executable: 'sh', args: ['-c', 'kill -9 $$'] }],
      ['run_command', { executable: 'sh', args: ['-c', 'seq 1 1000'] }],
    ];
    const outputs = new Map();
    const check = async (name, input) => {
      const tool = toolNamed(tools, name);
      assert.ok(tool.input instanceof z.ZodObject, name);
      assert.ok(tool.output instanceof z.ZodType, name);
      const parsed = tool.input.parse(input);
      const output = await tool.handler({ input: parsed });
      assert.deepEqual(tool.output.parse(output), output);
      assert.equal(tool.output.safeParse({ ...output, unknown: 1 }).success, false, name);
      assert.equal(tool.input.safeParse({ ...input, unknown: 1 }).success, false, name);
      outputs.set(name, output);
      return output;
    };
    for (const [name, input] of calls) await check(name, input);
    const { reference } = outputs.get('run_command').artifact;
    await check('read_output', { reference });
    await check('search_output', { reference, query: '99' });
    assert.deepEqual([...outputs.keys()].sort(), tools.map((tool) => tool.name).sort());
  });

  test('refuse wrong inputs, and fill in defaults', () => {
    const tools = openTools({ limits: { maxReadBytes: 1000 } });
    const wrong = {
      read_file: [{}, { path: 5 }, { path: 'a', offset: -1 }, { path: 'a', maxBytes: 1.5 }, null, 'a'],
      write_file: [{ path: 'a' }, { path: 'a', content: 'x', overwrite: 'yes' }],
      search_files: [
        { query: 'a', mode: 'both' },
        { query: 'a', context: 11 },
      ],
      run_command: [{ executable: 'bash' }, { executable: 'sh', args: 'x' }, {}],
    };
    for (const [name, inputs] of Object.entries(wrong)) {
      for (const input of inputs) {
        assert.equal(toolNamed(tools, name).input.safeParse(input).success, false, `${name} ${JSON.stringify(input)}`);
      }
    }
    assert.deepEqual(toolNamed(tools, 'read_file').input.parse({ path: 'a' }), {
      path: 'a',
      offset: 0,
      maxBytes: 1000,
    });
    assert.deepEqual(toolNamed(tools, 'run_command').input.parse({ executable: 'sh' }), {
      executable: 'sh',
      args: [],
      cwd: '.',
    });
  });

  test('can be made JSON Schemas again, for a model', () => {
    for (const { name, input, inputSchema } of openTools()) {
      const { properties, required } = z.toJSONSchema(input, { io: 'input' });
      assert.deepEqual(Object.keys(properties), Object.keys(inputSchema.properties), name);
      assert.deepEqual((required ?? []).sort(), [...(inputSchema.required ?? [])].sort(), name);
      for (const [key, { description }] of Object.entries(inputSchema.properties)) {
        assert.equal(properties[key].description, description, `${name} ${key}`);
      }
    }
  });
});

describe('without zod', () => {
  test('the schemas are JSON Schemas', async (t) => {
    const home = makeHome();
    t.after(() => removeHome(home));
    cpSync(fileURLToPath(new URL('../src', import.meta.url)), join(home, 'src'), { recursive: true });
    writeFileSync(join(home, 'package.json'), '{"type":"module"}');
    mkdirSync(join(home, 'node_modules')); // where there is none Bun installs what is missing
    const program = `
      import { createSidecarSandboxBackend, createSandboxCodingTools } from './src/index.js';
      const [command, stateDirectory] = process.argv.slice(-2);
      const backend = createSidecarSandboxBackend({ command, stateDirectory, onBrokerError() {} });
      const handle = await backend.create({ template: { template: 'x' }, network: 'deny-all' });
      const tools = createSandboxCodingTools(handle, { authorize: () => true, executables: { sh: '/bin/sh' } });
      const same = tools.every((tool) => tool.input === tool.inputSchema && tool.output === tool.outputSchema);
      const write = tools.find((tool) => tool.name === 'write_file');
      const wrote = await write.handler({ input: { path: 'a', content: 'x' } });
      await backend.close();
      console.log(JSON.stringify({ same, type: tools[0].input.type, bytes: wrote.bytes }));
    `;
    writeFileSync(join(home, 'program.mjs'), program);
    const args = [join(home, 'program.mjs'), sidecarBinary(), join(home, 'state')];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: home });
    assert.deepEqual(JSON.parse(stdout), { same: true, type: 'object', bytes: 1 });
  });
});
