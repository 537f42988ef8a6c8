// The sidecar under test, and a place for its state. Every helper that takes `t` cleans up after that test.
import { spawn } from 'node:child_process';
import { accessSync, chmodSync, constants, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { isAbsolute, join } from 'node:path';

/** How long something that happens at once may take on a slow machine, before it counts as never. */
export const SOON_MS = 30_000;

/** The binary's path. Throws, so that a test without a sidecar fails. */
export function sidecarBinary() {
  const path = process.env.STITCHKIT_SANDBOX;
  if (!path) {
    throw new Error('STITCHKIT_SANDBOX is not set; these tests need the path of a built stitchkit-sandbox there');
  }
  if (!isAbsolute(path)) {
    throw new Error(`STITCHKIT_SANDBOX has to be an absolute path, and is ${path}`);
  }
  try {
    accessSync(path, constants.X_OK);
  } catch (cause) {
    throw new Error(`STITCHKIT_SANDBOX names no program that can be run: ${path}; ./dev build makes one`, { cause });
  }
  return path;
}

/** A new directory that any user can pass through: a sidecar that root starts becomes `nobody`. */
export function makeHome() {
  const home = mkdtempSync(join(tmpdir(), 'stitchkit-client-'));
  chmodSync(home, 0o711);
  return home;
}

/** Only when nothing uses it any more. */
export function removeHome(home) {
  rmSync(home, { recursive: true, force: true, maxRetries: 3 });
}

/** A state directory for `t`: not there yet, in a home of its own that goes with the test. */
export function stateDirectory(t) {
  const home = makeHome();
  t.after(() => removeHome(home));
  return join(home, 'state');
}

/** Rejects when `promise` has not settled in time; `what` says what was waited for. */
export async function soon(promise, what, milliseconds = SOON_MS) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${milliseconds} ms: ${what}`)), milliseconds);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Starts the binary itself, with pipes. Gives the child, `exited` (code and signal, once it has ended and its output is
 * read) and `stderr()`, what it has said so far. At the end of the test its input is closed, which has to end it.
 */
export function startSidecar(t, ...args) {
  const binary = sidecarBinary();
  const home = makeHome();
  const child = spawn(binary, ['--state-dir', join(home, 'state'), ...args], { env: { PATH: process.env.PATH } });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    said += text;
  });
  // A sidecar that is gone already is told by `exited`.
  child.stdin.on('error', () => {});
  const exited = new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ code, signal }));
  });
  exited.catch(() => {});
  t.after(async () => {
    try {
      child.stdin.end();
      child.stdout.resume();
      await soon(exited, 'the end of the sidecar after the end of its input');
    } finally {
      child.kill('SIGKILL');
      removeHome(home);
    }
  });
  return { child, exited, stderr: () => said };
}
