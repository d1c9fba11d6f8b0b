import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { configDocuments } from './config-documents';

// `npm run config`: writes the parts of Pulumi.yaml and the documentation about the stack's configuration.
for (const { path, render } of configDocuments) {
  const file = join(__dirname, '..', path);
  const text = readFileSync(file, 'utf8');
  const rendered = render(text);
  if (rendered === text) continue;
  writeFileSync(file, rendered);
  console.log(path);
}
