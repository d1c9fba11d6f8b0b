// Prints each command line and environment in /proc once, until its stdin closes. A plain file, so that it starts at once.
'use strict';
const { readdirSync, readFileSync } = require('node:fs');

const seen = new Set();

function read(file) {
  try {
    return readFileSync(file, 'utf8').replaceAll('\0', ' ');
  } catch {
    return ''; // the process has ended
  }
}

function look() {
  const fresh = [];
  for (const pid of readdirSync('/proc')) {
    if (!/^[0-9]+$/.test(pid)) continue;
    for (const file of [`/proc/${pid}/cmdline`, `/proc/${pid}/environ`]) {
      const text = read(file);
      if (text === '' || seen.has(text)) continue;
      seen.add(text);
      fresh.push(text);
    }
  }
  if (fresh.length > 0) process.stdout.write(`${fresh.join('\n')}\n`);
}

look();
const timer = setInterval(look, 10);
process.stdin.on('end', () => {
  clearInterval(timer);
  look();
});
process.stdin.resume();
