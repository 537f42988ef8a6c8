import { spawn } from 'node:child_process';
import { resolve as resolvePath } from 'node:path';
import { Connection } from './connection.js';
import { SandboxError } from './errors.js';
import { HostRequests } from './host_requests.js';
import { StderrLines } from './stderr_lines.js';
import { VERSION } from './version.js';

const PROTOCOL_VERSION = 1;
/** Longer than any machine takes to start a process and answer: for a program that is no sidecar and only listens. */
const START_TIMEOUT_MS = 30_000;
/** What the pipes still hold when the process has ended comes within this time, or somebody else keeps them open. */
const DRAIN_TIMEOUT_MS = 1000;

const FIND_HINT =
  'Give the path of the binary as `command`, set STITCHKIT_SANDBOX, or put stitchkit-sandbox on the PATH.';

// What still runs when the host exits. Their pipes end with the host, which ends them; this is for the case that
// another child of the host holds the same pipes.
const living = new Set();

function terminateLiving() {
  for (const child of living) {
    child.kill('SIGTERM');
    child.kill('SIGCONT'); // one that somebody has stopped hears of the other only then
  }
}

const START_HINT = 'The message ends with its last words; the logger has all of them.';

function unavailable(message, reason, { details, hint = FIND_HINT, cause } = {}) {
  return new SandboxError('SANDBOX_UNAVAILABLE', message, { reason, details, hint, cause });
}

function closedError() {
  return new SandboxError('SANDBOX_STOPPED', 'The backend was closed');
}

function spawnError(command, cause) {
  const details = { command };
  return cause.code === 'ENOENT'
    ? unavailable(`The sidecar ${command} was not found`, 'SIDECAR_MISSING', { details, cause })
    : unavailable(`The sidecar ${command} could not be started: ${cause.message}`, 'SIDECAR_START', {
        details,
        hint: START_HINT,
        cause,
      });
}

