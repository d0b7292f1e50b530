// A load balancer of a test's own: each request goes to one of several API servers by chance, over a connection that is
// kept. balancer.mjs [--http2] PKI URL URL… prints its port and serves HTTP/1.1 on loopback, with the certificate of that
// folder, until it is ended; the requests carry their own credentials. A server that refused a connection is left alone
// for a moment. --http2: to the servers it speaks HTTP/2, but for
// connections that are upgraded.
import fs from 'node:fs';
import http2 from 'node:http2';
import https from 'node:https';

const words = process.argv.slice(2);
const speaksHttp2 = words[0] === '--http2' && words.shift();
const [pki, ...urls] = words;
const ca = fs.readFileSync(`${pki}/ca.crt`);
const agent = new https.Agent({ ca, keepAlive: true });
const sessions = new Map();
const OF_A_CONNECTION = new Set(['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade', 'host', 'http2-settings', 'te']);

const REFUSED_FOR = 500;  // ms that a server which refused a connection is left alone for
const refused = new Map();

function anyUrl() {
  const open = urls.filter((url) => !(performance.now() - refused.get(url) < REFUSED_FOR));
  const among = open.length > 0 ? open : urls;
  return new URL(among[Math.floor(Math.random() * among.length)]);
}

function note(to, error) {
  if (error.code === 'ECONNREFUSED') refused.set(to.origin, performance.now());
}

function ask(request) {
  const to = anyUrl();
  const asked = https.request({
    agent: request.headers.upgrade ? undefined : agent, ca, servername: 'localhost',
    host: to.hostname, port: to.port, method: request.method, path: request.url, headers: request.headersDistinct,
  });
  asked.on('error', (error) => note(to, error));
  return asked;
}

function session(url) {
  let kept = sessions.get(url.host);
  if (!kept || kept.closed || kept.destroyed) {
    kept = http2.connect(url.origin, { ca, servername: 'localhost', settings: { enablePush: false } });
    kept.on('error', (error) => note(url, error));
    sessions.set(url.host, kept);
  }
  return kept;
}

// An answer may come before the request has arrived whole, and the server then reads no more of it. The client's rest is
// read all the same before the answer ends: a connection that is closed with bytes unread is reset, answer and all.
function forward(request, answer) {
  const asked = ask(request);
  let given;
  asked.on('response', (response) => {
    given = response;
    answer.writeHead(given.statusCode, given.rawHeaders);
    answer.flushHeaders();
    given.pipe(answer, { end: false });
    given.on('error', () => answer.destroy());
    given.on('end', () => {
      request.unpipe(asked);
      if (request.complete) return answer.end();
      request.on('end', () => answer.end()).resume();
    });
  });
  asked.on('error', () => { if (!given) answer.destroy(); });
  answer.on('close', () => asked.destroy());
  request.pipe(asked);
}

function forwardHttp2(request, answer) {
  const headers = { ':method': request.method, ':path': request.url };
  for (const [name, values] of Object.entries(request.headersDistinct)) {
    if (!OF_A_CONNECTION.has(name)) headers[name] = values.length === 1 ? values[0] : values;
  }
  const asked = session(anyUrl()).request(headers, { endStream: false });
  asked.on('response', (given) => {
    const lines = Object.entries(given).filter(([name]) => !name.startsWith(':'));
    answer.writeHead(given[':status'], Object.fromEntries(lines));
    answer.flushHeaders();
    asked.pipe(answer);
  });
  const leave = () => {  // the rest of a request that was answered before its end
    request.unpipe(asked);
    request.resume();
  };
  asked.on('aborted', () => {
    leave();
    if (asked.rstCode !== http2.constants.NGHTTP2_NO_ERROR && !asked.readableEnded) answer.destroy();
  });
  asked.on('error', () => { if (!answer.headersSent) answer.destroy(); });
  asked.on('close', () => {
    if (!answer.headersSent) answer.destroy();
    leave();
  });
  answer.on('close', () => asked.close(http2.constants.NGHTTP2_CANCEL));
  request.pipe(asked);
}

const identity = { cert: fs.readFileSync(`${pki}/apiserver.crt`), key: fs.readFileSync(`${pki}/apiserver.key`) };
const server = https.createServer(identity, speaksHttp2 ? forwardHttp2 : forward);

server.keepAliveTimeout = 600_000;  // clients may be idle for longer than the default

server.on('upgrade', (request, client, head) => {
  const asked = ask(request);
  asked.on('upgrade', (given, upstream, first) => {
    const lines = [];
    for (let i = 0; i < given.rawHeaders.length; i += 2) lines.push(`${given.rawHeaders[i]}: ${given.rawHeaders[i + 1]}`);
    client.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('\r\n')}\r\n\r\n`);
    upstream.write(head);
    client.write(first);
    upstream.pipe(client).pipe(upstream);
    for (const each of [client, upstream]) each.on('error', () => { client.destroy(); upstream.destroy(); });
  });
  asked.on('response', (given) => {
    client.write(`HTTP/1.1 ${given.statusCode} ${given.statusMessage}\r\nConnection: close\r\n\r\n`);
    given.pipe(client);
  });
  asked.on('error', () => client.destroy());
  asked.end();
});

server.listen(0, '127.0.0.1', () => console.log(server.address().port));
