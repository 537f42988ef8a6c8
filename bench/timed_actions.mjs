import { createInterface } from 'node:readline';

/** Driven by sandbox-bench: an action's name a line on stdin, its time a line on stdout. Resolves when stdin ends. */
export async function serveTimed(actions) {
  for await (const name of createInterface({ input: process.stdin })) {
    const start = performance.now();
    await actions[name]();
    console.log(JSON.stringify({ milliseconds: performance.now() - start }));
  }
}
