import { invalid } from './errors.js';

/** A copy: what the caller does with its bytes afterwards changes nothing. */
export function encodeBase64(bytes) {
  if (!(bytes instanceof Uint8Array)) throw invalid('Bytes have to be a Uint8Array');
  try {
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
  } catch {
    throw invalid('Bytes have to be a Uint8Array whose buffer is still there');
  }
}

/** A Uint8Array over a buffer of its own: Node takes small ones from a pool that others share. */
export function decodeBase64(text) {
  const decoded = Buffer.from(text, 'base64');
  const alone = decoded.byteLength === decoded.buffer.byteLength;
  return alone ? new Uint8Array(decoded.buffer) : new Uint8Array(decoded);
}
