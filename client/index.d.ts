// The host side of stitchkit-sandbox: what a JavaScript agent host imports instead of an in-process sandbox. Shapes and
// codes follow PROTOCOL.md of the project; the contract is that of the stitchkit runtime's SandboxBackend.
// @ts-ignore -- zod is an optional peer: where it is missing the schemas are JSON Schemas, and `any` here.
import type { ZodObject, ZodType } from 'zod';

/** Why a call failed; the names of PROTOCOL.md, section 2. */
export type SandboxErrorCode =
  | 'SANDBOX_UNAVAILABLE'
  | 'SANDBOX_BUSY'
  | 'SANDBOX_STOPPED'
  | 'SANDBOX_STATE_MISMATCH'
  | 'SANDBOX_NETWORK_DENIED'
  | 'SANDBOX_LIMIT'
  | 'SANDBOX_PATH'
  | 'SANDBOX_INSUFFICIENT'
  | 'SPILL_REFERENCE_UNKNOWN'
  | 'BAD_REQUEST'
  | 'FORBIDDEN'
  | 'NOT_FOUND'
  | 'CONFLICT'
  | 'VALIDATION_ERROR'
  | 'INVALID_REQUEST'
  | 'METHOD_NOT_FOUND'
  | 'PARSE_ERROR'
  | 'CANCELLED'
  | 'INTERNAL_SERVER_ERROR';

/**
 * The one error of this package. The stitchkit runtime takes it for an `AppError` of its own, so that a refusal
 * reaches the model with its code, details and hint.
 */
export class SandboxError extends Error {
  constructor(
    code: SandboxErrorCode,
    message: string,
    options?: ErrorOptions & { details?: Record<string, unknown>; hint?: string; reason?: string; incident?: string },
  );
  readonly name: 'SandboxError';
  readonly code: SandboxErrorCode;
  /** The HTTP status that stands for `code`. */
  readonly status: number;
  /** Facts of the refusal, `message` among them. What a tool or a session tells holds no host path and no secret. */
  readonly details: Readonly<Record<string, unknown>>;
  /** What to do next, written for whoever made the call; for a tool that is a model. */
  readonly hint?: string | undefined;
  /** What of several causes it was, such as `deadline` of SANDBOX_LIMIT. */
  readonly reason?: string | undefined;
  /** Names the line on the sidecar's stderr that holds what was not told. */
  readonly incident?: string | undefined;
  toJSON(): { error: { code: string; message: string; details?: unknown; hint?: string } };
}

export type SandboxRestriction = 'network-denied' | 'write-contained' | 'secrets-hidden' | 'process-contained';

export type SandboxGrade =
  | { grade: 'full'; restrictions: SandboxRestriction[] }
  | { grade: 'partial'; restrictions: SandboxRestriction[]; gaps: SandboxRestriction[] }
  | { grade: 'unavailable'; reason: string };

/** One allowed origin; what is absent is as PROTOCOL.md, section 6, says. */
export interface SandboxNetworkRule {
  origin: string;
  /** Injected into each request on the host's side; the guest never sees them. */
  headers?: Readonly<Record<string, string>> | undefined;
  methods?: readonly string[] | undefined;
  pathPrefixes?: readonly string[] | undefined;
  requestHeaders?: readonly string[] | undefined;
  responseHeaders?: readonly string[] | undefined;
  maxRequestBytes?: number | undefined;
  maxResponseBytes?: number | undefined;
  reflection?: 'redact' | 'refuse' | 'allow' | undefined;
}

export type SandboxNetworkPolicy = 'allow-all' | 'deny-all' | { allow: readonly SandboxNetworkRule[] };

/** All that a host keeps in order to attach to a session again. Holds no secret. */
export interface SandboxState {
  backend: string;
  sessionId: string;
  templateKey: string;
}

/** PROTOCOL.md, section 4. What the machine cannot enforce is refused with SANDBOX_UNAVAILABLE. */
export interface SandboxResources {
  memoryBytes?: number | undefined;
  maxProcesses?: number | undefined;
  cpus?: number | undefined;
  tmpBytes?: number | undefined;
  maxFileBytes?: number | undefined;
  maxOpenFiles?: number | undefined;
}

