// Docs is the page in a browser, by what can be done with it.
export class Docs {
  // open opens the page of the server at base. place names the file of a picture.
  static async open(browser, base, place) {
    const docs = new Docs();
    docs.place = place;
    docs.faults = [];
    docs.expected = [];
    docs.context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
    docs.page = await docs.context.newPage();
    docs.page.setDefaultTimeout(60_000);
    docs.watch(new URL(base).host);
    // Without the slash: the server leads to the right place.
    await docs.page.goto(`${base}/onos/v1/docs`);
    await docs.loaded();
    return docs;
  }

  // watch notes errors, and requests to any host but one.
  watch(host) {
    const { page, faults } = this;
    page.on('console', (message) => {
      if (message.type() === 'error' && !this.expected.some((e) => e.test(message.text()))) faults.push(message.text());
    });
    page.on('pageerror', (error) => faults.push(String(error)));
    page.on('dialog', (dialog) => faults.push(`a window that says ${dialog.message()}`));
    this.context.on('request', (request) => {
      const url = new URL(request.url());
      if (!['data:', 'blob:'].includes(url.protocol) && url.host !== host) faults.push(`a request to ${url}`);
    });
  }

  // expectError lets an error in the console pass.
  expectError(pattern) { this.expected.push(pattern); }

  async loaded() { await this.page.locator('.opblock').first().waitFor(); }

  async reload() {
    await this.page.reload();
    await this.loaded();
  }

  async descriptions() { return this.page.locator('#select option').allInnerTexts(); }

  // choose shows a description.
  async choose(description) {
    const answer = this.page.waitForResponse((r) => r.url().endsWith('/swagger.json'));
    const select = this.page.locator('#select');
    if (await select.evaluate((s) => s.selectedOptions[0].text) === description) {
      answer.catch(() => {});
      return;
    }
    await select.selectOption({ label: description });
    const title = JSON.parse(await (await answer).text()).info.title;
    await this.page.locator('.info .title', { hasText: title }).waitFor();
    await this.loaded();
  }

  async title() {
    return this.page.locator('.info .title').evaluate((title) => title.firstChild.textContent.trim());
  }

  // openEveryCall closes and opens each group of calls, opens and closes each call,
  // and says how many there are. All at a time: one by one takes minutes.
  async openEveryCall() {
    const press = (buttons) => this.page.locator(buttons).evaluateAll((all) => all.forEach((b) => b.click()));
    const number = (n, what) => this.page.waitForFunction(
      ([count, selector]) => document.querySelectorAll(selector).length === count, [n, what], { timeout: 60_000 });
    const calls = await this.page.locator('.opblock').count();
    await press('.opblock-tag .expand-operation');
    await number(0, '.opblock');
    await press('.opblock-tag .expand-operation');
    await number(calls, '.opblock');
    await press('.opblock-summary-control');
    await number(calls, '.opblock .responses-inner');
    await press('.opblock-summary-control');
    await number(0, '.opblock .responses-inner');
    return calls;
  }

  async authorize(name, password) {
    await this.page.locator('.btn.authorize').first().click();
    const dialog = this.page.locator('.modal-ux');
    await dialog.locator('input[name=username]').fill(name);
    await dialog.locator('input[name=password]').fill(password);
    await this.picture('authorize');
    await dialog.locator('button.authorize').click();
    await dialog.getByRole('button', { name: 'Close' }).click();
    await dialog.waitFor({ state: 'detached' });
  }

  // tryOut makes a call with "Try it out". Members of body replace those of the
  // example.
  async tryOut(id, { parameters = {}, body } = {}) {
    const call = this.page.locator(`.opblock[id$="-${id}"]`);
    if (!(await call.locator('.opblock-body').count())) await call.locator('.opblock-summary-control').click();
    const start = call.locator('.try-out__btn:not(.cancel)');
    if (await start.count()) await start.click();
    for (const [name, value] of Object.entries(parameters)) {
      await call.locator(`tr[data-param-name="${name}"] input`).fill(value);
    }
    if (body) {
      const text = call.locator('.body-param__text');
      await text.fill(JSON.stringify({ ...JSON.parse(await text.inputValue()), ...body }, null, 2));
    }
    const answer = this.page.waitForResponse((r) => r.request().resourceType() === 'fetch');
    await call.locator('.btn.execute').click();
    await answer;
    const row = call.locator('.live-responses-table .response').first();
    await row.waitFor();
    const content = row.locator('.highlight-code code');
    return {
      status: parseInt(await row.locator('.response-col_status').innerText(), 10),
      url: (await call.locator('.request-url pre').innerText()).trim(),
      body: (await content.count()) ? await content.first().innerText() : '',
    };
  }

  async picture(name) { await this.page.screenshot({ path: this.place(name), fullPage: true }); }

  async close() { await this.context.close(); }
}
