// A host that uses every export, as hosts do. Only compiled, never run.
import {
  createSandboxCodingTools,
  createSidecarSandboxBackend,
  SandboxError,
  type CodingArtifactStore,
  type CodingOperation,
  type CodingToolDefinition,
  type CodingToolLimits,
  type CodingTools,
  type JsonSchema,
  type SandboxBackend,
  type SandboxCodingToolsOptions,
  type SandboxCommand,
  type SandboxErrorCode,
  type SandboxGrade,
  type SandboxHandle,
  type SandboxNetworkPolicy,
  type SandboxNetworkRule,
  type SandboxProcess,
  type SandboxResources,
  type SandboxRestriction,
  type SandboxRunOptions,
  type SandboxSession,
  type SandboxState,
  type SandboxTemplate,
  type SidecarExit,
  type SidecarLogger,
  type SidecarQueue,
  type SidecarSandboxBackend,
  type SidecarSandboxBackendOptions,
  type SidecarStats,
} from 'stitchkit-sandbox-client';

declare const assertNever: (value: never) => never;

const logger: SidecarLogger = console;
const options: SidecarSandboxBackendOptions = {
  command: '/opt/stitchkit-sandbox',
  args: ['--private-origins'] as const,
  stateDirectory: '/var/lib/host',
  name: 'bubblewrap',
  executable: '/usr/bin/bwrap',
  maxConcurrentCommands: 8,
  onBrokerError: (cause) => {
    if (cause instanceof SandboxError) {
      logger.warn(`${cause.code} ${String(cause.details['origin'])}`);
    }
  },
  onExit: ({ code, signal, expected }: SidecarExit) => logger.info(`${code ?? signal ?? '?'} ${expected}`),
  logger: { error: (line) => logger.error(line) },
  closeTimeoutMs: 1000,
};

async function life(): Promise<SandboxState> {
  await using backend: SidecarSandboxBackend = createSidecarSandboxBackend(options);
  const template: SandboxTemplate = { template: 't', files: { a: 'text', b: new Uint8Array([1]) } };
  const { reused, templateKey } = await backend.prewarm(template);
  logger.debug(`${reused satisfies boolean}`);
  const resources: SandboxResources = { tmpBytes: 1 << 20, maxOpenFiles: 64 };
  const rule: SandboxNetworkRule = {
    origin: 'https://api.example.com',
    headers: { authorization: 'Bearer x' },
    methods: ['GET'],
    reflection: 'refuse',
  };
  const network: SandboxNetworkPolicy = { allow: [rule] };
  const handle: SandboxHandle = await backend.create({ template: templateKey, network, resources });
  await commands(handle.session);
  await files(handle.session);
  await tools(handle);
  const stats: SidecarStats | undefined = await backend.stats();
  const queue: SidecarQueue | undefined = stats?.queues['requests'];
  logger.info(`${stats?.commands.ended['output-budget']} ${stats?.handles[0]?.liveCommands} ${queue?.highWater}`);
  const state: SandboxState = handle.captureState();
  await handle.stop();
  const again = await backend.create({ template, network: 'deny-all', state });
  await again.session.setNetworkPolicy('allow-all');
  await again.shutdown();
  await again.delete();
  await backend.close();
  return state;
}

async function commands(session: SandboxSession): Promise<number> {
  const command: SandboxCommand = {
    executable: '/bin/sh',
    args: ['-c', 'cat'],
    cwd: '/workspace',
    environment: { LANG: 'C' },
    timeoutMs: 1000,
    maxOutputBytes: 4096,
  };
  const runOptions: SandboxRunOptions = { signal: AbortSignal.timeout(1000), stdin: new TextEncoder().encode('in') };
  const { exitCode, stdout, stderr } = await session.run(command, runOptions);
  logger.info(stdout.concat(stderr));
  const child: SandboxProcess = await session.spawn(command);
  for await (const chunk of child.stdout) {
    logger.info(`${chunk.byteLength}`);
  }
  for await (const chunk of child.stderr) {
    logger.info(new TextDecoder().decode(chunk));
  }
  await child.stop();
  const result = await child.result;
  return exitCode + result.exitCode + result.stdout.length;
}

async function files(session: SandboxSession): Promise<void> {
  const path: string = session.resolvePath('dir/file');
  await session.writeBinaryFile(path, Buffer.from('bytes'));
  await session.writeTextFile(path, 'text');
  const bytes: Uint8Array = await session.readBinaryFile(path);
  const text: string = await session.readTextFile(path);
  await session.removePath(path);
  logger.info(`${session.id} ${session.brokerSocket} ${bytes.length} ${text.length}`);
}

