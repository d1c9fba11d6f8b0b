// The gate keeps the same of RKE2, whose scripts are mostly those of K3s: scripts.test.ts.
import { testScripts } from './spec-scripts';

describe('k3s', () => testScripts('k3s'));
