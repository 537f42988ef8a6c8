import { invalid, SandboxError } from './errors.js';

/** What a message repeats; anything else may be a value in the wrong place. */
const PLAIN_NAME = /^[\w-]{1,40}$/;

// What hosts written without types get wrong in silence: a misspelt option that would have protected something, and
// values that JSON drops.

/** @throws VALIDATION_ERROR for a member that there is not. */
export function refuseUnknown(given, known, what) {
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown !== undefined) throw invalid(`${what} has no ${unknown.slice(0, 40)}`, `There are ${known.join(', ')}.`);
}

/** A plain object: a Map, Headers or an instance of a class has no members of its own that would be sent. */
export function isRecord(value) {
  if (typeof value !== 'object' || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

// As the sidecar says it.
function invalidAt(path, message) {
  return new SandboxError('VALIDATION_ERROR', `${path} ${message}`, { details: { issues: [{ path, message }] } });
}

/** For headers, environments and the like: undefined, or names with texts. Repeats no value. */
export function checkTexts(record, what) {
  if (record === undefined) return;
  if (!isRecord(record)) throw invalidAt(what, 'has to be a plain object of texts');
  const wrong = Object.keys(record).find((name) => typeof record[name] !== 'string');
  if (wrong !== undefined) throw invalidAt(PLAIN_NAME.test(wrong) ? `${what}.${wrong}` : what, 'has to be a text');
}

export function checkPolicy(network) {
  if (!Array.isArray(network?.allow)) return; // the sidecar says what is wrong with it
  network.allow.forEach((rule, index) => checkTexts(rule?.headers, `network.allow.${index}.headers`));
}

export function checkSignal(signal) {
  if (signal === undefined || signal === null) return;
  if (typeof signal.aborted !== 'boolean' || typeof signal.addEventListener !== 'function') {
    throw invalid('signal has to be an AbortSignal');
  }
}
