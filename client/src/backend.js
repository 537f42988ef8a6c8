import { resolve as resolvePath } from 'node:path';
import { encodeBase64 } from './base64.js';
import { invalid, SandboxError } from './errors.js';
import { SidecarHandle } from './handle.js';
import { loadZod } from './schemas.js';
import { SidecarOwner } from './sidecar_owner.js';

const DEFAULT_NAME = 'bubblewrap';
const DEFAULT_COMMAND = 'stitchkit-sandbox';
const CLOSE_TIMEOUT_MS = 5000;

function checkOptions(options) {
  const { stateDirectory, onBrokerError, maxConcurrentCommands: most, args = [] } = options ?? {};
  if (typeof stateDirectory !== 'string' || stateDirectory === '') {
    throw invalid('stateDirectory has to name a directory', 'Give one that is private to this application.');
  }
  if (typeof onBrokerError !== 'function') throw invalid('onBrokerError has to be a function');
  if (most !== undefined && !(Number.isInteger(most) && most >= 1 && most <= 1024)) {
    throw invalid('maxConcurrentCommands has to be an integer from 1 to 1024');
  }
  if (!Array.isArray(args) || args.some((arg) => typeof arg !== 'string')) throw invalid('args has to hold strings');
  for (const name of ['command', 'name', 'executable']) {
    const value = options[name];
    if (value !== undefined && (typeof value !== 'string' || value === '' || value.includes('\0'))) {
      throw invalid(`${name} has to be a text that is not empty`);
    }
  }
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
      call(...values);
    } catch (error) {
      onThrow(error);
    }
  };
}

function templateParams({ template, files }) {
  if (files === undefined) return { template };
  const contents = Object.entries(files).map(([path, content]) => {
    return [path, typeof content === 'string' ? content : { base64: encodeBase64(content) }];
  });
  return { template, files: Object.fromEntries(contents) };
}

class Backend {
  #owner;
  #onBrokerError;
  #closeTimeoutMs;

  constructor(options) {
    const { logger, onExit, onBrokerError } = options;
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
    return sidecar.request('backend.prewarm', params);
  }

  async create({ template, network, state, resources }) {
    const wanted = typeof template === 'object' && template !== null ? templateParams(template) : template;
    const params = structuredClone({ template: wanted, network, state, resources });
    const sidecar = await this.#owner.get();
    let handle;
    const accept = (created) => {
      handle = new SidecarHandle(sidecar, created, this.#onBrokerError);
    };
    // What createSandboxCodingTools needs without waiting.
    await Promise.all([sidecar.request('backend.create', params, { accept }), sidecar.loadDocument(), loadZod()]);
    return handle;
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
