const { default: Sequencer } = require('@jest/test-sequencer');

/**
 * The order in which Jest starts test files: those with a control plane or machines take longest, and wait as much as they compute, so
 * they come first. The small unit tests fill the gaps at the end.
 */
module.exports = class LongestFirst extends Sequencer {
  sort(tests) {
    const isUnit = ({ context }) => context.config.displayName.name.startsWith('unit');
    const sorted = super.sort(tests);
    return [...sorted.filter((test) => !isUnit(test)), ...sorted.filter(isUnit)];
  }
};
