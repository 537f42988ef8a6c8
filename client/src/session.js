import { decodeBase64, encodeBase64 } from './base64.js';
import { invalid } from './errors.js';
import { checkPolicy, checkTexts } from './given.js';
import { ProcessReceiver } from './sandbox_process.js';
import { canonicalPath } from './workspace_path.js';

function commandParams(command, stdin) {
  checkTexts(command?.environment, 'command.environment');
  return { command, ...(stdin !== undefined && stdin !== null && { stdin: content(stdin) }) };
}

const content = (value) => (typeof value === 'string' ? value : { base64: encodeBase64(value) });

/** The workspace of a handle: files and commands. */
export class SidecarSession {
  #sidecar;
  #handle;

  /** `handle` is the sidecar's name for it; `session` as backend.create has answered. */
  constructor(sidecar, handle, session) {
    this.#sidecar = sidecar;
    this.#handle = handle;
    this.id = session.id;
    this.brokerSocket = session.brokerSocket;
    Object.freeze(this);
  }

  resolvePath(path) {
    return canonicalPath(path);
  }

  async readBinaryFile(path) {
    const { base64 } = await this.#request('session.readBinaryFile', { path });
    return decodeBase64(base64);
  }

  async readTextFile(path) {
    const { text } = await this.#request('session.readTextFile', { path });
    return text;
  }

  async writeBinaryFile(path, bytes) {
    await this.#request('session.writeBinaryFile', { path, base64: encodeBase64(bytes) });
  }

  async writeTextFile(path, text) {
    if (typeof text !== 'string') throw invalid('text has to be a string');
    // As TextEncoder does: half a surrogate pair becomes U+FFFD.
    await this.#request('session.writeTextFile', { path, text: text.toWellFormed() });
  }

  async removePath(path) {
    await this.#request('session.removePath', { path });
  }

  async run(command, options) {
    const { signal, stdin } = options ?? {};
    return await this.#request('session.run', commandParams(command, stdin), { signal });
  }

  async spawn(command, options) {
    const { signal, stdin } = options ?? {};
    let receiver;
    const accept = ({ process }) => {
      receiver = new ProcessReceiver(this.#sidecar, process, signal);
    };
    const params = { ...commandParams(command, stdin), stream: true };
    try {
      await this.#request('session.spawn', params, { signal, accept });
    } catch (error) {
      await receiver?.ended; // aborted when it had begun already
      throw error;
    }
    return receiver.process;
  }

  async setNetworkPolicy(network) {
    checkPolicy(network);
    await this.#request('session.setNetworkPolicy', { network });
  }

  #request(method, params, options) {
    return this.#sidecar.request(method, { handle: this.#handle, ...params }, options);
  }
}
