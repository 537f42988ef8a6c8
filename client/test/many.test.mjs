// Many handles and many calls on one sidecar.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSandboxCodingTools } from 'stitchkit-sandbox-client';
import { makeBackend, openBackend, openHandle, shell } from './support/backend.mjs';
import { openDescriptors, pidsWithArgument, sidecarPid, until } from './support/processes.mjs';

const HANDLES = 200;
const CALLS = 2000;

test(`${HANDLES} handles each write, run and read, and leave no descriptor open`, async (t) => {
  const made = openBackend(t);
  await (await openHandle(made.backend)).stop();
  const pid = sidecarPid(made.stateDirectory);
  const before = openDescriptors(pid);
  const template = (await made.backend.prewarm({ template: 'many', files: { seed: 'seed' } })).templateKey;
  const handles = await Promise.all(
    Array.from({ length: HANDLES }, () => made.backend.create({ template, network: 'deny-all' })),
  );
  assert.equal(new Set(handles.map(({ session }) => session.id)).size, HANDLES);
  await Promise.all(
    handles.map(async ({ session }, index) => {
      await session.writeTextFile('in', `${index}`);
      const { exitCode, stdout } = await session.run(shell('cat seed in; echo done > out; cat in >> out'));
      assert.deepEqual({ exitCode, stdout }, { exitCode: 0, stdout: `seed${index}` });
      assert.equal(await session.readTextFile('out'), `done\n${index}`);
    }),
  );
  await Promise.all(handles.map((handle, index) => (index % 2 === 0 ? handle.stop() : handle.delete())));
  await until(() => openDescriptors(pid) <= before, `${before} descriptors, not ${openDescriptors(pid)}`);
});

test(`${CALLS} calls at once are all answered rightly`, async (t) => {
  const { backend } = openBackend(t);
  const handles = await Promise.all(Array.from({ length: 10 }, () => openHandle(backend)));
  const tools = handles.map((handle) => {
    const asked = [];
    const made = createSandboxCodingTools(handle, { authorize: ({ path }) => asked.push(path) > 0 });
    return { asked, write: made.find((tool) => tool.name === 'write_file').handler };
  });
  const results = await Promise.all(
    Array.from({ length: CALLS }, async (_, index) => {
      const which = index % handles.length;
      const { session } = handles[which];
      const content = `content ${index} `.repeat(1 + (index % 50));
      if (index % 4 === 0) {
        const { bytes } = await tools[which].write({ input: { path: `tool/${index}`, content } });
        return bytes === content.length && (await session.readTextFile(`tool/${index}`)) === content;
      }
      if (index % 4 === 1) {
        const bytes = new TextEncoder().encode(content);
        await session.writeBinaryFile(`dir/${index}`, bytes);
        return Buffer.compare(await session.readBinaryFile(`dir/${index}`), bytes) === 0;
      }
      if (index % 4 === 2) {
        return session.readTextFile(`missing/${index}`).catch((error) => error.details.errno === 'ENOENT');
      }
      await session.writeTextFile(`text/${index}`, content);
      return (await session.readTextFile(`text/${index}`)) === content;
    }),
  );
  assert.ok(results.every((result) => result === true));
  for (const [which, { asked }] of tools.entries()) {
    const expected = Array.from({ length: CALLS }, (_, index) => index).filter(
      (index) => index % 4 === 0 && index % handles.length === which,
    );
    assert.deepEqual([...asked].sort(), expected.map((index) => `tool/${index}`).sort());
  }
});

test('the descriptors of the host are back where they were, after each close', async () => {
  const use = async () => {
    const made = makeBackend();
    const handle = await openHandle(made.backend);
    const process = await handle.session.spawn(shell('echo out'));
    await process.result;
    await made.dispose();
    assert.deepEqual(pidsWithArgument(made.stateDirectory), []);
  };
  await use(); // what the runtime opens once
  const before = openDescriptors(process.pid);
  for (let round = 0; round < 3; round += 1) await use();
  await until(() => openDescriptors(process.pid) <= before, `${before} descriptors of the host`);
});