async function startProcess(command, args) {
  // Its own session: a terminal's Ctrl-C is for the host, which decides what becomes of its sandboxes.
  const child = spawn(command.includes('/') ? resolvePath(command) : command, args, {
    cwd: '/',
    detached: true,
    env: { PATH: process.env.PATH ?? '/usr/bin:/bin' },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  child.stdin.on('error', () => {}); // it has ended; `exit` says how
  await new Promise((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', reject);
  });
  child.on('error', () => {}); // a signal that could not be sent: it has ended
  return child;
}

/** One process of stitchkit-sandbox and the connection to it. */
export class Sidecar {
  /** Live ones of this process, by the sidecar's names for them. */
  handles = new Map();
  processes = new Map();
  hostRequests;
  /** The OpenRPC document, after loadDocument(). */
  document;

  #command;
  #child;
  #exit;
  #stderr;
  #connection;
  #closing = false;
  #failure;

  /**
   * Resolves when the sidecar has answered `initialize`; `giveUp` is aborted when nobody waits for that any more.
   * `log(level, message)` and `onExit(exit)` must not throw.
   */
  static async start({ command, args, log, onExit, giveUp }) {
    let child;
    try {
      child = await startProcess(command, args);
    } catch (cause) {
      throw spawnError(command, cause);
    }
    const sidecar = new Sidecar(command, child, log);
    void sidecar.#exit.then((exit) => onExit({ ...exit, expected: sidecar.#closing }));
    await sidecar.#initialize(giveUp);
    return sidecar;
  }

  constructor(command, child, log) {
    this.#command = command;
    this.#child = child;
    this.#stderr = new StderrLines(child.stderr, log);
    this.hostRequests = new HostRequests(log);
    this.#connection = new Connection((text) => child.stdin.write(text), {
      notification: (method, params) => this.#onNotification(method, params),
      request: (method, params, signal) => this.hostRequests.answer(method, params, signal),
      busy: (busy) => this.#hold(busy),
      failed: (error) => this.#fail(error),
      log: (message) => log('warn', message),
    });
    child.stdout.on('data', (chunk) => this.#connection.receive(chunk));
    this.#exit = this.#awaitExit();
    this.#hold(false);
  }

  get ended() {
    return this.#failure !== undefined;
  }

  /** As Connection.request. */
  request(method, params, options) {
    return this.#connection.request(method, params, options);
  }

  async loadDocument() {
    this.document ??= await this.request('rpc.discover');
  }

  /** Stops all handles and ends the process; kills it after `timeoutMs`. */
  async close(timeoutMs) {
    this.#closing = true;
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), timeoutMs);
    try {
      await this.request('shutdown', {}, { urgent: true });
      this.#child.stdin.end();
    } catch {
      this.#child.kill('SIGKILL');
    }
    this.#hold(true);
    await this.#exit;
    clearTimeout(timer);
  }

  async #awaitExit() {
    const child = this.#child;
    if (living.size === 0) process.on('exit', terminateLiving);
    living.add(child);
    const [code, signal] = await new Promise((resolve) => {
      let timer;
      child.once('exit', (...how) => {
        timer = setTimeout(() => resolve(how), DRAIN_TIMEOUT_MS);
      });
      child.once('close', (...how) => {
        clearTimeout(timer);
        resolve(how);
      });
    });
    living.delete(child);
    if (living.size === 0) process.off('exit', terminateLiving);
    this.#failure ??= this.#exitError(code, signal);
    this.#connection.close(this.#failure);
    return { code, signal };
  }

  #exitError(exitCode, signal) {
    if (this.#closing) return closedError();
    const how = signal ? `by ${signal}` : `with exit code ${exitCode}`;
    return unavailable(`The sidecar ended ${how}`, 'SIDECAR_EXITED', {
      details: { exitCode, signal },
      hint: 'Its guests ended with it; workspaces are kept. Create the session again with its captured state.',
    });
  }

  // Whatever it is, it cannot be trusted any more.
  #fail(error) {
    this.#failure ??= error;
    this.#connection.close(error);
    this.#child.kill('SIGKILL');
  }

  async #initialize(giveUp) {
    const onGiveUp = () => {
      this.#closing = true;
      this.#fail(closedError());
    };
    if (giveUp.aborted) onGiveUp();
    giveUp.addEventListener('abort', onGiveUp);
    const message = `${this.#command} has not answered within ${START_TIMEOUT_MS} ms`;
    const timer = setTimeout(() => this.#fail(unavailable(message, 'SIDECAR_START')), START_TIMEOUT_MS);
    try {
      const client = { name: 'stitchkit-sandbox-client', version: VERSION };
      const answer = await this.request('initialize', { protocolVersion: PROTOCOL_VERSION, client });
      if (answer?.protocolVersion !== PROTOCOL_VERSION) throw new Error(`It speaks ${answer?.protocolVersion}`);
      this.#connection.limits = answer.limits;
    } catch (cause) {
      const died = this.ended;
      this.#hold(true);
      this.#child.kill('SIGKILL');
      await this.#exit;
      if (this.#closing) throw cause;
      throw died ? this.#startError(cause) : this.#versionError(cause);
    } finally {
      clearTimeout(timer);
      giveUp.removeEventListener('abort', onGiveUp);
    }
  }

  #startError(cause) {
    const said = this.#stderr.last ? `: ${this.#stderr.last}` : '';
    const message = `${this.#command} did not start. ${cause.message}${said}`;
    const details = { command: this.#command };
    return unavailable(message, 'SIDECAR_START', { details, hint: START_HINT, cause });
  }

  #versionError(cause) {
    return unavailable(`${this.#command} does not speak protocol version ${PROTOCOL_VERSION}`, 'PROTOCOL_VERSION', {
      details: { command: this.#command },
      hint: 'Use a stitchkit-sandbox and a stitchkit-sandbox-client of the same release.',
      cause,
    });
  }

  #onNotification(method, params) {
    if (method === 'process.output') {
      this.processes.get(params.process)?.output(params.channel, params.base64);
    } else if (method === 'gateway.error') {
      this.handles.get(params.handle)?.gatewayError(params);
    }
  }

  // An idle sidecar does not keep the host's event loop alive; a call that waits does.
  #hold(hold) {
    const { stdin, stdout, stderr } = this.#child;
    for (const one of [this.#child, stdin, stdout, stderr]) {
      if (hold) one.ref?.();
      else one.unref?.();
    }
  }
}
