import { invalid, SandboxError } from './errors.js';

// Few enough bytes never hold too many values, so that most messages are not counted.
const BYTES_A_VALUE = 2;

function countValues(value) {
  if (Array.isArray(value)) return value.reduce((sum, item) => sum + countValues(item), 1);
  if (value === null || typeof value !== 'object') return 1;
  return Object.values(value).reduce((sum, item) => sum + countValues(item), 1);
}

// JSON.stringify writes a lone surrogate as an escape, and nothing else that looks like it: a backslash of the text is
// doubled.
const LONE_SURROGATE = /(?<!\\)(?:\\\\)*\\ud[89a-f][0-9a-f]{2}/;

/**
 * A message as its line. What the sidecar could not attribute to a request (it answers with id null then) is refused
 * here: text that is not Unicode, and what exceeds `limits`.
 */
export function encodeMessage(message, limits) {
  let text;
  try {
    text = JSON.stringify(message);
  } catch (cause) {
    throw invalid(`What was given cannot be sent as JSON: ${cause.message}`);
  }
  if (text.includes('\\ud') && LONE_SURROGATE.test(text)) {
    throw invalid('A text holds half of a surrogate pair', 'String.prototype.toWellFormed mends such texts.');
  }
  const bytes = Buffer.byteLength(text);
  if (bytes > limits.maxMessageBytes) {
    throw new SandboxError('SANDBOX_LIMIT', `The request is larger than one message may be: ${bytes} bytes`, {
      reason: 'message-bytes',
      details: { bytes, limit: limits.maxMessageBytes },
      hint: "Send less at a time, or start the sidecar with args: ['--max-message-bytes', N].",
    });
  }
  if (bytes > limits.maxMessageValues * BYTES_A_VALUE && countValues(message) > limits.maxMessageValues) {
    throw new SandboxError('SANDBOX_LIMIT', 'The request holds more values than one message may', {
      reason: 'message-values',
      details: { limit: limits.maxMessageValues },
    });
  }
  return `${text}\n`;
}
