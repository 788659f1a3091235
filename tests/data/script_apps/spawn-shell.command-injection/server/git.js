const { spawn } = require('child_process');
const { once } = require('events');

async function cloneRepository(address, branch) {
  const folder = `/tmp/import-${Date.now()}`;
  const child = spawn(`git clone -b ${branch} ${address} ${folder}`, { shell: true });
  await once(child, 'close');
  return folder;
}

module.exports = { cloneRepository };
