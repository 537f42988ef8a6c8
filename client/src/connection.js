import { whenAborted } from './abort_listeners.js';
import { copyOf, fromWire, SandboxError } from './errors.js';
import { checkSignal } from './given.js';
import { LineDecoder } from './line_decoder.js';
import { encodeMessage } from './message.js';

const MAX_LINE_BYTES = 512 * 1024 * 1024;
const MAX_FIRST_LINE_BYTES = 1024 * 1024;
/** Until `initialize` has told the sidecar's own. */
const FIRST_LIMITS = { maxMessageBytes: 16 * 1024 * 1024, maxMessageValues: 512 * 1024, maxRequestsInFlight: 1024 };
/** Places among the requests in flight for those that end others. */
const URGENT_PLACES = 256;

const METHOD_NOT_FOUND = { code: -32601, message: 'Method not found', data: { code: 'METHOD_NOT_FOUND' } };

function asWireError(error) {
  const known = error?.code === 'SPILL_REFERENCE_UNKNOWN';
  return known
    ? { code: -32015, message: 'There is no such artifact', data: { code: 'SPILL_REFERENCE_UNKNOWN' } }
    : { code: -32603, message: 'The host failed', data: { code: 'INTERNAL_SERVER_ERROR' } };
}

/** JSON-RPC over lines, both directions. Knows no method but `$/cancelRequest`. */
export class Connection {
  #write;
  #hooks;
  #limits = FIRST_LIMITS;
  #decoder = new LineDecoder(MAX_FIRST_LINE_BYTES, (line) => this.#onLine(line));
  #lastId = 0;
  #pending = new Map();
  #queue = new Set();
  #answering = new Map();
  #busy = false;
  #closedBy;

  /**
   * `write(text)` sends. Hooks: `notification(method, params)`; `request(method, params, signal)` answers the sidecar,
   * and is undefined for a method that it does not know; `busy(boolean)` whether anything is awaited; `failed(error)`
   * when the other end is no peer; `log(message)`.
   */
  constructor(write, hooks) {
    this.#write = write;
    this.#hooks = hooks;
  }

  set limits(limits) {
    this.#limits = limits;
    this.#decoder.maxBytes = MAX_LINE_BYTES;
  }

  /**
   * The result, or a SandboxError. With an aborted `signal` the request is cancelled, and when that is done the promise
   * rejects with the signal's reason; with `keepResult` a result that came all the same is handed out, also to who has
   * aborted before. `accept(result)` is called before anything is read that the sidecar sent later. `urgent` requests
   * do not wait behind others.
   */
  async request(method, params, options) {
    const { result, failure } = await this.#exchange(method, params, options);
    // Made here, where the engine knows who awaits: its stack says which call of the host has failed.
    if (failure) throw failure();
    return result;
  }

