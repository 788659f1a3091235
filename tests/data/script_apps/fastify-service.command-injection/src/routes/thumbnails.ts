import type { FastifyInstance } from 'fastify';
import { ThumbnailService } from '../services/thumbnails.js';

export default async function thumbnails(app: FastifyInstance) {
  const service = new ThumbnailService();
  app.post('/thumbnails', async (request, reply) => {
    const { file, width } = request.body as { file: string; width: number };
    const made = await service.createThumbnail(file, width);
    return reply.send({ made });
  });
}