export interface SandboxCommand {
  executable: string;
  args?: readonly string[] | undefined;
  /** Workspace path; the root when absent. */
  cwd?: string | undefined;
  environment?: Readonly<Record<string, string>> | undefined;
  /** 1 to 2147483647, default 30000. */
  timeoutMs?: number | undefined;
  /** Bytes of stdout and stderr together, default 1048576. */
  maxOutputBytes?: number | undefined;
}

/** A limit of the session that stood in the command's way. */
export interface SandboxResultDetails {
  resource: 'memory' | 'processes';
}

export interface SandboxRunOptions {
  /** Aborting kills the command; the call rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  stdin?: Uint8Array | undefined;
}

export interface SandboxProcess {
  /** Output as bytes once the command has ended. Rejects like `run` does. */
  readonly result: Promise<{
    exitCode: number;
    stdout: Uint8Array;
    stderr: Uint8Array;
    details?: SandboxResultDetails;
  }>;
  /** Output as it comes, from the beginning for each reader; ends, or throws, as `result` does. */
  readonly stdout: AsyncIterable<Uint8Array>;
  readonly stderr: AsyncIterable<Uint8Array>;
  /** Kills it; resolves when it is gone. `result` then has exit code 137. */
  stop(): Promise<void>;
}

export interface SandboxSession {
  readonly id: string;
  /** Path of the HTTP gateway's socket, as guests see it. */
  readonly brokerSocket: string;
  /** The canonical path, `/workspace` or below; throws SANDBOX_PATH. */
  resolvePath(path: string): string;
  readBinaryFile(path: string): Promise<Uint8Array>;
  readTextFile(path: string): Promise<string>;
  writeBinaryFile(path: string, bytes: Uint8Array): Promise<void>;
  /** UTF-8; half a surrogate pair becomes U+FFFD. */
  writeTextFile(path: string, text: string): Promise<void>;
  /** Recursive; a missing path is no error. */
  removePath(path: string): Promise<void>;
  spawn(command: SandboxCommand, options?: SandboxRunOptions): Promise<SandboxProcess>;
  run(
    command: SandboxCommand,
    options?: SandboxRunOptions,
  ): Promise<{ exitCode: number; stdout: string; stderr: string; details?: SandboxResultDetails }>;
  /** SANDBOX_BUSY while commands live. */
  setNetworkPolicy(policy: SandboxNetworkPolicy): Promise<void>;
}

export interface SandboxHandle {
  readonly session: SandboxSession;
  /** What isolation is enforced, measured anew. */
  probe(): Promise<SandboxGrade>;
  /** Throws SANDBOX_STOPPED after `delete`. */
  captureState(): SandboxState;
  /** Kills live commands, keeps the workspace, frees the session; may be called again. */
  stop(): Promise<void>;
  shutdown(): Promise<void>;
  /** `stop`, and the session's files go as well; never the template. */
  delete(): Promise<void>;
}

export interface SandboxTemplate {
  template: string;
  /** Workspace path to content, which is taken when the call is made. */
  files?: Readonly<Record<string, Uint8Array | string>> | undefined;
}

export interface SandboxBackend {
  readonly name: string;
  prewarm(input: SandboxTemplate): Promise<{ reused: boolean; templateKey: string }>;
  create(input: {
    /** A template key, or what `prewarm` takes. */
    template: string | SandboxTemplate;
    state?: SandboxState | undefined;
    network: SandboxNetworkPolicy;
    resources?: SandboxResources | undefined;
  }): Promise<SandboxHandle>;
}

/** How full a bounded queue is, in items or in bytes. */
export interface SidecarQueue {
  depth: number;
  /** The most that it has held since the start. */
  highWater: number;
  /** Where further ones wait or are refused. */
  limit: number;
}

