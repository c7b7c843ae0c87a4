// Opens the page about kvnet's calls in a real browser and uses it as a newcomer
// would: at the server's own address, and behind a proxy that serves it below a path.
//
// KVNET_URL and KVNET_PROXY_URL say where these are (see integration/api/live),
// CHROMIUM which browser is used.
import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { chromium } from 'playwright-core';
import { Docs } from './docs.mjs';

const pictures = mkdtempSync(join(tmpdir(), 'kvnet-ui-'));
let browser;

before(async () => {
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
    args: process.getuid() === 0 ? ['--no-sandbox'] : [],
  });
});

after(async () => {
  await browser?.close();
  console.log(`Pictures of the page are in ${pictures}`);
});

const places = [
  { name: 'at the server', base: process.env.KVNET_URL, id: 'net-1', balancer: 'web-1' },
  { name: 'behind a proxy', base: process.env.KVNET_PROXY_URL, id: 'net-2', balancer: 'web-2' },
];

for (const { name, base, id, balancer } of places) {
  test(name, { timeout: 600_000 }, async (t) => {
    assert.ok(base, 'KVNET_URL and KVNET_PROXY_URL must be set');
    const docs = await Docs.open(browser, base, (picture) => join(pictures, `${name.replaceAll(' ', '-')}-${picture}.png`));

    await t.test('every call of every description is shown', async () => {
      const titles = [];
      for (const description of await docs.descriptions()) {
        await docs.choose(description);
        titles.push(await docs.title());
        const calls = await docs.openEveryCall();
        assert.ok(calls >= 9, `${description} shows ${calls} calls`);
        await docs.picture(`description-${titles.length}`);
      }
      assert.deepEqual(titles, ['KubeVirt Networking API', 'KubeVirt Node API', 'kvnet API']);
    });

    await t.test('without a password the answer is 401, and the browser asks nothing', async () => {
      await docs.choose((await docs.descriptions())[0]);
      docs.expectError(/401/);
      assert.equal((await docs.tryOut('listNetworks')).status, 401);
    });

    await t.test('with one, calls work', async () => {
      await docs.authorize('onos', 'rocks');
      const created = await docs.tryOut('createNetwork', { body: { networkId: id, name: id } });
      assert.equal(created.status, 201);
      await docs.picture('network-created');
      const list = await docs.tryOut('listNetworks');
      assert.equal(list.status, 200);
      assert.match(list.body, new RegExp(`"networkId": "${id}"`));
      assert.equal(list.url, `${base}/onos/kubevirtnetworking/network`);
      assert.equal((await docs.tryOut('getNetwork', { parameters: { id } })).status, 200);
      await docs.picture('network-read');
    });

    await t.test('the password holds for the other descriptions, too', async () => {
      await docs.choose((await docs.descriptions())[2]);
      assert.equal((await docs.tryOut('createLoadBalancer', { body: { name: balancer } })).status, 201);
      const read = await docs.tryOut('getLoadBalancer', { parameters: { key: balancer } });
      assert.equal(read.status, 200);
      assert.match(read.body, /"vip": "192\.0\.2\.100"/);
      await docs.picture('balancer-read');
      await docs.choose((await docs.descriptions())[1]);
      assert.equal((await docs.tryOut('nodeState', { parameters: { hostname: 'worker-1' } })).status, 200);
    });

    await t.test('the password is forgotten with the page', async () => {
      await docs.reload();
      docs.expectError(/401/);
      await docs.choose((await docs.descriptions())[1]);
      assert.equal((await docs.tryOut('nodeState', { parameters: { hostname: 'worker-1' } })).status, 401);
    });

    assert.deepEqual(docs.faults, [], 'errors in the browser, or requests to other hosts');
    await docs.close();
  });
}
