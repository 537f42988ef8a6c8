/** Bytes in any slices to whole lines, without their ends. */
export class LineDecoder {
  #parts = [];
  #length = 0;
  #maxBytes;
  #onLine;

  /** `onLine` gets each line as text; what exceeds `maxBytes` makes push() throw. */
  constructor(maxBytes, onLine) {
    this.#maxBytes = maxBytes;
    this.#onLine = onLine;
  }

  set maxBytes(value) {
    this.#maxBytes = value;
  }

  push(chunk) {
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      const line = this.#finish(chunk.subarray(start, end));
      start = end + 1;
      this.#onLine(line);
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start));
  }

  /** What came after the last line end is a line as well. */
  end() {
    if (this.#length > 0) this.#onLine(this.#finish(Buffer.alloc(0)));
  }

  #keep(part) {
    this.#length += part.length;
    if (this.#length > this.#maxBytes) throw new RangeError(`a line of more than ${this.#maxBytes} bytes`);
    this.#parts.push(part);
  }

  #finish(last) {
    if (this.#parts.length === 0) return last.toString('utf8');
    this.#keep(last);
    const line = Buffer.concat(this.#parts, this.#length).toString('utf8');
    this.#parts = [];
    this.#length = 0;
    return line;
  }
}
