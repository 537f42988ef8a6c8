// Backends of the client for tests, with everything they report kept, and cleaned up after the test.
import { join } from 'node:path';
import { createSidecarSandboxBackend } from 'stitchkit-sandbox-client';
import { makeHome, removeHome, sidecarBinary } from './sidecar.mjs';

/**
 * A backend with a home of its own. `stateDirectory` shares that of another. Gives the backend, what it has told
 * (`brokerErrors`, `exits`, `logged` as [level, message]) and `dispose`.
 */
export function makeBackend({ stateDirectory, ...options } = {}) {
  const home = makeHome();
  const made = { home, stateDirectory: stateDirectory ?? join(home, 'state'), brokerErrors: [], exits: [], logged: [] };
  const log = (level) => (message) => made.logged.push([level, message]);
  made.backend = createSidecarSandboxBackend({
    command: 'command' in options ? options.command : sidecarBinary(),
    stateDirectory: made.stateDirectory,
    onBrokerError: (error) => made.brokerErrors.push(error),
    onExit: (exit) => made.exits.push(exit),
    logger: { error: log('error'), warn: log('warn'), info: log('info'), debug: log('debug') },
    ...options,
  });
  made.dispose = async () => {
    try {
      await made.backend.close();
    } finally {
      removeHome(home);
    }
  };
  return made;
}

/** As makeBackend, until the end of `t`. */
export function openBackend(t, options) {
  const made = makeBackend(options);
  t.after(made.dispose);
  return made;
}

/** A new session of an empty template, or of one with `files`. */
export function openHandle(backend, { network = 'deny-all', files = {}, ...rest } = {}) {
  return backend.create({ template: { template: 'empty', files }, network, ...rest });
}

/** A command of the guest's shell. `marker` is an argument that it does not use, to be found in /proc by. */
export function shell(script, { marker = 'sh', ...rest } = {}) {
  return { executable: '/bin/sh', args: ['-c', script, marker], ...rest };
}
