import { SandboxError } from './errors.js';
import { SidecarSession } from './session.js';

const internals = new WeakMap();

/** What createSandboxCodingTools needs of a handle; undefined for what is none of ours. */
export function internalsOf(handle) {
  return internals.get(handle);
}

/** The host's hold on one session. */
export class SidecarHandle {
  #sidecar;
  #id;
  #state;
  #toolsets = new Set();
  #stopping = false;
  #deleted = false;
  #onBrokerError;

  /** `created` is the answer of backend.create; to be made before anything that the sidecar sends later is read. */
  constructor(sidecar, created, onBrokerError) {
    this.#sidecar = sidecar;
    this.#id = created.handle;
    this.#state = created.state;
    this.#onBrokerError = onBrokerError;
    this.session = new SidecarSession(sidecar, created.handle, created.session);
    sidecar.handles.set(this.#id, { gatewayError: (error) => this.#gatewayError(error) });
    internals.set(this, {
      sidecar,
      handle: this.#id,
      toolsets: this.#toolsets,
      assertActive: () => this.#assertActive(),
    });
    Object.freeze(this);
  }

  probe() {
    return this.#sidecar.request('handle.probe', { handle: this.#id });
  }

  captureState() {
    if (this.#deleted) throw new SandboxError('SANDBOX_STOPPED', 'The session was deleted');
    return { ...this.#state };
  }

  stop() {
    return this.#end('handle.stop');
  }

  shutdown() {
    return this.#end('handle.shutdown');
  }

  async delete() {
    if (this.#deleted) return;
    this.#stopping = true;
    await this.#sidecar.request('handle.delete', { handle: this.#id }, { urgent: true });
    this.#deleted = true;
    this.#forget();
  }

  async #end(method) {
    this.#stopping = true;
    try {
      await this.#sidecar.request(method, { handle: this.#id }, { urgent: true });
    } catch (error) {
      if (!this.#sidecar.ended) throw error; // it has stopped with its sidecar
    }
    this.#forget();
  }

  #forget() {
    this.#sidecar.handles.delete(this.#id);
    for (const toolset of this.#toolsets) this.#sidecar.hostRequests.remove(toolset);
    this.#toolsets.clear();
  }

  #assertActive() {
    if (this.#stopping) throw new SandboxError('SANDBOX_STOPPED', 'The handle was stopped');
  }

  #gatewayError({ code, message, origin }) {
    this.#onBrokerError(new SandboxError(code, message, { details: { origin, sessionId: this.session.id } }));
  }
}
