import { App, Chart } from 'cdk8s';
import { CustomResource, HelloApp, Platform } from 'kindred/constructs';
import { Cache } from './cache';

const app = new App();

// What the cluster needs once: CRDs, permissions, and an operator whose image knows these kinds.
const platform = new Platform(app, 'platform', {
  operators: [{ name: 'shop', image: 'registry.example.com/shop-operator:1.0.0', kinds: [HelloApp, Cache] }],
});

// What the app is made of.
const shop = new Chart(app, 'shop', { namespace: 'shop' });
shop.addDependency(platform);
new CustomResource(shop, 'web', {
  kind: HelloApp,
  metadata: { name: 'web' },
  spec: { image: 'nginx:1.27', size: 3 },
});
new CustomResource(shop, 'cache', { kind: Cache, metadata: { name: 'cache' }, spec: { megabytes: 256 } });

app.synth();
