import { SandboxError } from './errors.js';

const ROOT = '/workspace';

function faultOf(path) {
  if (path === '') return 'The path is empty';
  if (path.includes('\0')) return 'The path holds a NUL character';
  if (!path.isWellFormed()) return 'The path holds half of a surrogate pair';
  if (path.includes('\\')) return 'The path holds a backslash';
  if (path.startsWith('/') && !path.startsWith(`${ROOT}/`)) return 'The path is absolute and not below /workspace';
  const segments = (path.startsWith('/') ? path.slice(ROOT.length + 1) : path).split('/');
  if (segments.includes('')) return 'The path has an empty segment';
  if (segments.includes('.') || segments.includes('..')) return 'The path has a . or .. segment';
  return undefined;
}

/** PROTOCOL.md, section 5, as the sidecar decides it too. @throws SANDBOX_PATH */
export function canonicalPath(path) {
  if (path === '.' || path === ROOT) return ROOT;
  const fault = typeof path === 'string' ? faultOf(path) : 'The path has to be a string';
  if (fault) {
    throw new SandboxError('SANDBOX_PATH', fault, {
      hint: 'Name a file as dir/file or /workspace/dir/file, and the workspace itself as . or /workspace.',
    });
  }
  return path.startsWith('/') ? path : `${ROOT}/${path}`;
}
