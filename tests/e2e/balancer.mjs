// A load balancer of a test's own: each request goes to one of several API servers by chance, over a connection that is
// kept. balancer.mjs PKI URL URL… prints its port and serves on loopback with the certificate of that folder until it is
// ended; the requests carry their own credentials.
import fs from 'node:fs';
import https from 'node:https';

const [pki, ...urls] = process.argv.slice(2);
const agent = new https.Agent({ ca: fs.readFileSync(`${pki}/ca.crt`), keepAlive: true });

function ask(request) {
  const to = new URL(urls[Math.floor(Math.random() * urls.length)]);
  return https.request({
    agent: request.headers.upgrade ? undefined : agent, ca: agent.options.ca, servername: 'localhost',
    host: to.hostname, port: to.port, method: request.method, path: request.url, headers: request.headersDistinct,
  });
}

const identity = { cert: fs.readFileSync(`${pki}/apiserver.crt`), key: fs.readFileSync(`${pki}/apiserver.key`) };
const server = https.createServer(identity, (request, answer) => {
  const asked = ask(request);
  asked.on('response', (given) => {
    answer.writeHead(given.statusCode, given.rawHeaders);
    answer.flushHeaders();
    given.pipe(answer);
    given.on('error', () => answer.destroy());
  });
  asked.on('error', () => answer.destroy());
  answer.on('close', () => asked.destroy());
  request.pipe(asked);
});

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
