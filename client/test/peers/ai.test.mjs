// An agent loop of the AI SDK works with the tools, as a host would give them to it; the model is a script.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { generateText, jsonSchema, stepCountIs, tool } from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import { createSandboxCodingTools, createSidecarSandboxBackend } from '../../src/index.js';
import { sidecarBinary, stateDirectory } from '../support/sidecar.mjs';

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined },
};

/** Calls the tools of `script` one after another, a step each, and then says that it is done. */
function scriptedModel(script) {
  const steps = script.map(([toolName, input], index) => ({
    content: [{ type: 'tool-call', toolCallId: `call-${index}`, toolName, input: JSON.stringify(input) }],
    finishReason: { unified: 'tool-calls', raw: undefined },
    usage,
    warnings: [],
  }));
  const end = {
    content: [{ type: 'text', text: 'done' }],
    finishReason: { unified: 'stop', raw: undefined },
    usage,
    warnings: [],
  };
  return new MockLanguageModelV3({ doGenerate: [...steps, end] });
}

const forAiSdk = (tools) =>
  Object.fromEntries(
    tools.map(({ name, description, input, handler }) => [
      name,
      tool({
        description,
        inputSchema: input,
        execute: (args, { abortSignal }) => handler({ input: args, signal: abortSignal }),
      }),
    ]),
  );

async function openSession(t) {
  const backend = createSidecarSandboxBackend({
    command: sidecarBinary(),
    stateDirectory: stateDirectory(t),
    onBrokerError: (cause) => assert.fail(cause),
  });
  t.after(() => backend.close());
  return backend.create({ template: { template: 'ai', files: { '.env': 'KEY=1\n' } }, network: 'deny-all' });
}

const SCRIPT = [
  ['write_file', { path: 'src/add.sh', content: 'echo $(($1 - $2))\n' }],
  ['run_command', { executable: 'sh', args: ['src/add.sh', '2', '3'] }],
  ['edit_file', { path: 'src/add.sh', oldText: '-', newText: '+' }],
  ['run_command', { executable: 'sh', args: ['src/add.sh', '2', '3'] }],
  ['read_file', { path: 'src/add.sh' }],
  ['read_file', { path: '.env' }],
  ['read_file', { path: '../../etc/passwd' }],
  ['run_command', { executable: 'bash', args: ['-c', 'id'] }],
];

test('an agent writes, runs, edits and reads, and is refused what it may not have', async (t) => {
  const handle = await openSession(t);
  const asked = [];
  const tools = createSandboxCodingTools(handle, {
    authorize: (operation) => {
      asked.push(operation.operation);
      return true;
    },
    authorizePath: async ({ path }) => path !== '.env',
    executables: { sh: '/bin/sh' },
  });
  const model = scriptedModel(SCRIPT);
  const result = await generateText({
    model,
    tools: forAiSdk(tools),
    stopWhen: stepCountIs(SCRIPT.length + 1),
    prompt: 'Add two and three.',
  });
  assert.equal(result.text, 'done');
  const parts = result.steps.flatMap(({ content }) => content).filter(({ type }) => type !== 'tool-call');
  const outcome = (index) => parts.find(({ toolCallId }) => toolCallId === `call-${index}`);
  assert.deepEqual(outcome(0).output, { path: 'src/add.sh', bytes: 18, createdDirectories: ['src'] });
  assert.equal(outcome(1).output.stdout, '-1\n');
  assert.equal(outcome(2).output.replacements, 1);
  assert.equal(outcome(3).output.stdout, '5\n');
  assert.equal(outcome(4).output.text, 'echo $(($1 + $2))\n');
  for (const [index, code] of [[5, 'FORBIDDEN'], [6, 'FORBIDDEN']]) {
    assert.equal(outcome(index).type, 'tool-error');
    assert.equal(outcome(index).error.code, code);
    assert.ok(outcome(index).error.hint);
  }
  assert.equal(outcome(7).type, 'tool-error'); // by the schema already: it never reaches the sidecar
  assert.deepEqual(asked, ['write', 'shell', 'edit', 'shell', 'read']);
  // What the model was told about the tools is what the sidecar says of them.
  const told = model.doGenerateCalls[0].tools;
  assert.deepEqual(told.map(({ name }) => name).sort(), tools.map(({ name }) => name).sort());
  for (const { name, inputSchema } of told) {
    const own = tools.find((one) => one.name === name).inputSchema;
    assert.deepEqual(Object.keys(inputSchema.properties).sort(), Object.keys(own.properties).sort());
    assert.equal(inputSchema.additionalProperties, false);
  }
  assert.equal(await handle.session.readTextFile('src/add.sh'), 'echo $(($1 + $2))\n');
});

test('an agent that is aborted while its command runs leaves nothing behind', async (t) => {
  const handle = await openSession(t);
  const controller = new AbortController();
  const reason = new Error('the user has had enough');
  const tools = createSandboxCodingTools(handle, { authorize: () => true, executables: { sh: '/bin/sh' } });
  const results = [];
  const watched = tools.map((tool) => ({
    ...tool,
    handler: (context) => {
      results.push(tool.handler(context));
      return results.at(-1);
    },
  }));
  const loop = generateText({
    model: scriptedModel([['run_command', { executable: 'sh', args: ['-c', 'touch begun; exec sleep 600'] }]]),
    tools: forAiSdk(watched),
    stopWhen: stepCountIs(2),
    prompt: 'Wait.',
    abortSignal: controller.signal,
  });
  const begun = async () => {
    while ((await handle.session.readTextFile('begun').catch((error) => error.code)) !== '') continue;
  };
  await Promise.race([begun(), loop]);
  controller.abort(reason);
  await assert.rejects(loop, (error) => error === reason || error.name === 'AbortError');
  assert.equal((await results[0]).outcome, 'cancelled');
  // A live command would be SANDBOX_BUSY here.
  await handle.session.setNetworkPolicy('allow-all');
});
