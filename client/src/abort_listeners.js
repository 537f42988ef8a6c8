const waiting = new WeakMap();

/**
 * Calls `callback` when the signal is aborted; returns what takes that back. One listener a signal: a host gives the
 * same one to all calls of an agent's run, and Node warns of eleven listeners.
 */
export function whenAborted(signal, callback) {
  let entry = waiting.get(signal);
  if (!entry) {
    const callbacks = new Set();
    entry = { callbacks, listener: () => [...callbacks].forEach((each) => each()) };
    waiting.set(signal, entry);
    signal.addEventListener('abort', entry.listener, { once: true });
  }
  entry.callbacks.add(callback);
  return () => {
    if (entry.callbacks.delete(callback) && entry.callbacks.size === 0) {
      signal.removeEventListener('abort', entry.listener);
      waiting.delete(signal);
    }
  };
}
