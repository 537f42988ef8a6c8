import { spawn } from 'node:child_process';
import { once } from 'node:events';

const NEWLINE = 10;

/** A sidecar without a client: lines written to its pipe, one at a time, and their answers as the bytes that came. */
export class RawLines {
  #child;
  #chunks = [];
  #resolve;

  constructor(program, args) {
    this.#child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child.stdout.on('data', (chunk) => this.#onData(chunk));
  }

  /** The chunks of the answer's line. */
  exchange(line) {
    return new Promise((resolve) => {
      this.#resolve = resolve;
      this.#child.stdin.write(line);
    });
  }

  /** The `result` of one request, for what is not measured. */
  async call(method, params) {
    const answer = JSON.parse(Buffer.concat(await this.exchange(requestLine(method, params))));
    if (answer.error) throw new Error(`${method}: ${JSON.stringify(answer.error)}`);
    return answer.result;
  }

  async end() {
    this.#child.stdin.end();
    const [code] = await once(this.#child, 'exit');
    if (code !== 0) throw new Error(`the sidecar exited with ${code}`);
  }

  #onData(chunk) {
    this.#chunks.push(chunk);
    if (chunk[chunk.length - 1] !== NEWLINE) return;
    const answer = this.#chunks;
    this.#chunks = [];
    this.#resolve(answer);
  }
}

export function requestLine(method, params) {
  return `${JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })}\n`;
}
