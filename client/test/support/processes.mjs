// What runs on this machine, read from /proc.
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { SOON_MS } from './sidecar.mjs';

const POLL_MS = 10;

function readOr(path, otherwise) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return otherwise; // it has ended meanwhile
  }
}

function allPids() {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/** An argument that no other process has. */
export function newMarker() {
  return `stitchkit-test-${randomUUID()}`;
}

/** Processes that have `argument` among their arguments. */
export function pidsWithArgument(argument) {
  return allPids().filter((pid) => readOr(`/proc/${pid}/cmdline`, '').split('\0').includes(argument));
}

export function parentOf(pid) {
  const stat = readOr(`/proc/${pid}/stat`, '');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
}

/** The sidecars that `host` runs on a state directory. */
export function sidecarPids(stateDirectory, host = process.pid) {
  return pidsWithArgument(stateDirectory).filter((pid) => parentOf(pid) === host);
}

/** The one sidecar that this process runs on a state directory. */
export function sidecarPid(stateDirectory) {
  const pids = sidecarPids(stateDirectory);
  if (pids.length !== 1) throw new Error(`not one sidecar on ${stateDirectory}: ${pids.join(', ') || 'none'}`);
  return pids[0];
}

export function isRunning(pid) {
  return existsSync(`/proc/${pid}`);
}

export function openDescriptors(pid) {
  return readdirSync(`/proc/${pid}/fd`).length;
}

/** Resolves with the first value of `condition` that counts as true; rejects, saying `what`, when none comes. */
export async function until(condition, what, milliseconds = SOON_MS) {
  const end = performance.now() + milliseconds;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (performance.now() > end) throw new Error(`not within ${milliseconds} ms: ${what}`);
    await delay(POLL_MS);
  }
}

/** When no process has `argument` any more. */
export function untilGone(argument) {
  return until(() => pidsWithArgument(argument).length === 0, `the end of all processes with ${argument}`);
}

/** When a guest with `marker` runs. */
export function untilRunning(marker) {
  return until(() => pidsWithArgument(marker).length > 0, `a process with ${marker}`);
}