/** `backend.stats`; `rpc.discover` describes each member. */
export interface SidecarStats {
  uptimeMs: number;
  sessions: { live: number; created: number; attached: number; stopped: number; deleted: number };
  commands: {
    live: number;
    highWater: number;
    started: number;
    ended: Record<'exited' | 'deadline' | 'output-budget' | 'cancelled' | 'stopped' | 'failed', number>;
    launches: Record<'warm' | 'warming' | 'cold', number>;
    /** Those whose result has a `resource`. */
    limited: Record<'memory' | 'processes', number>;
  };
  warmLaunches: { waiting: number; starting: number; made: number; failed: number };
  /** `errors` by `code`. */
  requests: { ended: number; errors: Record<string, number> };
  gateway: {
    live: number;
    ended: Record<
      'answered' | 'denied' | 'malformed' | 'busy' | 'upstream-failed' | 'guest-gone' | 'ended',
      number
    >;
  };
  memory: { residentBytes: number; peakBytes: number };
  threads: number;
  openFiles: { open: number; limit: number };
  log: { written: number; dropped: number; suppressed: number };
  queues: Record<string, SidecarQueue>;
  handles: {
    handle: string;
    session: string;
    liveCommands: number;
    startedCommands: number;
    waitingLaunches: number;
    liveGatewayRequests: number;
    endedGatewayRequests: number;
    memoryKills: number;
    refusedProcesses: number;
    /** Of its guests together, where memory is limited. */
    memoryBytes?: number;
  }[];
}

