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
  'sched:sched_process_fork',
  'sched:sched_process_exec',
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
  const perf = spawn('perf', ['record', '-q', '-a', '-m', '16M', '-o', file, '-e', EVENTS.join(',')], { stdio: 'inherit' });
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
  return { lines: text.stdout.toString().split('\n'), sidecar: sidecar.pid };
}

// Each time is from the mark before it. Where the last process of the namespace ends before bwrap, that took no time.
const STAGES = [
  ['sidecar: reads, checks, sends', 'sent'],
  ['the helper wakes up', 'helper'],
  ['helper: becomes the program', 'execve'],
  ['kernel: exec', 'exec'],
  ['the program: loads, runs, ends', 'exit'],
  ['kernel: the program is gone', 'program'],
  ['init tells bwrap, which ends', 'bwrap'],
  ['kernel: the namespaces are gone', 'init'],
  ['sidecar: wakes up, cleans up, answers', 'answer'],
];

function parse(line) {
  const found = /^\s*(.*?)\s+(\d+)\s+([\d.]+):\s+\S*?:?(\w+):\s+(.*)$/.exec(line);
  return found && { comm: found[1], pid: Number(found[2]), at: Number(found[3]) * 1e6, name: found[4], text: found[5] };
}

/** The mark that an event is, of the command whose `times` are being collected. */
function markOf(event, sidecar, parents, times) {
  const { pid, name, text } = event;
  if (pid === sidecar) {
    if (name === 'sys_exit_read' && Number(text) > 64 && Number(text) < 4096) return 'request'; // -EAGAIN is huge
    return { sys_enter_sendmsg: 'sent', sys_enter_writev: 'answer' }[name];
  }
  const init = parents.get(pid);
  const bwrap = parents.get(init);
  if (name === 'sys_exit_recvmsg' && event.comm.startsWith('stitchkit-launc') && parents.get(bwrap) === sidecar) {
    Object.assign(times.family, { program: pid, init, bwrap });
    return 'helper';
  }
  const { family } = times;
  if (name === 'sched_switch' && / prev_state=[ZX]/.test(text)) {
    return Object.keys(family).find((one) => family[one] === pid);
  }
  return pid === family.program
    ? { sys_enter_execve: 'execve', sched_process_exec: 'exec', sys_enter_exit_group: 'exit' }[name]
    : undefined;
}

function timelines({ lines, sidecar }) {
  const runs = [];
  const parents = new Map();
  let times = { family: {} };
  for (const event of lines.map(parse).filter(Boolean)) {
    if (event.name === 'sched_process_fork') {
      parents.set(Number(/child_pid=(\d+)/.exec(event.text)[1]), event.pid);
      continue;
    }
    const mark = markOf(event, sidecar, parents, times);
    if (mark === 'request') times = { family: {} };
    if (mark) times[mark] ??= event.at;
    if (mark === 'answer' && STAGES.every(([, stage]) => stage in times)) {
      times.init = Math.max(times.init, times.bwrap);
      runs.push(['request', ...STAGES.map(([, stage]) => stage)].map((stage) => times[stage]));
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
  STAGES.forEach(([what], i) => {
    console.log(`${what.padEnd(40)}${median(runs.map((at) => at[i + 1] - at[i])).toFixed(0).padStart(6)}`);
  });
  console.log(`${'in all'.padEnd(40)}${median(runs.map((at) => at.at(-1) - at[0])).toFixed(0).padStart(6)}`);
} finally {
  rmSync(directory, { recursive: true, force: true });
}
