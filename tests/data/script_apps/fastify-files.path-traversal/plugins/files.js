'use strict';
const { createReadStream } = require('fs');
const { join } = require('path');

module.exports = async function files(fastify, opts) {
  fastify.get('/files/*', async (request, reply) => {
    const wanted = request.params['*'];
    return reply.type('application/octet-stream').send(createReadStream(join(opts.root, wanted)));
  });
};
