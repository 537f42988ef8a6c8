// Where the time of a warm session.run of /usr/bin/true goes: medians between the kernel's own marks, by perf.
// Usage, as root: node bench/command_timeline.mjs build/release/stitchkit-sandbox [COMMANDS]
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, chmodSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { RawLines } from './raw_lines.mjs';

const EVENTS = [
  'sched:sched_switch',
  'sched:sched_process_exec',
  'sched:sched_process_exit',
  'syscalls:sys_exit_read',
  'syscalls:sys_enter_sendmsg',
  'syscalls:sys_exit_recvmsg',
  'syscalls:sys_enter_execve',
  'syscalls:sys_enter_exit_group',
  'syscalls:sys_enter_writev',
];

async function record(program, commands, directory) {
  const sidecar = new RawLines(program, ['--state-dir', join(directory, 'state'), '--framing', 'lines']);
  const { handle } = await sidecar.call('backend.create', { template: { template: 't' }, network: 'deny-all' });
  const file = join(directory, 'perf.data');
  const perf = spawn('perf', ['record', '-q', '-a', '-o', file, '-e', EVENTS.join(',')], { stdio: 'inherit' });
  const ended = new Promise((resolve) => perf.once('exit', resolve));
  await pause(1000);
  for (let i = 0; i < commands; ++i) {
    await pause(30);
    await sidecar.call('session.run', { handle, command: { executable: '/usr/bin/true' } });
  }
  perf.kill('SIGINT');
  await ended;
  await sidecar.end();
  const text = spawnSync('perf', ['script', '-i', file, '-F', 'comm,pid,time,event,trace'], { maxBuffer: 2 ** 31 });
  return text.stdout.toString().split('\n');
}

// One command's marks, in the order in which they must come; a line that shows the next one is taken for it.
const MARKS = [
  ['request read', (e, run) => e.sidecar && e.name === 'sys_exit_read' && e.size > 64 && ((run.sidecar = e.pid), true)],
  ['sidecar: sent to the helper', (e) => e.sidecar && e.name === 'sys_enter_sendmsg'],
  ['the helper runs', (e, run) => e.comm.startsWith('stitchkit-launc') && e.name === 'sys_exit_recvmsg' &&
    ((run.program = e.pid), true)],
  ['helper: asks for the program', (e, run) => e.pid === run.program && e.name === 'sys_enter_execve'],
  ['kernel: exec', (e, run) => e.pid === run.program && e.name === 'sched_process_exec'],
  ['the program: loads, runs, ends', (e, run) => e.pid === run.program && e.name === 'sys_enter_exit_group'],
  ['kernel: the program is gone', (e, run) => e.pid === run.program && e.dead],
  ['init and bwrap end, status is known', (e, run) => e.comm === 'bwrap' && e.dead && ((run.first = e.pid), true)],
  ['kernel: the namespaces are gone', (e, run) => e.comm === 'bwrap' && e.dead && e.pid !== run.first],
  ['sidecar: answer written', (e, run) => e.pid === run.sidecar && e.name === 'sys_enter_writev'],
];

function parse(line) {
  const found = /^\s*(.*?)\s+(\d+)\s+([\d.]+):\s+\S*?:?(\w+):\s+(.*)$/.exec(line);
  if (!found) return undefined;
  const [, comm, pid, time, name, rest] = found;
  return { comm, pid, time: Number(time) * 1e6, name, sidecar: comm === 'stitchkit-sandb',
    size: name === 'sys_exit_read' ? Number(rest) : 0, dead: name === 'sched_switch' && / prev_state=[ZX]/.test(rest) };
}

function timelines(lines) {
  const runs = [];
  let run = { at: [] };
  for (const event of lines.map(parse).filter(Boolean)) {
    if (MARKS[0][1](event, {})) run = { at: [] };
    if (run.at.length < MARKS.length && MARKS[run.at.length][1](event, run)) run.at.push(event.time);
    if (run.at.length === MARKS.length) {
      runs.push(run.at);
      run = { at: [] };
    }
  }
  return runs;
}

const median = (numbers) => numbers.sort((a, b) => a - b)[Math.floor(numbers.length / 2)];

const directory = mkdtempSync(join(tmpdir(), 'timeline-'));
chmodSync(directory, 0o755);
try {
  const runs = timelines(await record(process.argv[2], Number(process.argv[3] ?? 200), directory));
  if (runs.length === 0) throw new Error('perf saw no command: is this root, and does the kernel have tracepoints?');
  console.log(`${runs.length} commands, median microseconds`);
  for (let i = 1; i < MARKS.length; ++i) {
    console.log(`${MARKS[i][0].padEnd(40)}${median(runs.map((at) => at[i] - at[i - 1])).toFixed(0).padStart(6)}`);
  }
  console.log(`${'in all'.padEnd(40)}${median(runs.map((at) => at.at(-1) - at[0])).toFixed(0).padStart(6)}`);
} finally {
  rmSync(directory, { recursive: true, force: true });
}
