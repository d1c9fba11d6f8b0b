import { argumentProblems } from '../../../stacks/remote-cluster/validate';
import { agent, cluster, server } from './clusters';

/** What a machine is named by means one machine, wherever that is written. */
const first = server(1, { name: 'node1' });
const ofFirst = 'is also that of nodes[0]; each node needs its own';

test.each([
  [
    'the address of a later one',
    [first, agent(2, { address: 'node1' })],
    'nodes[1].name: "node1", the address, is also the name of nodes[0]; each node needs its own',
  ],
  [
    'the address of an earlier one',
    [server(1, { address: 'node1' }), agent(2, { name: 'node1' })],
    `nodes[1].name: "node1" ${ofFirst}`,
  ],
  ['the name of another', [first, agent(2, { name: 'node1' })], `nodes[1].name: "node1" ${ofFirst}`],
  [
    'the address of one with another name',
    [first, agent(2, { name: 'b', address: 'node1' })],
    'nodes[0].name: "node1" is also the address of nodes[1]; each node needs a name of its own',
  ],
])('a name that is %s is refused', (_, nodes, problem) => {
  expect(argumentProblems(cluster({ nodes })).map(({ path, message }) => `${path}: ${message}`)).toEqual([problem]);
});

test.each([
  ['that is the address of the same machine', [server(1, { name: 'node1', address: 'node1' }), agent(2)]],
  ['of its own', [first, agent(2)]],
])('a name %s is taken', (_, nodes) => {
  expect(argumentProblems(cluster({ nodes }))).toEqual([]);
});

test('two machines of one address are not told of twice: the schema does', () => {
  expect(argumentProblems(cluster({ nodes: [server(1), server(1)] }))).toEqual([]);
});
