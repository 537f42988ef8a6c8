import { LineDecoder } from './line_decoder.js';

const MAX_LINE_BYTES = 64 * 1024;
const LAST_LINES = 3;
const LEVELS = { error: 'error', warning: 'warn', info: 'info', debug: 'debug' };

/** What a sidecar says to its operator, on the way to the logger. */
export class StderrLines {
  #last = [];

  constructor(stream, logger) {
    const decoder = new LineDecoder(MAX_LINE_BYTES, (line) => this.#onLine(line, logger));
    stream.on('data', (chunk) => {
      try {
        decoder.push(chunk);
      } catch {
        stream.destroy(); // no sidecar writes such lines
      }
    });
    stream.on('end', () => decoder.end());
  }

  /** The last lines, for an error about its end. */
  get last() {
    return this.#last.join('\n');
  }

  #onLine(line, logger) {
    if (line === '') return;
    this.#last = [...this.#last.slice(1 - LAST_LINES), line];
    const level = /^stitchkit-sandbox: (error|warning|info|debug): /.exec(line)?.[1];
    logger(LEVELS[level] ?? 'warn', line);
  }
}
