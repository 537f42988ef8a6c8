import { whenAborted } from './abort_listeners.js';
import { decodeBase64 } from './base64.js';

/** Output of one channel: kept whole, since the command's budget bounds it, and read by any number of readers. */
class OutputChannel {
  #chunks = [];
  #waiting = [];
  #ended = false;
  #error;

  push(chunk) {
    this.#chunks.push(chunk);
    this.#wake();
  }

  end(error) {
    this.#ended = true;
    this.#error = error;
    this.#wake();
  }

  bytes() {
    const all = new Uint8Array(this.#chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0));
    let at = 0;
    for (const chunk of this.#chunks) {
      all.set(chunk, at);
      at += chunk.byteLength;
    }
    return all;
  }

  async *[Symbol.asyncIterator]() {
    for (let next = 0; ; next += 1) {
      while (next === this.#chunks.length && !this.#ended) {
        await new Promise((resolve) => this.#waiting.push(resolve));
      }
      if (next < this.#chunks.length) {
        yield this.#chunks[next];
      } else if (this.#error === undefined) {
        return;
      } else {
        throw this.#error;
      }
    }
  }

  #wake() {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

/** Receives what the sidecar tells about one process of session.spawn. */
export class ProcessReceiver {
  #sidecar;
  #id;
  #channels = { stdout: new OutputChannel(), stderr: new OutputChannel() };
  #ended = false;
  #result;

  /** To be made when the sidecar has named the process, before anything it says of it is read. */
  constructor(sidecar, id, signal) {
    this.#sidecar = sidecar;
    this.#id = id;
    sidecar.processes.set(id, this);
    this.#result = this.#awaitResult(signal);
    this.#result.catch(() => {}); // a caller that only stops it need not look
  }

  /** Settles, and never rejects, when nothing of the process is left. */
  get ended() {
    return this.#result.then(
      () => {},
      () => {},
    );
  }

  output(channel, base64) {
    this.#channels[channel].push(decodeBase64(base64));
  }

  /** A SandboxProcess. */
  get process() {
    const { stdout, stderr } = this.#channels;
    const readable = (channel) => ({ [Symbol.asyncIterator]: () => channel[Symbol.asyncIterator]() });
    return { result: this.#result, stdout: readable(stdout), stderr: readable(stderr), stop: () => this.stop() };
  }

  async stop() {
    if (this.#ended) return;
    try {
      await this.#sidecar.request('process.stop', { process: this.#id }, { urgent: true });
    } catch (error) {
      if (!this.#ended && !this.#sidecar.ended) throw error;
    }
  }

  async #awaitResult(signal) {
    const onAbort = () => void this.stop().catch(() => {}); // the result will tell
    const forget = signal && whenAborted(signal, onAbort);
    if (signal?.aborted) onAbort();
    const { stdout, stderr } = this.#channels;
    try {
      const params = { process: this.#id };
      const { exitCode, details } = await this.#sidecar.request('process.result', params, { urgent: true });
      if (signal?.aborted) throw signal.reason;
      this.#endChannels();
      return { exitCode, stdout: stdout.bytes(), stderr: stderr.bytes(), ...(details && { details }) };
    } catch (error) {
      const reason = signal?.aborted ? signal.reason : error;
      this.#endChannels(reason);
      throw reason;
    } finally {
      this.#ended = true;
      this.#sidecar.processes.delete(this.#id);
      forget?.();
    }
  }

  #endChannels(error) {
    this.#channels.stdout.end(error);
    this.#channels.stderr.end(error);
  }
}
