// An agent loop over the sandbox's tools, in one file: node example/agent.mjs
// The model here is a script, so that the example needs no key and no network; `model` is where yours goes.
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSandboxCodingTools, createSidecarSandboxBackend, SandboxError } from '../src/index.js';

const home = mkdtempSync(join(tmpdir(), 'sandbox-agent-'));
chmodSync(home, 0o711); // started by root, the sidecar becomes an ordinary user who has to get through

const backend = createSidecarSandboxBackend({
  stateDirectory: join(home, 'state'),
  onBrokerError: (cause) => console.error('gateway:', cause),
});

const template = {
  template: 'agent-example',
  files: {
    'sum.sh': 'echo $(($1 - $2))\n',
    'check.sh': 'test "$(sh sum.sh 2 3)" = 5 && echo "the check passes" || { echo "2 + 3 is not 5"; exit 1; }\n',
    '.env': 'KEY=not for models\n',
  },
};

const call = (name, input) => ({ toolCalls: [{ name, input }] });
const script = [
  call('list_directory', {}),
  call('run_command', { executable: 'sh', args: ['check.sh'] }),
  call('read_file', { path: 'sum.sh' }),
  call('read_file', { path: '.env' }), // curious; the host says no
  call('edit_file', { path: 'sum.sh', oldText: '$1 - $2', newText: '$1 + $2' }),
  call('run_command', { executable: 'sh', args: ['check.sh'] }),
  { text: 'sum.sh subtracted. It adds now, and the check passes.' },
];

/** Stands for a call of a provider with `messages` and the tools' name, description and inputSchema. */
async function model(messages) {
  return script[messages.filter(({ role }) => role === 'assistant').length];
}

async function runTool(tools, { name, input }) {
  const tool = tools.find((candidate) => candidate.name === name);
  try {
    return await tool.handler({ input, signal: AbortSignal.timeout(60_000) });
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error;
    const { code, details, hint } = error; // refusals are for the model: what, why, and what to do instead
    return { code, ...details, hint };
  }
}

async function agent(task, tools) {
  const messages = [{ role: 'user', content: task }];
  for (;;) {
    const { text, toolCalls = [] } = await model(messages);
    messages.push({ role: 'assistant', content: text, toolCalls });
    if (toolCalls.length === 0) return { text, messages };
    for (const toolCall of toolCalls) {
      console.log(`\n> ${toolCall.name} ${JSON.stringify(toolCall.input)}`);
      const result = await runTool(tools, toolCall);
      console.log(JSON.stringify(result));
      messages.push({ role: 'tool', name: toolCall.name, content: result });
    }
  }
}

try {
  const handle = await backend.create({ template, network: 'deny-all' });
  const tools = createSandboxCodingTools(handle, {
    authorize: (operation) => operation.operation !== 'write', // this agent edits, it makes no files
    authorizePath: ({ path }) => path !== '.env',
    executables: { sh: '/bin/sh' },
  });
  const { text, messages } = await agent('check.sh fails. Mend what it checks.', tools);
  console.log(`\n${text}`);
  const results = messages.filter(({ role }) => role === 'tool').map(({ content }) => content);
  const asExpected = results[1].exitCode === 1 && results[3].code === 'FORBIDDEN' && results[5].exitCode === 0;
  await handle.delete();
  if (!asExpected) throw new Error('The sandbox did not do what the script expects');
} finally {
  await backend.close();
  rmSync(home, { recursive: true, force: true });
}
