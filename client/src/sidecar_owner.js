import { SandboxError } from './errors.js';
import { Sidecar } from './sidecar.js';

const RESTARTS = 3;
const RESTART_WINDOW_MS = 60_000;

/** The one sidecar of a backend: started when it is needed, and anew when it has died, but not again and again. */
export class SidecarOwner {
  #options;
  #sidecar;
  #starting;
  #startedBefore = false;
  #restarts = [];
  #closing;
  #giveUp = new AbortController();

  /** `options` as Sidecar.start takes them, but for `giveUp`. */
  constructor(options) {
    this.#options = options;
  }

  /** Callers at the same time share one start, and its failure. */
  async get() {
    if (this.#closing) throw new SandboxError('SANDBOX_STOPPED', 'The backend was closed');
    if (this.#sidecar && !this.#sidecar.ended) return this.#sidecar;
    this.#starting ??= this.#start().finally(() => {
      this.#starting = undefined;
    });
    return this.#starting;
  }

  /** The one that runs, if one does; starts none. */
  get running() {
    return this.#sidecar && !this.#sidecar.ended && !this.#closing ? this.#sidecar : undefined;
  }

  close(timeoutMs) {
    this.#closing ??= this.#close(timeoutMs);
    return this.#closing;
  }

  async #close(timeoutMs) {
    const deadline = performance.now() + timeoutMs;
    const timer = setTimeout(() => this.#giveUp.abort(), timeoutMs);
    await this.#starting?.catch(() => {}); // told to those who wait for it
    clearTimeout(timer);
    const left = Math.max(0, deadline - performance.now());
    if (this.#sidecar && !this.#sidecar.ended) await this.#sidecar.close(left);
  }

  async #start() {
    if (this.#startedBefore) this.#admitRestart();
    try {
      this.#sidecar = await Sidecar.start({ ...this.#options, giveUp: this.#giveUp.signal });
    } catch (error) {
      this.#startedBefore ||= error.reason !== 'SIDECAR_MISSING';
      throw error;
    }
    this.#startedBefore = true;
    return this.#sidecar;
  }

  #admitRestart() {
    const now = performance.now();
    this.#restarts = this.#restarts.filter((time) => now - time < RESTART_WINDOW_MS);
    if (this.#restarts.length >= RESTARTS) {
      const retryAfterMs = Math.ceil(RESTART_WINDOW_MS - (now - this.#restarts[0]));
      throw new SandboxError('SANDBOX_UNAVAILABLE', 'The sidecar has ended too often to be started again now', {
        reason: 'SIDECAR_RESTARTS',
        details: { restarts: RESTARTS, windowMs: RESTART_WINDOW_MS, retryAfterMs },
        hint: 'onExit and the logger tell why it ended.',
      });
    }
    this.#restarts.push(now);
  }
}
