import { invalid, SandboxError } from './errors.js';
import { checkTexts, refuseUnknown } from './given.js';
import { internalsOf } from './handle.js';
import { schemaOf } from './schemas.js';
import { toolDefinitions } from './tool_definitions.js';

function checkStore(artifacts) {
  if (artifacts === undefined || artifacts === 'sidecar' || artifacts === 'none') return;
  if (typeof artifacts?.write !== 'function' || typeof artifacts?.read !== 'function') {
    throw invalid("artifacts has to be 'sidecar', 'none', or a store with write and read");
  }
}

const OPTIONS = [
  ...['authorize', 'authorizePath', 'deniedPaths', 'executables', 'environment', 'artifacts', 'search', 'limits'],
  ...['requiredRestrictions'],
];

function checkOptions(options) {
  refuseUnknown(options ?? {}, OPTIONS, 'createSandboxCodingTools');
  refuseUnknown(options?.search ?? {}, ['excludeDirectories'], 'search');
  const { authorize, authorizePath, executables, environment, artifacts } = options ?? {};
  checkTexts(executables, 'executables');
  checkTexts(environment, 'environment');
  if (typeof authorize !== 'function') throw invalid('authorize has to be a function');
  if (authorizePath !== undefined && typeof authorizePath !== 'function') {
    throw invalid('authorizePath has to be a function');
  }
  for (const [name, path] of Object.entries(executables ?? {})) {
    if (!path.startsWith('/')) {
      throw invalid(`The executable ${name} has to be an absolute path in the guest`);
    }
  }
  checkStore(artifacts);
}

function createParams(handle, { artifacts, authorizePath, search, ...options }) {
  const { deniedPaths, requiredRestrictions, executables, environment, limits } = options;
  return {
    handle,
    authorize: 'host',
    authorizePaths: authorizePath ? 'host' : 'allow',
    deniedPaths,
    requiredRestrictions,
    executables,
    environment,
    artifacts: typeof artifacts === 'object' ? 'host' : artifacts,
    excludeDirectories: search?.excludeDirectories,
    limits,
  };
}

// Holds nothing of the Toolset, which would never be forgotten otherwise.
function releaseOf(sidecar, toolsets, toolset) {
  return async () => {
    if (!toolsets.delete(toolset)) return; // its handle has ended, or it was called before
    sidecar.hostRequests.remove(toolset);
    await sidecar.request('coding.delete', { toolset });
  };
}

// A handle has room for so many toolsets; those that no tool leads to any more make way.
const forgotten = new FinalizationRegistry((release) => void release().catch(() => {}));

/** The toolset that the sidecar keeps for these tools. */
class Toolset {
  #sidecar;
  #id;
  #release;
  ready;

  constructor({ sidecar, handle, toolsets }, options) {
    this.#sidecar = sidecar;
    const accept = ({ toolset }) => {
      this.#id = toolset;
      toolsets.add(toolset);
      sidecar.hostRequests.add(toolset, options);
      this.#release = releaseOf(sidecar, toolsets, toolset);
      forgotten.register(this, this.#release, this);
    };
    this.ready = sidecar.request('coding.create', createParams(handle, options), { accept }).then(() => {});
    this.ready.catch(() => {}); // each tool tells it as well
  }

  async dispose() {
    await this.ready;
    forgotten.unregister(this);
    await this.#release();
  }

  async call({ name, method }, context) {
    const { input, signal } = context ?? {};
    if (this.#id === undefined) await this.ready;
    const keepResult = name === 'run_command'; // its result says `cancelled`
    return await this.#sidecar.request(method, { toolset: this.#id, input }, { signal, keepResult });
  }
}

function definitionOf(tool, toolset) {
  const { name, description, identity, inputSchema, outputSchema, transports } = tool;
  return {
    name,
    description,
    identity,
    input: schemaOf(inputSchema),
    output: schemaOf(outputSchema),
    inputSchema,
    outputSchema,
    transports,
    handler: (context) => toolset.call(tool, context),
  };
}

export function createSandboxCodingTools(handle, options) {
  const internals = internalsOf(handle);
  if (!internals) {
    throw new SandboxError('SANDBOX_UNAVAILABLE', 'The handle is none of createSidecarSandboxBackend');
  }
  internals.assertActive();
  checkOptions(options);
  const kept = { ...options };
  const toolset = new Toolset(internals, kept);
  const tools = toolDefinitions(internals.sidecar.document, kept).map((tool) => definitionOf(tool, toolset));
  Object.defineProperties(tools, { ready: { value: toolset.ready }, dispose: { value: () => toolset.dispose() } });
  return tools;
}
