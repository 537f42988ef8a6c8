// Runs the tests: node test/run.mjs node|bun [FILE...]. Without files: every *.test.mjs below test/.
//
// Node and Bun run the same files. What works alike in both (Node 20, Bun 1.4), and so is what tests are written with:
// - from node:test: describe, it, test, before, after, beforeEach, afterEach, and the option `timeout`;
// - of a test's argument: t.after (sync and async; a throw fails the test), t.name, t.signal, t.test (awaited),
//   t.diagnostic, t.mock.fn;
// - all of node:assert/strict; assert.rejects and assert.throws with an object, a class or a regular expression.
// What does not:
// - Bun runs all files in one process, one after another, so nothing global may be left changed;
// - `concurrency` is Node's alone; t.before and t.beforeEach run at other times in Bun;
// - t.test's inner tests are counted by Node and not by Bun: use test() where a total matters;
// - skip and todo work, and ./dev counts each as a failure.
import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

// For what hangs; a test's own bounds are far below. Bun's own default, 5 s, is too short for a slow machine.
const TIMEOUT_MS = 300_000;
const packageDirectory = dirname(dirname(fileURLToPath(import.meta.url)));

// Not by node_modules/.bin: that link works only after the package's install script, which .npmrc switches off.
function bunBinary() {
  const cpu = { x64: 'x64', arm64: 'aarch64' }[process.arch] ?? process.arch;
  const libc = process.report.getReport().header.glibcVersionRuntime ? '' : '-musl';
  return join(packageDirectory, 'node_modules', '@oven', `bun-linux-${cpu}${libc}`, 'bin', 'bun');
}

function testFiles() {
  return readdirSync(join(packageDirectory, 'test'), { recursive: true })
    .filter((name) => name.endsWith('.test.mjs'))
    .sort()
    .map((name) => `./test/${name}`);
}

const runners = {
  node: () => [process.execPath, '--test', '--test-reporter=spec', `--test-timeout=${TIMEOUT_MS}`],
  bun: () => [bunBinary(), 'test', `--timeout=${TIMEOUT_MS}`],
};

const [runner, ...chosen] = process.argv.slice(2);
if (!Object.hasOwn(runners, runner ?? '')) {
  console.error('usage: node test/run.mjs node|bun [FILE...]');
  process.exit(2);
}
const [command, ...options] = runners[runner]();
// Bun takes an argument that does not begin with ./ or / for a pattern.
const files = chosen.length === 0 ? testFiles() : chosen.map((file) => file.replace(/^(?!\.?\.?\/)/, './'));
const child = spawn(command, [...options, ...files], {
  cwd: chosen.length === 0 ? packageDirectory : process.cwd(),
  stdio: 'inherit',
});
child.on('error', (cause) => {
  console.error(`Cannot start ${command} (npm ci?): ${cause.message}`);
  process.exit(1);
});
child.on('exit', (code, signal) => {
  process.exitCode = code ?? 1;
  if (signal) {
    console.error(`${command} ended by ${signal}`);
  }
});
