// A small operator without any library: operator.mjs SERVER CA CERT KEY. It watches Greetings (demo.example.com/v1), keeps a ConfigMap
// with the text of each, owned by it, and writes status.text and status.observedGeneration. One line on standard output per act.
import https from 'node:https';
import { readFileSync } from 'node:fs';

const [server, ca, cert, key] = process.argv.slice(2);
const base = new URL(server);
const agent = new https.Agent({ ca: readFileSync(ca), cert: readFileSync(cert), key: readFileSync(key), keepAlive: true });
const all = '/apis/demo.example.com/v1/greetings';

function open(method, path, body, type, onResponse) {
  const headers = body ? { 'Content-Type': type } : {};
  const request = https.request({ agent, host: base.hostname, port: base.port, method, path, headers }, onResponse);
  request.end(body);
  return request;
}

function call(method, path, document, type = 'application/json') {
  return new Promise((resolve, reject) => {
    const request = open(method, path, document && JSON.stringify(document), type, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => { text += chunk; })
        .on('end', () => resolve({ code: response.statusCode, body: JSON.parse(text) }));
    });
    request.on('error', reject);
  });
}

async function reconcile(greeting) {
  const { name, namespace, uid, generation } = greeting.metadata;
  if (greeting.metadata.deletionTimestamp || greeting.status?.observedGeneration === generation) return;
  const text = Array(greeting.spec.times).fill(greeting.spec.words).join(' ');
  const map = {
    apiVersion: 'v1', kind: 'ConfigMap', data: { text },
    metadata: { name, namespace, ownerReferences: [{ apiVersion: greeting.apiVersion, kind: greeting.kind, name, uid, controller: true, blockOwnerDeletion: true }] },
  };
  const applied = await call('PATCH', `/api/v1/namespaces/${namespace}/configmaps/${name}?fieldManager=operator&force=true`, map, 'application/apply-patch+yaml');
  if (applied.code >= 300) throw new Error(`the map of ${name}: ${applied.code} ${applied.body.message}`);
  const status = { status: { text, observedGeneration: generation } };
  const told = await call('PATCH', `/apis/demo.example.com/v1/namespaces/${namespace}/greetings/${name}/status`, status, 'application/merge-patch+json');
  if (told.code !== 200 && told.code !== 404) throw new Error(`the status of ${name}: ${told.code} ${told.body.message}`);
  console.log(`reconciled ${name} ${generation}`);
}

async function watch(version) {
  return new Promise((resolve, reject) => {
    open('GET', `${all}?watch=1&allowWatchBookmarks=true&resourceVersion=${version}`, null, null, (response) => {
      if (response.statusCode !== 200) { // expired, or the kind has gone: the next list says which
        response.resume().on('end', () => resolve(undefined));
        return;
      }
      let rest = '';
      let work = Promise.resolve();
      let last = version;
      response.setEncoding('utf8').on('data', (chunk) => {
        const lines = (rest + chunk).split('\n');
        rest = lines.pop();
        for (const line of lines.filter(Boolean)) {
          const { type, object } = JSON.parse(line);
          if (type === 'ERROR') { last = undefined; return; }
          last = object.metadata.resourceVersion;
          if (type === 'DELETED') console.log(`gone ${object.metadata.name}`);
          if (type === 'ADDED' || type === 'MODIFIED') work = work.then(() => reconcile(object));
        }
      }).on('end', () => work.then(() => resolve(last), reject)).on('error', reject);
    }).on('error', reject);
  });
}

for (;;) {
  const list = await call('GET', all);
  if (list.code === 404) { console.log('the kind is gone'); break; }
  if (list.code !== 200) throw new Error(`list: ${list.code} ${list.body.message}`);
  for (const greeting of list.body.items) await reconcile(greeting);
  console.log('watching');
  let version = list.body.metadata.resourceVersion;
  while (version !== undefined) {
    const before = version;
    version = await watch(version);
    if (version === before) break; // the watch ended without an event: check if the kind still exists
  }
}
agent.destroy();
