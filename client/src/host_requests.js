import { decodeBase64, encodeBase64 } from './base64.js';

const DENIED = { allowed: false };

/** Answers what the sidecar asks about its toolsets (PROTOCOL.md, section 7). In doubt the answer is no. */
export class HostRequests {
  #toolsets = new Map();
  #log;

  constructor(log) {
    this.#log = log;
  }

  /** `toolset` is the sidecar's name; `options` those of createSandboxCodingTools. */
  add(toolset, options) {
    this.#toolsets.set(toolset, options);
  }

  remove(toolset) {
    this.#toolsets.delete(toolset);
  }

  /** undefined for a method that there is not. */
  async answer(method, params, signal) {
    const options = this.#toolsets.get(params?.toolset);
    switch (method) {
      case 'host.authorize':
        return options ? { allowed: await this.#decide(() => options.authorize(params.request, { signal })) } : DENIED;
      case 'host.authorizePaths':
        return { allowed: await this.#decidePaths(options, params.paths, signal) };
      case 'host.artifacts.write':
        return this.#write(options.artifacts, params);
      case 'host.artifacts.read':
        return this.#read(options.artifacts, params);
      case 'host.artifacts.search':
        return this.#search(options.artifacts, params);
      case 'host.artifacts.authorization':
        return this.#authorization(options.artifacts, params);
      default:
        return undefined;
    }
  }

  async #decide(ask) {
    try {
      return (await ask()) === true;
    } catch (error) {
      this.#log('warn', `authorize has thrown, which refuses: ${error?.stack ?? error}`);
      return false;
    }
  }

  #decidePaths(options, paths, signal) {
    const decide = options?.authorizePath ?? (() => false);
    return Promise.all(paths.map((path) => this.#decide(() => decide({ path }, { signal }))));
  }

  async #write(store, { mediaType, base64, request }) {
    const { reference } = await store.write({ mediaType, data: decodeBase64(base64), authorization: request });
    return { reference };
  }

  async #read(store, { reference, offset, maxBytes }) {
    const { data, totalBytes } = await store.read({ reference, offset, maxBytes });
    return { base64: encodeBase64(data), ...(totalBytes !== undefined && { totalBytes }) };
  }

  async #search(store, { reference, query, maxMatches }) {
    const matches = await store.search({ reference, query, maxMatches });
    return { matches: matches.map(({ line, text }) => ({ line, text })) };
  }

  async #authorization(store, { reference }) {
    const request = await store.authorization?.(reference);
    return request ? { request } : {};
  }
}
