// Network policies and the gateway, through the client.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { SandboxError } from 'stitchkit-sandbox-client';
import { makeBackend, openBackend, openHandle, shell } from './support/backend.mjs';
import { until } from './support/processes.mjs';

const SECRET = 'Bearer s3cr3t-of-the-test';

let shared;
let upstream;
let origin;
const requests = [];

before(async () => {
  shared = makeBackend({ args: ['--private-origins'] });
  upstream = createServer((request, response) => {
    requests.push({ url: request.url, authorization: request.headers.authorization });
    if (request.url === '/broken') request.socket.destroy();
    else if (request.url === '/moved') response.writeHead(302, { location: '/elsewhere' }).end();
    else response.end(`hello ${request.headers.authorization}`);
  });
  await new Promise((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${upstream.address().port}`;
});
after(async () => {
  upstream.closeAllConnections();
  await new Promise((resolve) => upstream.close(resolve));
  await shared.dispose();
});

// From the guest, over the gateway's socket.
async function fetchInGuest(session, url) {
  const args = ['-sS', '-m', '20', '-w', '\n%{http_code}', '--unix-socket', session.brokerSocket, url];
  const { exitCode, stdout, stderr } = await session.run({ executable: '/usr/bin/curl', args });
  assert.equal(exitCode, 0, stderr);
  const at = stdout.lastIndexOf('\n');
  return { status: Number(stdout.slice(at + 1)), body: stdout.slice(0, at) };
}

const allowed = () => ({ allow: [{ origin, headers: { authorization: SECRET } }] });

describe('the gateway', () => {
  test('injects headers, which the guest does not see', async () => {
    const { session } = await openHandle(shared.backend, { network: allowed() });
    const { status, body } = await fetchInGuest(session, `${origin}/injected`);
    assert.equal(status, 200);
    assert.equal(body, `hello ${'*'.repeat(SECRET.length)}`); // its reflection, made unreadable
    assert.deepEqual(
      requests.filter((request) => request.url === '/injected'),
      [{ url: '/injected', authorization: SECRET }],
    );
    const { stdout } = await session.run(shell('env; cat /proc/self/cmdline /proc/1/cmdline /proc/1/environ'));
    assert.ok(!stdout.includes('s3cr3t'));
  });

  test('refuses what no rule names', async () => {
    const { session } = await openHandle(shared.backend, { network: allowed() });
    const { status, body } = await fetchInGuest(session, 'http://example.com/refused');
    assert.deepEqual({ status, body }, { status: 403, body: 'Sandbox network denied' });
    const denied = await openHandle(shared.backend);
    assert.equal((await fetchInGuest(denied.session, `${origin}/refused`)).status, 403);
    assert.ok(!requests.some((request) => request.url === '/refused'));
  });

  for (const [path, code] of Object.entries({
    '/broken': 'INTERNAL_SERVER_ERROR',
    '/moved': 'SANDBOX_NETWORK_DENIED',
  })) {
    test(`tells onBrokerError why the guest got 502, and no secret: ${code}`, async () => {
      const { session } = await openHandle(shared.backend, { network: allowed() });
      const { status, body } = await fetchInGuest(session, `${origin}${path}`);
      assert.deepEqual({ status, body }, { status: 502, body: 'Sandbox upstream request failed' });
      const ours = () => shared.brokerErrors.find((error) => error.details.sessionId === session.id);
      const error = await until(ours, 'the call of onBrokerError');
      assert.ok(error instanceof SandboxError);
      assert.equal(error.code, code);
      assert.deepEqual(error.details, { message: error.message, origin, sessionId: session.id });
      assert.notEqual(error.message, '');
      assert.ok(!JSON.stringify([error, error.message, error.stack, shared.logged]).includes('s3cr3t'));
    });
  }

  test('goes on when onBrokerError throws, and the logger is told', async (t) => {
    let calls = 0;
    const { backend, logged } = openBackend(t, {
      args: ['--private-origins'],
      onBrokerError() {
        calls += 1;
        throw new Error('the host failed');
      },
    });
    const { session } = await openHandle(backend, { network: allowed() });
    for (const expected of [1, 2]) {
      assert.equal((await fetchInGuest(session, `${origin}/broken`)).status, 502);
      await until(() => calls === expected, `call ${expected} of onBrokerError`);
    }
    assert.equal((await fetchInGuest(session, `${origin}/fine`)).status, 200);
    const told = logged.filter(([level, message]) => level === 'error' && message.includes('onBrokerError'));
    assert.equal(told.length, 2);
    assert.match(told[0][1], /the host failed/);
  });
});

describe('setNetworkPolicy', () => {
  test('changes what the next command may do', async () => {
    const { session, probe } = await openHandle(shared.backend);
    assert.equal(typeof probe, 'function');
    assert.equal((await fetchInGuest(session, `${origin}/changed`)).status, 403);
    assert.equal(await session.setNetworkPolicy(allowed()), undefined);
    assert.equal((await fetchInGuest(session, `${origin}/changed`)).status, 200);
    await session.setNetworkPolicy('deny-all');
    assert.equal((await fetchInGuest(session, `${origin}/changed`)).status, 403);
  });

  test('shows in the grade', async () => {
    const handle = await openHandle(shared.backend);
    assert.ok((await handle.probe()).restrictions.includes('network-denied'));
    await handle.session.setNetworkPolicy('allow-all');
    const { grade, gaps, restrictions } = await handle.probe();
    assert.ok(!restrictions.includes('network-denied'));
    assert.ok(grade === 'full' || gaps.length > 0);
  });

  test('waits for no command: SANDBOX_BUSY while one lives', async () => {
    const { session } = await openHandle(shared.backend);
    const process = await session.spawn(shell('sleep 1000'));
    await assert.rejects(session.setNetworkPolicy(allowed()), { code: 'SANDBOX_BUSY' });
    await process.stop();
    await session.setNetworkPolicy(allowed());
  });

  test('refuses a rule that makes no sense, says which, and changes nothing', async () => {
    const { session } = await openHandle(shared.backend, { network: allowed() });
    const rules = [
      { origin: 'ftp://x' },
      { origin: `${origin}/path` },
      { origin: '' },
      { origin, headers: { host: 'x' } },
      { origin, headers: { 'x-a': `${SECRET}\r\nx: y` } },
      { origin, header: {} },
      {},
    ];
    for (const rule of rules) {
      await assert.rejects(session.setNetworkPolicy({ allow: [rule] }), (error) => {
        assert.equal(error.code, 'VALIDATION_ERROR', JSON.stringify(rule));
        assert.ok(!JSON.stringify([error, error.stack]).includes('s3cr3t'));
        return true;
      });
    }
    for (const policy of [undefined, null, 'none', {}, []]) {
      await assert.rejects(session.setNetworkPolicy(policy), { code: 'VALIDATION_ERROR' });
    }
    assert.equal((await fetchInGuest(session, `${origin}/still`)).status, 200);
  });
});