function describe(operation: CodingOperation): string {
  switch (operation.operation) {
    case 'read':
    case 'list':
    case 'glob':
      return operation.path;
    case 'write':
      return `${operation.path} ${operation.bytes} ${operation.createsDirectories.join()}`;
    case 'edit':
      return `${operation.path} ${operation.baseSha256} ${operation.replacements}`;
    case 'search':
      return `${operation.mode} ${operation.query}`;
    case 'shell':
      return [operation.executable, ...operation.args].join(' ');
    case 'artifact-read':
      return `${operation.reference} ${operation.offset}`;
    case 'artifact-search':
      return `${operation.reference} ${operation.query}`;
    default:
      return assertNever(operation);
  }
}

const store: CodingArtifactStore = {
  write: ({ data, mediaType, authorization }) => ({
    reference: `${mediaType} ${data.length} ${authorization?.operation ?? ''}`,
  }),
  read: async ({ offset, maxBytes }) => ({ data: new Uint8Array(maxBytes), totalBytes: offset + maxBytes }),
  search: () => [{ line: 1, text: 'found' }],
  authorization: async () => undefined,
};

async function tools(handle: SandboxHandle): Promise<unknown> {
  const grade: SandboxGrade = await handle.probe();
  const restrictions: SandboxRestriction[] = grade.grade === 'unavailable' ? [] : grade.restrictions;
  const limits: Partial<CodingToolLimits> = { maxReadBytes: 1024 };
  const toolOptions: SandboxCodingToolsOptions = {
    authorize: async (operation, { signal }) => !signal.aborted && describe(operation) !== 'secret',
    authorizePath: ({ path }) => path !== 'secret',
    deniedPaths: ['**/.env'],
    executables: { sh: '/bin/sh' },
    environment: { CI: 'true' },
    artifacts: store,
    search: { excludeDirectories: ['target'] },
    limits,
    requiredRestrictions: restrictions,
  };
  const all: CodingTools = createSandboxCodingTools(handle, toolOptions);
  await all.ready;
  const [first] = all;
  const definition: CodingToolDefinition | undefined = all.find(({ name }) => name === 'read_file') ?? first;
  const schema: JsonSchema | undefined = definition?.inputSchema;
  const { method, serviceName, action } = definition?.identity ?? { method: 'POST', serviceName: '', action: '' };
  logger.info(`${method} ${serviceName} ${action} ${JSON.stringify(schema)} ${definition?.transports[0]}`);
  return definition?.handler({ input: { path: 'x' }, signal: AbortSignal.abort(), conversation: 'c1' });
}

function report(cause: unknown): string {
  if (!(cause instanceof SandboxError)) {
    throw cause;
  }
  const code: SandboxErrorCode = cause.code;
  const { message, hint } = cause.toJSON().error;
  return [code, cause.name, cause.status, message, hint, cause.reason, cause.incident, cause.stack].join('\n');
}

life().catch(report);

// What has to be refused. Each line stands for a mistake that a host could make.
declare const backend: SandboxBackend;
declare const handle: SandboxHandle;
// @ts-expect-error -- the host has to say what becomes of a gateway's failures
createSidecarSandboxBackend({ stateDirectory: '/s' });
// @ts-expect-error -- a state directory is needed
createSidecarSandboxBackend({ onBrokerError: () => {} });
// @ts-expect-error -- the policy is never a default
backend.create({ template: 't' });
// @ts-expect-error -- no such policy
backend.create({ template: 't', network: 'deny' });
// @ts-expect-error -- a wildcard of methods is a list, too
backend.create({ template: 't', network: { allow: [{ origin: 'https://a', methods: '*' }] } });
// @ts-expect-error -- a backend that is only the contract has no close
backend.close();
// @ts-expect-error -- at once, not a promise
handle.captureState().then();
// @ts-expect-error -- a command line is no command
handle.session.run('ls -l');
// @ts-expect-error -- stdin is bytes
handle.session.run({ executable: '/bin/cat' }, { stdin: 'text' });
// @ts-expect-error -- text goes by writeTextFile
handle.session.writeBinaryFile('path', 'text');
// @ts-expect-error -- read-only
handle.session.id = 'other';
// @ts-expect-error -- nobody decides
createSandboxCodingTools(handle, {});
// @ts-expect-error -- a decision is true or false
createSandboxCodingTools(handle, { authorize: () => 'yes' });
// @ts-expect-error -- no such restriction
createSandboxCodingTools(handle, { authorize: () => true, requiredRestrictions: ['everything'] });
// @ts-expect-error -- a store has to write and read
createSandboxCodingTools(handle, { authorize: () => true, artifacts: { write: () => ({ reference: '' }) } });
// @ts-expect-error -- no such code
new SandboxError('NO_SUCH_CODE', 'why');
// @ts-expect-error -- there may be no such tool
createSandboxCodingTools(handle, { authorize: () => true })[0].handler({ input: {} });
