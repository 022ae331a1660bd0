// A stand-in for Stripe that remembers: the API calls that the product makes, and the Checkout page that its customers see,
// which sends signed webhooks, each twice, as Stripe may. Where stripe-mock is installed (./dev parts stripe-mock), it judges
// the form of every call as well.
import { spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { homedir } from 'node:os';

export const secrets = { key: 'sk_test_dashboard', webhook: 'whsec_dashboard' };

async function bodyOf(request) {
  let text = '';
  for await (const part of request) text += part;
  return text;
}

// "a[b][c]=1" as nested objects.
function formOf(text) {
  const form = {};
  for (const [name, value] of new URLSearchParams(text)) {
    const path = name.split(/[[\]]+/).filter(Boolean);
    let at = form;
    for (const step of path.slice(0, -1)) at = at[step] ??= {};
    at[path.at(-1)] = value;
  }
  return form;
}

export class Stripe {
  sessions = new Map();
  intents = new Map();
  answers = new Map(); // by idempotency key
  problems = [];
  charges = 0;
  webhookUrl = '';
  back = '';
  #next = 0;

  static async start() {
    const stripe = new Stripe();
    stripe.server = createServer((request, response) => void stripe.#serve(request, response).catch((error) => {
      stripe.problems.push(String(error));
      response.writeHead(500).end('{}');
    }));
    await new Promise((done) => stripe.server.listen(0, '127.0.0.1', done));
    stripe.url = `http://127.0.0.1:${stripe.server.address().port}`;
    await stripe.#startJudge();
    return stripe;
  }

  stop() {
    this.judge?.kill();
    this.server.closeAllConnections();
    this.server.close();
  }

  async #startJudge() {
    const file = `${process.env.TOLLGATE_PARTS ?? `${homedir()}/.cache/tollgate/parts`}/stripe-mock-v0.203.0/stripe-mock`;
    if (!existsSync(file)) return;
    this.judge = spawn(file, ['-http-port', '0', '-strict-version-check']);
    this.judgeUrl = await new Promise((done) => {
      let text = '';
      this.judge.stdout.on('data', (part) => {
        text += part;
        const found = /Listening for HTTP at address: \S*:(\d+)/.exec(text);
        if (found) done(`http://127.0.0.1:${found[1]}`);
      });
    });
  }

  // Errors of the call according to Stripe's own API description.
  async #judged(request, body) {
    if (!this.judgeUrl) return;
    const { authorization, 'stripe-version': version, 'content-type': type } = request.headers;
    const answer = await fetch(this.judgeUrl + request.url, { method: request.method, headers: { authorization, 'stripe-version': version, ...(type ? { 'content-type': type } : {}) }, body: body || undefined });
    if (answer.status >= 400) this.problems.push(`${request.method} ${request.url}: ${await answer.text()}`);
  }

  async #serve(request, response) {
    const body = await bodyOf(request);
    const url = new URL(request.url, this.url);
    // The address from the product, before it knew its own.
    if (url.pathname === '/back') return void response.writeHead(303, { location: this.back }).end();
    if (url.pathname.startsWith('/pay/')) return this.#page(request, response, url.pathname.slice(5));
    if (request.headers.authorization !== `Bearer ${secrets.key}`) return void response.writeHead(401).end('{"error":{"type":"invalid_request_error"}}');
    await this.#judged(request, body);
    const key = request.headers['idempotency-key'];
    let answer = key && this.answers.get(key);
    answer ??= this.#call(request.method, url.pathname, formOf(body), url.searchParams);
    if (key) this.answers.set(key, answer);
    response.writeHead(answer ? 200 : 404, { 'content-type': 'application/json' }).end(JSON.stringify(answer ?? { error: { type: 'invalid_request_error', code: 'resource_missing' } }));
  }

  #id = (kind) => `${kind}_test_${(this.#next += 1)}`;

  #intent(amount, customer, metadata) {
    const intent = { id: this.#id('pi'), object: 'payment_intent', amount, currency: 'usd', amount_received: amount, created: Math.floor(Date.now() / 1000), customer, metadata: metadata ?? {}, status: 'succeeded', latest_charge: { id: this.#id('ch'), object: 'charge', amount_refunded: 0 } };
    this.intents.set(intent.id, intent);
    this.charges += 1;
    return intent;
  }

  #call(method, path, form) {
    const [, , resource, id, more] = path.split('/');
    const what = `${method} ${resource}`;
    if (what === 'POST customers') return { id: this.#id('cus'), object: 'customer' };
    if (resource === 'checkout') return this.#checkout(method, path.split('/')[4], path.split('/')[5], form);
    if (what === 'POST payment_intents' && !id) {
      setTimeout(() => void this.#tell('payment_intent.succeeded', intent));
      const intent = this.#intent(Number(form.amount), form.customer, form.metadata);
      return intent;
    }
    if (what === 'GET payment_intents') return id ? this.intents.get(id) : { object: 'list', data: [...this.intents.values()].reverse(), has_more: false };
    if (what === 'POST payment_methods' && more === 'detach') return { id, object: 'payment_method' };
    if (what === 'GET refunds') return { object: 'list', data: [], has_more: false };
    return null;
  }

  #checkout(method, id, act, form) {
    if (method === 'POST' && !id) {
      const session = { id: this.#id('cs'), object: 'checkout.session', mode: form.mode, status: 'open', customer: form.customer, metadata: form.metadata ?? {}, success_url: form.success_url, payment_intent: null, setup_intent: null, amount: Number(form.line_items?.[0]?.price_data?.unit_amount ?? 0), intent_metadata: form.payment_intent_data?.metadata };
      session.url = `${this.url}/pay/${session.id}`;
      this.sessions.set(session.id, session);
      return session;
    }
    const session = this.sessions.get(id);
    if (act === 'expire' && session?.status === 'open') session.status = 'expired';
    return session ?? null;
  }

  // The page of Checkout: a button that pays, and then back.
  async #page(request, response, id) {
    const session = this.sessions.get(id);
    if (request.method === 'GET') {
      response.setHeader('content-type', 'text/html');
      const verb = session.mode === 'setup' ? 'Save card' : `Pay $${(session.amount / 100).toFixed(2)}`;
      return void response.end(`<!doctype html><title>Checkout</title><h1>Checkout</h1><form method="post"><button>${verb}</button></form>`);
    }
    if (session.status === 'open') {
      session.status = 'complete';
      if (session.mode === 'setup') {
        session.setup_intent = { id: this.#id('seti'), status: 'succeeded', payment_method: { id: this.#id('pm'), object: 'payment_method', type: 'card', customer: session.customer, card: { brand: 'visa', last4: '4242', exp_month: 8, exp_year: 2031 } } };
      } else {
        session.payment_intent = this.#intent(session.amount, session.customer, session.intent_metadata);
        await this.#tell('payment_intent.succeeded', session.payment_intent);
      }
      await this.#tell('checkout.session.completed', session);
    }
    response.writeHead(303, { location: session.success_url }).end();
  }

  async #tell(type, object) {
    const body = JSON.stringify({ id: this.#id('evt'), object: 'event', type, data: { object } });
    for (let times = 0; times < 2; times += 1) {
      const time = Math.floor(Date.now() / 1000);
      const signature = createHmac('sha256', secrets.webhook).update(`${time}.${body}`).digest('hex');
      const answer = await fetch(this.webhookUrl, { method: 'POST', headers: { 'content-type': 'application/json', 'stripe-signature': `t=${time},v1=${signature}` }, body });
      if (!answer.ok) this.problems.push(`webhook ${type}: ${answer.status}`);
    }
  }
}
