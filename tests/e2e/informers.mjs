// Informers of the stock client library on the ConfigMaps of `default`: informers.mjs MODULES KUBECONFIG COUNT. Each event is a
// line of JSON: [informer, verb, name, resourceVersion, count]. One that is cut off is started again, as its documents say.
import { createRequire } from 'node:module';

const [modules, kubeconfig, count] = process.argv.slice(2);
const lib = createRequire(`${modules}/x.js`)('@kubernetes/client-node');
const config = new lib.KubeConfig();
config.loadFromFile(kubeconfig);
const core = config.makeApiClient(lib.CoreV1Api);

for (let number = 0; number < Number(count); number++) {
  const informer = lib.makeInformer(config, '/api/v1/namespaces/default/configmaps', () => core.listNamespacedConfigMap({ namespace: 'default' }));
  for (const verb of ['add', 'update', 'delete']) {
    informer.on(verb, (map) => console.log(JSON.stringify([number, verb, map.metadata.name, Number(map.metadata.resourceVersion), map.data?.count ?? ''])));
  }
  informer.on('error', () => setTimeout(() => informer.start(), 200));
  informer.start();
}