  #exchange(method, params, { signal, keepResult = false, accept, urgent = false } = {}) {
    return new Promise((resolve, reject) => {
      if (this.#closedBy) throw copyOf(this.#closedBy);
      checkSignal(signal);
      if (signal?.aborted && !keepResult) throw signal.reason;
      const id = ++this.#lastId;
      const text = encodeMessage({ jsonrpc: '2.0', id, method, params }, this.#limits);
      const entry = { id, text, resolve, reject, signal, keepResult, accept };
      if (signal) entry.forget = whenAborted(signal, () => this.#abort(entry));
      if (!urgent && this.#pending.size >= this.#limits.maxRequestsInFlight - URGENT_PLACES) {
        this.#queue.add(entry);
      } else {
        this.#send(entry);
      }
      this.#updateBusy();
      if (signal?.aborted) this.#abort(entry);
    });
  }

  /** Bytes from the sidecar. */
  receive(chunk) {
    if (this.#closedBy) return;
    try {
      this.#decoder.push(chunk);
    } catch (cause) {
      const message = 'The sidecar sent what is no protocol message';
      this.#hooks.failed(new SandboxError('SANDBOX_UNAVAILABLE', message, { cause }));
    }
  }

  /** Every call that has no answer, and every later one, fails with `error`. */
  close(error) {
    if (this.#closedBy) return;
    this.#closedBy = error;
    const left = [...this.#pending.values(), ...this.#queue];
    this.#pending.clear();
    this.#queue.clear();
    for (const controller of this.#answering.values()) controller.abort(error);
    for (const entry of left) {
      entry.forget?.();
      if (entry.signal?.aborted) entry.reject(entry.signal.reason);
      else entry.resolve({ failure: () => copyOf(error) });
    }
    this.#updateBusy();
  }

  #send(entry) {
    this.#pending.set(entry.id, entry);
    this.#write(entry.text);
    entry.text = undefined;
  }

  #abort(entry) {
    if (this.#queue.delete(entry)) {
      entry.forget?.();
      entry.reject(entry.signal.reason);
      this.#settled();
    } else if (this.#pending.has(entry.id)) {
      this.#notify('$/cancelRequest', { id: entry.id });
    }
  }

  #settled() {
    const [next] = this.#queue;
    if (next && this.#pending.size < this.#limits.maxRequestsInFlight - URGENT_PLACES) {
      this.#queue.delete(next);
      this.#send(next);
    }
    this.#updateBusy();
  }

  #updateBusy() {
    const busy = this.#pending.size > 0 || this.#queue.size > 0;
    if (busy !== this.#busy) this.#hooks.busy(busy);
    this.#busy = busy;
  }

  #notify(method, params) {
    this.#write(encodeMessage({ jsonrpc: '2.0', method, params }, this.#limits));
  }

  #onLine(line) {
    if (line.trim() === '') return;
    const message = JSON.parse(line);
    if (message === null || typeof message !== 'object' || message.jsonrpc !== '2.0') {
      throw new TypeError('a line that is no JSON-RPC 2.0 message');
    }
    if (message.method === undefined) {
      this.#onResponse(message);
    } else if (message.id === undefined) {
      this.#onNotification(message.method, message.params);
    } else {
      void this.#answer(message);
    }
  }

  #onResponse(message) {
    const entry = this.#pending.get(message.id);
    if (!entry) {
      this.#hooks.log(`the sidecar answered what was not asked: ${JSON.stringify(message).slice(0, 500)}`);
      return;
    }
    this.#pending.delete(message.id);
    entry.forget?.();
    if (message.error === undefined) entry.accept?.(message.result);
    if (entry.signal?.aborted && !(entry.keepResult && message.error === undefined)) {
      entry.reject(entry.signal.reason);
    } else if (message.error !== undefined) {
      entry.resolve({ failure: () => fromWire(message.error) });
    } else {
      entry.resolve({ result: message.result });
    }
    this.#settled();
  }

  #onNotification(method, params) {
    if (method === '$/cancelRequest') {
      this.#answering.get(params?.id)?.abort(new SandboxError('CANCELLED', 'Nobody waits for this answer any more'));
    } else {
      this.#hooks.notification(method, params);
    }
  }

  async #answer({ id, method, params }) {
    const controller = new AbortController();
    this.#answering.set(id, controller);
    let answer;
    try {
      const result = await this.#hooks.request(method, params, controller.signal);
      answer = result === undefined ? { error: METHOD_NOT_FOUND } : { result };
    } catch (error) {
      this.#hooks.log(`${method}: ${error?.stack ?? error}`);
      answer = { error: asWireError(error) };
    }
    this.#answering.delete(id);
    if (this.#closedBy) return;
    let text;
    try {
      text = encodeMessage({ jsonrpc: '2.0', id, ...answer }, this.#limits);
    } catch (error) {
      this.#hooks.log(`${method}: ${error.message}`);
      text = encodeMessage({ jsonrpc: '2.0', id, error: asWireError(error) }, this.#limits);
    }
    this.#write(text);
  }
}
