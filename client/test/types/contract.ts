// What the stitchkit runtime asks of a sandbox backend, written down from its contract and not from this package: a value
// of this package has to fit where the runtime takes one. Members are functions and not methods, so that parameters are
// compared strictly.
import {
  createSidecarSandboxBackend,
  SandboxError,
  type SandboxBackend,
  type SandboxHandle,
  type SandboxSession,
} from 'stitchkit-sandbox-client';

type Bytes = Uint8Array;
interface Rule {
  origin: string;
  headers?: Record<string, string> | undefined;
}
type Policy = 'allow-all' | 'deny-all' | { allow: Rule[] };
interface State {
  backend: string;
  sessionId: string;
  templateKey: string;
}
interface Command {
  executable: string;
  args?: string[] | undefined;
  cwd?: string | undefined;
  environment?: Record<string, string> | undefined;
  timeoutMs?: number | undefined;
  maxOutputBytes?: number | undefined;
}
interface Options {
  signal?: AbortSignal;
  stdin?: Bytes;
}
interface Process {
  readonly result: Promise<{ exitCode: number; stdout: Bytes; stderr: Bytes }>;
  readonly stop: () => Promise<void>;
}
export interface RuntimeSession {
  readonly id: string;
  readonly brokerSocket?: string;
  readonly resolvePath: (path: string) => string;
  readonly readBinaryFile: (path: string) => Promise<Bytes>;
  readonly readTextFile: (path: string) => Promise<string>;
  readonly writeBinaryFile: (path: string, bytes: Bytes) => Promise<void>;
  readonly writeTextFile: (path: string, text: string) => Promise<void>;
  readonly removePath: (path: string) => Promise<void>;
  readonly spawn: (command: Command, options?: Options) => Promise<Process>;
  readonly run: (
    command: Command,
    options?: Options,
  ) => Promise<{ exitCode: number; stdout: string; stderr: string }>;
  readonly setNetworkPolicy: (policy: Policy) => Promise<void>;
}
export interface RuntimeHandle {
  readonly session: RuntimeSession;
  readonly captureState: () => State;
  readonly stop: () => Promise<void>;
  readonly shutdown: () => Promise<void>;
  readonly delete: () => Promise<void>;
}
export interface RuntimeBackend {
  readonly name: string;
  readonly prewarm: (input: {
    template: string;
    files?: Readonly<Record<string, Bytes>>;
  }) => Promise<{ reused: boolean; templateKey: string }>;
  readonly create: (input: { template: string; state?: State; network: Policy }) => Promise<RuntimeHandle>;
}
type RuntimeErrorCode =
  | 'SANDBOX_UNAVAILABLE'
  | 'SANDBOX_BUSY'
  | 'SANDBOX_STOPPED'
  | 'SANDBOX_STATE_MISMATCH'
  | 'SANDBOX_NETWORK_DENIED'
  | 'SANDBOX_LIMIT'
  | 'SANDBOX_PATH';

export const backend: RuntimeBackend = createSidecarSandboxBackend({ stateDirectory: '/s', onBrokerError: () => {} });
export const asBackend = (value: SandboxBackend): RuntimeBackend => value;
export const asHandle = (value: SandboxHandle): RuntimeHandle => value;
export const asSession = (value: SandboxSession): RuntimeSession => value;
export const failure = (code: RuntimeErrorCode): Error & { readonly code: string } =>
  new SandboxError(code, 'why', { cause: new Error('because') });

// A handle's state is there at once: a promise of it is no state.
export const state: State = (null as unknown as SandboxHandle).captureState();
// @ts-expect-error -- the runtime would not take this for a backend
export const incomplete: RuntimeBackend = { name: 'x', prewarm: async () => ({ reused: false, templateKey: '' }) };
