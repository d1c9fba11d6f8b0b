const { join } = require('node:path');

/**
 * fast-check, whose properties try the same values in each run of the gate, so that nothing fails by chance there. `npm run test:all`
 * and `npm run test:long` try new ones each time; what they find tells its seed.
 */
const fastCheck = require(join(__dirname, '../../../node_modules/fast-check/lib/cjs/fast-check.js'));
if (process.env.KINDRED_NEW_VALUES === undefined) fastCheck.configureGlobal({ seed: 1 });
module.exports = fastCheck;
