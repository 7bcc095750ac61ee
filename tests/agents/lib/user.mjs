// user: a new user of an agent, who starts it by `toolrun launch`, in a folder of its own: home/ work/ data/ journal/ tmp/
// stdout stderr. For the scenarios beside this file.
// Agents are looked for in $AGENT_PKGS, a newer Node in $AGENT_NODE (a folder).
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
const here = path.dirname(fileURLToPath(import.meta.url));
export const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

// What a user has set up before: the model, and nothing of toolrun. kept: tools of its own that touch nothing.
const users = (base, prompt) => ({
  claude: { args: ['-p', prompt], kept: [],
    env: { ANTHROPIC_BASE_URL: base, ANTHROPIC_API_KEY: 'sk-test-dummy', CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1' } },
  codex: { args: ['exec', '--skip-git-repo-check', prompt], env: { MOCK_API_KEY: 'sk-test-dummy' },
    kept: ['list_mcp_resources', 'list_mcp_resource_templates', 'read_mcp_resource', 'request_user_input', 'get_goal', 'create_goal', 'update_goal'],
    files: { '.codex/config.toml': `model = "mock-model"\nmodel_provider = "mock"\ncheck_for_update_on_startup = false\n[analytics]\nenabled = false\n[model_providers.mock]\nname = "mock"\nbase_url = "${base}/v1"\nenv_key = "MOCK_API_KEY"\nwire_api = "responses"\n` } },
  gemini: { args: ['--skip-trust', '--approval-mode', 'yolo', '-m', 'gemini-2.5-flash', '-p', prompt], kept: ['update_topic', 'enter_plan_mode', 'write_todos', 'ask_user', 'read_file', 'write_file'],
    env: { GEMINI_API_KEY: 'sk-test-dummy', GOOGLE_GEMINI_BASE_URL: base },
    files: { '.gemini/settings.json': { security: { auth: { selectedType: 'gemini-api-key' } }, privacy: { usageStatisticsEnabled: false }, general: { enableAutoUpdate: false } } } },
  opencode: { args: ['run', prompt], kept: [],
    env: { OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_LSP_DOWNLOAD: '1', OPENCODE_DISABLE_DEFAULT_PLUGINS: '1' },
    files: { '.config/opencode/opencode.json': { autoupdate: false, share: 'disabled', model: 'mock/mock-model', small_model: 'mock/mock-model', enabled_providers: ['mock'],
      provider: { mock: { npm: '@ai-sdk/openai-compatible', name: 'mock', options: { baseURL: base + '/v1', apiKey: 'sk-test-dummy' }, models: { 'mock-model': { name: 'mock', tool_call: true, limit: { context: 100000, output: 4000 } } } } } } } },
  qwen: { args: ['-p', prompt], kept: ['tool_search', 'tool_call', 'get_goal', 'update_goal', 'create_goal', 'list_agents'],
    env: { OPENAI_API_KEY: 'sk-test-dummy', OPENAI_BASE_URL: base + '/v1', OPENAI_MODEL: 'mock-model' },
    files: { '.qwen/settings.json': { security: { auth: { selectedType: 'openai' } }, privacy: { usageStatisticsEnabled: false }, general: { enableAutoUpdate: false }, model: { name: 'mock-model' } } } },
});

// user makes the folder and starts the model, which plays a file of scripts/. What it gives:
//   at        a path in the folder
//   say       prints PASS|FAIL AGENT SCENARIO EXPECTATION [- why]
//   run       toolrun, to its end
//   launch    toolrun launch, for so many seconds at most: its process as p, how it ended as status, and ended, when it did
//   patience  sets how many seconds the agent itself waits for a call
//   env, kept, files   the environment; what the agent keeps of its own tools; its settings as they were written
//   journal   what the model was asked in the conversation itself, and results, what it was told of each call, by its id
//   rows      what is in the ledger, read without toolrun
//   told      stdout and stderr of launch, after which the model ends
export async function user({ agent, scenario, toolrun, root, script, prompt }) {
  const dir = path.resolve(root), at = (...p) => path.join(dir, ...p), text = (...p) => fs.readFileSync(at(...p), 'utf8');
  for (const d of ['home', 'work', 'journal', 'tmp', 'data']) fs.mkdirSync(at(d), { recursive: true, mode: 0o700 });
  const mock = spawn(process.execPath, [path.join(here, 'mockllm.mjs'), '--script', path.join(here, '..', 'scripts', script), '--dir', at('journal')], { stdio: ['ignore', 'ignore', 'inherit'] });
  let port = '';
  for (let n = 0; n < 200 && !port; n++) { await sleep(50); try { port = text('journal', 'port').trim(); } catch { /* not yet */ } }
  const { args, kept, env: own, files = {} } = users('http://127.0.0.1:' + port, prompt)[agent];
  for (const [f, o] of Object.entries(files)) {
    files[f] = typeof o === 'string' ? o : JSON.stringify(o);
    fs.mkdirSync(path.dirname(at('home', f)), { recursive: true });
    fs.writeFileSync(at('home', f), files[f]);
  }
  const nodeDir = process.env.AGENT_NODE ?? path.dirname(process.execPath);
  const env = { PATH: [path.join(process.env.AGENT_PKGS, agent, 'node_modules', '.bin'), nodeDir, '/usr/local/bin', '/usr/bin', '/bin'].join(':'), HOME: at('home'), TMPDIR: at('tmp'), TERM: 'dumb', LANG: 'C.UTF-8', SHELL: '/bin/sh', TOOLRUN_DATA: at('data'), ...own };
  const journal = () => fs.readdirSync(at('journal')).filter((f) => f.endsWith('.json')).sort().map((f) => JSON.parse(text('journal', f))).filter((j) => j.plan?.kind === 'main');
  return {
    at, env, kept, files, journal,
    say: (ok, what, why = '') => console.log(`${ok ? 'PASS' : 'FAIL'} ${agent} ${scenario} ${what}${ok ? '' : ' - ' + String(why).replace(/\s+/g, ' ').slice(0, 300)}`),
    patience(seconds) { if (agent === 'codex') args.unshift('-c', 'mcp_servers.box.tool_timeout_sec=' + seconds); else env.MCP_TOOL_TIMEOUT = String(1000 * seconds); },
    run: (a) => spawnSync(toolrun, a, { cwd: at('work'), env, encoding: 'utf8', input: '', timeout: 150000, maxBuffer: 1 << 26 }),
    launch(seconds, options = {}) {
      const out = fs.openSync(at('stdout'), 'w'), err = fs.openSync(at('stderr'), 'w');
      const p = spawn(toolrun, ['launch', agent, '--', ...args], { cwd: at('work'), env, stdio: ['ignore', out, err], ...options });
      const l = { p, status: null }, limit = setTimeout(() => p.kill('SIGKILL'), 1000 * seconds);
      l.ended = new Promise((done) => p.on('exit', (code, sig) => { clearTimeout(limit); l.status = code ?? sig; done(Date.now()); }));
      return l;
    },
    told() { mock.kill('SIGTERM'); return [text('stdout'), text('stderr')]; },
    rows() { try { return text('data', 'ledger.jsonl').split('\n').filter(Boolean).map((l) => JSON.parse(l)); } catch { return []; } },
    results() {
      const m = new Map();
      for (const j of journal()) {
        for (const e of j.body.messages ?? []) for (const c of Array.isArray(e.content) ? e.content : []) if (c.type === 'tool_result') m.set(c.tool_use_id, JSON.stringify(c.content));
        for (const i of Array.isArray(j.body.input) ? j.body.input : []) if (i.type === 'function_call_output') m.set(i.call_id, JSON.stringify(i.output));
      }
      return m;
    },
  };
}
