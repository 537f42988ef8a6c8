import { LineDecoder } from './line_decoder.js';

const MAX_LINE_BYTES = 64 * 1024;
const LAST_LINES = 3;
const LEVELS = { error: 'error', warning: 'warn', info: 'info', debug: 'debug' };
const QUIET = ['info', 'debug'];

// Of a line in either of the sidecar's formats (--log-format).
function levelOf(line) {
  if (!line.startsWith('{')) return /^stitchkit-sandbox: (error|warning|info|debug): /.exec(line)?.[1];
  try {
    return JSON.parse(line).level;
  } catch {
    return undefined;
  }
}

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

  /** The last lines that are no everyday ones, for an error about its end. */
  get last() {
    return this.#last.join('\n');
  }

  #onLine(line, logger) {
    if (line === '') return;
    const level = LEVELS[levelOf(line)] ?? 'warn';
    if (!QUIET.includes(level)) this.#last = [...this.#last.slice(1 - LAST_LINES), line];
    logger(level, line);
  }
}
