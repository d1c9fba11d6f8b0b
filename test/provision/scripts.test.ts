import { testScripts } from './spec-scripts';

describe('rke2', () => testScripts('rke2'));
