import Router from '@koa/router';
import { saveNote } from './storage.js';

const router = new Router({ prefix: '/notes' });

router.put('/', async (ctx) => {
  const { title, text } = ctx.request.body;
  await saveNote(ctx.state.user.id, title, text);
  ctx.status = 204;
});

export default router;
