// Compiles the hosts beside this file against index.d.ts: as this package, where zod is there, and as a package that was
// installed without zod. `npm run types`.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const typesDirectory = dirname(fileURLToPath(import.meta.url));
const packageDirectory = join(typesDirectory, '..', '..');
const compiler = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc');

function compiles(what, project, ...options) {
  const { status, error } = spawnSync(process.execPath, [compiler, '-p', project, ...options], { stdio: 'inherit' });
  if (error) {
    throw error;
  }
  console.log(`${what}: ${status === 0 ? 'ok' : 'FAILED'}`);
  return status === 0;
}

/** A project below /tmp that has this package and no zod; a package that is linked would still find ours. */
function withoutZod(use) {
  const project = mkdtempSync(join(tmpdir(), 'stitchkit-types-'));
  try {
    const installed = join(project, 'node_modules', 'stitchkit-sandbox-client');
    mkdirSync(installed, { recursive: true });
    for (const file of ['package.json', 'index.d.ts']) {
      copyFileSync(join(packageDirectory, file), join(installed, file));
    }
    for (const file of ['tsconfig.json', 'contract.ts', 'host.ts']) {
      copyFileSync(join(typesDirectory, file), join(project, file));
    }
    symlinkSync(join(packageDirectory, 'node_modules', '@types'), join(project, 'node_modules', '@types'));
    return use(project);
  } finally {
    rmSync(project, { recursive: true, force: true });
  }
}

const bundler = ['--module', 'esnext', '--moduleResolution', 'bundler'];
const done = [
  compiles('with zod', typesDirectory),
  compiles('with zod, for a bundler', typesDirectory, ...bundler),
  withoutZod((project) => compiles('without zod', project)),
];
process.exitCode = done.every(Boolean) ? 0 : 1;
