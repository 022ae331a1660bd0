// One process per service on PostgreSQL, as tollgate-test-cluster starts them, with pages and people.
import { execFileSync, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

export class Cluster {
  // settings: lines of YAML by section, {dashboard: […], billing: […]}.
  static async start(settings = {}) {
    const cluster = new Cluster();
    const options = Object.entries({ ...settings, dashboard: [`web_folder: ${process.env.WEB}`, ...(settings.dashboard ?? [])] }).flatMap(([section, lines]) => lines.flatMap((line) => [`--${section}`, line]));
    cluster.child = spawn(`${process.env.BIN}/tollgate-test-cluster`, ['--tcp', '--postgres', '--admin-sockets', ...options], { env: { ...process.env, TOLLGATE_BIN: process.env.BIN }, stdio: ['pipe', 'pipe', 'inherit'] });
    cluster.lines = createInterface({ input: cluster.child.stdout })[Symbol.asyncIterator]();
    const line = await cluster.lines.next();
    if (line.done) throw new Error('the cluster did not start');
    cluster.facts = JSON.parse(line.value);
    cluster.url = `http://127.0.0.1:${cluster.facts.dashboard_port}`;
    return cluster;
  }

  async stop() {
    const ended = new Promise((done) => this.child.on('exit', done));
    this.child.stdin.end();
    await ended;
  }

  async #obey(line) {
    this.child.stdin.write(`${line}\n`);
    const { error } = JSON.parse((await this.lines.next()).value);
    if (error) throw new Error(error);
  }
  kill = (name) => this.#obey(`kill ${name}`);
  restart = (name) => this.#obey(`start ${name}`);

  // Runs the command line; returns its JSON.
  tollgate(...args) {
    const sockets = { TOLLGATE_AUTH: `unix:${this.facts.dir}/auth.sock`, TOLLGATE_BILLING: `unix:${this.facts.dir}/billing.sock`, TOLLGATE_ADMIN: `unix:${this.facts.dir}/auth.sock` };
    const out = execFileSync(`${process.env.BIN}/tollgate`, ['--json', ...args], { env: { ...process.env, ...sockets }, encoding: 'utf8' });
    return out.trim() ? JSON.parse(out) : null;
  }
}
