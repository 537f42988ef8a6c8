import { resolve as resolvePath } from 'node:path';
import { encodeBase64 } from './base64.js';
import { invalid, SandboxError } from './errors.js';
import { checkPolicy, isRecord, refuseUnknown } from './given.js';
import { SidecarHandle } from './handle.js';
import { loadZod } from './schemas.js';
import { SidecarOwner } from './sidecar_owner.js';

const DEFAULT_NAME = 'bubblewrap';
const DEFAULT_COMMAND = 'stitchkit-sandbox';
const CLOSE_TIMEOUT_MS = 5000;
/** A timer of more is one of 1 ms. */
const MAX_TIMER_MS = 2 ** 31 - 1;

const OPTIONS = [
  ...['command', 'args', 'stateDirectory', 'name', 'executable', 'maxConcurrentCommands', 'onBrokerError', 'onExit'],
  ...['logger', 'closeTimeoutMs'],
];
/** An incident's cause is told nowhere else. */
const toConsole = (line) => console.error(line);
const DEFAULT_LOGGER = { error: toConsole, warn: toConsole };

const isText = (value) => typeof value === 'string' && /^[^\0]+$/.test(value) && value.isWellFormed();

function checkOptions(options) {
  refuseUnknown(options ?? {}, OPTIONS, 'createSidecarSandboxBackend');
  const { stateDirectory, onBrokerError, maxConcurrentCommands: most, args = [], closeTimeoutMs = 0 } = options ?? {};
  if (!isText(stateDirectory)) {
    throw invalid('stateDirectory has to name a directory, without NUL', 'Give one private to this application.');
  }
  if (typeof onBrokerError !== 'function') throw invalid('onBrokerError has to be a function');
  if (most !== undefined && !(Number.isInteger(most) && most >= 1 && most <= 1024)) {
    throw invalid('maxConcurrentCommands has to be an integer from 1 to 1024');
  }
  if (!(Number.isInteger(closeTimeoutMs) && closeTimeoutMs >= 0 && closeTimeoutMs <= MAX_TIMER_MS)) {
    throw invalid(`closeTimeoutMs has to be an integer from 0 to ${MAX_TIMER_MS}`);
  }
  if (!Array.isArray(args) || args.some((arg) => typeof arg !== 'string' || arg.includes('\0'))) {
    throw invalid('args has to hold texts without NUL');
  }
  for (const name of ['command', 'name', 'executable']) {
    if (options[name] !== undefined && !isText(options[name])) {
      throw invalid(`${name} has to be a text that is not empty and holds no NUL`);
    }
  }
  const { onExit, logger } = options;
  if (onExit !== undefined && typeof onExit !== 'function') throw invalid('onExit has to be a function');
  if (typeof (logger ?? {}) !== 'object') throw invalid('logger has to be an object with error, warn, info and debug');
}

function commandLine({ stateDirectory, name, executable, maxConcurrentCommands, args = [] }) {
  return [
    ...['--state-dir', resolvePath(stateDirectory), '--framing', 'lines', '--name', name ?? DEFAULT_NAME],
    ...(executable === undefined ? [] : ['--bwrap', executable]),
    ...(maxConcurrentCommands === undefined ? [] : ['--max-concurrent-commands', String(maxConcurrentCommands)]),
    ...args,
  ];
}

// A host's function that throws must not end what serves all its sessions.
function guarded(call, onThrow = () => {}) {
  return (...values) => {
    try {
      void Promise.resolve(call(...values)).catch(onThrow);
    } catch (error) {
      onThrow(error);
    }
  };
}

function templateParams(input) {
  const { template, files, ...unknown } = input ?? {};
  refuseUnknown(unknown, ['template', 'files'], 'A template');
  if (files === undefined) return { template };
  if (!isRecord(files)) throw invalid('files has to be an object with a member for each path');
  const contents = Object.entries(files).map(([path, content]) => {
    return [path, typeof content === 'string' ? content : { base64: encodeBase64(content) }];
  });
  return { template, files: Object.fromEntries(contents) };
}

// A copy: what the caller changes while the sidecar starts does not count.
function copied(params) {
  try {
    return JSON.parse(JSON.stringify(params));
  } catch (cause) {
    throw invalid(`What was given cannot be sent as JSON: ${cause.message}`);
  }
}

class Backend {
  #owner;
  #onBrokerError;
  #closeTimeoutMs;

  constructor(options) {
    const { logger = DEFAULT_LOGGER, onExit, onBrokerError } = options;
    const log = guarded((level, message) => logger?.[level]?.(message));
    const told = (what) => (error) => log('error', `${what} has thrown: ${error?.stack ?? error}`);
    this.name = options.name ?? DEFAULT_NAME;
    this.#closeTimeoutMs = options.closeTimeoutMs ?? CLOSE_TIMEOUT_MS;
    this.#onBrokerError = guarded((cause) => onBrokerError(cause), told('onBrokerError'));
    this.#owner = new SidecarOwner({
      command: options.command ?? (process.env.STITCHKIT_SANDBOX || DEFAULT_COMMAND),
      args: commandLine(options),
      log,
      onExit: guarded((exit) => onExit?.(exit), told('onExit')),
    });
    Object.freeze(this);
  }

  async prewarm(input) {
    const params = templateParams(input);
    const sidecar = await this.#owner.get();
    return await sidecar.request('backend.prewarm', params);
  }

  async create(input) {
    const { template, network, state, resources, ...unknown } = input ?? {};
    refuseUnknown(unknown, ['template', 'network', 'state', 'resources'], 'create');
    checkPolicy(network);
    const wanted = typeof template === 'object' && template !== null ? templateParams(template) : template;
    const params = copied({ template: wanted, network, state, resources });
    const sidecar = await this.#owner.get();
    let handle;
    const accept = (created) => {
      handle = new SidecarHandle(sidecar, created, this.#onBrokerError);
    };
    // What createSandboxCodingTools needs without waiting.
    await Promise.all([sidecar.request('backend.create', params, { accept }), sidecar.loadDocument(), loadZod()]);
    return handle;
  }

  async stats() {
    return await this.#owner.running?.request('backend.stats');
  }

  close() {
    return this.#owner.close(this.#closeTimeoutMs);
  }

  [Symbol.asyncDispose]() {
    return this.close();
  }
}

export function createSidecarSandboxBackend(options) {
  if (process.platform !== 'linux') throw new SandboxError('SANDBOX_UNAVAILABLE', 'stitchkit-sandbox requires Linux');
  checkOptions(options);
  return new Backend(options);
}