/** The sidecar runs from the first `prewarm` or `create` to `close`; it does not keep an idle host alive. */
export interface SidecarSandboxBackend extends SandboxBackend {
  /** What the sidecar does and has done; undefined while none runs: asking starts none. */
  stats(): Promise<SidecarStats | undefined>;
  /**
   * Stops all handles, then ends the sidecar; kills it when that takes longer than `closeTimeoutMs`. Later calls get
   * SANDBOX_STOPPED.
   */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface SidecarExit {
  code: number | null;
  signal: string | null;
  /** Whether `close` ended it. */
  expected: boolean;
}

/** Structural: `console`, pino and the runtime's loggers fit. */
export interface SidecarLogger {
  error(message: string): void;
  warn(message: string): void;
  info(message: string): void;
  debug(message: string): void;
}

export interface SidecarSandboxBackendOptions {
  /** The binary: a path, or a name to look for on PATH. Default: STITCHKIT_SANDBOX, else `stitchkit-sandbox`. */
  command?: string | undefined;
  /** Further arguments, such as `['--private-origins']`. */
  args?: readonly string[] | undefined;
  /** Where templates and sessions are kept; private to this application. */
  stateDirectory: string;
  /** Name of the backend; decides template keys and where sessions are found. Default `bubblewrap`. */
  name?: string | undefined;
  /** Path of Bubblewrap. */
  executable?: string | undefined;
  /** Live commands a handle, 1 to 1024, default 8. */
  maxConcurrentCommands?: number | undefined;
  /** Told why a guest got 502 from the gateway: a SandboxError with `details.origin` and `details.sessionId`. */
  onBrokerError: (cause: unknown) => void;
  /** Told once for each sidecar process that ends. */
  onExit?: ((exit: SidecarExit) => void) | undefined;
  /** Gets what the sidecar writes to stderr, a line at a time. Default: warnings and errors to the console. */
  logger?: Partial<SidecarLogger> | undefined;
  /** How long `close` waits before it kills. Default 5000. */
  closeTimeoutMs?: number | undefined;
}

/** Starts nothing yet: a missing binary is told by the first `prewarm` or `create`. */
export function createSidecarSandboxBackend(options: SidecarSandboxBackendOptions): SidecarSandboxBackend;

/** What a tool is about to do; PROTOCOL.md, section 7. */
export type CodingOperation =
  | { operation: 'read'; path: string }
  | { operation: 'write'; path: string; bytes: number; overwrite: boolean; createsDirectories: string[] }
  | {
      operation: 'edit';
      path: string;
      baseSha256: string;
      resultSha256: string;
      resultBytes: number;
      replacements: number;
      dryRun: boolean;
    }
  | { operation: 'list'; path: string }
  | { operation: 'glob'; pattern: string; path: string }
  | { operation: 'search'; query: string; mode: 'path' | 'content' }
  | { operation: 'shell'; executable: string; args: string[]; cwd: string }
  | { operation: 'artifact-read'; reference: string; offset: number; maxBytes: number }
  | { operation: 'artifact-search'; reference: string; query: string; maxMatches: number };

/** Where the host keeps long output itself. An error whose `code` is SPILL_REFERENCE_UNKNOWN reaches the model. */
export interface CodingArtifactStore {
  authorization?(reference: string): CodingOperation | undefined | Promise<CodingOperation | undefined>;
  write(input: {
    mediaType: string;
    data: Uint8Array;
    authorization?: CodingOperation | undefined;
  }): { reference: string } | Promise<{ reference: string }>;
  read(input: {
    reference: string;
    offset: number;
    maxBytes: number;
  }): { data: Uint8Array; totalBytes?: number } | Promise<{ data: Uint8Array; totalBytes?: number }>;
  search?(input: {
    reference: string;
    query: string;
    maxMatches: number;
  }): readonly { line: number; text: string }[] | Promise<readonly { line: number; text: string }[]>;
}

export interface CodingToolLimits {
  maxPathBytes: number;
  maxReadBytes: number;
  maxWriteBytes: number;
  maxShellArguments: number;
  maxShellArgumentBytes: number;
  maxShellOutputBytes: number;
  maxArtifactBytes: number;
  maxListEntries: number;
  maxSearchResults: number;
  maxSearchFiles: number;
  maxSearchDepth: number;
  shellTimeoutMs: number;
  shellTerminationGraceMs: number;
}

export interface SandboxCodingToolsOptions {
  /**
   * Asked before each operation has any effect. Only `true` allows; a throw refuses and goes to the logger. `signal`
   * is aborted when nobody waits for the answer any more.
   */
  authorize: (operation: CodingOperation, context: { signal: AbortSignal }) => boolean | Promise<boolean>;
  /** Which paths tools may see at all; asked before a file is opened. As `authorize`. */
  authorizePath?:
    | ((input: { path: string }, context: { signal: AbortSignal }) => boolean | Promise<boolean>)
    | undefined;
  /** Says the same as `authorizePath` for globs, without a question. */
  deniedPaths?: readonly string[] | undefined;
  /** What `run_command` may start: the model's name for it, and its absolute path in the guest. */
  executables?: Readonly<Record<string, string>> | undefined;
  environment?: Readonly<Record<string, string>> | undefined;
  /** `sidecar`, the default, keeps long output with the session; a store keeps it with the host. */
  artifacts?: 'sidecar' | 'none' | CodingArtifactStore | undefined;
  search?: { excludeDirectories?: readonly string[] } | undefined;
  limits?: Partial<CodingToolLimits> | undefined;
  /** Default: write-contained, process-contained, secrets-hidden. */
  requiredRestrictions?: readonly SandboxRestriction[] | undefined;
}

export type JsonSchema = { readonly [keyword: string]: unknown };

export interface CodingToolDefinition {
  name: string;
  description: string;
  identity: { serviceName: string; action: string; method: 'POST' };
  /** Zod 4 schemas where the host has zod, JSON Schemas otherwise. */
  input: ZodObject;
  output: ZodType;
  inputSchema: JsonSchema;
  outputSchema: JsonSchema;
  transports: readonly ['AGENT'];
  /**
   * Does it. Rejects with a SandboxError that may be shown to a model, or with the signal's reason; an aborted
   * `run_command` resolves with `outcome: 'cancelled'`.
   */
  handler(context: { input: unknown; signal?: AbortSignal; [key: string]: unknown }): Promise<unknown>;
}

export type CodingTools = readonly CodingToolDefinition[] & {
  /** Whether the sidecar has accepted the options; the first call of a tool waits for it as well. */
  readonly ready: Promise<void>;
  /** Lets them go before their handle ends: a handle has room for 256 sets. What nothing refers to goes by itself. */
  readonly dispose: () => Promise<void>;
};

/** Coding tools for a model, on the workspace of a handle. They end with the handle. */
export function createSandboxCodingTools(handle: SandboxHandle, options: SandboxCodingToolsOptions): CodingTools;
