export { createSidecarSandboxBackend } from './backend.js';
export { createSandboxCodingTools } from './coding_tools.js';
export { SandboxError } from './errors.js';
